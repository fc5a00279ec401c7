//! Walks a path, one component at a time over open descriptors, so that the object that is checked is the object that
//! is opened.
//!
//! No component is opened through a link. The link is read instead, and the components of its target are queued in its
//! place. `..` returns to the directory from which the walk entered the current one, not to the current parent in the
//! file system. Moving a directory out of the root during the walk therefore opens no way out. Only links under
//! [`Symlinks::Owner`] can go up from the root itself.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use super::access::Access;
use super::root_directory::RootDirectory;
use super::symlinks::{LinkTarget, Symlinks};
use super::{OpenError, system};

/// Opens `relative` under the policy `symlinks`, which must not be [`Symlinks::All`]. `relative` must contain no `..`,
/// because under [`Symlinks::Owner`] the walk would follow it out of the root. The targets of links may contain `..`.
pub(super) fn walk(
    root: &RootDirectory,
    relative: &[u8],
    symlinks: Symlinks,
    access: Access,
) -> Result<OwnedFd, OpenError> {
    let mut walk = Walk {
        root,
        symlinks,
        access,
        start: None,
        held: Vec::new(),
        steps: VecDeque::new(),
        found: None,
        links: 0,
    };
    walk.push_components(relative);
    while let Some(step) = walk.steps.pop_front() {
        match step {
            WalkStep::Name(name) => walk.open_component(&name)?,
            WalkStep::CheckOwner(uid) => walk.check_owner(uid)?,
        }
    }
    match walk.found.take() {
        Some(found) => Ok(found),
        // The path ended in `.`, `..` or a slash, so it names the current directory of the walk.
        None => Ok(rustix::fs::openat(
            walk.current(),
            c".",
            access.flags() | OFlags::DIRECTORY,
            Mode::empty(),
        )?),
    }
}

/// Step of a walk.
enum WalkStep {
    /// Opens this component in the current directory.
    Name(Vec<u8>),
    /// Requires that the file reached by a link has this owner, which is the owner of the link.
    CheckOwner(u32),
}

/// Walk in progress.
struct Walk<'a> {
    root: &'a RootDirectory,
    symlinks: Symlinks,
    access: Access,
    /// Current directory while `held` is empty; `None` for the root. It is `Some` only after a link under
    /// [`Symlinks::Owner`] has led to `/` or above the root.
    start: Option<OwnedFd>,
    /// Directories entered below `start`, outermost first.
    held: Vec<OwnedFd>,
    /// Remaining steps, the next one first.
    steps: VecDeque<WalkStep>,
    /// The last component, opened with the requested access.
    found: Option<OwnedFd>,
    /// Number of names examined as links so far.
    links: u32,
}

impl Walk<'_> {
    /// Returns the directory in which the next component is looked up.
    fn current(&self) -> BorrowedFd<'_> {
        let start = self.start.as_ref().map_or_else(|| self.root.as_fd(), AsFd::as_fd);
        self.held.last().map_or(start, AsFd::as_fd)
    }

    /// Queues the components of `path` before all other steps.
    fn push_components(&mut self, path: &[u8]) {
        for part in path.rsplit(|&byte| byte == b'/') {
            // An empty component matters at the end of the path only, where it requires a directory.
            let is_redundant = part.is_empty() && self.steps.iter().any(|step| matches!(step, WalkStep::Name(_)));
            if !is_redundant {
                self.steps.push_front(WalkStep::Name(part.to_vec()));
            }
        }
    }

    /// Enters a directory, opens the last component, or queues the target of a link.
    fn open_component(&mut self, name: &[u8]) -> Result<(), OpenError> {
        match name {
            b"" | b"." => return Ok(()),
            b".." => return self.go_up(),
            _ => {}
        }
        let is_last = !self.steps.iter().any(|step| matches!(step, WalkStep::Name(_)));
        let flags = if is_last {
            self.access.flags()
        } else {
            system::TRAVERSE | OFlags::CLOEXEC
        };
        match rustix::fs::openat(self.current(), name, flags | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(entered) => {
                // For attributes alone, Linux opens the link itself instead of failing with ELOOP.
                if is_last && self.access == Access::StatOnly && system::is_link(entered.as_fd())? {
                    return self.follow_link(name, Errno::LOOP);
                }
                if is_last {
                    self.found = Some(entered);
                } else if self.held.len() == MAX_DEPTH {
                    return Err(OpenError::Resources);
                } else {
                    self.held.push(entered);
                }
                Ok(())
            }
            // The errors for a link under O_NOFOLLOW are ELOOP, with O_DIRECTORY also ENOTDIR, and on BSD EMLINK.
            Err(errno @ (Errno::LOOP | Errno::NOTDIR | Errno::MLINK)) => self.follow_link(name, errno),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Returns to the directory that the walk came from. At `start`, only a walk under [`Symlinks::Owner`] can go up,
    /// to the parent in the file system.
    fn go_up(&mut self) -> Result<(), OpenError> {
        if self.held.pop().is_some() {
            return Ok(());
        }
        if self.symlinks == Symlinks::Inside {
            return Err(OpenError::Escapes);
        }
        self.start = Some(rustix::fs::openat(
            self.current(),
            c"..",
            system::TRAVERSE | OFlags::CLOEXEC,
            Mode::empty(),
        )?);
        Ok(())
    }

    /// Replaces the link `name` by the components of its target. `error` is the error of the failed open that indicated
    /// a link, or ELOOP if the link itself was opened.
    fn follow_link(&mut self, name: &[u8], error: Errno) -> Result<(), OpenError> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(OpenError::NotFound);
        }
        let (target, uid) = match system::read_link(self.current(), name)? {
            LinkTarget::Link { target, uid } => (target, uid),
            LinkTarget::NotALink if error == Errno::NOTDIR => return Err(OpenError::NotFound),
            // The name was a link a moment ago, so the step is repeated.
            LinkTarget::NotALink => {
                self.steps.push_front(WalkStep::Name(name.to_vec()));
                return Ok(());
            }
        };
        if self.symlinks == Symlinks::Owner {
            self.steps.push_front(WalkStep::CheckOwner(uid));
        }
        if target.first() != Some(&b'/') {
            self.push_components(&target);
            return Ok(());
        }
        let rest = match self.symlinks {
            Symlinks::Inside => self.root.strip_root(&target).ok_or(OpenError::Escapes)?,
            _ => {
                self.start = Some(rustix::fs::openat(
                    CWD,
                    c"/",
                    system::TRAVERSE | OFlags::CLOEXEC,
                    Mode::empty(),
                )?);
                &target[1..]
            }
        };
        self.held.clear();
        self.push_components(rest);
        Ok(())
    }

    /// Fails if the file or directory reached so far does not belong to the user `uid`.
    fn check_owner(&self, uid: u32) -> Result<(), OpenError> {
        let reached = self.found.as_ref().map_or_else(|| self.current(), AsFd::as_fd);
        if rustix::fs::fstat(reached)?.st_uid == uid {
            Ok(())
        } else {
            Err(OpenError::Forbidden)
        }
    }
}

/// Maximum number of links in one lookup, as in Linux (`MAXSYMLINKS`).
const MAX_LINKS: u32 = 40;
/// Maximum number of directories that one walk keeps open. Websites are far less deep, and the usual limit is 1,024
/// descriptors.
const MAX_DEPTH: usize = 128;
