//! A complete request body in the spool, which can be read repeatedly.

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

/// Maximum size of one piece in bytes: about what a socket accepts at once.
const MAX_PIECE: usize = 64 * 1024;
/// Number of pieces returned before the task yields. Otherwise an application that reads as fast as the worker writes
/// would keep the worker from its other connections.
const MAX_PIECES: u32 = 8;

/// Reader of a complete request body. All readers of a body share its memory or its file.
pub struct SpooledBody {
    storage: Storage,
    length: u64,
    /// Number of bytes returned so far.
    offset: u64,
    /// Pieces left until the task yields.
    pieces_left: u32,
    /// A read in the pool, of bytes that are not in the page cache.
    reading: Option<Job<Result<Vec<u8>, Error>>>,
}

#[derive(Clone)]
enum Storage {
    Memory {
        bytes: Bytes,
        /// Counts the memory as in use while a reader exists.
        _reservation: Arc<Reservation>,
    },
    Disk(Arc<SpoolFile>),
}

impl SpooledBody {
    pub(super) fn in_memory(bytes: Bytes, reservation: Reservation) -> SpooledBody {
        let length = bytes.len() as u64;
        let _reservation = Arc::new(reservation);
        SpooledBody::new(Storage::Memory { bytes, _reservation }, length)
    }

    pub(super) fn on_disk(file: SpoolFile, length: u64) -> SpooledBody {
        SpooledBody::new(Storage::Disk(Arc::new(file)), length)
    }

    fn new(storage: Storage, length: u64) -> SpooledBody {
        SpooledBody {
            storage,
            length,
            offset: 0,
            pieces_left: MAX_PIECES,
            reading: None,
        }
    }

    /// Returns the length of the whole body in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns another reader of the same body, which starts at its beginning.
    pub fn again(&self) -> SpooledBody {
        SpooledBody::new(self.storage.clone(), self.length)
    }

    /// Polls for the next piece of at most 64 KiB; `None` at the end of the body.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        if let Some(job) = &mut self.reading {
            let read = ready!(Pin::new(job).poll(context));
            self.reading = None;
            let bytes = read??;
            self.offset += bytes.len() as u64;
            return Poll::Ready(Ok(Some(bytes.into())));
        }
        if self.offset == self.length {
            return Poll::Ready(Ok(None));
        }
        if self.pieces_left == 0 {
            self.pieces_left = MAX_PIECES;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.pieces_left -= 1;
        let most = (self.length - self.offset).min(MAX_PIECE as u64) as usize;
        let file = match &self.storage {
            Storage::Memory { bytes, .. } => {
                let start = self.offset as usize;
                self.offset += most as u64;
                return Poll::Ready(Ok(Some(bytes.slice(start..start + most))));
            }
            Storage::Disk(file) => file,
        };
        if let Some(bytes) = file.resident(self.offset, most) {
            self.offset += bytes.len() as u64;
            return Poll::Ready(Ok(Some(bytes.into())));
        }
        self.reading = Some(file.read(self.offset, most)?);
        self.poll_piece(context)
    }
}

/// An unnamed file that holds a body. It is closed in the pool, because freeing gigabytes on a disk takes time.
pub(super) struct SpoolFile {
    /// `None` only while the value is dropped.
    handle: Option<Arc<FileHandle>>,
    pool: Pool,
    priority: Priority,
    folder: Arc<Path>,
}

/// The file and its reservation, for jobs of the pool.
pub(super) struct FileHandle {
    file: File,
    reservation: Mutex<FileReservation>,
}

impl FileHandle {
    pub(super) fn new(file: File, reservation: FileReservation) -> Arc<FileHandle> {
        let reservation = Mutex::new(reservation);
        Arc::new(FileHandle { file, reservation })
    }

    /// Writes at an offset, unless that exceeds `server.spool.disk`. Blocks on the disk.
    pub(super) fn write(&self, bytes: &[u8], offset: u64, bounds: &Bounds) -> Result<(), Error> {
        let mut reservation = self.reservation.lock().unwrap_or_else(PoisonError::into_inner);
        reservation.grow_to(offset + bytes.len() as u64, bounds)?;
        let written = self.file.write_all_at(bytes, offset);
        written.map_err(|error| store::failed(&error, &bounds.folder, "written to"))
    }
}

impl SpoolFile {
    pub(super) fn new(handle: Arc<FileHandle>, pool: Pool, priority: Priority, folder: Arc<Path>) -> SpoolFile {
        SpoolFile {
            handle: Some(handle),
            pool,
            priority,
            folder,
        }
    }

    pub(super) fn handle(&self) -> Result<&Arc<FileHandle>, Error> {
        self.handle.as_ref().ok_or(Error::Failed)
    }

    /// Reads from the page cache. Returns `None` if the bytes at `offset` are not in it.
    fn resident(&self, offset: u64, most: usize) -> Option<Vec<u8>> {
        let handle = self.handle.as_ref()?;
        let read = read_resident_vec(&handle.file, offset, most).ok()?;
        // An empty result means that the file is shorter than expected. The read in the pool then reports the error.
        read.filter(|bytes| !bytes.is_empty())
    }

    /// Reads in the pool.
    fn read(&self, offset: u64, length: usize) -> Result<Job<Result<Vec<u8>, Error>>, Error> {
        let (handle, folder) = (Arc::clone(self.handle()?), Arc::clone(&self.folder));
        Ok(self.pool.spawn(self.priority, move || {
            let mut bytes = vec![0; length];
            let read = read_range(&handle.file, offset, &mut bytes);
            read.map_err(|error| store::failed(&error.into(), &folder, "read from"))?;
            Ok(bytes)
        }))
    }
}

impl Drop for SpoolFile {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            // A pool that accepts no more jobs drops the file immediately.
            let _ = self.pool.run_in_background(self.priority, move || drop(handle));
        }
    }
}
