//! Idle connection to a back end, kept for the thread that needs one next.

use std::os::fd::{AsFd, OwnedFd};
use std::thread::{self, ThreadId};

use rustix::io::Errno;
use tokio::io::unix::AsyncFd;

use super::{EpollStream, receive};
use crate::epoll::write_batch::BatchSender;
use crate::link::Link;

/// Idle connection. The socket remains registered with the event loop of the thread that used it last, so resuming it
/// there costs nothing. Any other thread can resume it too.
pub struct ParkedConnection {
    socket: AsyncFd<OwnedFd>,
    /// Thread that has parked the connection.
    thread: ThreadId,
}

impl EpollStream {
    /// Parks the connection. Returns `None` if a batched write could not be sent completely.
    pub fn park(self) -> Option<ParkedConnection> {
        let EpollStream { socket, sender, .. } = self;
        sender.flush_and_check().then(|| ParkedConnection {
            socket,
            thread: thread::current().id(),
        })
    }
}

impl ParkedConnection {
    /// Resumes the connection on this thread. Returns `None` if the peer has closed the connection or sent unexpected
    /// data in the meantime, or if the socket cannot be registered with the event loop of this thread. On the thread
    /// that has parked the connection, data or an end of the stream that the event loop has not reported yet is not
    /// noticed.
    pub fn resume(self) -> Option<EpollStream> {
        if self.thread == thread::current().id() {
            let mut stream = EpollStream {
                sender: BatchSender::for_current_thread(),
                socket: self.socket,
                fresh: false,
            };
            return stream.is_idle().then_some(stream);
        }
        let socket = self.socket.into_inner();
        if receive(socket.as_fd(), &mut [0]) != Err(Errno::AGAIN) {
            return None;
        }
        let mut stream = EpollStream::new(socket).ok()?;
        // The socket has nothing to read, so the first receive waits for an event instead of trying at once. The branch
        // above does the same with `fresh: false`.
        stream.wait_for_first_receive();
        Some(stream)
    }
}

#[cfg(test)]
mod tests;
