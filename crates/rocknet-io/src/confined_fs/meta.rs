//! Attributes of a file: kind, size, modification time, permissions, owner and identity.

use std::os::fd::BorrowedFd;

use rustix::fs::{FileType, Stat};

use super::OpenError;

/// Kind of a file that can be served. All other kinds are treated as if they did not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
}

/// Attributes of a file at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Regular file or directory.
    pub kind: FileKind,
    /// Size in bytes.
    pub size: u64,
    /// Modification time in nanoseconds since the Unix epoch, negative for earlier times. The range of the type covers
    /// the times of every file system.
    pub modified_ns: i128,
    /// Device number. Together with `inode`, it identifies a file among all files that exist at the same time.
    pub device: u64,
    /// Inode number; unique within `device` only.
    pub inode: u64,
    /// Permission bits (the low 12 bits of `st_mode`).
    pub mode: u32,
    /// User ID of the owner.
    pub uid: u32,
}

impl Meta {
    /// Returns the attributes of an open file or directory. Fails with [`OpenError::NotFound`] for a file of another
    /// kind.
    pub(super) fn of(descriptor: BorrowedFd<'_>) -> Result<Self, OpenError> {
        Self::from_stat(&rustix::fs::fstat(descriptor)?)
    }

    /// Converts the result of `stat(2)`. Fails with [`OpenError::NotFound`] unless it describes a regular file or a
    /// directory.
    // Some systems need these casts, because the widths of the fields of `Stat` differ.
    #[allow(clippy::unnecessary_cast)]
    pub(super) fn from_stat(stat: &Stat) -> Result<Self, OpenError> {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => FileKind::File,
            FileType::Directory => FileKind::Directory,
            _ => return Err(OpenError::NotFound),
        };
        Ok(Self {
            kind,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified_ns: i128::from(stat.st_mtime) * NANOSECONDS_PER_SECOND + stat.st_mtime_nsec as i128,
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            mode: stat.st_mode as u32 & PERMISSIONS,
            uid: stat.st_uid,
        })
    }
}

/// Returns whether the file is a regular file.
pub(super) fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

/// Returns whether the file is a symbolic link.
pub(super) fn is_link(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Symlink
}

/// Number of nanoseconds in one second.
const NANOSECONDS_PER_SECOND: i128 = 1_000_000_000;
/// The bits of `st_mode` that do not encode the kind.
const PERMISSIONS: u32 = 0o7777;
