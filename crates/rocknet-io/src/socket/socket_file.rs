//! Unix sockets bound to a file. A stale file, whose server has ended, is replaced; the file of a running server is
//! not. On drop, a listener removes its own file.

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

/// The file of a listening socket. It is removed on drop, unless another file has replaced it or [`SocketFile::keep`]
/// was called.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    /// Device and inode of the file. Another file that has taken its path must not be removed.
    identity: (u64, u64),
    /// True if the file must not be removed on drop.
    kept: AtomicBool,
}

impl SocketFile {
    /// Returns the existing file of a socket that another process has bound. The file is not removed on drop before
    /// [`SocketFile::own`] is called.
    pub(super) fn existing(path: &Path) -> io::Result<SocketFile> {
        Ok(SocketFile {
            path: path.to_path_buf(),
            identity: identity(path)?,
            kept: AtomicBool::new(true),
        })
    }

    /// Leaves the file in place on drop.
    pub(super) fn keep(&self) {
        self.kept.store(true, Ordering::Relaxed);
    }

    /// Ends the effect of [`SocketFile::keep`].
    pub(super) fn own(&self) {
        self.kept.store(false, Ordering::Relaxed);
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if !self.kept.load(Ordering::Relaxed) && identity(&self.path).is_ok_and(|now| now == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens on a socket file with the permissions [`MODE`].
pub(super) fn bind(path: &Path, backlog: i32) -> io::Result<(OwnedFd, SocketFile)> {
    let address = SockAddr::unix(path)?;
    let directory_path = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // Two servers that start at the same time would both find the stale file, and the second would remove the new file
    // of the first. The directory itself serves as the lock, so that no lock file is left behind.
    let directory = rustix::fs::open(
        directory_path,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    lock(&directory)?;
    remove_stale(path, &address)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    // On Linux the file is created with the mode of its socket, less the umask, so that the file never has wider
    // permissions, not even for a moment. On other systems this call may fail. No client can connect before `listen`
    // below, and the permissions are set before.
    let _ = rustix::fs::fchmod(&socket, Mode::from_raw_mode(MODE as _));
    socket.bind(&address)?;
    // From here on the file is removed if a step fails.
    let file = SocketFile {
        path: path.to_path_buf(),
        identity: identity(path)?,
        kept: AtomicBool::new(false),
    };
    // The umask has removed bits, usually the write permission of the group, which connecting requires.
    fs::set_permissions(path, fs::Permissions::from_mode(MODE))?;
    socket.listen(backlog)?;
    Ok((socket.into(), file))
}

/// Removes the socket file of a server that has ended. Fails if a server accepts connections there or may do so, or if
/// the file is not a socket.
fn remove_stale(path: &Path, address: &SockAddr) -> io::Result<()> {
    let stat = match rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(()),
        stat => stat?,
    };
    if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "a file with this name exists and is not a socket; remove it or choose another name",
        ));
    }
    let probe = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    probe.set_nonblocking(true)?;
    match probe.connect(address) {
        Err(error) if error.raw_os_error() == Some(Errno::CONNREFUSED.raw_os_error()) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // A server may be running after every other result: success, a full queue, a socket of another type, or missing
        // permission.
        _ => Err(Errno::ADDRINUSE.into()),
    }
}

/// Locks a directory until its descriptor is closed. Fails if the lock is not free within a second.
fn lock(directory: &OwnedFd) -> io::Result<()> {
    for _ in 0..LOCK_TRIES {
        match rustix::fs::flock(directory, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::AGAIN | Errno::INTR) => thread::sleep(LOCK_PAUSE),
            result => return Ok(result?),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::ResourceBusy,
        "another program has locked the directory of the socket file; stop that program or choose another directory",
    ))
}

/// Returns the device and inode of a file, without following a link.
// Some systems need these casts, because the widths of the fields of `Stat` differ.
#[allow(clippy::unnecessary_cast)]
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let stat = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok((stat.st_dev as u64, stat.st_ino as u64))
}

/// Permissions of a socket file: only the server's user and group may connect. A proxy in front joins the group, and
/// other users of the machine cannot bypass the checks of the proxy.
const MODE: u32 = 0o660;
/// Maximum number of attempts to lock the directory. Another server holds the lock for microseconds, so a lock held for
/// a second has another purpose.
const LOCK_TRIES: u32 = 50;
/// Pause between two attempts. All attempts together take one second.
const LOCK_PAUSE: Duration = Duration::from_millis(20);
