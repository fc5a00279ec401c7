//! A wire as the HTTP/2 library wants it: something to read from and to write to.

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

/// Bytes taken at once to be sent: frames are gathered by the library up to a like size.
const MAX_WRITE: usize = 64 * 1024;

pub struct H2Io {
    transport: Transport,
    /// Received in a buffer of the wire's own, and not read yet.
    unread: Bytes,
    out: SendQueue,
    judge: ResponseValidator,
    malformed: Rc<MalformedStreams>,
    /// The wire has not taken all that it was given.
    has_backlog: bool,
}

/// Streams whose answers break the rules of HTTP/2 in what the library lets pass. They are known before the library tells of
/// the answer, because its bytes are judged on their way to it.
#[derive(Default)]
pub struct MalformedStreams {
    streams: RefCell<BTreeSet<u32>>,
    /// The connection could not be followed any more.
    unknown: Cell<bool>,
}

/// Streams remembered: more than there are on a connection at once, and those that were given up take the rest.
const MAX_MALFORMED: usize = 1024;

impl MalformedStreams {
    pub fn contains(&self, stream: StreamId) -> bool {
        self.unknown.get() || self.streams.borrow().contains(&stream.as_u32())
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
    pub fn new(transport: Transport, malformed: Rc<MalformedStreams>) -> H2Io {
        H2Io {
            judge: ResponseValidator::default(),
            malformed,
            transport,
            unread: Bytes::new(),
            out: SendQueue::default(),
            has_backlog: false,
        }
    }

    /// Looks at bytes before the library gets them.
    fn inspect(&mut self, bytes: &[u8]) {
        let malformed = &self.malformed;
        if let Err(OutOfSync) = self.judge.read(bytes, |stream| malformed.add(stream)) {
            malformed.unknown.set(true);
        }
    }

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
            let got = match ready!(self.transport.poll_recv(context, buffer.initialize_unfilled()))? {
                Received::Lent(bytes) => bytes.len(),
                Received::Held(bytes) => {
                    self.unread = bytes;
                    0
                }
            };
            if self.unread.is_empty() {
                self.inspect(&buffer.initialize_unfilled()[..got]);
                buffer.advance(got);
                return Poll::Ready(Ok(()));
            }
        }
        let length = self.unread.len().min(buffer.remaining());
        let taken = self.unread.split_to(length);
        self.inspect(&taken);
        buffer.put_slice(&taken);
        if self.unread.is_empty() {
            // It goes back to the wire.
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
