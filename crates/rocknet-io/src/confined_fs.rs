//! Opening files below a directory so that no path, link or race leads outside it.
//!
//! The directory is opened once and held; every later path is resolved from that descriptor. Where the kernel can keep
//! a look-up below a directory (`openat2`), it does; elsewhere, and for what the kernel refuses though it is allowed
//! (absolute links that point back inside), the path is walked component by component over held descriptors.

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

// Swapping two names in one step, which finds the most races, is a call of Linux.
#[cfg(all(test, target_os = "linux"))]
mod races;
#[cfg(test)]
mod tests;

pub use error::OpenError;
pub use list::{DirEntry, Listing};
pub use meta::{FileKind, Meta};
pub use symlinks::Symlinks;

use access::Access;
use root_directory::RootDirectory;

/// An open directory: the place below which files are looked up.
///
/// The descriptor is held, so renaming the directory or replacing it by a link changes nothing for look-ups under way.
#[derive(Debug)]
pub struct Root {
    directory: RootDirectory,
    path: PathBuf,
    lookup: system::KernelLookup,
}

/// A file or directory opened below a root, with what was true of it when it was opened.
#[derive(Debug)]
pub struct OpenedFile {
    /// A directory that may be entered but not read has a descriptor good for nothing but `fstat`.
    pub file: File,
    pub meta: Meta,
}

impl Root {
    /// Opens `path`, which may itself be or lead through a link: the operator named it.
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

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a regular file or directory for reading; anything else there is not found. May wait for the disk.
    pub fn open_file(&self, relative: &[u8], symlinks: Symlinks) -> Result<OpenedFile, OpenError> {
        let relative = validated(relative)?;
        match self.open_at(relative, symlinks, Access::Read) {
            // A directory without the read bit can still hold files to serve, so its caller must learn that it is one.
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

    /// As `open_file`, if the kernel has every name on the way in memory; else [`OpenError::WouldBlock`].
    ///
    /// An event loop may call this: it waits for no disk. A file it opens may still have its content on the disk.
    pub fn open_cached(&self, relative: &[u8], symlinks: Symlinks) -> Result<OpenedFile, OpenError> {
        let relative = validated(relative)?;
        // Which link belongs to whom is found by many calls, some of which could wait.
        if symlinks == Symlinks::Owner {
            return Err(OpenError::WouldBlock);
        }
        let beneath = symlinks == Symlinks::Inside;
        match self
            .lookup
            .open_cached(self.directory.as_fd(), relative, beneath, Access::Read.flags())
        {
            // These have a second look in `open_file`, which may wait.
            Err(Errno::AGAIN | Errno::XDEV | Errno::ACCESS) => Err(OpenError::WouldBlock),
            Err(error) => Err(error.into()),
            Ok(descriptor) => into_opened(descriptor),
        }
    }

    /// Whether `open_cached` can find anything here. Where it cannot, the file system may be one that asks somebody else, and
    /// even a look at an open descriptor may wait.
    pub fn has_cached_lookup(&self) -> bool {
        self.lookup.has_cached()
    }

    /// Has this thread's event loop bring what `open_cached` lacks into the kernel's memory. `None`: it has no means for it,
    /// or nothing would come of it.
    pub fn prefetch_names(self: &Arc<Self>, relative: &[u8], symlinks: Symlinks) -> Option<ReadAhead> {
        if symlinks == Symlinks::Owner {
            return None;
        }
        let relative = validated(relative).ok()?;
        self.lookup
            .prefetch_names(self.clone(), relative, symlinks == Symlinks::Inside)
    }

    /// What is there, without opening it for reading.
    pub fn stat(&self, relative: &[u8], symlinks: Symlinks) -> Result<Meta, OpenError> {
        let found = self.open_at(validated(relative)?, symlinks, Access::StatOnly)?;
        Meta::of(found.as_fd())
    }

    /// Whether it is worth opening `relative`: one system call, no promise.
    ///
    /// Meant for the neighbours `x.br`, `x.zst` and `x.gz` of a file, most of which do not exist. Links are followed
    /// anywhere, so only the opening that comes after decides what may be served.
    pub fn may_contain(&self, relative: &[u8]) -> bool {
        validated(relative).is_ok_and(|relative| {
            rustix::fs::statat(&self.directory, relative, AtFlags::empty()).is_ok_and(|stat| meta::is_regular(&stat))
        })
    }

    /// At most `max_entries` of the names in a directory, in no order; names that could not be opened are left out.
    pub fn list(&self, relative: &[u8], symlinks: Symlinks, max_entries: usize) -> Result<Listing, OpenError> {
        let relative = validated(relative)?;
        let directory = self.open_at(relative, symlinks, Access::Read)?;
        list::read(directory, max_entries, |name| {
            self.stat(&[relative, b"/", name].concat(), symlinks)
        })
    }

    fn open_at(&self, relative: &[u8], symlinks: Symlinks, access: Access) -> Result<OwnedFd, OpenError> {
        let flags = access.flags();
        match symlinks {
            Symlinks::All => Ok(rustix::fs::openat(&self.directory, relative, flags, Mode::empty())?),
            Symlinks::Owner => walk::walk(&self.directory, relative, symlinks, access),
            Symlinks::Inside => match self.lookup.open_beneath(self.directory.as_fd(), relative, flags) {
                // EXDEV: a link leads out, or is absolute and may lead back in. EAGAIN: something moved meanwhile.
                // ENOSYS: there is no such call. The walk can tell.
                Err(Errno::XDEV | Errno::AGAIN | Errno::NOSYS) => {
                    walk::walk(&self.directory, relative, symlinks, access)
                }
                result => Ok(result?),
            },
        }
    }
}

/// What is at a path, if the kernel has all names on the way in memory. A path of the operator: links lead anywhere.
pub fn stat_cached(path: &Path) -> Option<Meta> {
    let found = system::stat_cached(path).ok()?;
    Meta::of(found.as_fd()).ok()
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

/// The path without slashes at its front, `.` for the root itself.
fn validated(relative: &[u8]) -> Result<&[u8], OpenError> {
    let start = relative.iter().position(|&byte| byte != b'/').unwrap_or(relative.len());
    let relative = &relative[start..];
    // A request has lost its `..` long before; one that comes here is a mistake not to be acted upon, and with
    // `Symlinks::All` nothing below would stop it.
    if relative.split(|&byte| byte == b'/').any(|part| part == b"..") {
        return Err(OpenError::Escapes);
    }
    if relative.contains(&0) {
        return Err(OpenError::NotFound);
    }
    Ok(if relative.is_empty() { b"." } else { relative })
}

fn into_opened(descriptor: OwnedFd) -> Result<OpenedFile, OpenError> {
    let meta = Meta::of(descriptor.as_fd())?;
    Ok(OpenedFile {
        file: File::from(descriptor),
        meta,
    })
}
