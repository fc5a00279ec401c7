//! Rules for the inclusion of files by `Include` and `IncludeOptional`.

use std::path::{Path, PathBuf};

use rocknet_config::environment::{Environment, FileKind};

use crate::directive::{Directive, SyntaxError};
use crate::include::{IncludeRequest, IncludeRules, root_folder};

use super::context::ServerContext;

/// Rules for `Include` and `IncludeOptional`.
pub(crate) struct ApacheIncludes<'a> {
    environment: &'a dyn Environment,
    /// Folder of relative paths, unless `ServerRoot` names another one.
    folder: PathBuf,
}

impl<'a> ApacheIncludes<'a> {
    pub fn new(environment: &'a dyn Environment, file: &Path) -> ApacheIncludes<'a> {
        let folder = root_folder(environment, file, &["apache2.conf", "httpd.conf", "conf/httpd.conf"]);
        // On Red Hat, the main file is conf/httpd.conf below the root. For a file in `conf`, the name `httpd.conf`
        // finds `conf`, whose parent is the root. For one in `conf.d`, `conf/httpd.conf` finds the root itself.
        let folder = match folder.ends_with("conf") {
            true => folder.parent().unwrap_or(&folder).to_owned(),
            false => folder,
        };
        ApacheIncludes { environment, folder }
    }
}

impl IncludeRules for ApacheIncludes<'_> {
    fn read(&self, text: &str) -> Result<Vec<Directive>, SyntaxError> {
        super::read(text)
    }

    fn request(&self, directive: &Directive, known: &[Vec<Directive>]) -> Option<IncludeRequest> {
        let is_include = directive.is("Include") || directive.is("IncludeOptional");
        let [path] = directive.words()[..] else { return None };
        if !is_include {
            return None;
        }
        let mut definitions = Vec::new();
        // `known` has one list of directives for each file and section that contains this directive.
        known
            .iter()
            .for_each(|directives| collect_definitions(directives, &mut definitions));
        let path = ServerContext::collect(definitions.iter().copied()).expand(path)?;
        let root = definitions.iter().rev().find(|definition| definition.is("ServerRoot"));
        let root = root.map_or(Path::new(""), |root| Path::new(root.argument(0)));
        // A configuration that was copied from another machine may name a root that does not exist here. The path is
        // then relative to `folder`.
        let path = match self.environment.kind(root) {
            Some(FileKind::Directory) => root.join(path).to_string_lossy().into_owned(),
            _ => path,
        };
        Some(IncludeRequest {
            path,
            may_be_snippet: false,
        })
    }

    fn folder(&self, _file: &Path) -> PathBuf {
        self.folder.clone()
    }
}

/// Collects the `Define` and `ServerRoot` directives of a list, including those inside `<IfModule>` and similar
/// sections.
fn collect_definitions<'d>(directives: &'d [Directive], into: &mut Vec<&'d Directive>) {
    for directive in directives {
        match &directive.block {
            None if directive.is("Define") || directive.is("ServerRoot") => into.push(directive),
            Some(block) if super::is_applied_condition(directive) => collect_definitions(block, into),
            _ => {}
        }
    }
}
