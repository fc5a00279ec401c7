//! Alias of a route: a folder or a file that takes the place of a path of the site.

use std::path::PathBuf;

/// Path of the site that `alias` of a route replaces. The folder of the alias, or the folder that contains its file, is
/// the root of the route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    /// Path of the site that is replaced, without a slash at its end; empty for the whole site.
    pub path: String,
    /// Name of the file in the root; `None` if the alias is a folder.
    pub file: Option<String>,
    /// `root` that the route would have without the alias: the document root of scripts. The pages of `errors` are
    /// below it, too.
    pub document_root: Option<PathBuf>,
}
