//! Range of a file that is sent in pieces, each of which is in memory before it is sent.

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

/// Size of a piece where the response has the link to itself, which is as much as a link sends of files in one turn.
/// The pool reads half a megabyte from a disk at once, and other connections get their turn between two pieces.
const DIRECT_PIECE: u64 = 512 << 10;

/// Largest piece that is framed. The next one is prepared once the last has been framed.
const FRAMED_PIECE: u64 = 64 * 1024;

/// Smaller pieces are copied before they are framed, because sending one from its file takes further system calls.
const FROM_FILE: u64 = 8 * 1024;

/// Source of the pieces of a file.
pub struct FileSource {
    part: FilePart,
    delivery: Delivery,
    /// Brings the next piece into memory.
    preparing: Option<Preparing>,
    /// The next piece was just read into memory. If it is gone again, sending it waits for the disk.
    is_loaded: bool,
    /// Time that is noted in the file if it is in memory as a whole.
    note: Option<u64>,
}

enum Preparing {
    /// The worker's own loop reads into the kernel's memory.
    ReadAhead(ReadAhead),
    /// A thread of the pool does.
    Load(Job<()>),
    /// A thread of the pool reads into the server's memory.
    Read(Job<io::Result<Bytes>>),
}

impl FileSource {
    /// Makes the source of a range of a file.
    pub fn new(part: FilePart, delivery: Delivery) -> FileSource {
        FileSource {
            part,
            delivery,
            preparing: None,
            is_loaded: false,
            note: None,
        }
    }

    /// Sends a whole file, which may have been found in memory just now.
    pub fn whole(file: &Arc<OpenFile>, delivery: Delivery, now_ms: u64) -> FileSource {
        let part = FilePart {
            file: Arc::clone(file),
            offset: 0,
            length: file.length,
        };
        let is_one_piece = delivery == Delivery::Direct && file.length <= DIRECT_PIECE;
        FileSource {
            is_loaded: is_one_piece && file.was_resident(now_ms),
            note: is_one_piece.then_some(now_ms),
            ..FileSource::new(part, delivery)
        }
    }

    /// Returns the number of bytes that are still to be returned.
    pub fn left(&self) -> u64 {
        self.part.length
    }

    /// Returns the next piece, of at most `max_bytes` bytes where it is framed; `None` at the end.
    pub fn poll(&mut self, task: &mut Context<'_>, pool: &Pool, max_bytes: u64) -> Poll<Option<io::Result<Piece>>> {
        if self.part.length == 0 {
            return Poll::Ready(None);
        }
        loop {
            let found = match &mut self.preparing {
                None => match self.find(max_bytes) {
                    Ok(None) => {
                        if let Some(ahead) = read_ahead(&self.part.file.file, self.part.offset, self.piece()) {
                            self.preparing = Some(Preparing::ReadAhead(ahead));
                            continue;
                        }
                        Ok(None)
                    }
                    found => found,
                },
                Some(Preparing::ReadAhead(ahead)) => {
                    self.is_loaded = ready!(ahead.as_mut().poll(task));
                    self.preparing = None;
                    self.find(max_bytes)
                }
                Some(Preparing::Load(job)) => {
                    let loaded = ready!(Pin::new(job).poll(task));
                    self.preparing = None;
                    match loaded {
                        Err(error @ JobError::Rejected) => Err(io::Error::other(error)),
                        Ok(()) | Err(_) => {
                            self.is_loaded = true;
                            self.find(max_bytes)
                        }
                    }
                }
                Some(Preparing::Read(job)) => {
                    let read = ready!(Pin::new(job).poll(task));
                    self.preparing = None;
                    // With thousands of jobs waiting for the disk, this response is cut: if the event loop read in
                    // place of the pool, all its clients would wait for the disk.
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
                // The event loop cannot read it, or the kernel could not keep it in memory.
                Ok(None) => self.preparing = Some(self.load_in_pool(pool, max_bytes)),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }

    fn piece(&self) -> u64 {
        self.part.length.min(match self.delivery {
            Delivery::Direct => DIRECT_PIECE,
            Delivery::Framed => FRAMED_PIECE,
        })
    }

    /// Returns the part of the next piece that is in memory; `None` if its beginning is not.
    fn find(&mut self, max_bytes: u64) -> io::Result<Option<Piece>> {
        match self.delivery {
            Delivery::Direct => Ok(self.find_direct()),
            Delivery::Framed => self.find_framed(max_bytes),
        }
    }

    fn find_direct(&mut self) -> Option<Piece> {
        let length = self.piece();
        if !std::mem::take(&mut self.is_loaded) {
            if !file::is_resident(&self.part.file.file, self.part.offset + length - 1) {
                return None;
            }
            if let Some(now_ms) = self.note {
                self.part.file.note_resident(now_ms);
            }
        }
        Some(Piece::File(self.next_part(length)))
    }

    fn find_framed(&self, max_bytes: u64) -> io::Result<Option<Piece>> {
        let part = self.next_part(self.piece().min(max_bytes));
        if part.length >= FROM_FILE && file::check_resident(&part.file.file, part.offset + part.length - 1)? {
            return Ok(Some(Piece::File(part)));
        }
        match file::read_resident_vec(&part.file.file, part.offset, part.length as usize)? {
            Some(read) if read.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            read => Ok(read.map(|read| Piece::Owned(read.into()))),
        }
    }

    fn next_part(&self, length: u64) -> FilePart {
        FilePart {
            length,
            ..self.part.clone()
        }
    }

    fn load_in_pool(&self, pool: &Pool, max_bytes: u64) -> Preparing {
        match self.delivery {
            Delivery::Direct => {
                let part = self.next_part(self.piece());
                let load = move || file::load_into_page_cache(&part.file.file, part.offset, part.length);
                Preparing::Load(pool.spawn(Priority::Normal, load))
            }
            Delivery::Framed => {
                let part = self.next_part(self.piece().min(max_bytes));
                Preparing::Read(pool.spawn(Priority::Normal, move || read(&part)))
            }
        }
    }
}

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
        // Neither is ever noted as being in memory.
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
