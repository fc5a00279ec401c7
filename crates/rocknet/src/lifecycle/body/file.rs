//! Source of a file range that is sent in pieces. Each piece is loaded into memory before it is sent, so that the event
//! loop does not wait for the disk.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use rocknet_config::model::Priority;
use rocknet_io::file;
use rocknet_io::read_ahead::{ReadAhead, read_ahead};

use super::piece::{Delivery, Piece};
use crate::blocking::{Job, JobError, Pool};
use crate::open_file::OpenFile;
use crate::response::FilePart;

/// Maximum size of a direct piece, which is one with [`Delivery::Direct`]. A socket sends at most the same number of
/// file bytes before other connections are served. The pool reads a direct piece from the disk in one job.
const DIRECT_PIECE: u64 = 512 << 10;

/// Maximum size of a framed piece, which is one with [`Delivery::Framed`] or [`Delivery::Copied`]. The next piece is
/// prepared once the previous one has been framed. The size bounds the memory of a piece that is read, and lets one
/// check of residency serve several frames (docs/decisions/0007-large-files.md).
const FRAMED_PIECE: u64 = 64 * 1024;

/// Minimum size of a piece with [`Delivery::Framed`] that is sent from its file. Smaller pieces are copied, because
/// sending from a file requires further system calls.
const MIN_FROM_FILE: u64 = 8 * 1024;

/// Source of the pieces of a file.
pub struct FileSource {
    /// Range that has not been returned yet.
    part: FilePart,
    delivery: Delivery,
    /// Operation that loads the next piece into memory, if one is in progress.
    preparing: Option<Preparing>,
    /// True if the next direct piece was found in memory or loaded before. It is sent without another check: if the
    /// kernel has evicted it since, sending it waits for the disk. Framed pieces are always checked.
    is_loaded: bool,
    /// Uptime in ms that is recorded in the [`OpenFile`] when the file is found in the page cache. `None` unless a
    /// whole file is sent directly as one piece.
    note_uptime_ms: Option<u64>,
}

/// Operation that loads a piece into memory.
enum Preparing {
    /// The event loop of the worker reads the piece into the page cache.
    ReadAhead(ReadAhead),
    /// A thread of the pool reads the piece into the page cache.
    Load(Job<()>),
    /// A thread of the pool reads the piece into a buffer.
    Read(Job<io::Result<Bytes>>),
}

impl FileSource {
    /// Creates the source of a range of a file.
    pub fn new(part: FilePart, delivery: Delivery) -> FileSource {
        FileSource {
            part,
            delivery,
            preparing: None,
            is_loaded: false,
            note_uptime_ms: None,
        }
    }

    /// Creates the source of a whole file. A file of one direct piece that was found in memory within the last second
    /// is not checked again. `now_ms`: current uptime, which is recorded in the [`OpenFile`] of such a file when a
    /// check finds it in the page cache.
    pub fn whole(file: &Arc<OpenFile>, delivery: Delivery, now_ms: u64) -> FileSource {
        let part = FilePart {
            file: Arc::clone(file),
            offset: 0,
            length: file.length,
        };
        let is_one_piece = delivery == Delivery::Direct && file.length <= DIRECT_PIECE;
        FileSource {
            is_loaded: is_one_piece && file.was_resident(now_ms),
            note_uptime_ms: is_one_piece.then_some(now_ms),
            ..FileSource::new(part, delivery)
        }
    }

    /// Returns the number of bytes that [`FileSource::poll`] has not returned yet.
    pub fn left(&self) -> u64 {
        self.part.length
    }

