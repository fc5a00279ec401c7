//! A path walked one component at a time over held descriptors, so that what was checked is what is opened.
//!
//! No component is ever opened through a link: a link is read, and its target's components take its place in the work
//! to do. `..` goes back to the descriptor that was held before, never to what the file system calls the parent now,
//! so moving a directory out of the root while it is walked does not open a way out.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use super::aim::Aim;
use super::symlinks::{Seen, Symlinks};
use super::top::Top;
use super::{OpenError, system};

/// Opens `relative` under the rules of `symlinks`, which is not [`Symlinks::All`].
pub(super) fn walk(top: &Top, relative: &[u8], symlinks: Symlinks, aim: Aim) -> Result<OwnedFd, OpenError> {
    let mut walk = Walk {
        top,
        symlinks,
        aim,
        start: None,
        held: Vec::new(),
        steps: VecDeque::new(),
        found: None,
        links: 0,
    };
    walk.plan(relative);
    while let Some(step) = walk.steps.pop_front() {
        match step {
            Step::Name(name) => walk.enter(&name)?,
            Step::OwnedBy(uid) => walk.check_owner(uid)?,
        }
    }
    match walk.found.take() {
        Some(found) => Ok(found),
        // The path ended in `.`, `..` or a slash: the directory that was reached is meant.
        None => Ok(rustix::fs::openat(
            walk.here(),
            c".",
            aim.flags() | OFlags::DIRECTORY,
            Mode::empty(),
        )?),
    }
}

enum Step {
    Name(Vec<u8>),
    /// What has been reached by now is a link's target, and must belong to the link's owner.
    OwnedBy(u32),
}

struct Walk<'a> {
    top: &'a Top,
    symlinks: Symlinks,
    aim: Aim,
    /// Where the walk stands when nothing is held, if not at the root: only a link under [`Symlinks::Owner`] leads there.
    start: Option<OwnedFd>,
    /// The directories entered from `start`, outermost first.
    held: Vec<OwnedFd>,
    steps: VecDeque<Step>,
    /// The last component, opened as the caller wants it.
    found: Option<OwnedFd>,
    links: u32,
}

impl Walk<'_> {
    fn here(&self) -> BorrowedFd<'_> {
        let start = self.start.as_ref().map_or_else(|| self.top.as_fd(), AsFd::as_fd);
        self.held.last().map_or(start, AsFd::as_fd)
    }

    /// Puts the components of `path` before all other steps.
    fn plan(&mut self, path: &[u8]) {
        for part in path.rsplit(|&byte| byte == b'/') {
            // Kept at the end only, where it says that a directory is meant.
            let says_nothing = part.is_empty() && self.steps.iter().any(|step| matches!(step, Step::Name(_)));
            if !says_nothing {
                self.steps.push_front(Step::Name(part.to_vec()));
            }
        }
    }

    fn enter(&mut self, name: &[u8]) -> Result<(), OpenError> {
        match name {
            b"" | b"." => return Ok(()),
            b".." => return self.leave(),
            _ => {}
        }
        let last = !self.steps.iter().any(|step| matches!(step, Step::Name(_)));
        let flags = if last {
            self.aim.flags()
        } else {
            system::STEP | OFlags::CLOEXEC
        };
        match rustix::fs::openat(self.here(), name, flags | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(entered) => {
                if last && self.aim == Aim::Look && system::is_link(entered.as_fd())? {
                    return self.follow(name, Errno::LOOP);
                }
                if last {
                    self.found = Some(entered);
                } else if self.held.len() == MAX_DEPTH {
                    return Err(OpenError::Resources);
                } else {
                    self.held.push(entered);
                }
                Ok(())
            }
            // How a system says that O_NOFOLLOW met a link: ELOOP, with O_DIRECTORY also ENOTDIR, on BSD EMLINK.
            Err(errno @ (Errno::LOOP | Errno::NOTDIR | Errno::MLINK)) => self.follow(name, errno),
            Err(errno) => Err(errno.into()),
        }
    }

    fn leave(&mut self) -> Result<(), OpenError> {
        if self.held.pop().is_some() {
            return Ok(());
        }
        if self.symlinks == Symlinks::Inside {
            return Err(OpenError::Escapes);
        }
        self.start = Some(rustix::fs::openat(
            self.here(),
            c"..",
            system::STEP | OFlags::CLOEXEC,
            Mode::empty(),
        )?);
        Ok(())
    }

    /// Replaces the link `name` by the way it points; `met` is why it was taken for a link.
    fn follow(&mut self, name: &[u8], met: Errno) -> Result<(), OpenError> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(OpenError::NotFound);
        }
        let (target, uid) = match system::see(self.here(), name)? {
            Seen::Link { target, uid } => (target, uid),
            Seen::Other if met == Errno::NOTDIR => return Err(OpenError::NotFound),
            // It was a link a moment ago; look again.
            Seen::Other => {
                self.steps.push_front(Step::Name(name.to_vec()));
                return Ok(());
            }
        };
        if self.symlinks == Symlinks::Owner {
            self.steps.push_front(Step::OwnedBy(uid));
        }
        if target.first() != Some(&b'/') {
            self.plan(&target);
            return Ok(());
        }
        let way = match self.symlinks {
            Symlinks::Inside => self.top.within(&target).ok_or(OpenError::Escapes)?,
            _ => {
                self.start = Some(rustix::fs::openat(
                    CWD,
                    c"/",
                    system::STEP | OFlags::CLOEXEC,
                    Mode::empty(),
                )?);
                &target[1..]
            }
        };
        self.held.clear();
        self.plan(way);
        Ok(())
    }

    fn check_owner(&self, uid: u32) -> Result<(), OpenError> {
        let reached = self.found.as_ref().map_or_else(|| self.here(), AsFd::as_fd);
        if rustix::fs::fstat(reached)?.st_uid == uid {
            Ok(())
        } else {
            Err(OpenError::Forbidden)
        }
    }
}

/// As many as Linux follows in one look-up (`MAXSYMLINKS`).
const MAX_LINKS: u32 = 40;
/// Directories held open at once by one walk: far deeper than websites are, far below the usual 1,024 descriptors.
const MAX_DEPTH: usize = 128;
