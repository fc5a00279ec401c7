//! Write batch of the ring: small writes are copied into it, and the next system call of the ring sends them.
//!
//! A send is tried once, during submission, and never remains in flight. If the socket takes only some of the bytes,
//! the driver returns the others to their connection. The memory of the batch is therefore no longer read once the call
//! has returned and its completions were processed. A complete send posts no completion.

use super::kernel::Operation;

/// Maximum bytes in a batch, so that they fit into the core's own cache beside other data.
const CAPACITY_BYTES: usize = 256 * 1024;
/// Maximum bytes that the driver adds at once. Larger writes are sent immediately, because copying them would cost more
/// than the system call.
pub(super) const MAX_WRITE_BYTES: usize = 8 * 1024;

/// Writes that are sent together.
pub(super) struct WriteBatch {
    /// Bytes of all writes. Never grows, because the kernel holds addresses within it.
    memory: Box<[u8]>,
    /// Number of bytes at the front of `memory` that contain writes.
    used: usize,
    writes: Vec<BatchedWrite>,
    /// Number of writes moved into the submission queue.
    queued: usize,
}

/// One write of one connection.
#[derive(Clone, Copy)]
struct BatchedWrite {
    /// Slot of the connection.
    index: usize,
    /// Position of the first byte in the memory of the batch.
    start: usize,
    /// Position after the last byte.
    end: usize,
}

/// Index of a write in the batch.
pub(super) type WriteIndex = u32;

impl WriteBatch {
    pub fn new() -> WriteBatch {
        WriteBatch {
            memory: vec![0; CAPACITY_BYTES].into_boxed_slice(),
            used: 0,
            writes: Vec::new(),
            queued: 0,
        }
    }

    /// Adds bytes of the connection at `index`. `write` is the index of the connection's write in this batch, or `None`
    /// if it has no write there. Returns the index of the write that contains the added bytes, or `None` if the batch
    /// has to be sent first.
    pub fn push(&mut self, index: usize, write: Option<WriteIndex>, bytes: &[u8]) -> Option<WriteIndex> {
        let end = self.used + bytes.len();
        let room = self.memory.get_mut(self.used..end)?;
        let next = self.writes.len() as WriteIndex;
        let write = match write {
            None => {
                self.writes.push(BatchedWrite {
                    index,
                    start: self.used,
                    end,
                });
                next
            }
            // Extends the connection's own write, if it is the last one and not queued.
            Some(write) if write + 1 == next && self.queued < self.writes.len() => {
                self.writes[write as usize].end = end;
                write
            }
            Some(_) => return None,
        };
        room.copy_from_slice(bytes);
        self.used = end;
        Some(write)
    }

    /// Returns the next send to submit, and the slot of its connection; `None` if all writes were moved into the
    /// submission queue. `socket_of` returns the socket of a slot.
    pub fn next_send(&mut self, socket_of: impl FnOnce(usize) -> i32) -> Option<(Operation, usize)> {
        let write = self.writes.get(self.queued)?;
        self.queued += 1;
        let bytes = &self.memory[write.start..write.end];
        let operation = Operation::Send {
            socket: socket_of(write.index),
            bytes: bytes.as_ptr(),
            length: bytes.len() as u32,
        };
        Some((operation, write.index))
    }

    /// Returns whether all writes were moved into the submission queue.
    pub fn all_queued(&self) -> bool {
        self.queued == self.writes.len()
    }

    /// Returns the part of a write after the first `sent` bytes. It is empty without a write, and if `sent` is not less
    /// than the length of the write.
    pub fn unsent_part(&self, write: Option<WriteIndex>, sent: usize) -> &[u8] {
        let write = write.and_then(|write| self.writes.get(write as usize));
        write
            .and_then(|write| self.memory[write.start..write.end].get(sent..))
            .unwrap_or_default()
    }

    /// Removes all writes, and calls `each` with the slot of each connection.
    pub fn clear(&mut self, mut each: impl FnMut(usize)) {
        for write in self.writes.drain(..) {
            each(write.index);
        }
        (self.used, self.queued) = (0, 0);
    }
}
