//! What a file's metadata say about a change of its content, and who may read and write it.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Differs where the content may differ. The time of the change of the inode is in it, because a program that copies a
/// file may set the time of its modification to an older one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    modified: (i64, i64),
    changed: (i64, i64),
    size: u64,
    inode: (u64, u64),
    mode: u32,
}

impl Stamp {
    pub fn of(path: &Path) -> io::Result<Stamp> {
        fs::metadata(path).map(|metadata| Stamp::from(&metadata))
    }

    pub fn is_regular(&self) -> bool {
        self.mode & FILE_TYPE == REGULAR
    }

    pub fn is_readable_by_all(&self) -> bool {
        self.mode & 0o004 != 0
    }

    pub fn is_writable_by_all(&self) -> bool {
        self.mode & 0o002 != 0
    }
}

/// Bits of the type of a file, and the value of a regular one (POSIX `S_IFMT`, `S_IFREG`).
const FILE_TYPE: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Stamp {
        Stamp {
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            size: metadata.size(),
            inode: (metadata.dev(), metadata.ino()),
            mode: metadata.mode(),
        }
    }
}
