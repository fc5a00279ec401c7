//! Lookups on systems whose kernel cannot confine them to a directory: every confined lookup opens one path component
//! after the other (`walk.rs`).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;

use super::symlinks::LinkTarget;
use crate::read_ahead::ReadAhead;

/// Flags that open a file for its attributes. This requires permission to read the file, because not every system has
/// O_PATH.
pub(super) const STAT_ONLY: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
/// Flags that open a directory for lookups below it.
pub(super) const TRAVERSE: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// Replacement for the kernel's confined lookups, which this system does not support. Every lookup fails, so the
/// caller walks the path, or repeats a cached lookup as one that may block.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelLookup;

impl KernelLookup {
    /// Returns the only value.
    pub(super) fn probe(_directory: BorrowedFd<'_>) -> Self {
        Self
    }

    /// Value that makes tests walk the path, as every value does on this system.
    #[cfg(test)]
    pub(super) const NONE: Self = Self;

    /// Returns false, because no lookup can be restricted to cached names.
    pub(super) fn has_cached(self) -> bool {
        false
    }

    /// Fails with ENOSYS, so that the caller walks the path.
    pub(super) fn open_beneath(
        self,
        _root: BorrowedFd<'_>,
        _relative: &[u8],
        _flags: OFlags,
    ) -> Result<OwnedFd, Errno> {
        Err(Errno::NOSYS)
    }

    /// Fails with EAGAIN, so that the caller repeats the lookup as one that may block.
    pub(super) fn open_cached(
        self,
        _root: BorrowedFd<'_>,
        _relative: &[u8],
        _beneath: bool,
        _flags: OFlags,
    ) -> Result<OwnedFd, Errno> {
        Err(Errno::AGAIN)
    }

    /// Returns `None`, because this system cannot load names in advance.
    pub(super) fn prefetch_names(
        self,
        _directory: Arc<dyn AsFd>,
        _relative: &[u8],
        _beneath: bool,
    ) -> Option<ReadAhead> {
        None
    }
}

/// Stands in for opening a file for its attributes from cached names only. Fails with EAGAIN, because this system
/// cannot restrict a lookup to cached names.
pub(super) fn stat_cached(_path: &Path) -> Result<OwnedFd, Errno> {
    Err(Errno::AGAIN)
}

/// Reads a symbolic link without following it. The owner and the target of the link are read one after the other. In
/// between, only a user who may change the directory can exchange the link. The owner of the target is checked on the
/// opened descriptor in any case.
pub(super) fn read_link(directory: BorrowedFd<'_>, name: &[u8]) -> Result<LinkTarget, Errno> {
    let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if !super::meta::is_link(&stat) {
        return Ok(LinkTarget::NotALink);
    }
    let target = rustix::fs::readlinkat(directory, name, Vec::new())?;
    Ok(LinkTarget::Link {
        target: target.into_bytes(),
        uid: stat.st_uid,
    })
}

/// Returns false, because O_NOFOLLOW without O_PATH never opens a link.
pub(super) fn is_link(_found: BorrowedFd<'_>) -> Result<bool, Errno> {
    Ok(false)
}
