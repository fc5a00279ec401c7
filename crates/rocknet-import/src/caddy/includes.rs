//! Rules for the inclusion of files by `import`.

use std::path::{Path, PathBuf};

use crate::directive::{Directive, SyntaxError};
use crate::include::{IncludeRequest, IncludeRules};

use super::snippet;

/// Rules for `import` of files. An `import` of a snippet is kept.
pub(crate) struct CaddyIncludes;

impl IncludeRules for CaddyIncludes {
    fn read(&self, text: &str) -> Result<Vec<Directive>, SyntaxError> {
        super::read(text)
    }

    fn request(&self, directive: &Directive, known: &[Vec<Directive>]) -> Option<IncludeRequest> {
        let ("import", [path, ..]) = (directive.name.as_str(), &directive.words()[..]) else {
            return None;
        };
        let name = format!("({path})");
        let is_snippet = known.iter().flatten().any(|known| known.name == name);
        let is_file = !is_snippet && directive.block.is_none();
        is_file.then(|| IncludeRequest {
            path: (*path).to_owned(),
            // The name may belong to a snippet that is defined elsewhere.
            may_be_snippet: true,
        })
    }

    fn folder(&self, file: &Path) -> PathBuf {
        file.parent().unwrap_or(Path::new("")).to_owned()
    }

    fn adapt(&self, directives: Vec<Directive>, include: &Directive) -> Vec<Directive> {
        snippet::with_arguments(directives, include.arguments.get(1..).unwrap_or_default())
    }
}
