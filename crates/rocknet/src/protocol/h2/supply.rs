//! The content of an answer on its way into frames: what is ready to be framed, and where the next of it comes from.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use rocknet_config::model::Priority;
use rocknet_io::ahead::{Ahead, read_ahead};
use rocknet_io::file;
use rocknet_io::queue::{SendQueue, SharedBytes};

use crate::blocking::{Job, Pool};
use crate::response::{Body, FieldList, FilePart, Part, Stream};

/// Files are looked at in pieces of this size at most, and the next when the last has been framed: a frame cannot be taken
/// back, so what it holds must be there before it begins.
const PIECE: u64 = 64 * 1024;

/// Smaller pieces are copied into memory: to send one out of its file takes calls of its own, before it and for it.
const FROM_FILE: u64 = 8 * 1024;

/// What is still to be framed of an answer.
pub struct Supply {
    ready: Piece,
    source: Option<Source>,
}

/// Content at hand.
enum Piece {
    None,
    Owned(Bytes),
    Shared {
        bytes: SharedBytes,
        start: usize,
        end: usize,
    },
    /// In the kernel's memory, so that it leaves without passing through ours.
    File(FilePart),
}

/// Where more comes from.
enum Source {
    File(FileSource),
    Parts(VecDeque<Part>, Option<FileSource>),
    Stream(StreamSource),
}

struct FileSource {
    part: FilePart,
    /// Where reading the next piece has to wait for a disk.
    reading: Option<Reading>,
}

enum Reading {
    /// The worker's loop brings it into the kernel's memory.
    Ahead(Ahead),
    Job(Job<io::Result<Bytes>>),
}

/// A stream is asked through a future that borrows it, so both move together between polls.
struct StreamSource {
    stream: Option<Box<dyn Stream>>,
    asking: Option<Asking>,
    trailers: Option<FieldList>,
}

type Asking = Pin<Box<dyn Future<Output = (Box<dyn Stream>, Option<io::Result<Bytes>>)>>>;

impl Supply {
    /// Content of the cache, whole.
    pub fn shared(bytes: &SharedBytes, length: usize) -> Supply {
        let piece = Piece::Shared {
            bytes: Rc::clone(bytes),
            start: 0,
            end: length,
        };
        Supply {
            ready: piece,
            source: None,
        }
    }

    pub fn new(body: Body) -> Supply {
        let (ready, source) = match body {
            // What a tunnel brings is no content.
            Body::Empty | Body::Tunnel(_) => (Piece::None, None),
            Body::Bytes(bytes) => (Piece::Owned(bytes), None),
            Body::File(part) => (Piece::None, Some(Source::File(FileSource::new(part)))),
            Body::Parts(parts) => (Piece::None, Some(Source::Parts(parts.into(), None))),
            Body::Stream(stream) => {
                let stream = StreamSource {
                    stream: Some(stream),
                    asking: None,
                    trailers: None,
                };
                (Piece::None, Some(Source::Stream(stream)))
            }
        };
        Supply { ready, source }
    }

    pub fn empty() -> Supply {
        Supply::new(Body::Empty)
    }

    /// Gets these ready; nothing else may be.
    pub fn fill(&mut self, bytes: Bytes) {
        self.ready = Piece::Owned(bytes);
    }

    /// Bytes ready to be framed.
    pub fn ready(&self) -> u64 {
        self.ready.length()
    }

    /// Nothing comes behind what is ready.
    pub fn is_last(&self) -> bool {
        self.source.is_none()
    }

    /// Fields that stand behind the content, once `poll` has told its end.
    pub fn take_trailers(&mut self) -> Option<FieldList> {
        match &mut self.source {
            Some(Source::Stream(stream)) => stream.trailers.take(),
            _ => None,
        }
    }

    /// More comes out of files: as much as is asked for, when it is asked for, and the last of it is known to be that.
    pub fn is_file(&self) -> bool {
        matches!(self.source, Some(Source::File(_) | Source::Parts(..)))
    }

    /// Bytes that a file has left; where more than one file, or anything else, makes the content, at least as many as any
    /// window lets go.
    pub fn left(&self) -> u64 {
        match &self.source {
            Some(Source::File(file)) => file.part.length,
            _ => u64::MAX,
        }
    }

    /// Takes `length` of the ready bytes into the queue.
    pub fn put(&mut self, length: u64, out: &mut SendQueue) {
        match &mut self.ready {
            Piece::None => {}
            Piece::Owned(bytes) => out.push_owned(bytes.split_to(length as usize)),
            Piece::Shared { bytes, start, .. } => {
                let end = *start + length as usize;
                out.push_shared(bytes, *start, end);
                *start = end;
            }
            Piece::File(part) => {
                out.push_file(Arc::clone(&part.file.file), part.offset, length);
                part.offset += length;
                part.length -= length;
            }
        }
        if self.ready() == 0 {
            self.ready = Piece::None;
        }
    }

