//! A body while it is received: collected in memory, and from a bound on written to a file, piece by piece.

use std::sync::Arc;

use rocknet_config::model::Priority;

use super::body::{FileHandle, SpoolFile, SpooledBody};
use super::store::{self, Bounds, Error, Reservation, Store};

/// Bytes of one write to the disk: few enough that a thousand uploads hold no more than `server.spool.memory`, enough that handing them
/// to the pool weighs little.
const PIECE: usize = 256 * 1024;
/// What is allocated first: most forms are shorter.
const FIRST: usize = 4096;

pub struct SpoolWriter {
    store: Store,
    bounds: Bounds,
    priority: Priority,
    /// Bytes of the body that may be in memory.
    most: usize,
    held: Vec<u8>,
    /// Counts the capacity of `held`.
    room: Reservation,
    file: Option<PartialFile>,
}

/// The file so far.
struct PartialFile {
    file: SpoolFile,
    length: u64,
}

impl SpoolWriter {
    /// For a body of which `most` bytes may be in memory.
    pub fn new(store: &Store, bounds: Bounds, most: u64, priority: Priority) -> SpoolWriter {
        SpoolWriter {
            store: store.clone(),
            bounds,
            priority,
            most: usize::try_from(most).unwrap_or(usize::MAX),
            held: Vec::new(),
            room: store.memory(),
            file: None,
        }
    }

    /// Adds the next bytes. Waits for the disk where they find no room in memory, so that no more is received meanwhile.
    pub async fn add(&mut self, mut chunk: &[u8]) -> Result<(), Error> {
        loop {
            let length = self.held.len() + chunk.len();
            let most = if self.file.is_some() { PIECE } else { self.most };
            if length <= most && self.make_room(length, most) {
                self.held.extend_from_slice(chunk);
                return Ok(());
            }
            let mut held = std::mem::take(&mut self.held);
            let fits = match held.capacity() {
                // No memory is left: the chunk, which is in memory already and of the size of one receive, goes by itself.
                0 => chunk.len(),
                capacity => chunk.len().min(capacity - held.len()),
            };
            held.extend_from_slice(&chunk[..fits]);
            chunk = &chunk[fits..];
            self.write(held).await?;
            if chunk.is_empty() {
                return Ok(());
            }
        }
    }

    /// Ends the body: it can be read from now on.
    pub async fn finish(mut self) -> Result<SpooledBody, Error> {
        let mut held = std::mem::take(&mut self.held);
        if self.file.is_some() && !held.is_empty() {
            self.write(held).await?;
            held = Vec::new();
        }
        match self.file.take() {
            Some(PartialFile { file, length }) => Ok(SpooledBody::on_disk(file, length)),
            None => {
                held.shrink_to_fit();
                self.room.shrink_to(held.len() as u64);
                Ok(SpooledBody::in_memory(held.into(), self.room))
            }
        }
    }

    /// Reserves memory for so many bytes; false if the bound of all requests does not allow it.
    fn make_room(&mut self, length: usize, most: usize) -> bool {
        if length <= self.held.capacity() {
            return true;
        }
        let capacity = length.next_power_of_two().max(FIRST).min(most);
        if !self.room.grow_to(capacity as u64, self.bounds.memory) {
            return false;
        }
        self.held.reserve_exact(capacity - self.held.len());
        true
    }

    /// Writes in the pool, and waits for it.
    async fn write(&mut self, bytes: Vec<u8>) -> Result<(), Error> {
        let (written, length) = match &self.file {
            Some(partial) => (Ok(Arc::clone(partial.file.written()?)), partial.length),
            None => (Err(self.store.file()?), 0),
        };
        let end = length + bytes.len() as u64;
        let bounds = self.bounds.clone();
        // What is counted for the buffer stays with it: a job that waits for its turn may outlive its request.
        let room = std::mem::replace(&mut self.room, self.store.memory());
        let job = self.store.pool().spawn(self.priority, move || {
            let written = match written {
                Ok(written) => written,
                Err(reservation) => FileHandle::new(store::create(&bounds.folder)?, reservation),
            };
            written.write(&bytes, length, &bounds)?;
            Ok::<_, Error>((written, bytes, room))
        });
        let (written, mut buffer, room) = job.await??;
        self.room = room;
        match &mut self.file {
            Some(partial) => partial.length = end,
            None => {
                let (pool, folder) = (self.store.pool().clone(), Arc::clone(&self.bounds.folder));
                let file = SpoolFile::new(written, pool, self.priority, folder);
                self.file = Some(PartialFile { file, length: end });
            }
        }
        // The buffer is used again for the next piece, if its capacity is counted.
        buffer.clear();
        if buffer.capacity() as u64 <= self.room.count() {
            self.held = buffer;
        } else {
            drop(buffer);
            self.room.shrink_to(0);
        }
        Ok(())
    }
}
