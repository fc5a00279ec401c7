//! Opening files below a directory so that no path, link or race leads outside it.
//!
//! The directory is opened once and held; every later path is resolved from that descriptor. Where the kernel can keep
//! a look-up below a directory (`openat2`), it does; elsewhere, and for what the kernel refuses though it is allowed
//! (absolute links that point back inside), the path is walked component by component over held descriptors.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::ahead::Ahead;

mod error;
mod list;
mod meta;
mod walk;

#[cfg(target_os = "linux")]
#[path = "beneath/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "beneath/portable.rs"]
mod system;

// Swapping two names in one step, which finds the most races, is a call of Linux.
#[cfg(all(test, target_os = "linux"))]
mod races;
#[cfg(test)]
mod tests;

pub use error::OpenError;
pub use list::{Entry, Listing};
pub use meta::{Kind, Meta};

/// An open directory: the place below which files are looked up.
///
/// The descriptor is held, so renaming the directory or replacing it by a link changes nothing for look-ups under way.
#[derive(Debug)]
pub struct Root {
    directory: OwnedFd,
    path: PathBuf,
    /// The absolute names of the directory, without a slash at the end: an absolute link that begins with one of them
    /// is taken to start at `directory`.
    names: Vec<Vec<u8>>,
    lookup: system::Lookup,
}

/// Which symbolic links below a root are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Symlinks {
    /// Those that stay inside the root.
    #[default]
    Inside,
    /// Those whose target, wherever it is, belongs to the owner of the link.
    Owner,
    /// All of them, wherever they lead.
    All,
}

/// A file or directory opened below a root, with what was true of it when it was opened.
#[derive(Debug)]
pub struct Opened {
    /// A directory that may be entered but not read has a descriptor good for nothing but `fstat`.
    pub file: File,
    pub meta: Meta,
}

/// What the descriptor is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    Read,
    Look,
}

impl Aim {
    fn flags(self) -> OFlags {
        match self {
            // Non-blocking: opening a FIFO must not wait for a writer before `fstat` can tell that it is one.
            Self::Read => OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY,
            Self::Look => system::LOOK | OFlags::CLOEXEC,
        }
    }
}

impl Root {
    /// Opens `path`, which may itself be or lead through a link: the operator named it.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let directory = rustix::fs::openat(CWD, path, system::STEP | OFlags::CLOEXEC, Mode::empty())?;
        let mut names = vec![name(&fs::canonicalize(path)?)];
        let written = name(&std::path::absolute(path)?);
        if !names.contains(&written) {
            names.push(written);
        }
        let lookup = system::Lookup::probe(directory.as_fd());
        Ok(Self {
            directory,
            path: path.to_path_buf(),
            names,
            lookup,
        })
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a regular file or directory for reading; anything else there is not found. May wait for the disk.
    pub fn open_file(&self, relative: &[u8], symlinks: Symlinks) -> Result<Opened, OpenError> {
        let relative = checked(relative)?;
        match self.reach(relative, symlinks, Aim::Read) {
            // A directory without the read bit can still hold files to serve, so its caller must learn that it is one.
            Err(OpenError::Forbidden) => {
                let opened = opened(self.reach(relative, symlinks, Aim::Look)?)?;
                if opened.meta.kind == Kind::Directory {
                    Ok(opened)
                } else {
                    Err(OpenError::Forbidden)
                }
            }
            reached => opened(reached?),
        }
    }

    /// As `open_file`, if the kernel has every name on the way in memory; else [`OpenError::WouldBlock`].
    ///
    /// An event loop may call this: it waits for no disk. A file it opens may still have its content on the disk.
    pub fn open_cached(&self, relative: &[u8], symlinks: Symlinks) -> Result<Opened, OpenError> {
        let relative = checked(relative)?;
        // Which link belongs to whom is found by many calls, some of which could wait.
        if symlinks == Symlinks::Owner {
            return Err(OpenError::WouldBlock);
        }
        let beneath = symlinks == Symlinks::Inside;
        match self
            .lookup
            .cached(self.directory.as_fd(), relative, beneath, Aim::Read.flags())
        {
            // These have a second look in `open_file`, which may wait.
            Err(Errno::AGAIN | Errno::XDEV | Errno::ACCESS) => Err(OpenError::WouldBlock),
            Err(error) => Err(error.into()),
            Ok(descriptor) => opened(descriptor),
        }
    }

