//! A stream socket on whatever its thread drives sockets with.

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};

use crate::epoll::Tcp;
#[cfg(target_os = "linux")]
use crate::io_uring::{self, RingStream};
use crate::link::{Link, Received};
use crate::pipe::Pipe;
use crate::queue::SendQueue;

/// A connected, non-blocking stream socket.
pub enum Stream {
    Tcp(Tcp),
    #[cfg(target_os = "linux")]
    Ring(RingStream),
}

impl Stream {
    /// Takes over an accepted socket; it must be non-blocking.
    pub fn new(socket: OwnedFd) -> io::Result<Stream> {
        #[cfg(target_os = "linux")]
        if let Some(driver) = io_uring::current() {
            return Ok(Stream::Ring(RingStream::new(driver, socket)));
        }
        Ok(Stream::Tcp(Tcp::new(socket)?))
    }

    /// Takes over a socket that was connected from here: nothing has arrived before anything was said.
    pub fn connected(socket: OwnedFd) -> io::Result<Stream> {
        let mut stream = Stream::new(socket)?;
        match &mut stream {
            Stream::Tcp(tcp) => tcp.expect_nothing(),
            #[cfg(target_os = "linux")]
            Stream::Ring(ring) => ring.expect_nothing(),
        }
        Ok(stream)
    }
}

impl Link for Stream {
    #[inline]
    fn poll_recv<'b>(&mut self, context: &mut Context<'_>, buffer: &'b mut [u8]) -> Poll<io::Result<Received<'b>>> {
        match self {
            Stream::Tcp(tcp) => tcp.poll_recv(context, buffer),
            #[cfg(target_os = "linux")]
            Stream::Ring(ring) => ring.poll_recv(context, buffer),
        }
    }

    #[inline]
    fn is_silent(&mut self) -> bool {
        match self {
            Stream::Tcp(tcp) => tcp.is_silent(),
            #[cfg(target_os = "linux")]
            Stream::Ring(ring) => ring.is_silent(),
        }
    }

    #[inline]
    fn poll_send(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> Poll<io::Result<()>> {
        match self {
            Stream::Tcp(tcp) => tcp.poll_send(context, queue),
            #[cfg(target_os = "linux")]
            Stream::Ring(ring) => ring.poll_send(context, queue),
        }
    }

    fn fill(&mut self, context: &mut Context<'_>, pipe: &mut Pipe) -> io::Result<usize> {
        match self {
            Stream::Tcp(tcp) => tcp.fill(context, pipe),
            #[cfg(target_os = "linux")]
            Stream::Ring(ring) => ring.fill(context, pipe),
        }
    }

    #[inline]
    fn send_together(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> bool {
        match self {
            Stream::Tcp(tcp) => tcp.send_together(context, queue),
            #[cfg(target_os = "linux")]
            Stream::Ring(ring) => ring.send_together(context, queue),
        }
    }

    #[inline]
    fn take_unsent(&mut self) -> Option<Vec<u8>> {
        match self {
            Stream::Tcp(tcp) => tcp.take_unsent(),
            #[cfg(target_os = "linux")]
            Stream::Ring(ring) => ring.take_unsent(),
        }
    }

    #[inline]
    fn flush(&mut self) {
        match self {
            Stream::Tcp(tcp) => tcp.flush(),
            #[cfg(target_os = "linux")]
            Stream::Ring(ring) => ring.flush(),
        }
    }

    fn shut_down(&mut self) -> io::Result<()> {
        match self {
            Stream::Tcp(tcp) => tcp.shut_down(),
            #[cfg(target_os = "linux")]
            Stream::Ring(ring) => ring.shut_down(),
        }
    }

    fn reset(&mut self) {
        match self {
            Stream::Tcp(tcp) => tcp.reset(),
            #[cfg(target_os = "linux")]
            Stream::Ring(ring) => ring.reset(),
        }
    }

    fn keep_alive(&mut self) {
        match self {
            Stream::Tcp(tcp) => tcp.keep_alive(),
            #[cfg(target_os = "linux")]
            Stream::Ring(ring) => ring.keep_alive(),
        }
    }

    fn limit_unsent(&mut self, bytes: Option<u32>) {
        match self {
            Stream::Tcp(tcp) => tcp.limit_unsent(bytes),
            #[cfg(target_os = "linux")]
            Stream::Ring(ring) => ring.limit_unsent(bytes),
        }
    }

    fn in_flight(&self) -> u64 {
        match self {
            Stream::Tcp(tcp) => tcp.in_flight(),
            #[cfg(target_os = "linux")]
            Stream::Ring(ring) => ring.in_flight(),
        }
    }

    fn sends_files(&self) -> bool {
        match self {
            Stream::Tcp(tcp) => tcp.sends_files(),
            #[cfg(target_os = "linux")]
            Stream::Ring(ring) => ring.sends_files(),
        }
    }
}
