//! The link to an upstream: its socket, or TLS over that.

use std::io;
use std::task::{Context, Poll};

use rocknet_io::link::{Link, Received};
use rocknet_io::pipe::Pipe;
use rocknet_io::queue::SendQueue;
use rocknet_io::stream::Stream;
use rocknet_io::tls::{Opened, Tls};

pub enum Wire {
    Plain(Stream),
    Secure(Box<Tls<Stream, Opened>>),
}

impl Link for Wire {
    #[inline]
    fn poll_recv<'b>(&mut self, context: &mut Context<'_>, buffer: &'b mut [u8]) -> Poll<io::Result<Received<'b>>> {
        match self {
            Wire::Plain(stream) => stream.poll_recv(context, buffer),
            Wire::Secure(tls) => tls.poll_recv(context, buffer),
        }
    }

    #[inline]
    fn is_silent(&mut self) -> bool {
        match self {
            Wire::Plain(stream) => stream.is_silent(),
            Wire::Secure(tls) => tls.is_silent(),
        }
    }

    #[inline]
    fn poll_send(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> Poll<io::Result<()>> {
        match self {
            Wire::Plain(stream) => stream.poll_send(context, queue),
            Wire::Secure(tls) => tls.poll_send(context, queue),
        }
    }

    fn fill(&mut self, context: &mut Context<'_>, pipe: &mut Pipe) -> io::Result<usize> {
        match self {
            Wire::Plain(stream) => stream.fill(context, pipe),
            Wire::Secure(tls) => tls.fill(context, pipe),
        }
    }

    #[inline]
    fn send_together(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> bool {
        match self {
            Wire::Plain(stream) => stream.send_together(context, queue),
            Wire::Secure(tls) => tls.send_together(context, queue),
        }
    }

    #[inline]
    fn take_unsent(&mut self) -> Option<Vec<u8>> {
        match self {
            Wire::Plain(stream) => stream.take_unsent(),
            Wire::Secure(tls) => tls.take_unsent(),
        }
    }

    #[inline]
    fn flush(&mut self) {
        match self {
            Wire::Plain(stream) => stream.flush(),
            Wire::Secure(tls) => tls.flush(),
        }
    }

    fn shut_down(&mut self) -> io::Result<()> {
        match self {
            Wire::Plain(stream) => stream.shut_down(),
            Wire::Secure(tls) => tls.shut_down(),
        }
    }

    fn reset(&mut self) {
        match self {
            Wire::Plain(stream) => stream.reset(),
            Wire::Secure(tls) => tls.reset(),
        }
    }

    fn finish(&mut self) {
        match self {
            Wire::Plain(stream) => stream.finish(),
            Wire::Secure(tls) => tls.finish(),
        }
    }

    fn keep_alive(&mut self) {
        match self {
            Wire::Plain(stream) => stream.keep_alive(),
            Wire::Secure(tls) => tls.keep_alive(),
        }
    }

    fn in_flight(&self) -> u64 {
        match self {
            Wire::Plain(stream) => stream.in_flight(),
            Wire::Secure(tls) => tls.in_flight(),
        }
    }

    fn sends_files(&self) -> bool {
        match self {
            Wire::Plain(stream) => stream.sends_files(),
            Wire::Secure(tls) => tls.sends_files(),
        }
    }
}
