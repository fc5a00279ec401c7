//! Alias of a route: a folder or a file that takes the place of a path of the site.

use std::path::PathBuf;

/// Place of the folder of a route with `alias` in the paths of the site. The folder itself is the root of the route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    /// Path of the site whose place the folder takes, without a slash at its end; empty for the whole site.
    pub path: String,
    /// Name of the file in the root, if the alias is a single file.
    pub file: Option<String>,
    /// `root` that the route would have without the alias: the document root of scripts, with the error pages.
    pub document_root: Option<PathBuf>,
}
