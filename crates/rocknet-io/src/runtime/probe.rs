//! Whether this process may use a ring here, and what stands in the way if not.

use std::future::poll_fn;
use std::io;
use std::os::unix::net::UnixStream;
use std::task::Poll;
use std::thread;

use rustix::io::Errno;

use super::Runtime;
use crate::io_uring::{UringStream, current};
use crate::link::Link;
use crate::queue::SendQueue;

/// Why io_uring cannot be had here, if so. Tried, not guessed: with a ring, a pair of sockets, and bytes between them.
pub fn io_uring_unavailable() -> Option<String> {
    // A thread of its own: the caller's may have a runtime already.
    let tried = thread::Builder::new().spawn(attempt);
    let result = tried.and_then(|thread| thread.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())));
    result.err().map(|error| reason(&error))
}

fn attempt() -> io::Result<()> {
    Runtime::with_io_uring(1)?.block_on(async {
        let driver = current().ok_or(io::ErrorKind::Other)?;
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        theirs.set_nonblocking(true)?;
        let mut ours = UringStream::new(driver.clone(), ours.into());
        let mut theirs = UringStream::new(driver, theirs.into());
        // Twice, so that the second is heard by an operation that waits already.
        for _ in 0..2 {
            let mut queue = SendQueue::default();
            queue.buffer().extend_from_slice(WORD);
            poll_fn(|context| match ours.send_batched(context, &mut queue) {
                true => Poll::Ready(Ok(())),
                false => ours.poll_send(context, &mut queue),
            })
            .await?;
            let mut buffer = [0; WORD.len()];
            let heard = poll_fn(|context| theirs.poll_recv(context, &mut buffer).map_ok(|got| *got == *WORD)).await?;
            if !heard {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        Ok(())
    })
}

const WORD: &[u8] = b"ring";

fn reason(error: &io::Error) -> String {
    let text = match Errno::from_io_error(error) {
        Some(Errno::NOSYS) => "this kernel has none",
        Some(Errno::PERM | Errno::ACCESS) => {
            "it is forbidden here, by kernel.io_uring_disabled or by the rules of a container (seccomp)"
        }
        Some(Errno::NOMEM) => "too little memory may be locked: raise it (ulimit -l, LimitMEMLOCK)",
        Some(Errno::INVAL | Errno::OPNOTSUPP) => "this kernel is too old for what is used of it: Linux 6.1 is needed",
        _ if error.kind() == io::ErrorKind::NotFound => "/proc is needed to set it up, and is not there",
        _ => return format!("it failed: {error}"),
    };
    format!("{text} ({error})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_tells_what_to_do_about_it() {
        fn check(errno: Errno, word: &str) {
            let text = reason(&errno.into());
            assert!(text.contains(word), "{errno:?}: {text}");
        }
        check(Errno::NOSYS, "kernel has none");
        check(Errno::PERM, "kernel.io_uring_disabled");
        check(Errno::NOMEM, "LimitMEMLOCK");
        check(Errno::INVAL, "6.1");
        check(Errno::MFILE, "failed");
        assert!(reason(&io::ErrorKind::NotFound.into()).contains("/proc"));
    }
}
