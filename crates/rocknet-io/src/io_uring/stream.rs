//! [`Link`] over a TCP or Unix stream socket on the ring of its thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use super::Driver;
use crate::epoll::{self, EpollStream, FILE_BUDGET};
use crate::link::{Link, Received};
use crate::pipe::Pipe;
use crate::queue::SendQueue;

/// Connected, non-blocking stream socket.
pub struct UringStream {
    driver: Rc<Driver>,
    /// Slot of this connection in the driver.
    slot: usize,
    /// `None` once the link continues without the ring.
    socket: Option<OwnedFd>,
    /// The same socket with epoll, once the ring has failed.
    fallback: Option<EpollStream>,
    /// True until the first receive, which is tried by `recv(2)`, because the request has usually arrived by then.
    fresh: bool,
}

impl UringStream {
    /// Takes ownership of an accepted, non-blocking socket.
    pub fn new(driver: Rc<Driver>, socket: OwnedFd) -> UringStream {
        UringStream {
            slot: driver.register(socket.as_fd()),
            driver,
            socket: Some(socket),
            fallback: None,
            fresh: true,
        }
    }

    /// Makes the first receive wait for an event, like every later one.
    pub fn wait_for_first_receive(&mut self) {
        self.fresh = false;
    }

    /// Returns the same connection driven by epoll. This is possible because a failed ring leaves its sockets intact.
    #[cold]
    fn fallback(&mut self) -> io::Result<&mut EpollStream> {
        if let Some(socket) = self.socket.take() {
            self.fallback = Some(EpollStream::new(socket)?);
        }
        // `socket` and `fallback` are both `None` if an earlier registration with epoll failed.
        self.fallback.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Returns the socket. The ring drives it, or epoll after the ring has failed. Fails if the socket could not be
    /// registered with epoll.
    fn socket(&self) -> io::Result<BorrowedFd<'_>> {
        match (&self.socket, &self.fallback) {
            (Some(socket), _) => Ok(socket.as_fd()),
            (None, Some(stream)) => Ok(stream.as_fd()),
            (None, None) => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

impl Drop for UringStream {
    fn drop(&mut self) {
        self.driver.release(self.slot, self.socket.take());
    }
}

impl Link for UringStream {
    #[inline]
    fn poll_recv<'b>(&mut self, context: &mut Context<'_>, buffer: &'b mut [u8]) -> Poll<io::Result<Received<'b>>> {
        if self.fresh {
            self.fresh = false;
            match epoll::receive(self.socket()?, buffer) {
                Ok(got) => {
                    self.driver.note_first_receive(self.slot, got, buffer.len());
                    return Poll::Ready(Ok(Received::Borrowed(&buffer[..got])));
                }
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
        if self.driver.has_failed() && self.driver.has_delivered_all(self.slot) {
            return self.fallback()?.poll_recv(context, buffer);
        }
        let got = ready!(self.driver.poll_receive(context, self.slot, buffer))?;
        Poll::Ready(Ok(Received::Borrowed(&buffer[..got])))
    }

    #[inline]
    fn poll_send(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> Poll<io::Result<()>> {
        // Batched writes are sent first, to keep the order.
        self.driver.flush_before_direct_send(self.slot);
        ready!(self.driver.poll_sendable(context, self.slot))?;
        if self.driver.has_failed() {
            return self.fallback()?.poll_send(context, queue);
        }
        let socket = self.socket()?;
        let mut file_budget = FILE_BUDGET;
        match epoll::send_queue(socket, queue, &mut file_budget) {
            Ok(true) => Poll::Ready(Ok(())),
            // The connection has sent its share of file bytes, so other tasks run before it continues.
            Ok(false) => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.driver.wake_when_writable(context, self.slot);
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    fn fill_pipe(&mut self, context: &mut Context<'_>, pipe: &mut Pipe) -> io::Result<usize> {
        if self.driver.has_failed() && self.driver.has_delivered_all(self.slot) {
            return self.fallback()?.fill_pipe(context, pipe);
        }
        self.driver.fill_pipe(self.slot, pipe)
    }

    #[inline]
    fn send_batched(&mut self, _: &mut Context<'_>, queue: &mut SendQueue) -> bool {
        let Some(bytes) = queue.contiguous() else {
            return false;
        };
        let length = bytes.len();
        let taken = self.driver.send(self.slot, bytes);
        if taken {
            queue.advance(length);
        }
        taken
    }

    #[inline]
    fn take_unsent(&mut self) -> Option<Vec<u8>> {
        self.driver.take_unsent(self.slot)
    }

    fn flush(&mut self) {
        self.driver.flush(self.slot);
    }

    fn shut_down(&mut self) -> io::Result<()> {
        epoll::shut_down(self.socket()?)
    }

    fn reset(&mut self) {
        if let Ok(socket) = self.socket() {
            epoll::reset(socket);
        }
    }

    fn enable_tcp_keepalive(&mut self) {
        if let Ok(socket) = self.socket() {
            epoll::enable_tcp_keepalive(socket);
        }
    }

    fn limit_unsent(&mut self, bytes: Option<u32>) {
        if let Ok(socket) = self.socket() {
            epoll::limit_unsent(socket, bytes);
        }
    }

    fn in_flight(&self) -> u64 {
        self.socket().map_or(0, epoll::in_flight)
    }

    fn is_zero_copy(&self) -> bool {
        true
    }
}
