//! Root directory at which every lookup begins, and the absolute names by which symbolic links may refer to it.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};

use super::system;

/// Root directory, opened once.
#[derive(Debug)]
pub(super) struct RootDirectory {
    directory: OwnedFd,
    /// Absolute names of the directory, without a trailing slash. An absolute link that begins with one of them is
    /// resolved from `directory`.
    names: Vec<Vec<u8>>,
}

impl RootDirectory {
    /// Opens the directory, and records two names: the given one, and the one without symbolic links.
    pub fn open(path: &Path) -> io::Result<Self> {
        let directory = rustix::fs::openat(CWD, path, system::TRAVERSE | OFlags::CLOEXEC, Mode::empty())?;
        let mut names = vec![without_trailing_slashes(&fs::canonicalize(path)?)];
        let given = without_trailing_slashes(&std::path::absolute(path)?);
        if !names.contains(&given) {
            names.push(given);
        }
        Ok(Self { directory, names })
    }

    /// Returns the part of an absolute path that follows the name of the root; `None` for a path outside the root.
    pub fn strip_root<'a>(&self, absolute: &'a [u8]) -> Option<&'a [u8]> {
        self.names.iter().find_map(|name| {
            let rest = absolute.strip_prefix(name.as_slice())?;
            (rest.is_empty() || rest[0] == b'/').then_some(rest)
        })
    }
}

impl AsFd for RootDirectory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

/// Returns the bytes of a path without its trailing slashes; for `/` the result is empty.
fn without_trailing_slashes(path: &Path) -> Vec<u8> {
    let mut name = path.as_os_str().as_bytes().to_vec();
    while name.last() == Some(&b'/') {
        name.pop();
    }
    name
}