    /// Whether `open_cached` can find anything here. Where it cannot, the file system may be one that asks somebody else, and
    /// even a look at an open descriptor may wait.
    pub fn tells_from_memory(&self) -> bool {
        self.lookup.knows_cached()
    }

    /// Has this thread's event loop bring what `open_cached` lacks into the kernel's memory. `None`: it has no means for it,
    /// or nothing would come of it.
    pub fn names_ahead(self: &Arc<Self>, relative: &[u8], symlinks: Symlinks) -> Option<Ahead> {
        if symlinks == Symlinks::Owner {
            return None;
        }
        system::names_ahead(self, checked(relative).ok()?, symlinks == Symlinks::Inside)
    }

    /// What is there, without opening it for reading.
    pub fn stat(&self, relative: &[u8], symlinks: Symlinks) -> Result<Meta, OpenError> {
        let found = self.reach(checked(relative)?, symlinks, Aim::Look)?;
        Meta::of(found.as_fd())
    }

    /// Whether it is worth opening `relative`: one system call, no promise.
    ///
    /// Meant for the neighbours `x.br`, `x.zst` and `x.gz` of a file, most of which do not exist. Links are followed
    /// anywhere, so only the opening that comes after decides what may be served.
    pub fn may_hold(&self, relative: &[u8]) -> bool {
        checked(relative).is_ok_and(|relative| {
            rustix::fs::statat(&self.directory, relative, AtFlags::empty()).is_ok_and(|stat| meta::is_regular(&stat))
        })
    }

    /// At most `max_entries` of the names in a directory, in no order; names that could not be opened are left out.
    pub fn list(&self, relative: &[u8], symlinks: Symlinks, max_entries: usize) -> Result<Listing, OpenError> {
        let relative = checked(relative)?;
        let directory = self.reach(relative, symlinks, Aim::Read)?;
        list::read(self, relative, directory, symlinks, max_entries)
    }

    fn reach(&self, relative: &[u8], symlinks: Symlinks, aim: Aim) -> Result<OwnedFd, OpenError> {
        let flags = aim.flags();
        match symlinks {
            Symlinks::All => Ok(rustix::fs::openat(&self.directory, relative, flags, Mode::empty())?),
            Symlinks::Owner => walk::walk(self, relative, symlinks, aim),
            Symlinks::Inside => match self.lookup.beneath(self.directory.as_fd(), relative, flags) {
                // EXDEV: a link leads out, or is absolute and may lead back in. EAGAIN: something moved meanwhile.
                // ENOSYS: there is no such call. The walk can tell.
                Err(Errno::XDEV | Errno::AGAIN | Errno::NOSYS) => walk::walk(self, relative, symlinks, aim),
                reached => Ok(reached?),
            },
        }
    }

    /// The rest of an absolute path whose beginning is the root, or `None` for a path elsewhere.
    fn within<'a>(&self, absolute: &'a [u8]) -> Option<&'a [u8]> {
        self.names.iter().find_map(|name| {
            let rest = absolute.strip_prefix(name.as_slice())?;
            (rest.is_empty() || rest[0] == b'/').then_some(rest)
        })
    }
}

/// What is at a path, if the kernel has all names on the way in memory. A path of the operator: links lead anywhere.
pub fn look_cached(path: &Path) -> Option<Meta> {
    let found = system::look_cached(path).ok()?;
    Meta::of(found.as_fd()).ok()
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

/// The path without slashes at its front, `.` for the root itself.
fn checked(relative: &[u8]) -> Result<&[u8], OpenError> {
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

fn opened(descriptor: OwnedFd) -> Result<Opened, OpenError> {
    let meta = Meta::of(descriptor.as_fd())?;
    Ok(Opened {
        file: File::from(descriptor),
        meta,
    })
}

fn name(path: &Path) -> Vec<u8> {
    let mut name = path.as_os_str().as_bytes().to_vec();
    while name.last() == Some(&b'/') {
        name.pop();
    }
    name
}
