//! Lists of folders for the chooser of folders, and new folders.

use std::fs;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use crate::job::{FolderTrouble, Listing};

/// Maximum number of entries of a folder that are looked at.
const MAX_ENTRIES: usize = 20_000;

/// Lists the folders in a folder; an empty path means the home folder. Links to folders are folders. Names that are not
/// UTF-8 are left out, because the configuration cannot name them.
///
/// # Errors
///
/// Fails if the folder cannot be read.
pub fn list(folder: &Path) -> Result<Listing, FolderTrouble> {
    let path = match folder.as_os_str().is_empty() {
        true => home(),
        false => folder.to_owned(),
    };
    let mut entries = path.read_dir().map_err(|error| trouble(&error))?;
    let mut folders = Vec::new();
    for entry in entries.by_ref().take(MAX_ENTRIES).flatten() {
        let is_folder = match entry.file_type() {
            Ok(kind) if kind.is_symlink() => entry.path().is_dir(),
            Ok(kind) => kind.is_dir(),
            Err(_) => false,
        };
        if is_folder && let Ok(name) = entry.file_name().into_string() {
            folders.push(name);
        }
    }
    folders.sort_by_cached_key(|name| (name.to_lowercase(), name.clone()));
    Ok(Listing {
        path,
        folders,
        left_out: entries.count(),
    })
}

/// Creates a folder.
///
/// # Errors
///
/// Fails if the name is taken, or the folder above it is missing or cannot be written.
pub fn create(folder: &Path) -> Result<(), FolderTrouble> {
    fs::create_dir(folder).map_err(|error| trouble(&error))
}

fn home() -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    home.filter(|home| home.is_absolute()).unwrap_or_else(|| "/".into())
}

fn trouble(error: &Error) -> FolderTrouble {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => FolderTrouble::Missing,
        ErrorKind::PermissionDenied => FolderTrouble::Denied,
        ErrorKind::AlreadyExists => FolderTrouble::Exists,
        _ => FolderTrouble::Other(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_listed_and_created() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        for name in ["b", "A", ".hidden"] {
            create(&root.join(name)).unwrap();
        }
        fs::write(root.join("file"), "").unwrap();
        std::os::unix::fs::symlink(root.join("b"), root.join("link")).unwrap();
        std::os::unix::fs::symlink(root.join("nowhere"), root.join("dangling")).unwrap();
        let listing = list(root).unwrap();
        assert_eq!(listing.folders, [".hidden", "A", "b", "link"]);
        assert_eq!((&*listing.path, listing.left_out), (root, 0));
        assert_eq!(list(&root.join("c")), Err(FolderTrouble::Missing));
        assert_eq!(list(&root.join("file")), Err(FolderTrouble::Missing));
        assert_eq!(create(&root.join("b")), Err(FolderTrouble::Exists));
        assert_eq!(create(&root.join("c/d")), Err(FolderTrouble::Missing));
        assert!(list(Path::new("")).is_ok_and(|listing| listing.path.is_absolute()));
    }
}
