//! Checks whether a path leads to a file, a folder or nothing, for the condition `exists` of rules.

use std::io::ErrorKind;

use rocknet_config::model::Existence;
use rocknet_io::confined_fs::{FileKind, OpenError};
use rocknet_proto::semantics::safe_path::SafePath;

use crate::disk_lookup::DiskLookup;
use crate::failure_log;
use crate::tree::Tree;

/// The lookup failed, so it is not known whether the file exists. The reason was logged, unless the lookup would block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookupFailed;

/// Returns what a decoded path leads to. Names that are never served, because they begin with a dot, do not exist. A
/// path with a trailing slash leads to a folder or to nothing.
///
/// # Errors
///
/// Fails if the process has no descriptor or memory left, if the file system fails, or if a non-blocking lookup would
/// block.
pub fn existence(lookup: &DiskLookup, tree: &Tree, path: &str) -> Result<Existence, LookupFailed> {
    let path = match SafePath::from_decoded(path) {
        Ok(path) if !path.has_dot_segment() => path,
        _ => return Ok(Existence::Nothing),
    };
    let root = match lookup.root(tree) {
        Ok(root) => root,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Existence::Nothing);
        }
        // The caller discards the result of a lookup that would block.
        Err(_) if lookup.would_block() => return Err(LookupFailed),
        Err(error) => {
            failure_log::root(tree, &error, "cannot open the folder of a site");
            return Err(LookupFailed);
        }
    };
    // A path outside of the alias of the tree leads to none of its files.
    let Some(inside) = tree.inside(path.as_str()) else {
        return Ok(Existence::Nothing);
    };
    let relative = inside.trim_matches('/').as_bytes();
    match lookup.kind(&root, relative, tree.symlinks) {
        Ok(FileKind::Directory) => Ok(Existence::Folder),
        Ok(FileKind::File) if path.is_directory() => Ok(Existence::Nothing),
        Ok(FileKind::File) => Ok(Existence::File),
        Err(OpenError::NotFound | OpenError::Escapes | OpenError::Forbidden) => Ok(Existence::Nothing),
        Err(OpenError::WouldBlock) => Err(LookupFailed),
        Err(error @ OpenError::Resources) => {
            failure_log::shortage(tree, &error);
            Err(LookupFailed)
        }
        Err(OpenError::Io(cause)) => {
            failure_log::unreadable(tree, relative, &cause);
            Err(LookupFailed)
        }
    }
}
