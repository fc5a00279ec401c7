//! The descriptor of the runtime's epoll: the ring waits for it, so that one sleep hears both.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

/// The epoll of this process that watches `witness`. The runtime does not tell, the kernel does.
pub(super) fn watching(witness: BorrowedFd<'_>) -> io::Result<RawFd> {
    let wanted = witness.as_raw_fd();
    for entry in fs::read_dir("/proc/self/fd")? {
        let Some(descriptor) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // Descriptors of other threads come and go while we look.
        let Ok(kind) = fs::read_link(format!("/proc/self/fd/{descriptor}")) else {
            continue;
        };
        if kind.as_os_str() != "anon_inode:[eventpoll]" {
            continue;
        }
        let Ok(told) = fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")) else {
            continue;
        };
        if watched(&told).any(|target| target == wanted) {
            return Ok(descriptor);
        }
    }
    Err(io::Error::new(
        io::ErrorKind::NotFound,
        "the runtime's epoll is not in /proc",
    ))
}

/// The targets that `fdinfo` of an epoll lists, one a line.
fn watched(told: &str) -> impl Iterator<Item = RawFd> + '_ {
    told.lines()
        .filter_map(|line| line.strip_prefix("tfd:")?.split_whitespace().next()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read() {
        let told = "pos:\t0\nflags:\t02000002\nmnt_id:\t16\nino:\t12\n\
                    tfd:        8 events:       19 data: 1  pos:0 ino:1 sdev:9\n\
                    tfd:      123 events: 8000001d data: ff pos:0 ino:1 sdev:9\nother: 5\ntfd: x\n";
        assert_eq!(watched(told).collect::<Vec<_>>(), [8, 123]);
    }
}
