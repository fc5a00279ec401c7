//! Root-confined file system: opens files below a directory. No path and no race leads outside that directory, except
//! by a symbolic link that the link policy [`Symlinks::Owner`] or [`Symlinks::All`] follows.
//!
//! The directory is opened once, and every path is resolved from that descriptor. On Linux `openat2` with
//! `RESOLVE_BENEATH` confines the lookup. The kernel refuses links that lead out, and all absolute links, even those
//! that point back inside the directory. The path is walked component by component over open descriptors in four cases:
//! after such a refusal, under [`Symlinks::Owner`], after repeated collisions with renames, and where `openat2` is not
//! available.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use crate::read_ahead::ReadAhead;

mod access;
mod error;
mod list;
mod meta;
mod root_directory;
mod symlinks;
mod walk;

#[cfg(target_os = "linux")]
#[path = "confined_fs/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "confined_fs/portable.rs"]
mod system;

// The race tests exchange two names atomically. This finds the most races, and is possible only on Linux.
#[cfg(all(test, target_os = "linux"))]
mod races;
#[cfg(test)]
mod tests;

pub use error::OpenError;
pub use list::{DirEntry, Listing, OpenDirectory};
pub use meta::{FileKind, Meta};
pub use symlinks::Symlinks;

use access::Access;
use root_directory::RootDirectory;

/// Open directory to which the lookup of files is confined, as far as the policy for links requires.
///
/// The descriptor remains open, so that renaming the directory, or replacing it by a link, does not affect lookups.
///
/// ```
/// use rocknet_io::confined_fs::{OpenError, Root, Symlinks};
///
/// let root = Root::open(env!("CARGO_MANIFEST_DIR")).unwrap();
/// let opened = root.open_file(b"src/lib.rs", Symlinks::Inside).unwrap();
/// assert!(opened.meta.size > 0);
/// let outside = root.open_file(b"../Cargo.toml", Symlinks::Inside);
/// assert!(matches!(outside, Err(OpenError::Escapes)));
/// ```
#[derive(Debug)]
pub struct Root {
    directory: RootDirectory,
    /// The path given to [`Root::open`].
    path: PathBuf,
    /// Confined lookups that the kernel supports for this directory.
    lookup: system::KernelLookup,
}

/// File or directory opened below a root, with its attributes at the time of opening.
#[derive(Debug)]
pub struct OpenedFile {
    /// The open descriptor. For a directory that the process has no permission to read, it only permits `fstat`.
    pub file: File,
    /// Attributes of the file, read from the descriptor.
    pub meta: Meta,
}

