//! Receives a request body: collects it in memory, and above a limit writes it to a file piece by piece.

use std::sync::Arc;

use rocknet_config::model::Priority;

use super::body::{FileHandle, SpoolFile, SpooledBody};
use super::store::{self, Bounds, Error, Reservation, Store};

/// Size of one write to the disk in bytes. It is small enough that 256 uploads at once fit into the default of
/// `server.spool.memory` (64 MiB), and large enough that starting a job of the pool costs little in comparison.
const PIECE: usize = 256 * 1024;
/// Size of the first allocation in bytes. Most forms are shorter.
const FIRST_ALLOCATION: usize = 4096;

/// Writer of one request body into the spool. Dropping it discards the body.
pub struct SpoolWriter {
    store: Store,
    bounds: Bounds,
    priority: Priority,
    /// Maximum number of bytes of the body in memory.
    max_memory: usize,
    /// Bytes that were not written to the file.
    buffered: Vec<u8>,
    /// Counts the capacity of `buffered`.
    reservation: Reservation,
    file: Option<PartialFile>,
}

/// The file of an incomplete body.
struct PartialFile {
    file: SpoolFile,
    /// Number of bytes written to the file.
    length: u64,
}

impl SpoolWriter {
    /// Creates a writer for a body of which `max_memory` bytes may be in memory. Disk jobs get `priority`.
    pub fn new(store: &Store, bounds: Bounds, max_memory: u64, priority: Priority) -> SpoolWriter {
        SpoolWriter {
            store: store.clone(),
            bounds,
            priority,
            max_memory: usize::try_from(max_memory).unwrap_or(usize::MAX),
            buffered: Vec::new(),
            reservation: store.memory_reservation(),
            file: None,
        }
    }

    /// Adds the next bytes. If they do not fit into memory, waits until they are written to disk. Meanwhile no more
    /// bytes are received.
    ///
    /// # Errors
    ///
    /// Returns an error if a bound is reached or the disk fails. The body is then lost.
    pub async fn add(&mut self, mut chunk: &[u8]) -> Result<(), Error> {
        loop {
            let length = self.buffered.len() + chunk.len();
            let max_memory = if self.file.is_some() { PIECE } else { self.max_memory };
            if length <= max_memory && self.reserve(length, max_memory) {
                self.buffered.extend_from_slice(chunk);
                return Ok(());
            }
            let mut buffered = std::mem::take(&mut self.buffered);
            let fits = match buffered.capacity() {
                // There is no buffer, because the chunk exceeds the limit of the body or no memory can be reserved. The
                // chunk is written directly: it is in memory already, and has the size of one receive.
                0 => chunk.len(),
                capacity => chunk.len().min(capacity - buffered.len()),
            };
            buffered.extend_from_slice(&chunk[..fits]);
            chunk = &chunk[fits..];
            self.write(buffered).await?;
            if chunk.is_empty() {
                return Ok(());
            }
        }
    }

    /// Ends the body, and returns a reader of it.
    ///
    /// # Errors
    ///
    /// Returns an error if the last bytes cannot be written.
    pub async fn finish(mut self) -> Result<SpooledBody, Error> {
        let mut buffered = std::mem::take(&mut self.buffered);
        if self.file.is_some() && !buffered.is_empty() {
            self.write(buffered).await?;
            buffered = Vec::new();
        }
        match self.file.take() {
            Some(PartialFile { file, length }) => Ok(SpooledBody::on_disk(file, length)),
            None => {
                buffered.shrink_to_fit();
                self.reservation.shrink_to(buffered.len() as u64);
                Ok(SpooledBody::in_memory(buffered.into(), self.reservation))
            }
        }
    }

    /// Reserves memory for `length` bytes. Returns false if the limit for all requests is reached.
    fn reserve(&mut self, length: usize, max_memory: usize) -> bool {
        if length <= self.buffered.capacity() {
            return true;
        }
        let capacity = length.next_power_of_two().max(FIRST_ALLOCATION).min(max_memory);
        if !self.reservation.grow_to(capacity as u64, self.bounds.memory) {
            return false;
        }
        self.buffered.reserve_exact(capacity - self.buffered.len());
        true
    }

    /// Writes bytes to the file in the pool, and waits until they are written.
    async fn write(&mut self, bytes: Vec<u8>) -> Result<(), Error> {
        // `Ok` is the open file, and `Err` the reservation for the file that the job creates.
        let (handle, length) = match &self.file {
            Some(partial) => (Ok(Arc::clone(partial.file.handle()?)), partial.length),
            None => (Err(self.store.reserve_file()?), 0),
        };
        let end = length + bytes.len() as u64;
        let bounds = self.bounds.clone();
        // The reservation of the buffer moves into the job, because a queued job may outlive its request and still uses
        // the memory.
        let reservation = std::mem::replace(&mut self.reservation, self.store.memory_reservation());
        let job = self.store.pool().spawn(self.priority, move || {
            let handle = match handle {
                Ok(handle) => handle,
                Err(reservation) => FileHandle::new(store::create(&bounds.folder)?, reservation),
            };
            handle.write(&bytes, length, &bounds)?;
            Ok::<_, Error>((handle, bytes, reservation))
        });
        let (handle, mut buffer, reservation) = job.await??;
        self.reservation = reservation;
        match &mut self.file {
            Some(partial) => partial.length = end,
            None => {
                let (pool, folder) = (self.store.pool().clone(), Arc::clone(&self.bounds.folder));
                let file = SpoolFile::new(handle, pool, self.priority, folder);
                self.file = Some(PartialFile { file, length: end });
            }
        }
        // The buffer is reused for the next piece if its capacity is reserved.
        buffer.clear();
        if buffer.capacity() as u64 <= self.reservation.count() {
            self.buffered = buffer;
        } else {
            drop(buffer);
            self.reservation.shrink_to(0);
        }
        Ok(())
    }
}
