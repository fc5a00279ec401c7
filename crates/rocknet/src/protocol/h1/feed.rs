//! The content of an answer on its way into the send queue, one piece at a time.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use rocknet_config::model::Priority;
use rocknet_io::ahead::{Ahead, read_ahead};
use rocknet_io::file;
use rocknet_io::queue::SendQueue;

use crate::blocking::{Job, JobError, Pool};
use crate::open_file::OpenFile;
use crate::response::{Body, FieldList, FilePart, Part, Stream};

/// A file goes out in pieces of this size, each checked to be in memory first: reading half a megabyte from a disk is work for
/// the pool, and others get their turn in between. As much as a link sends of files in one turn.
const FILE_PIECE: u64 = 512 << 10;

/// What is still to be sent of an answer.
pub enum Feed {
    File(FileFeed),
    Parts(VecDeque<Part>, Option<FileFeed>),
    Stream(StreamFeed),
}

pub struct FileFeed {
    part: FilePart,
    /// Brings the next piece into memory.
    warming: Option<Warming>,
    /// The next piece has been brought into memory just now; if it is gone again, sending it will have to wait.
    warmed: bool,
    /// If it turns out to be in memory whole, that is noted in the file, with this time.
    note: Option<u64>,
}

enum Warming {
    /// By the worker's own loop.
    Ahead(Ahead),
    /// By a thread of the pool.
    Job(Job<()>),
}

/// A stream is asked through a future that borrows it, so both move together between polls.
pub struct StreamFeed {
    stream: Option<Box<dyn Stream>>,
    asking: Option<Asking>,
}

type Asking = std::pin::Pin<Box<dyn Future<Output = (Box<dyn Stream>, Option<io::Result<Bytes>>)>>>;

/// What a poll gave.
pub enum Fed {
    /// Something was queued; there may be more.
    Some,
    /// A piece of content whose length was not known beforehand.
    Chunk(Bytes),
    /// All of it has been queued.
    Done,
    /// All of it, and these fields come behind it.
    Trailers(FieldList),
}

impl Feed {
    /// Queues what needs no waiting for; gives back the rest.
    pub fn start(body: Body, out: &mut SendQueue) -> Option<Feed> {
        match body {
            // What a tunnel brings is no content.
            Body::Empty | Body::Tunnel(_) => None,
            Body::Bytes(bytes) => {
                out.push_owned(bytes);
                None
            }
            Body::File(part) => Some(Feed::File(FileFeed::new(part))),
            Body::Parts(parts) => Some(Feed::Parts(parts.into(), None)),
            Body::Stream(stream) => Some(Feed::Stream(StreamFeed {
                stream: Some(stream),
                asking: None,
            })),
        }
    }

    /// The whole of a file, which may have been seen in memory just now.
    pub fn file(file: &Arc<OpenFile>, now_ms: u64) -> Feed {
        let part = FilePart {
            file: Arc::clone(file),
            offset: 0,
            length: file.length,
        };
        let known = file.length <= FILE_PIECE;
        let warmed = known && file.was_resident(now_ms);
        Feed::File(FileFeed {
            note: known.then_some(now_ms),
            warmed,
            ..FileFeed::new(part)
        })
    }

    /// Content whose length is known: all that is still to be queued.
    pub fn announced(&self) -> u64 {
        match self {
            Feed::File(file) => file.part.length,
            Feed::Parts(parts, current) => {
                parts.iter().map(Part::length).sum::<u64>() + current.as_ref().map_or(0, |file| file.part.length)
            }
            Feed::Stream(_) => 0,
        }
    }

    pub fn poll(&mut self, context: &mut Context<'_>, pool: &Pool, out: &mut SendQueue) -> Poll<io::Result<Fed>> {
        match self {
            Feed::File(file) => file.poll(context, pool, out),
            Feed::Parts(parts, current) => {
                if let Some(file) = current {
                    match ready!(file.poll(context, pool, out))? {
                        Fed::Done | Fed::Trailers(_) => *current = None,
                        fed => return Poll::Ready(Ok(fed)),
                    }
                }
                Poll::Ready(Ok(match parts.pop_front() {
                    None => Fed::Done,
                    Some(Part::Bytes(bytes)) => {
                        out.push_owned(bytes);
                        Fed::Some
                    }
                    Some(Part::File(part)) => {
                        *current = Some(FileFeed::new(part));
                        Fed::Some
                    }
                }))
            }
            Feed::Stream(stream) => stream.poll(context),
        }
    }
}

