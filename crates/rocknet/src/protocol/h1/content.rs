//! Request content on its way from the link to a handler.

use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use rocknet_io::link::Link;
use rocknet_proto::h1::{Received, Refusal, ServerConnection};
use rocknet_proto::limits::Limits;
use rocknet_proto::request::RequestIndex;

pub enum Pulled {
    Chunk(Bytes),
    /// Content and trailers are complete.
    End,
    /// The client closed in the middle.
    Left,
    Refused(Refusal),
}

/// The next piece of content: out of `unread`, or received.
pub fn pull<L: Link>(
    engine: &mut ServerConnection,
    link: &mut L,
    context: &mut Context<'_>,
    limits: &Limits,
    unread: &mut Vec<u8>,
    input: &mut [u8],
    request: &mut RequestIndex,
) -> Poll<io::Result<Pulled>> {
    loop {
        match engine.receive(limits, unread, request) {
            Ok(Received::Data { start, end }) => {
                let chunk = Bytes::copy_from_slice(&unread[start..end]);
                take(unread, end);
                return Poll::Ready(Ok(Pulled::Chunk(chunk)));
            }
            Ok(Received::End { consumed }) => {
                take(unread, consumed);
                return Poll::Ready(Ok(Pulled::End));
            }
            Ok(Received::More { consumed }) => take(unread, consumed),
            // Nothing of this request is left to come.
            Ok(Received::Blocked | Received::Request { .. }) => return Poll::Ready(Ok(Pulled::End)),
            Err(refusal) => return Poll::Ready(Ok(Pulled::Refused(refusal))),
        }
        let received = ready!(link.poll_recv(context, input))?;
        if received.is_empty() {
            return Poll::Ready(Ok(Pulled::Left));
        }
        unread.extend_from_slice(&received);
    }
}

fn take(unread: &mut Vec<u8>, bytes: usize) {
    if bytes == unread.len() {
        *unread = Vec::new();
    } else {
        unread.drain(..bytes);
    }
}
