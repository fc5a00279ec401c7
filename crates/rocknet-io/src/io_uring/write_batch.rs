//! Answers that leave together: copied here when they are ready, and sent by the next call of the ring.
//!
//! A send is tried once, while the kernel takes it over, and never kept: what a socket had no room for comes back. So
//! nothing of this memory is read once the call has returned and its completions were taken, and no send that went well
//! costs a completion.

use super::kernel::Operation;

/// Bytes that leave together at most. As much as fits a core's own cache beside what else is in use.
const CAPACITY: usize = 256 * 1024;
/// Larger ones are sent at once: to copy them would cost more than the call.
pub(super) const LARGEST: usize = 8 * 1024;

pub(super) struct Outbox {
    /// Never grows: the kernel is told addresses in it.
    memory: Box<[u8]>,
    used: usize,
    letters: Vec<Letter>,
    /// How many of them have been put into the ring's queue.
    posted: usize,
}

/// One stretch for one connection.
#[derive(Clone, Copy)]
struct Letter {
    index: usize,
    start: usize,
    end: usize,
}

/// Which letter is a connection's, if there is one.
pub(super) type Number = Option<u32>;

impl Outbox {
    pub fn new() -> Outbox {
        Outbox {
            memory: vec![0; CAPACITY].into_boxed_slice(),
            used: 0,
            letters: Vec::new(),
            posted: 0,
        }
    }

    /// Takes bytes for a connection, whose letter is `number` if it has one already. `None`: all must leave first.
    pub fn put(&mut self, index: usize, number: Number, bytes: &[u8]) -> Option<u32> {
        let end = self.used + bytes.len();
        let room = self.memory.get_mut(self.used..end)?;
        let next = self.letters.len() as u32;
        let number = match number {
            None => {
                self.letters.push(Letter {
                    index,
                    start: self.used,
                    end,
                });
                next
            }
            // Its letter is the last one and not on its way: it gets longer.
            Some(number) if number + 1 == next && self.posted < self.letters.len() => {
                self.letters[number as usize].end = end;
                number
            }
            Some(_) => return None,
        };
        room.copy_from_slice(bytes);
        self.used = end;
        Some(number)
    }

    /// The next operation to be handed over, with the connection it is for.
    pub fn post(&mut self, socket_of: impl FnOnce(usize) -> i32) -> Option<(Operation, usize)> {
        let letter = self.letters.get(self.posted)?;
        self.posted += 1;
        let bytes = &self.memory[letter.start..letter.end];
        let operation = Operation::Send {
            socket: socket_of(letter.index),
            bytes: bytes.as_ptr(),
            length: bytes.len() as u32,
        };
        Some((operation, letter.index))
    }

    pub fn is_posted(&self) -> bool {
        self.posted == self.letters.len()
    }

    /// What is left of a letter of which `sent` bytes have left.
    pub fn rest(&self, number: Number, sent: usize) -> &[u8] {
        let letter = number.and_then(|number| self.letters.get(number as usize));
        letter
            .and_then(|letter| self.memory[letter.start..letter.end].get(sent..))
            .unwrap_or_default()
    }

    /// All have left or come back. Tells whose they were.
    pub fn clear(&mut self, mut each: impl FnMut(usize)) {
        for letter in self.letters.drain(..) {
            each(letter.index);
        }
        (self.used, self.posted) = (0, 0);
    }
}