impl Root {
    /// Opens `path` as a root. The path may be or contain a symbolic link, because it comes from the operator.
    ///
    /// # Errors
    ///
    /// Fails if `path` is not a directory, or if the process has no permission to reach it. On systems other than
    /// Linux, the process also needs permission to read the directory.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let directory = RootDirectory::open(path)?;
        let lookup = system::KernelLookup::probe(directory.as_fd());
        Ok(Self {
            directory,
            path: path.to_path_buf(),
            lookup,
        })
    }

    /// Returns the path given to [`Root::open`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a regular file or directory for reading. May block on the disk.
    ///
    /// # Errors
    ///
    /// Returns [`OpenError::NotFound`] for FIFOs, sockets and devices too, and otherwise the variant that describes the
    /// failure. Never returns [`OpenError::WouldBlock`].
    pub fn open_file(&self, relative: &[u8], symlinks: Symlinks) -> Result<OpenedFile, OpenError> {
        let relative = validated(relative)?;
        match self.open_at(relative, symlinks, Access::Read) {
            // A directory without read permission can still contain files to serve, so the caller has to know that it
            // is a directory.
            Err(OpenError::Forbidden) => {
                let opened = into_opened(self.open_at(relative, symlinks, Access::StatOnly)?)?;
                if opened.meta.kind == FileKind::Directory {
                    Ok(opened)
                } else {
                    Err(OpenError::Forbidden)
                }
            }
            result => into_opened(result?),
        }
    }

    /// Opens like `open_file`, but only if the kernel has every name of the path in its cache.
    ///
    /// Never blocks on the disk, so that an event loop can call it. The contents of the file may still have to be read
    /// from disk.
    ///
    /// # Errors
    ///
    /// Returns [`OpenError::WouldBlock`] if a name is not cached, the kernel cannot look up cached names below this
    /// root, the path leads into a mount below the root, the policy is [`Symlinks::Owner`], or permission is missing.
    /// Under [`Symlinks::Inside`], this is also the error for a link that leads out or is absolute. After this error,
    /// the caller has to use [`Root::open_file`]. All other errors are those of [`Root::open_file`].
    pub fn open_cached(&self, relative: &[u8], symlinks: Symlinks) -> Result<OpenedFile, OpenError> {
        let relative = validated(relative)?;
        // Checking the owners of links requires several system calls, some of which could block.
        if symlinks == Symlinks::Owner {
            return Err(OpenError::WouldBlock);
        }
        let beneath = symlinks == Symlinks::Inside;
        match self
            .lookup
            .open_cached(self.directory.as_fd(), relative, beneath, Access::Read.flags())
        {
            // The caller repeats these lookups with `open_file`, which may block.
            Err(Errno::AGAIN | Errno::XDEV | Errno::ACCESS) => Err(OpenError::WouldBlock),
            Err(error) => Err(error.into()),
            Ok(descriptor) => into_opened(descriptor),
        }
    }

    /// Returns whether `open_cached` can succeed below this root. If not, the file system may be a remote or FUSE one,
    /// where even `fstat` of an open descriptor may block.
    pub fn has_cached_lookup(&self) -> bool {
        self.lookup.has_cached()
    }

    /// Starts loading the names that `open_cached` needs into the kernel's cache, on the event loop of this thread. The
    /// returned future ends when the names are loaded or cannot be loaded.
    ///
    /// Returns `None` if the event loop cannot load names or has too many operations in progress, if `relative` is
    /// invalid, or if `open_cached` never succeeds below this root or with this policy.
    pub fn prefetch_names(self: &Arc<Self>, relative: &[u8], symlinks: Symlinks) -> Option<ReadAhead> {
        if symlinks == Symlinks::Owner {
            return None;
        }
        let relative = validated(relative).ok()?;
        self.lookup
            .prefetch_names(self.clone(), relative, symlinks == Symlinks::Inside)
    }

    /// Returns the attributes of a file or directory without opening it for reading. May block on the disk.
    ///
    /// # Errors
    ///
    /// As [`Root::open_file`], but on Linux permission to read the file is not required.
    pub fn stat(&self, relative: &[u8], symlinks: Symlinks) -> Result<Meta, OpenError> {
        let found = self.open_at(validated(relative)?, symlinks, Access::StatOnly)?;
        Meta::of(found.as_fd())
    }

    /// Returns whether a regular file seems to exist at `relative`, with a single system call and without a guarantee.
    ///
    /// Meant for the compressed forms `x.br`, `x.zst` and `x.gz` of a file, most of which do not exist. Links are
    /// followed even out of the root, so only opening the file decides whether it may be served.
    pub fn may_contain(&self, relative: &[u8]) -> bool {
        validated(relative).is_ok_and(|relative| {
            rustix::fs::statat(&self.directory, relative, AtFlags::empty()).is_ok_and(|stat| meta::is_regular(&stat))
        })
    }

    /// Reads at most `max_entries` names of a directory, and returns those of files and directories in no particular
    /// order. Sockets, FIFOs, devices and links that cannot be followed are left out, but count towards `max_entries`.
    ///
    /// # Errors
    ///
    /// As [`Root::open_file`]; [`OpenError::NotFound`] if `relative` is not a directory.
    pub fn list(&self, relative: &[u8], symlinks: Symlinks, max_entries: usize) -> Result<Listing, OpenError> {
        let mut directory = self.open_directory(relative, symlinks)?;
        let mut entries = Vec::new();
        let seen = self.read_directory(&mut directory, max_entries, &mut entries)?;
        let truncated = seen == max_entries && self.read_directory(&mut directory, 1, &mut Vec::new())? > 0;
        Ok(Listing { entries, truncated })
    }

    /// Opens the directory at `relative` to read it in steps.
    ///
    /// # Errors
    ///
    /// Fails like [`Root::list`].
    pub fn open_directory(&self, relative: &[u8], symlinks: Symlinks) -> Result<OpenDirectory, OpenError> {
        let relative = validated(relative)?;
        OpenDirectory::new(self.open_at(relative, symlinks, Access::Read)?, relative, symlinks)
    }

    /// Reads at most `max_names` further names from a directory below this root, and appends the files and directories
    /// among them to `entries`, like [`Root::list`]. Returns the number of names read, which is below `max_names` only
    /// at the end.
    ///
    /// # Errors
    ///
    /// [`OpenError::Resources`] or [`OpenError::Io`] if the system fails to read the directory or the attributes of a
    /// file. A link that is dangling or must not be followed is left out and is no error.
    pub fn read_directory(
        &self,
        directory: &mut OpenDirectory,
        max_names: usize,
        entries: &mut Vec<DirEntry>,
    ) -> Result<usize, OpenError> {
        list::read(directory, max_names, entries, |directory, name| {
            self.stat(&[&directory.relative[..], b"/", name].concat(), directory.symlinks)
        })
    }

    /// Opens the validated path `relative` under the link policy.
    fn open_at(&self, relative: &[u8], symlinks: Symlinks, access: Access) -> Result<OwnedFd, OpenError> {
        let flags = access.flags();
        match symlinks {
            Symlinks::All => Ok(rustix::fs::openat(&self.directory, relative, flags, Mode::empty())?),
            Symlinks::Owner => walk::walk(&self.directory, relative, symlinks, access),
            Symlinks::Inside => match self.lookup.open_beneath(self.directory.as_fd(), relative, flags) {
                // EXDEV: a link leads out, or is absolute and may lead back in. EAGAIN: concurrent renames. ENOSYS:
                // the kernel lacks `openat2`, or a sandbox forbids it. The walk handles all three.
                Err(Errno::XDEV | Errno::AGAIN | Errno::NOSYS) => {
                    walk::walk(&self.directory, relative, symlinks, access)
                }
                result => Ok(result?),
            },
        }
    }
}

