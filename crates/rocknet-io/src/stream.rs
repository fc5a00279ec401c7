//! Stream socket, driven by the I/O back end of its thread (epoll, kqueue or io_uring).

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};

use crate::epoll::EpollStream;
#[cfg(target_os = "linux")]
use crate::io_uring::{self, UringStream};
use crate::link::{Link, Received};
use crate::pipe::Pipe;
use crate::queue::SendQueue;

/// Connected, non-blocking stream socket.
pub enum Stream {
    /// Driven by the event loop of the runtime (epoll or kqueue).
    Epoll(EpollStream),
    /// Driven by the io_uring ring of its thread.
    #[cfg(target_os = "linux")]
    IoUring(UringStream),
}

impl Stream {
    /// Takes ownership of an accepted, non-blocking socket.
    ///
    /// # Errors
    ///
    /// Fails if the socket cannot be registered with the event loop.
    ///
    /// # Panics
    ///
    /// Panics outside of a runtime.
    pub fn new(socket: OwnedFd) -> io::Result<Stream> {
        #[cfg(target_os = "linux")]
        if let Some(driver) = io_uring::current() {
            return Ok(Stream::IoUring(UringStream::new(driver, socket)));
        }
        Ok(Stream::Epoll(EpollStream::new(socket)?))
    }

    /// Takes ownership of a socket that this side has connected. The first receive waits for an event, because the peer
    /// sends nothing before it has received a request.
    ///
    /// # Errors
    ///
    /// Fails if the socket cannot be registered with the event loop.
    ///
    /// # Panics
    ///
    /// Panics outside of a runtime.
    pub fn connected(socket: OwnedFd) -> io::Result<Stream> {
        let mut stream = Stream::new(socket)?;
        match &mut stream {
            Stream::Epoll(stream) => stream.wait_for_first_receive(),
            #[cfg(target_os = "linux")]
            Stream::IoUring(stream) => stream.wait_for_first_receive(),
        }
        Ok(stream)
    }
}

impl Link for Stream {
    #[inline]
    fn poll_recv<'b>(&mut self, context: &mut Context<'_>, buffer: &'b mut [u8]) -> Poll<io::Result<Received<'b>>> {
        match self {
            Stream::Epoll(stream) => stream.poll_recv(context, buffer),
            #[cfg(target_os = "linux")]
            Stream::IoUring(stream) => stream.poll_recv(context, buffer),
        }
    }

    #[inline]
    fn is_idle(&mut self) -> bool {
        match self {
            Stream::Epoll(stream) => stream.is_idle(),
            #[cfg(target_os = "linux")]
            Stream::IoUring(stream) => stream.is_idle(),
        }
    }

    #[inline]
    fn poll_send(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> Poll<io::Result<()>> {
        match self {
            Stream::Epoll(stream) => stream.poll_send(context, queue),
            #[cfg(target_os = "linux")]
            Stream::IoUring(stream) => stream.poll_send(context, queue),
        }
    }

    fn fill_pipe(&mut self, context: &mut Context<'_>, pipe: &mut Pipe) -> io::Result<usize> {
        match self {
            Stream::Epoll(stream) => stream.fill_pipe(context, pipe),
            #[cfg(target_os = "linux")]
            Stream::IoUring(stream) => stream.fill_pipe(context, pipe),
        }
    }

    #[inline]
    fn send_batched(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> bool {
        match self {
            Stream::Epoll(stream) => stream.send_batched(context, queue),
            #[cfg(target_os = "linux")]
            Stream::IoUring(stream) => stream.send_batched(context, queue),
        }
    }

    #[inline]
    fn take_unsent(&mut self) -> Option<Vec<u8>> {
        match self {
            Stream::Epoll(stream) => stream.take_unsent(),
            #[cfg(target_os = "linux")]
            Stream::IoUring(stream) => stream.take_unsent(),
        }
    }

    #[inline]
    fn flush(&mut self) {
        match self {
            Stream::Epoll(stream) => stream.flush(),
            #[cfg(target_os = "linux")]
            Stream::IoUring(stream) => stream.flush(),
        }
    }

    fn shut_down(&mut self) -> io::Result<()> {
        match self {
            Stream::Epoll(stream) => stream.shut_down(),
            #[cfg(target_os = "linux")]
            Stream::IoUring(stream) => stream.shut_down(),
        }
    }

    fn reset(&mut self) {
        match self {
            Stream::Epoll(stream) => stream.reset(),
            #[cfg(target_os = "linux")]
            Stream::IoUring(stream) => stream.reset(),
        }
    }

    fn enable_tcp_keepalive(&mut self) {
        match self {
            Stream::Epoll(stream) => stream.enable_tcp_keepalive(),
            #[cfg(target_os = "linux")]
            Stream::IoUring(stream) => stream.enable_tcp_keepalive(),
        }
    }

    fn limit_unsent(&mut self, bytes: Option<u32>) {
        match self {
            Stream::Epoll(stream) => stream.limit_unsent(bytes),
            #[cfg(target_os = "linux")]
            Stream::IoUring(stream) => stream.limit_unsent(bytes),
        }
    }

    fn in_flight(&self) -> u64 {
        match self {
            Stream::Epoll(stream) => stream.in_flight(),
            #[cfg(target_os = "linux")]
            Stream::IoUring(stream) => stream.in_flight(),
        }
    }

    fn is_zero_copy(&self) -> bool {
        match self {
            Stream::Epoll(stream) => stream.is_zero_copy(),
            #[cfg(target_os = "linux")]
            Stream::IoUring(stream) => stream.is_zero_copy(),
        }
    }
}
