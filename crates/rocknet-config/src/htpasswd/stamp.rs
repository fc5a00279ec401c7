//! File metadata that reveals a change of the content, with the permissions of the file.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Metadata of a file. Two stamps of a file differ if its content may have changed in between. They include the change
/// time of the inode, because a program that copies a file may set an older modification time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Modification time: seconds and nanoseconds.
    modified: (i64, i64),
    /// Change time of the inode: seconds and nanoseconds.
    changed: (i64, i64),
    size: u64,
    /// Numbers of the device and of the inode.
    inode: (u64, u64),
    /// Type and permissions of the file.
    mode: u32,
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
        self.mode & FILE_TYPE == REGULAR
    }

    /// Returns true if every user of the machine can read the file.
    pub fn is_readable_by_all(&self) -> bool {
        self.mode & 0o004 != 0
    }

    /// Returns true if every user of the machine can write to the file.
    pub fn is_writable_by_all(&self) -> bool {
        self.mode & 0o002 != 0
    }
}

/// Opens a file to read it. Does not wait for the other end of a FIFO, and acquires no controlling terminal.
///
/// # Errors
///
/// Returns the error of the file system.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

/// Bits of the file type, and their value for a regular file (POSIX `S_IFMT`, `S_IFREG`).
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