/// Returns the attributes of the file or directory at `path` if the kernel has every name of the path in its cache.
/// Returns `None` if a name is not cached, and after any other error. Links are followed anywhere, so `path` must come
/// from the operator.
pub fn stat_cached(path: &Path) -> Option<Meta> {
    let found = system::stat_cached(path).ok()?;
    Meta::of(found.as_fd()).ok()
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

/// Strips leading slashes, and rejects paths with `..` or NUL bytes. Returns `.` for the root itself.
fn validated(relative: &[u8]) -> Result<&[u8], OpenError> {
    let start = relative.iter().position(|&byte| byte != b'/').unwrap_or(relative.len());
    let relative = &relative[start..];
    // `..` is removed from the paths of requests long before this point. A path that still contains it shows a bug in
    // the caller, and under `Symlinks::Owner` and `Symlinks::All` no later check would reject it.
    if relative.split(|&byte| byte == b'/').any(|part| part == b"..") {
        return Err(OpenError::Escapes);
    }
    if relative.contains(&0) {
        return Err(OpenError::NotFound);
    }
    Ok(if relative.is_empty() { b"." } else { relative })
}

/// Adds the attributes of the file. Fails with [`OpenError::NotFound`] for FIFOs, sockets and devices.
fn into_opened(descriptor: OwnedFd) -> Result<OpenedFile, OpenError> {
    let meta = Meta::of(descriptor.as_fd())?;
    Ok(OpenedFile {
        file: File::from(descriptor),
        meta,
    })
}
