//! A Unix socket bound to a file: a dead server's file is taken over, a living one's is not, and ours is removed at the end.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use socket2::{Domain, SockAddr, Socket, Type};

/// The file of a listening socket, removed on drop if it is still the one that was made.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    /// Device and inode: a file that somebody else has put there since is not ours to remove.
    identity: (u64, u64),
    kept: AtomicBool,
}

impl SocketFile {
    pub(super) fn keep(&self) {
        self.kept.store(true, Ordering::Relaxed);
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if !self.kept.load(Ordering::Relaxed) && identity(&self.path).is_ok_and(|now| now == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens on a socket file, with the permissions of [`MODE`].
pub(super) fn bind(path: &Path, backlog: i32) -> io::Result<(OwnedFd, SocketFile)> {
    let address = SockAddr::unix(path)?;
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // Two servers that start at once would both find the dead file, and the second would remove the first one's new
    // one. The directory itself is the lock, so that nothing is left lying about.
    let directory = rustix::fs::open(
        directory,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    lock(&directory)?;
    remove_stale(path, &address)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    // On Linux the file is made with the mode that its socket has; without this, everyone might connect for a moment.
    // Elsewhere this may fail, and the directory's own mode is what protects that moment.
    let _ = rustix::fs::fchmod(&socket, Mode::from_raw_mode(MODE as _));
    socket.bind(&address)?;
    // From here on the file is removed again if anything fails.
    let file = SocketFile {
        path: path.to_path_buf(),
        identity: identity(path)?,
        kept: AtomicBool::new(false),
    };
    // The umask has taken its part of the mode, and usually the group's right to write, which connecting needs.
    fs::set_permissions(path, fs::Permissions::from_mode(MODE))?;
    socket.listen(backlog)?;
    Ok((socket.into(), file))
}

/// Removes the file of a server that is no more; an error if one lives, or if the file is no socket.
fn remove_stale(path: &Path, address: &SockAddr) -> io::Result<()> {
    let stat = match rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(()),
        stat => stat?,
    };
    if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "something that is no socket has that name, and is not removed for it",
        ));
    }
    let probe = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    probe.set_nonblocking(true)?;
    match probe.connect(address) {
        Err(error) if error.raw_os_error() == Some(Errno::CONNREFUSED.raw_os_error()) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // A full queue, a server of another type, or one that we may not connect to: somebody is there.
        _ => Err(Errno::ADDRINUSE.into()),
    }
}

fn lock(directory: &OwnedFd) -> io::Result<()> {
    for _ in 0..LOCK_TRIES {
        match rustix::fs::flock(directory, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::AGAIN | Errno::INTR) => thread::sleep(LOCK_PAUSE),
            result => return Ok(result?),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::ResourceBusy,
        "another program keeps its directory locked",
    ))
}

// The widths of these fields differ between systems.
#[allow(clippy::unnecessary_cast)]
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let stat = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok((stat.st_dev as u64, stat.st_ino as u64))
}

/// The server's user and group may connect, nobody else: a proxy in front joins the group, and a stranger on the
/// machine does not get around what the proxy checks.
const MODE: u32 = 0o660;
/// Binding takes another server microseconds; who holds the lock for a second holds it for another reason.
const LOCK_TRIES: u32 = 50;
const LOCK_PAUSE: Duration = Duration::from_millis(20);
