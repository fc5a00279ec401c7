//! Tunnels: connections that a handler has taken over, with bytes in both directions until both sides have ended.
//!
//! A client requests a tunnel by `Upgrade` in HTTP/1.1, or by extended CONNECT in HTTP/2 (RFC 8441) and HTTP/3 (RFC
//! 9220). `Request::upgrade` names the protocol in all versions. A handler accepts by
//! [`Response::tunnel`](crate::response::Response::tunnel). From then on the client's side is a `Link` in each HTTP
//! version. An idle tunnel needs only the memory of its handler, because the buffers belong to the worker and are lent
//! for one poll.

mod close_state;
mod flow;
mod splice;

use std::io;
use std::task::{Context, Poll};

use rocknet_io::link::Link;
use rocknet_io::pipe::PipePool;
use rocknet_io::queue::SendQueue;

pub use close_state::CloseState;
pub use splice::Splice;

/// Moves the bytes of a tunnel.
pub trait Tunnel {
    /// Moves as many bytes as possible. Ready when both directions have ended.
    ///
    /// Called whenever the client's side may have progressed, and when `context` is woken. Bytes of the client are
    /// received no faster than this method requests them.
    ///
    /// # Errors
    ///
    /// Returns an error if either side fails. The server then resets the client's connection, so that the client
    /// notices.
    fn poll(&mut self, context: &mut Context<'_>, client: &mut dyn Link, scratch: Scratch<'_>) -> Poll<io::Result<()>>;
}

/// Buffers that the worker lends for one poll. No data may remain in them after the poll.
pub struct Scratch<'a> {
    /// Receive buffer.
    pub input: &'a mut [u8],
    /// Send queue: empty before and after the poll.
    pub queue: &'a mut SendQueue,
    /// Kernel pipes for moving large amounts between sockets.
    pub pipes: &'a PipePool,
}
