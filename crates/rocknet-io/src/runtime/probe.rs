//! Tests whether this process can use io_uring.

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

/// Returns why io_uring is unavailable; `None` if it works. The test creates a ring and sends bytes over a socket
/// pair, because no version number or setting shows reliably that io_uring works.
pub fn io_uring_unavailable() -> Option<String> {
    // The attempt runs on a thread of its own, because the caller's thread may already have a runtime.
    let tried = thread::Builder::new().spawn(attempt);
    let result = tried.and_then(|thread| thread.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())));
    result.err().map(|error| reason(&error))
}

/// Creates a ring, and sends two messages over a socket pair.
fn attempt() -> io::Result<()> {
    // The argument bounds the readiness events that the event loop reads from epoll in one poll. One is enough here.
    Runtime::with_io_uring(1)?.block_on(async {
        let driver = current().ok_or(io::ErrorKind::Other)?;
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        theirs.set_nonblocking(true)?;
        let mut ours = UringStream::new(driver.clone(), ours.into());
        let mut theirs = UringStream::new(driver, theirs.into());
        // The second message is received by the multishot receive that the first one has started.
        for _ in 0..2 {
            let mut queue = SendQueue::default();
            queue.buffer().extend_from_slice(WORD);
            poll_fn(|context| match ours.send_batched(context, &mut queue) {
                true => Poll::Ready(Ok(())),
                false => ours.poll_send(context, &mut queue),
            })
            .await?;
            let mut buffer = [0; WORD.len()];
            let received =
                poll_fn(|context| theirs.poll_recv(context, &mut buffer).map_ok(|got| *got == *WORD)).await?;
            if !received {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        Ok(())
    })
}

/// Content of each message.
const WORD: &[u8] = b"ring";

/// Explains to the operator why the attempt failed.
fn reason(error: &io::Error) -> String {
    let text = match Errno::from_io_error(error) {
        Some(Errno::NOSYS) => "this kernel has no io_uring",
        Some(Errno::PERM | Errno::ACCESS) => {
            "io_uring is forbidden by kernel.io_uring_disabled or by the seccomp profile of a container"
        }
        Some(Errno::NOMEM) => "the limit of locked memory is too low for io_uring: raise it (ulimit -l, LimitMEMLOCK)",
        Some(Errno::INVAL | Errno::OPNOTSUPP) => "this kernel is too old: RockNet needs Linux 6.1 for io_uring",
        _ if error.kind() == io::ErrorKind::NotFound => {
            "io_uring needs /proc/self/fd, which is missing or does not list the epoll descriptor of the event loop"
        }
        _ => return format!("a test of io_uring failed: {error}"),
    };
    format!("{text} ({error})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_names_its_cause() {
        /// Checks that the text for `errno` contains `word`.
        fn check(errno: Errno, word: &str) {
            let text = reason(&errno.into());
            assert!(text.contains(word), "{errno:?}: {text}");
        }
        check(Errno::NOSYS, "kernel has no io_uring");
        check(Errno::PERM, "kernel.io_uring_disabled");
        check(Errno::NOMEM, "LimitMEMLOCK");
        check(Errno::INVAL, "6.1");
        check(Errno::MFILE, "failed");
        assert!(reason(&io::ErrorKind::NotFound.into()).contains("/proc"));
    }
}
