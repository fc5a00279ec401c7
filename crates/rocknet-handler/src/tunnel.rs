//! A connection that a handler has taken over: bytes both ways, for as long as both sides want.
//!
//! A request asks for it by `Upgrade` in HTTP/1.1, or by extended CONNECT (RFC 8441) in HTTP/2: `Request::upgrade` names the
//! protocol in both. A handler agrees by [`Response::tunnel`](crate::response::Response::tunnel), and from then on the
//! client's side is a `Link` to it, whatever the version. What a tunnel holds while nothing flows is what its handler
//! holds: buffers are the worker's, lent for one poll.

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

/// What becomes of the bytes of a tunnel.
pub trait Tunnel {
    /// Moves what can be moved. Ready when nothing more will be, in either direction; an error cuts the client off so that
    /// it notices.
    ///
    /// It is asked again whenever the client's side may have moved, and when `context` is woken. What the client sends is
    /// received no faster than it is asked for here.
    fn poll(&mut self, context: &mut Context<'_>, client: &mut dyn Link, scratch: Scratch<'_>) -> Poll<io::Result<()>>;
}

/// Room that the worker lends for one poll; nothing stays in it.
pub struct Scratch<'a> {
    /// To receive into.
    pub input: &'a mut [u8],
    /// To send from: empty, and to be left empty.
    pub queue: &'a mut SendQueue,
    /// To move through what is much.
    pub pipes: &'a PipePool,
}