    /// Gets more ready, of a file not more than `most`; `None` at the end. To be called when nothing is ready.
    pub fn poll(&mut self, context: &mut Context<'_>, pool: &Pool, most: u64) -> Poll<Option<io::Result<()>>> {
        let piece = match &mut self.source {
            None => return Poll::Ready(None),
            Some(source) => ready!(source.poll(context, pool, most)),
        };
        Poll::Ready(match piece {
            None => {
                // A stream may have trailers, which are still to be taken.
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

impl Piece {
    fn length(&self) -> u64 {
        match self {
            Piece::None => 0,
            Piece::Owned(bytes) => bytes.len() as u64,
            Piece::Shared { start, end, .. } => (end - start) as u64,
            Piece::File(part) => part.length,
        }
    }
}

impl Source {
    /// Nothing more comes, as far as is known.
    fn is_empty(&self) -> bool {
        match self {
            Source::File(file) => file.part.length == 0,
            Source::Parts(parts, current) => {
                parts.is_empty() && current.as_ref().is_none_or(|file| file.part.length == 0)
            }
            Source::Stream(_) => false,
        }
    }

    fn poll(&mut self, context: &mut Context<'_>, pool: &Pool, most: u64) -> Poll<Option<io::Result<Piece>>> {
        match self {
            Source::File(file) => file.poll(context, pool, most),
            Source::Parts(parts, current) => loop {
                if let Some(file) = current {
                    if let Some(piece) = ready!(file.poll(context, pool, most)) {
                        return Poll::Ready(Some(piece));
                    }
                    *current = None;
                }
                match parts.pop_front() {
                    None => return Poll::Ready(None),
                    Some(Part::Bytes(bytes)) => return Poll::Ready(Some(Ok(Piece::Owned(bytes)))),
                    Some(Part::File(part)) => *current = Some(FileSource::new(part)),
                }
            },
            Source::Stream(stream) => stream.poll(context).map_ok(Piece::Owned),
        }
    }
}

impl FileSource {
    fn new(part: FilePart) -> FileSource {
        FileSource { part, reading: None }
    }

    fn poll(&mut self, context: &mut Context<'_>, pool: &Pool, most: u64) -> Poll<Option<io::Result<Piece>>> {
        if self.part.length == 0 {
            return Poll::Ready(None);
        }
        let piece = match &mut self.reading {
            Some(Reading::Ahead(ahead)) => {
                ready!(ahead.as_mut().poll(context));
                self.reading = None;
                self.resident(most)
            }
            Some(Reading::Job(job)) => {
                let read = ready!(Pin::new(job).poll(context));
                self.reading = None;
                // Without a pool to wait in, the loop has to wait for the disk itself.
                let read = read.unwrap_or_else(|_| read_piece(&self.part, most));
                read.map(|piece| Some(Piece::Owned(piece)))
            }
            None => match self.resident(most) {
                Ok(None) => {
                    let length = self.part.length.min(PIECE);
                    if let Some(ahead) = read_ahead(&self.part.file.file, self.part.offset, length) {
                        self.reading = Some(Reading::Ahead(ahead));
                        return self.poll(context, pool, most);
                    }
                    Ok(None)
                }
                found => found,
            },
        };
        let piece = match piece {
            Ok(Some(piece)) => Ok(piece),
            // The loop cannot bring it, or the kernel could not keep it.
            Ok(None) => {
                let part = self.part.clone();
                let job = pool.spawn(Priority::Normal, move || read_piece(&part, most));
                self.reading = Some(Reading::Job(job));
                return self.poll(context, pool, most);
            }
            Err(error) => Err(error),
        };
        if let Ok(piece) = &piece {
            self.part.offset += piece.length();
            self.part.length -= piece.length();
        }
        Poll::Ready(Some(piece))
    }

    /// What is in memory of the next piece; `None` if its beginning is not.
    fn resident(&self, most: u64) -> io::Result<Option<Piece>> {
        let part = FilePart {
            length: self.part.length.min(PIECE).min(most),
            ..self.part.clone()
        };
        if part.length >= FROM_FILE && file::holds_resident(&part.file.file, part.offset + part.length - 1)? {
            return Ok(Some(Piece::File(part)));
        }
        match file::take_resident(&part.file.file, part.offset, part.length as usize)? {
            Some(read) if read.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            read => Ok(read.map(|read| Piece::Owned(read.into()))),
        }
    }
}

fn read_piece(part: &FilePart, most: u64) -> io::Result<Bytes> {
    let mut buffer = vec![0; part.length.min(PIECE).min(most) as usize];
    file::read_range(&part.file.file, part.offset, &mut buffer)?;
    Ok(buffer.into())
}

impl StreamSource {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            if self.asking.is_none() {
                let Some(mut stream) = self.stream.take() else {
                    return Poll::Ready(None);
                };
                self.asking = Some(Box::pin(async move {
                    let piece = stream.next().await;
                    (stream, piece)
                }));
            }
            let Some(asking) = &mut self.asking else {
                return Poll::Ready(None);
            };
            let (mut stream, piece) = ready!(asking.as_mut().poll(context));
            self.asking = None;
            match piece {
                // A piece of nothing is not the end.
                Some(Ok(bytes)) if bytes.is_empty() => self.stream = Some(stream),
                Some(Ok(bytes)) => {
                    self.stream = Some(stream);
                    return Poll::Ready(Some(Ok(bytes)));
                }
                Some(error) => return Poll::Ready(Some(error)),
                None => {
                    self.trailers = stream.trailers();
                    return Poll::Ready(None);
                }
            }
        }
    }
}
