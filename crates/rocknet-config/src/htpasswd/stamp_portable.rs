//! What a file's metadata say about a change of its content, where there are no inodes and modes.

use std::fs;
use std::io;
use std::path::Path;
use std::time::SystemTime;

/// Differs where the content may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    modified: Option<SystemTime>,
    size: u64,
    is_regular: bool,
}

impl Stamp {
    pub fn of(path: &Path) -> io::Result<Stamp> {
        fs::metadata(path).map(|metadata| Stamp {
            modified: metadata.modified().ok(),
            size: metadata.len(),
            is_regular: metadata.is_file(),
        })
    }

    pub fn is_regular(&self) -> bool {
        self.is_regular
    }

    pub fn is_readable_by_all(&self) -> bool {
        false
    }

    pub fn is_writable_by_all(&self) -> bool {
        false
    }
}