impl FileFeed {
    fn new(part: FilePart) -> FileFeed {
        FileFeed {
            part,
            warming: None,
            warmed: false,
            note: None,
        }
    }

    fn poll(&mut self, context: &mut Context<'_>, pool: &Pool, out: &mut SendQueue) -> Poll<io::Result<Fed>> {
        if self.part.length == 0 {
            return Poll::Ready(Ok(Fed::Done));
        }
        let piece = self.part.length.min(FILE_PIECE);
        if let Some(warming) = &mut self.warming {
            let warmed = match warming {
                Warming::Ahead(ahead) => Ok(ready!(ahead.as_mut().poll(context))),
                Warming::Job(job) => ready!(std::pin::Pin::new(job).poll(context)).map(|()| true),
            };
            match warmed {
                Ok(false) => {
                    self.warming = Some(self.by_a_thread(pool, piece));
                    return self.poll(context, pool, out);
                }
                // With thousands waiting for the disk already, one more is cut: were the loop to wait in its place, all its
                // clients would hang with the disk.
                Err(error @ JobError::Rejected) => return Poll::Ready(Err(io::Error::other(error))),
                Ok(true) | Err(_) => (self.warming, self.warmed) = (None, true),
            }
        }
        if !self.warmed {
            if !file::is_resident(&self.part.file.file, self.part.offset + piece - 1) {
                let ahead = read_ahead(&self.part.file.file, self.part.offset, piece);
                self.warming = Some(ahead.map_or_else(|| self.by_a_thread(pool, piece), Warming::Ahead));
                return self.poll(context, pool, out);
            }
            if let Some(now_ms) = self.note {
                self.part.file.note_resident(now_ms);
            }
        }
        self.warmed = false;
        out.push_file(Arc::clone(&self.part.file.file), self.part.offset, piece);
        self.part.offset += piece;
        self.part.length -= piece;
        Poll::Ready(Ok(if self.part.length == 0 { Fed::Done } else { Fed::Some }))
    }

    fn by_a_thread(&self, pool: &Pool, piece: u64) -> Warming {
        let part = self.part.clone();
        let bring_in = move || file::bring_in(&part.file.file, part.offset, piece);
        Warming::Job(pool.spawn(Priority::Normal, bring_in))
    }
}

impl StreamFeed {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Fed>> {
        if self.asking.is_none() {
            let Some(mut stream) = self.stream.take() else {
                return Poll::Ready(Ok(Fed::Done));
            };
            self.asking = Some(Box::pin(async move {
                let piece = stream.next().await;
                (stream, piece)
            }));
        }
        let Some(asking) = &mut self.asking else {
            return Poll::Ready(Ok(Fed::Done));
        };
        let (mut stream, piece) = ready!(asking.as_mut().poll(context));
        self.asking = None;
        Poll::Ready(match piece {
            Some(Ok(bytes)) => {
                self.stream = Some(stream);
                Ok(Fed::Chunk(bytes))
            }
            Some(Err(error)) => Err(error),
            None => Ok(stream.trailers().map_or(Fed::Done, Fed::Trailers)),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::task::Waker;

    use super::*;

    #[test]
    fn a_pool_without_room_cuts_the_answer_and_halts_nobody() {
        // Of a folder nothing is ever in memory.
        let folder = File::open(".").expect("a folder");
        let part = FilePart {
            file: Arc::new(OpenFile::new(folder, 10)),
            offset: 0,
            length: 10,
        };
        let mut feed = Feed::start(Body::File(part), &mut SendQueue::default()).expect("content");
        let mut out = SendQueue::default();
        let fed = feed.poll(&mut Context::from_waker(Waker::noop()), &Pool::new(0), &mut out);
        assert!(matches!(fed, Poll::Ready(Err(_))) && out.is_empty());
    }
}
