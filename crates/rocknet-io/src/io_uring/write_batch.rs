//! Answers that leave together: copied here when they are ready, and sent by the next call of the ring.
//!
//! A send is tried once, while the kernel takes it over, and never kept: what a socket had no room for comes back. So
//! nothing of this memory is read once the call has returned and its completions were taken, and no send that went well
//! costs a completion.

use super::kernel::Operation;

/// Bytes that leave together at most. As much as fits a core's own cache beside what else is in use.
const CAPACITY_BYTES: usize = 256 * 1024;
/// Larger ones are sent at once: to copy them would cost more than the call.
pub(super) const MAX_WRITE_BYTES: usize = 8 * 1024;

pub(super) struct WriteBatch {
    /// Never grows: the kernel is told addresses in it.
    memory: Box<[u8]>,
    used: usize,
    writes: Vec<BatchedWrite>,
    /// How many of them have been put into the ring's queue.
    queued: usize,
}

/// One stretch for one connection.
#[derive(Clone, Copy)]
struct BatchedWrite {
    index: usize,
    start: usize,
    end: usize,
}

/// Which letter is a connection's, if there is one.
pub(super) type WriteIndex = Option<u32>;

impl WriteBatch {
    pub fn new() -> WriteBatch {
        WriteBatch {
            memory: vec![0; CAPACITY_BYTES].into_boxed_slice(),
            used: 0,
            writes: Vec::new(),
            queued: 0,
        }
    }

    /// Takes bytes for a connection, whose letter is `number` if it has one already. `None`: all must leave first.
    pub fn push(&mut self, index: usize, write: WriteIndex, bytes: &[u8]) -> Option<u32> {
        let end = self.used + bytes.len();
        let room = self.memory.get_mut(self.used..end)?;
        let next = self.writes.len() as u32;
        let write = match write {
            None => {
                self.writes.push(BatchedWrite {
                    index,
                    start: self.used,
                    end,
                });
                next
            }
            // Its letter is the last one and not on its way: it gets longer.
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

    /// The next operation to be handed over, with the connection it is for.
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

    pub fn all_queued(&self) -> bool {
        self.queued == self.writes.len()
    }

    /// What is left of a letter of which `sent` bytes have left.
    pub fn unsent_part(&self, write: WriteIndex, sent: usize) -> &[u8] {
        let write = write.and_then(|write| self.writes.get(write as usize));
        write
            .and_then(|write| self.memory[write.start..write.end].get(sent..))
            .unwrap_or_default()
    }

    /// All have left or come back. Tells whose they were.
    pub fn clear(&mut self, mut each: impl FnMut(usize)) {
        for write in self.writes.drain(..) {
            each(write.index);
        }
        (self.used, self.queued) = (0, 0);
    }
}
