//! A wire as the HTTP/2 library wants it: something to read from and to write to.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use rocknet_io::link::{Link, Received};
use rocknet_io::queue::SendQueue;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::handler::proxy::wire::Wire;

/// Bytes taken at once to be sent: frames are gathered by the library up to a like size.
const WRITE: usize = 64 * 1024;

pub struct Socket {
    wire: Wire,
    /// Received in a buffer of the wire's own, and not read yet.
    held: Bytes,
    out: SendQueue,
    /// The wire has not taken all that it was given.
    is_full: bool,
}

impl Socket {
    pub fn new(wire: Wire) -> Socket {
        Socket {
            wire,
            held: Bytes::new(),
            out: SendQueue::default(),
            is_full: false,
        }
    }

    fn send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let sent = self.wire.poll_send(context, &mut self.out);
        self.is_full = sent.is_pending();
        sent
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.held.is_empty() {
            let got = match ready!(self.wire.poll_recv(context, buffer.initialize_unfilled()))? {
                Received::Lent(bytes) => bytes.len(),
                Received::Held(bytes) => {
                    self.held = bytes;
                    0
                }
            };
            if self.held.is_empty() {
                buffer.advance(got);
                return Poll::Ready(Ok(()));
            }
        }
        let taken = self.held.len().min(buffer.remaining());
        buffer.put_slice(&self.held[..taken]);
        self.held.advance(taken);
        if self.held.is_empty() {
            // It goes back to the wire.
            self.held = Bytes::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_full {
            ready!(self.send(context))?;
        }
        let taken = bytes.len().min(WRITE);
        self.out.buffer().extend_from_slice(&bytes[..taken]);
        match self.send(context) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(taken)),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_full {
            ready!(self.send(context))?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_flush(context))?;
        self.wire.finish();
        Poll::Ready(self.wire.shut_down())
    }
}
