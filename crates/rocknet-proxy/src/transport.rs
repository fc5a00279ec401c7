//! Transport to an upstream: a socket, TLS over a socket, or a link from a dialer.

use std::io;
use std::task::{Context, Poll};

use rocknet_io::link::{Link, Received};
use rocknet_io::pipe::Pipe;
use rocknet_io::queue::SendQueue;
use rocknet_io::stream::Stream;
use rocknet_io::tls::{ClientSide, Tls};

/// Link to an upstream.
pub enum Transport {
    Plain(Stream),
    Tls(Box<Tls<Stream, ClientSide>>),
    /// Link of a dialer, with or without TLS. Only this variant requires dynamic dispatch.
    Dialed(Box<dyn Link>),
}

/// Creates the links to upstreams instead of sockets, so that an upstream can run in the same process.
pub trait Dialer: Send + Sync {
    /// Connects to `upstream`, the address as written in the configuration. Called on the thread of a worker, which
    /// uses the link until the link ends.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no connection. It is handled like a failed connection to the upstream.
    fn dial(&self, upstream: &str) -> io::Result<Box<dyn Link>>;
}

/// Calls a method of the link in any variant of the transport.
macro_rules! on {
    ($transport:expr, $link:ident => $call:expr) => {
        match $transport {
            Transport::Plain($link) => $call,
            Transport::Tls($link) => $call,
            Transport::Dialed($link) => $call,
        }
    };
}

impl Link for Transport {
    #[inline]
    fn poll_recv<'b>(&mut self, context: &mut Context<'_>, buffer: &'b mut [u8]) -> Poll<io::Result<Received<'b>>> {
        on!(self, link => link.poll_recv(context, buffer))
    }

    #[inline]
    fn is_idle(&mut self) -> bool {
        on!(self, link => link.is_idle())
    }

    #[inline]
    fn poll_send(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> Poll<io::Result<()>> {
        on!(self, link => link.poll_send(context, queue))
    }

    fn fill_pipe(&mut self, context: &mut Context<'_>, pipe: &mut Pipe) -> io::Result<usize> {
        on!(self, link => link.fill_pipe(context, pipe))
    }

    #[inline]
    fn send_batched(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> bool {
        on!(self, link => link.send_batched(context, queue))
    }

    #[inline]
    fn take_unsent(&mut self) -> Option<Vec<u8>> {
        on!(self, link => link.take_unsent())
    }

    #[inline]
    fn flush(&mut self) {
        on!(self, link => link.flush());
    }

    fn shut_down(&mut self) -> io::Result<()> {
        on!(self, link => link.shut_down())
    }

    fn reset(&mut self) {
        on!(self, link => link.reset());
    }

    fn finish(&mut self) {
        on!(self, link => link.finish());
    }

    fn enable_tcp_keepalive(&mut self) {
        on!(self, link => link.enable_tcp_keepalive());
    }

    fn in_flight(&self) -> u64 {
        on!(self, link => link.in_flight())
    }

    fn is_zero_copy(&self) -> bool {
        on!(self, link => link.is_zero_copy())
    }
}
