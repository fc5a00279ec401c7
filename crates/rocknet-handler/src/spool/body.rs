//! A complete body, read from its beginning as often as needed.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use rocknet_config::model::Priority;
use rocknet_io::file::{read_range, read_resident_vec};

use super::store::{self, Bounds, Error, FileReservation, Reservation};
use rocknet_blocking::{Job, Pool};

/// Maximum number of bytes of one piece: about what a socket takes.
const PIECE: usize = 64 * 1024;
/// Pieces returned until the task yields: an application that reads as fast as we write would keep the worker from its other connections.
const PIECES: u32 = 8;

pub struct SpooledBody {
    content: Content,
    length: u64,
    /// Number of bytes returned so far.
    at: u64,
    /// Pieces left until the task yields.
    turn: u32,
    /// A read in the pool, of bytes that the kernel does not have in memory.
    reading: Option<Job<Result<Vec<u8>, Error>>>,
}

#[derive(Clone)]
enum Content {
    Memory {
        bytes: Bytes,
        /// Counted as long as a reader is there.
        _room: Arc<Reservation>,
    },
    Disk(Arc<SpoolFile>),
}

impl SpooledBody {
    pub(super) fn in_memory(bytes: Bytes, room: Reservation) -> SpooledBody {
        let length = bytes.len() as u64;
        let _room = Arc::new(room);
        SpooledBody::new(Content::Memory { bytes, _room }, length)
    }

    pub(super) fn on_disk(file: SpoolFile, length: u64) -> SpooledBody {
        SpooledBody::new(Content::Disk(Arc::new(file)), length)
    }

    fn new(content: Content, length: u64) -> SpooledBody {
        SpooledBody {
            content,
            length,
            at: 0,
            turn: PIECES,
            reading: None,
        }
    }

    /// Returns the length of the whole body.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns another reader of the same body, at its beginning.
    pub fn again(&self) -> SpooledBody {
        SpooledBody::new(self.content.clone(), self.length)
    }

    /// Returns the next piece; `None` at the end.
    pub fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        if let Some(job) = &mut self.reading {
            let read = ready!(Pin::new(job).poll(context));
            self.reading = None;
            let bytes = read??;
            self.at += bytes.len() as u64;
            return Poll::Ready(Ok(Some(bytes.into())));
        }
        if self.at == self.length {
            return Poll::Ready(Ok(None));
        }
        if self.turn == 0 {
            self.turn = PIECES;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.turn -= 1;
        let most = (self.length - self.at).min(PIECE as u64) as usize;
        let file = match &self.content {
            Content::Memory { bytes, .. } => {
                let start = self.at as usize;
                self.at += most as u64;
                return Poll::Ready(Ok(Some(bytes.slice(start..start + most))));
            }
            Content::Disk(file) => file,
        };
        if let Some(bytes) = file.resident(self.at, most) {
            self.at += bytes.len() as u64;
            return Poll::Ready(Ok(Some(bytes.into())));
        }
        self.reading = Some(file.read(self.at, most)?);
        self.poll_piece(context)
    }
}

/// A file without a name that holds a body. It is closed in the pool, because to free gigabytes takes a disk a while.
pub(super) struct SpoolFile {
    /// `None` only while this is dropped.
    written: Option<Arc<FileHandle>>,
    pool: Pool,
    priority: Priority,
    folder: Arc<Path>,
}

/// The file itself, for jobs of the pool.
pub(super) struct FileHandle {
    file: File,
    reservation: Mutex<FileReservation>,
}

impl FileHandle {
    pub(super) fn new(file: File, reservation: FileReservation) -> Arc<FileHandle> {
        let reservation = Mutex::new(reservation);
        Arc::new(FileHandle { file, reservation })
    }

    /// Writes at an offset, if the store has room for it. Blocks on the disk.
    pub(super) fn write(&self, bytes: &[u8], offset: u64, bounds: &Bounds) -> Result<(), Error> {
        let mut reservation = self.reservation.lock().unwrap_or_else(PoisonError::into_inner);
        reservation.grow_to(offset + bytes.len() as u64, bounds)?;
        let written = self.file.write_all_at(bytes, offset);
        written.map_err(|error| store::failed(&error, &bounds.folder, "written"))
    }
}

impl SpoolFile {
    pub(super) fn new(written: Arc<FileHandle>, pool: Pool, priority: Priority, folder: Arc<Path>) -> SpoolFile {
        SpoolFile {
            written: Some(written),
            pool,
            priority,
            folder,
        }
    }

    pub(super) fn written(&self) -> Result<&Arc<FileHandle>, Error> {
        self.written.as_ref().ok_or(Error::Failed)
    }

    /// Reads what the kernel has in memory; `None` if it has nothing at that offset.
    fn resident(&self, offset: u64, most: usize) -> Option<Vec<u8>> {
        let written = self.written.as_ref()?;
        let read = read_resident_vec(&written.file, offset, most).ok()?;
        // An early end is an error of the disk, which the read in the pool reports.
        read.filter(|bytes| !bytes.is_empty())
    }

    /// Reads in the pool.
    fn read(&self, offset: u64, length: usize) -> Result<Job<Result<Vec<u8>, Error>>, Error> {
        let (written, folder) = (Arc::clone(self.written()?), Arc::clone(&self.folder));
        Ok(self.pool.spawn(self.priority, move || {
            let mut bytes = vec![0; length];
            let read = read_range(&written.file, offset, &mut bytes);
            read.map_err(|error| store::failed(&error.into(), &folder, "read back"))?;
            Ok(bytes)
        }))
    }
}

impl Drop for SpoolFile {
    fn drop(&mut self) {
        if let Some(written) = self.written.take() {
            // A pool that takes no more jobs drops it here and now.
            self.pool.spawn(self.priority, move || drop(written)).detach();
        }
    }
}
