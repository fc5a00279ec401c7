//! Rules for the inclusion of files by `include`.

use std::path::{Path, PathBuf};

use rocknet_config::environment::{Environment, FileKind};

use crate::directive::{Directive, SyntaxError};
use crate::include::{IncludeRequest, IncludeRules, root_folder};

/// Files of distributions whose settings RockNet does not need.
const COVERED: [&str; 7] = [
    "mime.types",
    "uwsgi_params",
    "scgi_params",
    "fastcgi_params",
    "fastcgi.conf",
    "fastcgi-php.conf",
    "options-ssl-nginx.conf",
];

/// File of distributions that is read if it exists on this machine, because its `proxy_…` directives have counterparts.
/// If it is missing, it is treated like the files in [`COVERED`].
const STANDARD: &str = "proxy_params";

/// Returns true if the usual settings of an included file are not needed.
pub(super) fn is_covered(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    COVERED.contains(&name) || name == STANDARD
}

/// Rules for `include`.
pub(crate) struct NginxIncludes<'a> {
    environment: &'a dyn Environment,
    /// Folder of `nginx.conf`, which relative paths of all files are relative to.
    folder: PathBuf,
}

impl<'a> NginxIncludes<'a> {
    pub fn new(environment: &'a dyn Environment, file: &Path) -> NginxIncludes<'a> {
        NginxIncludes {
            environment,
            folder: root_folder(environment, file, &["nginx.conf"]),
        }
    }
}

impl IncludeRules for NginxIncludes<'_> {
    fn read(&self, text: &str) -> Result<Vec<Directive>, SyntaxError> {
        super::read(text)
    }

    fn request(&self, directive: &Directive, _known: &[Vec<Directive>]) -> Option<IncludeRequest> {
        let ("include", [path]) = (directive.name.as_str(), &directive.words()[..]) else {
            return None;
        };
        let is_standard = path.ends_with(STANDARD);
        let exists = || self.environment.kind(&self.folder.join(path)) == Some(FileKind::File);
        let is_read = !is_covered(path) || is_standard && exists();
        is_read.then(|| IncludeRequest {
            path: (*path).to_owned(),
            may_be_snippet: false,
        })
    }

    fn folder(&self, _file: &Path) -> PathBuf {
        self.folder.clone()
    }
}
