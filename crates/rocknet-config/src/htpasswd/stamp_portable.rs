//! File metadata that reveals a change of the content, on systems without inodes and modes.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::Path;
use std::time::SystemTime;

/// Metadata of a file. Two stamps of a file differ if its size or modification time has changed in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    modified: Option<SystemTime>,
    size: u64,
    is_regular: bool,
}

impl Stamp {
    /// Returns the stamp of the file at a path.
    ///
    /// # Errors
    ///
    /// Fails if the metadata cannot be read.
    pub fn of(path: &Path) -> io::Result<Stamp> {
        fs::metadata(path).map(|metadata| Stamp::from(&metadata))
    }

    /// Returns true for a regular file.
    pub fn is_regular(&self) -> bool {
        self.is_regular
    }

    /// Returns false, because the system has no file modes.
    pub fn is_readable_by_all(&self) -> bool {
        false
    }

    /// Returns false, because the system has no file modes.
    pub fn is_writable_by_all(&self) -> bool {
        false
    }
}

/// Opens a file to read it.
///
/// # Errors
///
/// Returns the error of the file system.
pub(super) fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Stamp {
        Stamp {
            modified: metadata.modified().ok(),
            size: metadata.len(),
            is_regular: metadata.is_file(),
        }
    }
}
