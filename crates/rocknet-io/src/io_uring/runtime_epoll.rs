//! Finds the descriptor of the runtime's epoll instance. The ring polls this descriptor, so that one wait covers the
//! events of the runtime and the completions of the ring.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixDatagram;

use rustix::fs::{fstat, major, minor};

/// Returns an unused socket that marks the runtime's epoll instance: the runtime watches this socket, and
/// [`find_watcher`] looks for the instance that watches it. Unlike an event descriptor, a socket has an inode of its
/// own, so it can be recognized.
pub(super) fn marker_socket() -> io::Result<std::os::fd::OwnedFd> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Returns the epoll instance of this process that watches `marker`. The runtime does not expose its instance, so this
/// function searches `/proc`.
pub(super) fn find_watcher(marker: BorrowedFd<'_>) -> io::Result<RawFd> {
    let wanted = EpollTarget::of(marker)?;
    for entry in fs::read_dir("/proc/self/fd")? {
        let Some(descriptor) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // Other threads open and close descriptors in the meantime.
        let Ok(link) = fs::read_link(format!("/proc/self/fd/{descriptor}")) else {
            continue;
        };
        if link.as_os_str() != "anon_inode:[eventpoll]" {
            continue;
        }
        let Ok(fdinfo) = fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")) else {
            continue;
        };
        if fdinfo
            .lines()
            .filter_map(EpollTarget::parse)
            .any(|target| target == wanted)
        {
            return Ok(descriptor);
        }
    }
    Err(io::Error::new(
        io::ErrorKind::NotFound,
        "the epoll of the runtime is not listed in /proc/self/fd",
    ))
}

/// File that an epoll instance watches. The descriptor number alone does not identify the file: after a descriptor is
/// closed, the instance still lists its number as long as the file is open under another number, even if the closed
/// number now refers to a different file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EpollTarget {
    /// Descriptor under which the file was added to the epoll instance.
    descriptor: RawFd,
    inode: u64,
    /// Device number as the kernel prints it: 12 bits for the major number, and 20 bits for the minor number.
    device: u64,
}

impl EpollTarget {
    /// Returns the file that an open descriptor refers to.
    fn of(descriptor: BorrowedFd<'_>) -> io::Result<EpollTarget> {
        let stat = fstat(descriptor)?;
        Ok(EpollTarget {
            descriptor: descriptor.as_raw_fd(),
            inode: stat.st_ino,
            device: u64::from(major(stat.st_dev)) << 20 | u64::from(minor(stat.st_dev)),
        })
    }

    /// Parses one line of the `fdinfo` of an epoll instance.
    fn parse(line: &str) -> Option<EpollTarget> {
        let after = |name| line.split_once(name)?.1.split_whitespace().next();
        Some(EpollTarget {
            descriptor: line.strip_prefix("tfd:")?.split_whitespace().next()?.parse().ok()?,
            inode: u64::from_str_radix(after(" ino:")?, 16).ok()?,
            device: u64::from_str_radix(after(" sdev:")?, 16).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, FromRawFd, IntoRawFd, OwnedFd};

    use rustix::event::epoll;

    use super::*;

    #[test]
    fn parses_fdinfo_lines() {
        let target = |descriptor, inode, device| {
            Some(EpollTarget {
                descriptor,
                inode,
                device,
            })
        };
        for (line, expected) in [
            (
                "tfd:        8 events:       19 data: 1  pos:0 ino:12 sdev:9",
                target(8, 0x12, 9),
            ),
            (
                "tfd:      123 events: 8000001d data: ff pos:0 ino:42c4a78 sdev:800002",
                target(123, 0x42c_4a78, 0x80_0002),
            ),
            ("pos:\t0", None),
            ("ino:\t12", None),
            ("other: 5 ino:1 sdev:9", None),
            ("tfd: x ino:1 sdev:9", None),
            ("tfd: 1 events: 1", None),
        ] {
            assert_eq!(EpollTarget::parse(line), expected, "{line}");
        }
    }

    #[test]
    fn a_stale_entry_is_not_taken_for_the_socket_that_reuses_its_number() {
        let new_epoll = || epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll");
        let watch = |by: &OwnedFd, what: BorrowedFd<'_>| {
            epoll::add(by, what, epoll::EventData::new_u64(0), epoll::EventFlags::IN).expect("watched");
        };
        // The wrong epolls are created before and after the right one, so that the order in the list does not decide.
        let (early, right) = (new_epoll(), new_epoll());
        let old = marker_socket().expect("a socket");
        let still_open = old.try_clone().expect("another number for it");
        watch(&early, old.as_fd());
        let late = new_epoll();
        watch(&late, old.as_fd());
        let descriptor = old.into_raw_fd();
        let new = marker_socket().expect("a socket");
        // Closes the old descriptor, whose socket stays open, and reuses its number in one step, because other tests
        // open files in the meantime.
        #[allow(unsafe_code)]
        // SAFETY: `descriptor` was given up above and has no other owner. It is closed here and open again as a copy of
        // `new`.
        let reused = unsafe {
            assert_eq!(libc::dup3(new.as_raw_fd(), descriptor, libc::O_CLOEXEC), descriptor);
            OwnedFd::from_raw_fd(descriptor)
        };
        watch(&right, reused.as_fd());
        assert_eq!(find_watcher(reused.as_fd()).expect("an epoll"), right.as_raw_fd());
        drop((still_open, early, late));
    }
}
