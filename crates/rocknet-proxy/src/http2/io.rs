//! Adapter that implements `AsyncRead` and `AsyncWrite`, which the HTTP/2 library requires, for a transport.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::StreamId;
use rocknet_io::link::{Link, Received};
use rocknet_io::queue::SendQueue;
use rocknet_proto::h2::{OutOfSync, ResponseValidator};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::transport::Transport;

/// Maximum number of bytes accepted by one write. The library collects frames up to a similar size.
const MAX_WRITE: usize = 64 * 1024;

/// Byte stream of an HTTP/2 connection.
pub struct H2Io {
    transport: Transport,
    /// Received bytes that are still in a buffer of the transport and that the library has not read yet.
    unread: Bytes,
    out: SendQueue,
    validator: ResponseValidator,
    malformed: Rc<MalformedStreams>,
    /// True if the socket has not accepted all bytes.
    has_backlog: bool,
}

/// Streams whose responses break rules of HTTP/2 that the library does not enforce.
///
/// The received bytes are checked before the library gets them. Therefore a malformed response is in this list before
/// the library reports the response.
#[derive(Default)]
pub struct MalformedStreams {
    streams: RefCell<BTreeSet<u32>>,
    /// True if the frames of the connection cannot be parsed any more. Every stream then counts as malformed.
    is_out_of_sync: Cell<bool>,
}

/// Maximum number of malformed streams that are stored. If there are more, the oldest stream is removed. The limit
/// exceeds the number of concurrent streams of a connection, so that abandoned streams do not displace open streams.
const MAX_MALFORMED: usize = 1024;

impl MalformedStreams {
    /// Returns true if the response on this stream is malformed.
    pub fn contains(&self, stream: StreamId) -> bool {
        self.is_out_of_sync.get() || self.streams.borrow().contains(&stream.as_u32())
    }

    fn add(&self, stream: u32) {
        let mut streams = self.streams.borrow_mut();
        streams.insert(stream);
        if streams.len() > MAX_MALFORMED {
            streams.pop_first();
        }
    }
}

impl H2Io {
    /// Returns the byte stream of a transport, which records malformed responses in `malformed`.
    pub fn new(transport: Transport, malformed: Rc<MalformedStreams>) -> H2Io {
        H2Io {
            validator: ResponseValidator::default(),
            malformed,
            transport,
            unread: Bytes::new(),
            out: SendQueue::default(),
            has_backlog: false,
        }
    }

    /// Checks received bytes before the library gets them.
    fn inspect(&mut self, bytes: &[u8]) {
        let malformed = &self.malformed;
        if let Err(OutOfSync) = self.validator.read(bytes, |stream| malformed.add(stream)) {
            malformed.is_out_of_sync.set(true);
        }
    }

    /// Sends the bytes in `out`, and records whether some of them remain.
    fn send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let sent = self.transport.poll_send(context, &mut self.out);
        self.has_backlog = sent.is_pending();
        sent
    }
}

impl AsyncRead for H2Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.unread.is_empty() {
            let count = match ready!(self.transport.poll_recv(context, buffer.initialize_unfilled()))? {
                // The bytes are at the beginning of the unfilled part of `buffer`.
                Received::Borrowed(bytes) => bytes.len(),
                Received::Owned(bytes) => {
                    self.unread = bytes;
                    0
                }
            };
            if self.unread.is_empty() {
                self.inspect(&buffer.initialize_unfilled()[..count]);
                buffer.advance(count);
                return Poll::Ready(Ok(()));
            }
        }
        let length = self.unread.len().min(buffer.remaining());
        let taken = self.unread.split_to(length);
        self.inspect(&taken);
        buffer.put_slice(&taken);
        if self.unread.is_empty() {
            // Dropping the empty slice returns the buffer to the transport.
            self.unread = Bytes::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for H2Io {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.has_backlog {
            ready!(self.send(context))?;
        }
        // All these bytes are accepted, even if the socket takes only some of them.
        let taken = bytes.len().min(MAX_WRITE);
        self.out.buffer().extend_from_slice(&bytes[..taken]);
        match self.send(context) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(taken)),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.has_backlog {
            ready!(self.send(context))?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_flush(context))?;
        self.transport.finish();
        Poll::Ready(self.transport.shut_down())
    }
}
