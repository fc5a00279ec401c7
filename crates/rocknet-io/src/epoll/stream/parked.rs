//! A link that nobody uses, for whichever thread wants it next.

use std::os::fd::{AsFd, OwnedFd};
use std::thread::{self, ThreadId};

use rustix::io::Errno;
use tokio::io::unix::AsyncFd;

use super::{EpollStream, receive};
use crate::epoll::write_batch::BatchSender;
use crate::link::Link;

/// It stays with the loop of the thread that used it last, which costs that one nothing when it is wanted again; any other
/// may take it over.
pub struct ParkedConnection {
    socket: AsyncFd<OwnedFd>,
    thread: ThreadId,
}

impl EpollStream {
    /// Puts it aside. `None`: something that was to be sent has not left.
    pub fn park(self) -> Option<ParkedConnection> {
        let EpollStream { socket, sender, .. } = self;
        sender.flush_completely().then(|| ParkedConnection {
            socket,
            thread: thread::current().id(),
        })
    }
}

impl ParkedConnection {
    /// The link again, on this thread; `None` where the other side has closed it meanwhile, or said what nobody asked.
    pub fn resume(self) -> Option<EpollStream> {
        if self.thread == thread::current().id() {
            let mut tcp = EpollStream {
                sender: BatchSender::for_current_thread(),
                socket: self.socket,
                fresh: false,
            };
            return tcp.is_idle().then_some(tcp);
        }
        let socket = self.socket.into_inner();
        if receive(socket.as_fd(), &mut [0]) != Err(Errno::AGAIN) {
            return None;
        }
        let mut tcp = EpollStream::new(socket).ok()?;
        tcp.expect_nothing();
        Some(tcp)
    }
}

#[cfg(test)]
mod tests;
