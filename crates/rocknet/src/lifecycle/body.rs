//! Response body that is being sent: the piece that is ready, and the source of further pieces.

mod file;
mod piece;
mod stream;

use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use rocknet_io::queue::{SendQueue, SharedBytes};

use self::file::FileSource;
use self::piece::Piece;
use self::stream::StreamSource;
use crate::blocking::Pool;
use crate::open_file::OpenFile;
use crate::response::{Body, FieldList, Part};

pub use self::piece::Delivery;

/// The part of a response body that has not been sent.
pub struct BodySource {
    /// Bytes that can be sent now.
    ready: Piece,
    /// Source of the bytes after the ready ones; `None` once it is known that nothing follows. A stream is kept after
    /// its end, because its trailers may still be taken.
    source: Option<Source>,
}

/// Source of further pieces.
enum Source {
    /// A range of one file.
    File(FileSource),
    /// Remaining parts, the part that is being read from a file, and the delivery of parts in files.
    Parts(VecDeque<Part>, Option<FileSource>, Delivery),
    /// A stream that a handler produces, with trailer fields at its end.
    Stream(StreamSource),
}

impl BodySource {
    /// Creates the source of a response body.
    pub fn new(body: Body, delivery: Delivery) -> BodySource {
        let (ready, source) = match body {
            // A tunnel carries no response body, and an aborted exchange has no response.
            Body::Empty | Body::Tunnel(_) | Body::Abort => (Piece::None, None),
            Body::Bytes(bytes) => (Piece::Owned(bytes), None),
            Body::File(part) => (Piece::None, Some(Source::File(FileSource::new(part, delivery)))),
            Body::Parts(parts) => (Piece::None, Some(Source::Parts(parts.into(), None, delivery))),
            Body::Stream(stream) => (Piece::None, Some(Source::Stream(StreamSource::new(stream)))),
        };
        BodySource { ready, source }
    }

    /// Creates a source without bytes.
    pub fn empty() -> BodySource {
        BodySource {
            ready: Piece::None,
            source: None,
        }
    }

    /// Creates a body of the first `length` bytes of an entry of the worker cache.
    pub fn shared(bytes: &SharedBytes, length: usize) -> BodySource {
        let ready = Piece::Shared {
            bytes: Rc::clone(bytes),
            start: 0,
            end: length,
        };
        BodySource { ready, source: None }
    }

    /// Creates a body of a whole file of the cache. `now_ms`: current uptime. It is recorded in the [`OpenFile`] if the
    /// file is sent as one piece with [`Delivery::Direct`] and was found in the page cache. The page cache is then not
    /// checked again for a second.
    pub fn file(file: &Arc<OpenFile>, delivery: Delivery, now_ms: u64) -> BodySource {
        BodySource {
            ready: Piece::None,
            source: Some(Source::File(FileSource::whole(file, delivery, now_ms))),
        }
    }

    /// Makes `bytes` the ready piece. Called only if no bytes are ready.
    pub fn fill(&mut self, bytes: Bytes) {
        self.ready = Piece::Owned(bytes);
    }

    /// Returns the number of bytes that are ready.
    pub fn ready(&self) -> u64 {
        self.ready.length()
    }

    /// Returns true if the ready bytes are known to be the last. Never true for a streamed body, because only
    /// [`BodySource::poll`] can return the end of the stream.
    pub fn is_last(&self) -> bool {
        self.source.is_none()
    }

    /// Returns the trailer fields once [`BodySource::poll`] has returned the end.
    pub fn take_trailers(&mut self) -> Option<FieldList> {
        match &mut self.source {
            Some(Source::Stream(stream)) => stream.take_trailers(),
            _ => None,
        }
    }

    /// Returns true if further pieces come from a file, or from the parts of a multipart/byteranges body. Such pieces
    /// can be requested at any time, and the end of the body is known in advance. Pieces of a file can be requested in
    /// any size.
    pub fn is_file(&self) -> bool {
        matches!(self.source, Some(Source::File(_) | Source::Parts(..)))
    }

    /// Returns the number of bytes of a file that have not been made ready. For any other source, returns more than any
    /// flow-control window allows.
    pub fn left(&self) -> u64 {
        match &self.source {
            Some(Source::File(file)) => file.left(),
            _ => u64::MAX,
        }
    }

    /// Moves the first `length` ready bytes into the queue. At least `length` bytes must be ready.
    pub fn put(&mut self, length: u64, out: &mut SendQueue) {
        self.ready.put(length, out);
    }

    /// Drops the ready bytes.
    pub fn discard(&mut self) {
        self.ready = Piece::None;
    }

    /// Makes the next piece ready; `None` at the end. Except with [`Delivery::Direct`], a piece of a file has at most
    /// `max_bytes` bytes. Called only if no bytes are ready.
    pub fn poll(&mut self, task: &mut Context<'_>, pool: &Pool, max_bytes: u64) -> Poll<Option<io::Result<()>>> {
        let piece = match &mut self.source {
            None => return Poll::Ready(None),
            Some(source) => ready!(source.poll(task, pool, max_bytes)),
        };
        Poll::Ready(match piece {
            None => {
                // A stream is kept, because its trailers have not been taken yet.
                if !matches!(self.source, Some(Source::Stream(_))) {
                    self.source = None;
                }
                None
            }
            Some(Err(error)) => Some(Err(error)),
            Some(Ok(piece)) => {
                self.ready = piece;
                if self.source.as_ref().is_some_and(Source::is_empty) {
                    self.source = None;
                }
                Some(Ok(()))
            }
        })
    }
}

impl Source {
    /// Returns true if it is already known that no further piece follows.
    fn is_empty(&self) -> bool {
        match self {
            Source::File(file) => file.left() == 0,
            Source::Parts(parts, current, _) => {
                parts.is_empty() && current.as_ref().is_none_or(|file| file.left() == 0)
            }
            Source::Stream(_) => false,
        }
    }

    fn poll(&mut self, task: &mut Context<'_>, pool: &Pool, max_bytes: u64) -> Poll<Option<io::Result<Piece>>> {
        match self {
            Source::File(file) => file.poll(task, pool, max_bytes),
            Source::Parts(parts, current, delivery) => loop {
                if let Some(file) = current {
                    if let Some(piece) = ready!(file.poll(task, pool, max_bytes)) {
                        return Poll::Ready(Some(piece));
                    }
                    *current = None;
                }
                match parts.pop_front() {
                    None => return Poll::Ready(None),
                    Some(Part::Bytes(bytes)) => return Poll::Ready(Some(Ok(Piece::Owned(bytes)))),
                    Some(Part::File(part)) => *current = Some(FileSource::new(part, *delivery)),
                }
            },
            Source::Stream(stream) => stream.poll(task).map_ok(Piece::Owned),
        }
    }
}
