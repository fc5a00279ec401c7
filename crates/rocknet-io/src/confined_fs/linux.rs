//! Lookups that the Linux kernel confines to a directory (`openat2`).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::symlinks::LinkTarget;
use crate::read_ahead::ReadAhead;

/// Flags that open a file for its attributes only, which requires no permission to read the file.
pub(super) const STAT_ONLY: OFlags = OFlags::PATH;
/// Flags that open a directory for lookups below it, which requires no permission to list the directory.
pub(super) const TRAVERSE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);

/// Features of `openat2` that this kernel and the sandbox around the process allow.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelLookup {
    /// True if `openat2` with `RESOLVE_BENEATH` works.
    openat2: bool,
    /// True if `RESOLVE_CACHED` works too, and the file system is known to be local.
    cached: bool,
}

impl KernelLookup {
    /// Tests the calls once per root, because a seccomp filter may return EPERM, which a later lookup would report as
    /// missing permission for the file.
    pub(super) fn probe(directory: BorrowedFd<'_>) -> Self {
        let works =
            |resolve| match rustix::fs::openat2(directory, c".", STAT_ONLY | OFlags::CLOEXEC, Mode::empty(), resolve) {
                // EAGAIN (a name is not cached) and a lack of descriptors or memory do not mean that the call is
                // unsupported.
                Ok(_) | Err(Errno::AGAIN | Errno::MFILE | Errno::NFILE | Errno::NOMEM) => true,
                Err(_) => false,
            };
        let openat2 = works(BENEATH);
        Self {
            openat2,
            cached: openat2 && works(BENEATH | ResolveFlags::CACHED) && is_local(directory),
        }
    }

    /// Disables `openat2`, so that tests on every kernel cover the walk, which opens one component after the other.
    #[cfg(test)]
    pub(super) const NONE: Self = Self {
        openat2: false,
        cached: false,
    };

    /// Returns whether the kernel supports lookups that use only cached names.
    pub(super) fn has_cached(self) -> bool {
        self.cached
    }

    /// Opens a path that does not leave `root`. Fails with ENOSYS if `openat2` is not available.
    pub(super) fn open_beneath(self, root: BorrowedFd<'_>, relative: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        if !self.openat2 {
            return Err(Errno::NOSYS);
        }
        let mut retries = 0;
        loop {
            match rustix::fs::openat2(root, relative, flags, Mode::empty(), BENEATH) {
                Err(Errno::AGAIN) if retries < MAX_RETRIES => retries += 1,
                result => return result,
            }
        }
    }

    /// Opens a path whose names are all in the kernel's cache. `beneath`: true if the path must not leave `root`. Fails
    /// with EAGAIN if a name is not cached, or if the kernel cannot look up cached names. Fails with EXDEV if the path
    /// enters a mount below `root`, because its file system may be a remote one.
    pub(super) fn open_cached(
        self,
        root: BorrowedFd<'_>,
        relative: &[u8],
        beneath: bool,
        flags: OFlags,
    ) -> Result<OwnedFd, Errno> {
        if !self.cached {
            return Err(Errno::AGAIN);
        }
        rustix::fs::openat2(
            root,
            relative,
            flags,
            Mode::empty(),
            resolve_flags(beneath) | SAME_MOUNT | ResolveFlags::CACHED,
        )
    }

    /// Starts loading the names of a path into the kernel's cache, on the io_uring ring of this thread. `beneath`: true
    /// if the path must not leave `directory`. Returns `None` if the kernel cannot look up cached names, if this thread
    /// has no ring, or if its ring accepts no further operation.
    pub(super) fn prefetch_names(self, directory: Arc<dyn AsFd>, relative: &[u8], beneath: bool) -> Option<ReadAhead> {
        if !self.cached {
            return None;
        }
        Some(Box::pin(crate::io_uring::prefetch_path(
            directory,
            relative,
            resolve_flags(beneath) | SAME_MOUNT,
        )?))
    }
}

/// Opens `path` for its attributes only. Fails with EAGAIN if a name of the path is not in the kernel's cache.
pub(super) fn stat_cached(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::openat2(
        CWD,
        path,
        STAT_ONLY | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::CACHED,
    )
}

/// Returns the restrictions of a lookup. `beneath`: true if the path must not leave the directory at which it begins.
fn resolve_flags(beneath: bool) -> ResolveFlags {
    if beneath { BENEATH } else { ResolveFlags::empty() }
}

/// Returns whether the directory is on a file system that is known to be local or in memory. On other file systems
/// (network, FUSE), opening a file or querying its size may wait for another machine or program, even if all names are
/// cached.
fn is_local(directory: BorrowedFd<'_>) -> bool {
    /// Types of local and in-memory file systems, as `statfs(2)` reports them.
    const LOCAL: &[u64] = &[
        0xef53,      // ext2, ext3, ext4
        0x5846_5342, // XFS
        0x9123_683e, // Btrfs
        0xca45_1a4e, // bcachefs
        0xf2f5_2010, // F2FS
        0x2fc1_2fc1, // ZFS
        0x0102_1994, // tmpfs
        0x8584_58f6, // ramfs
        0x794c_7630, // overlayfs
        0x7371_7368, // SquashFS
        0xe0f5_e1e2, // EROFS
        0x2011_bab0, // exFAT
        0x4d44,      // FAT
    ];
    // The type is a 32-bit number, stored in a field that is signed on some systems.
    rustix::fs::fstatfs(directory).is_ok_and(|system| LOCAL.contains(&(system.f_type as u64 & 0xffff_ffff)))
}

/// Keeps [`KernelLookup::open_cached`] and [`KernelLookup::prefetch_names`] within the file system of the root. A mount
/// below the root may be a remote one, on which `fstat` may block and an operation of the ring may never end.
const SAME_MOUNT: ResolveFlags = ResolveFlags::NO_XDEV;

/// Reads a symbolic link without following it. Owner and target are those of the same link, because both are read from
/// one descriptor.
pub(super) fn read_link(directory: BorrowedFd<'_>, name: &[u8]) -> Result<LinkTarget, Errno> {
    let flags = STAT_ONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = rustix::fs::openat(directory, name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&found)?;
    if !super::meta::is_link(&stat) {
        return Ok(LinkTarget::NotALink);
    }
    let target = rustix::fs::readlinkat(&found, c"", Vec::new())?;
    Ok(LinkTarget::Link {
        target: target.into_bytes(),
        uid: stat.st_uid,
    })
}

/// Returns whether an O_PATH descriptor opened with O_NOFOLLOW refers to a link.
pub(super) fn is_link(found: BorrowedFd<'_>) -> Result<bool, Errno> {
    Ok(super::meta::is_link(&rustix::fs::fstat(found)?))
}

/// Confines a lookup. `RESOLVE_BENEATH` today also refuses magic links (`/proc/self/fd/3`), but the manual page
/// recommends setting `RESOLVE_NO_MAGICLINKS` nevertheless.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);
/// Maximum number of retries of `openat2`. The kernel returns EAGAIN if any name on the system is renamed while it
/// resolves a `..`. A small number suffices, because after the last retry the caller walks the path component by
/// component, and renames do not make that walk fail.
const MAX_RETRIES: u32 = 4;