    /// Returns the next piece; `None` at the end. A framed piece has at most `max_bytes` bytes.
    pub fn poll(&mut self, task: &mut Context<'_>, pool: &Pool, max_bytes: u64) -> Poll<Option<io::Result<Piece>>> {
        if self.part.length == 0 {
            return Poll::Ready(None);
        }
        loop {
            let found = match &mut self.preparing {
                None => match self.find(max_bytes) {
                    Ok(None) => {
                        if let Some(ahead) = read_ahead(&self.part.file.file, self.part.offset, self.piece_length()) {
                            self.preparing = Some(Preparing::ReadAhead(ahead));
                            continue;
                        }
                        Ok(None)
                    }
                    found => found,
                },
                Some(Preparing::ReadAhead(ahead)) => {
                    // False means that the event loop could not load the piece. The pool then has to load it.
                    self.is_loaded = ready!(ahead.as_mut().poll(task));
                    self.preparing = None;
                    self.find(max_bytes)
                }
                Some(Preparing::Load(job)) => {
                    let loaded = ready!(Pin::new(job).poll(task));
                    self.preparing = None;
                    match loaded {
                        // The pool is full: thousands of jobs wait for the disk already. The response is cut, because
                        // reading in the event loop would let all its clients wait for the disk.
                        Err(error @ JobError::Rejected) => Err(io::Error::other(error)),
                        // After a panic or a stop of the pool, the piece is sent although this may wait for the disk.
                        Ok(()) | Err(_) => {
                            self.is_loaded = true;
                            self.find(max_bytes)
                        }
                    }
                }
                Some(Preparing::Read(job)) => {
                    let read = ready!(Pin::new(job).poll(task));
                    self.preparing = None;
                    // Any error of the pool cuts the response, because no piece can be sent without the buffer.
                    let read = read.unwrap_or_else(|error| Err(io::Error::other(error)));
                    read.map(|read| Some(Piece::Owned(read)))
                }
            };
            match found {
                Ok(Some(piece)) => {
                    self.part.offset += piece.length();
                    self.part.length -= piece.length();
                    return Poll::Ready(Some(Ok(piece)));
                }
                // The event loop cannot load the piece, or the kernel could not keep it in memory.
                Ok(None) => self.preparing = Some(self.load_in_pool(pool, max_bytes)),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }

    /// Returns the maximum length of the next piece.
    fn piece_length(&self) -> u64 {
        self.part.length.min(match self.delivery {
            Delivery::Direct => DIRECT_PIECE,
            Delivery::Framed | Delivery::Copied => FRAMED_PIECE,
        })
    }

    /// Returns the next piece if it is in memory. A framed piece is cut to its beginning if only that is in memory.
    fn find(&mut self, max_bytes: u64) -> io::Result<Option<Piece>> {
        match self.delivery {
            Delivery::Direct => Ok(self.find_direct()),
            Delivery::Framed | Delivery::Copied => self.find_framed(max_bytes),
        }
    }

    /// Returns the next direct piece if it is in memory.
    fn find_direct(&mut self) -> Option<Piece> {
        let length = self.piece_length();
        if !std::mem::take(&mut self.is_loaded) {
            // Pieces are loaded from start to end, so only the last byte is checked
            // (docs/decisions/0007-large-files.md).
            if !file::is_resident(&self.part.file.file, self.part.offset + length - 1) {
                return None;
            }
            if let Some(now_ms) = self.note_uptime_ms {
                self.part.file.note_resident(now_ms);
            }
        }
        Some(Piece::File(self.next_part(length)))
    }

    /// Returns the next framed piece, or its beginning, if that is in memory.
    fn find_framed(&self, max_bytes: u64) -> io::Result<Option<Piece>> {
        let part = self.next_part(self.piece_length().min(max_bytes));
        if self.delivery == Delivery::Framed
            && part.length >= MIN_FROM_FILE
            && file::check_resident(&part.file.file, part.offset + part.length - 1)?
        {
            return Ok(Some(Piece::File(part)));
        }
        match file::read_resident_vec(&part.file.file, part.offset, part.length as usize)? {
            // The file has become shorter than the range.
            Some(read) if read.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            read => Ok(read.map(|read| Piece::Owned(read.into()))),
        }
    }

    /// Returns the first `length` bytes of the range that is left.
    fn next_part(&self, length: u64) -> FilePart {
        FilePart {
            length,
            ..self.part.clone()
        }
    }

    /// Starts a job that loads the next piece into memory.
    fn load_in_pool(&self, pool: &Pool, max_bytes: u64) -> Preparing {
        match self.delivery {
            Delivery::Direct => {
                let part = self.next_part(self.piece_length());
                let load = move || file::load_into_page_cache(&part.file.file, part.offset, part.length);
                Preparing::Load(pool.spawn(Priority::Normal, load))
            }
            Delivery::Framed | Delivery::Copied => {
                let part = self.next_part(self.piece_length().min(max_bytes));
                Preparing::Read(pool.spawn(Priority::Normal, move || read(&part)))
            }
        }
    }
}

/// Reads a range of a file into memory. Blocks on the disk.
fn read(part: &FilePart) -> io::Result<Bytes> {
    let mut buffer = vec![0; part.length as usize];
    file::read_range(&part.file.file, part.offset, &mut buffer)?;
    Ok(buffer.into())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::task::Waker;

    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_pool_cuts_the_response_instead_of_blocking_the_event_loop() {
        // Neither a folder nor a file of procfs is ever found in memory, and a pool without threads rejects every job.
        for (delivery, path) in [(Delivery::Direct, "."), (Delivery::Framed, "/proc/self/status")] {
            let file = File::open(path).expect("a file");
            let part = FilePart {
                file: Arc::new(OpenFile::new(file, 10)),
                offset: 0,
                length: 10,
            };
            let mut source = FileSource::new(part, delivery);
            let polled = source.poll(&mut Context::from_waker(Waker::noop()), &Pool::new(0), u64::MAX);
            assert!(matches!(polled, Poll::Ready(Some(Err(_)))), "{delivery:?}");
        }
    }
}
