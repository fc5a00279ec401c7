//! Write batch of a thread: collects the small writes of its connections, and sends them one after the other. It sends
//! them at the latest before the thread waits for events.
//!
//! ```text
//! events ▶ task: receive, respond, push ▶ task: receive, respond, push ▶ … ▶ send, send, … ▶ wait for events
//! ```
//!
//! Each write is still a system call of its own. But a sleeping peer on the same machine is woken once for all writes,
//! instead of falling asleep between two of them. The kernel's code for sending also remains in the caches of the core.

mod sender;

use std::cell::{Cell, RefCell};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::rc::Rc;
use std::task::Waker;

use rustix::io::Errno;
use rustix::net::SendFlags;

pub(crate) use sender::BatchSender;

/// Maximum bytes of one write. Larger writes are sent immediately, because copying them would cost more than it saves.
const MAX_WRITE_BYTES: usize = 8 * 1024;
/// Maximum writes in a batch. More would save nothing, and the first write would wait longer.
const MAX_WRITES: usize = 64;
/// Maximum bytes in a batch, so that they remain in the core's own cache until they are sent.
const CAPACITY_BYTES: usize = 64 * 1024;
/// Number of steps of work after which the batch is sent although tasks are still running. A step is about one receive
/// (see [`WriteBatch::count_steps`]). Tasks that keep waking each other must not delay the responses of other tasks.
const STEPS_PER_FLUSH: u32 = 256;

/// Suppresses SIGPIPE when the peer has closed the connection. The standard library makes the process ignore the
/// signal, but a loaded library may change that. The flag is used on Linux only, because not every other system has it.
#[cfg(target_os = "linux")]
pub(crate) const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL;
#[cfg(not(target_os = "linux"))]
pub(crate) const SEND_FLAGS: SendFlags = SendFlags::empty();

// The batch of this thread, while a runtime is installed on it.
thread_local!(static CURRENT: RefCell<Option<Rc<WriteBatch>>> = const { RefCell::new(None) });

/// Returns the batch of this thread; `None` if the thread has no runtime that would flush one.
fn current() -> Option<Rc<WriteBatch>> {
    CURRENT.with_borrow(Option::clone)
}

/// Installs a batch for this thread until the guard is dropped.
pub(crate) fn install() -> BatchGuard {
    CURRENT.set(Some(Rc::default()));
    BatchGuard
}

/// Removes the batch of this thread when dropped.
pub(crate) struct BatchGuard;

impl Drop for BatchGuard {
    fn drop(&mut self) {
        CURRENT.set(None);
    }
}

/// Sends the batch of this thread. Returns true if sockets did not accept all bytes, so that tasks were woken.
pub(crate) fn flush_current_thread() -> bool {
    CURRENT.with_borrow(|batch| batch.as_ref().is_some_and(|batch| batch.flush()))
}

/// Sends the batch before the runtime parks its thread.
pub(crate) fn flush_on_park() {
    flush_current_thread();
}

/// Identifies a batched write by batch and index. The batch counter has 64 bits, so that it cannot wrap around while an
/// idle connection keeps its ticket.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct WriteTicket {
    /// Number of the batch; 0 before the first write.
    batch: u64,
    /// Position of the write in its batch.
    index: u32,
}

/// Writes waiting to be sent, and the parts of sent writes that their sockets did not accept.
#[derive(Default)]
pub(crate) struct WriteBatch {
    /// Number of the batch that is being filled or was sent last; the first batch has the number 1.
    batch_number: Cell<u64>,
    /// Steps counted since the last flush.
    steps: Cell<u32>,
    /// Length of `unsent`, so that most calls need not borrow the list.
    unsent_count: Cell<usize>,
    pending: RefCell<PendingWrites>,
    /// Bytes of sent writes that the sockets did not accept.
    unsent: RefCell<Vec<(WriteTicket, Vec<u8>)>>,
}

/// Writes of the batch that is being filled.
#[derive(Default)]
struct PendingWrites {
    /// Bytes of all writes, one write after the other.
    bytes: Vec<u8>,
    writes: Vec<BatchedWrite>,
}

/// One write of a batch.
struct BatchedWrite {
    socket: RawFd,
    /// Position of the first byte in [`PendingWrites::bytes`].
    start: usize,
    /// Position after the last byte.
    end: usize,
    /// Waker of the task that has to take back the bytes that the socket did not accept.
    waker: Waker,
}

impl PendingWrites {
    /// Returns whether a write of `length` bytes can be added to the batch.
    fn has_room(&self, length: usize) -> bool {
        self.writes.len() < MAX_WRITES && self.bytes.len() + length <= CAPACITY_BYTES
    }
}

impl WriteBatch {
    /// Adds a write for a socket. If the previous write of the socket is still in the batch, the batch is sent first.
    /// The owner of the socket must call `flush` before it closes the socket. `ticket` identifies the previous write of
    /// the socket, and is replaced. Returns false, and adds nothing, if the write is larger than [`MAX_WRITE_BYTES`],
    /// or if an unsent part of the previous write has not been taken back.
    #[inline]
    pub fn push(&self, socket: BorrowedFd<'_>, waker: &Waker, bytes: &[u8], ticket: &mut WriteTicket) -> bool {
        if bytes.len() > MAX_WRITE_BYTES || self.has_unsent(*ticket) {
            return false;
        }
        if self.is_pending(*ticket) {
            // The previous write of this socket is sent first, because a batch holds one write for each socket.
            self.flush();
            if self.has_unsent(*ticket) {
                return false;
            }
        }
        if !self.pending.borrow().has_room(bytes.len()) {
            self.flush();
        }
        let pending = &mut *self.pending.borrow_mut();
        let start = pending.bytes.len();
        pending.bytes.extend_from_slice(bytes);
        if pending.writes.is_empty() {
            self.batch_number.set(self.batch_number.get() + 1);
        }
        *ticket = WriteTicket {
            batch: self.batch_number.get(),
            index: pending.writes.len() as u32,
        };
        pending.writes.push(BatchedWrite {
            socket: socket.as_raw_fd(),
            start,
            end: pending.bytes.len(),
            waker: waker.clone(),
        });
        true
    }

    /// Returns whether the write of the ticket is still in the batch.
    #[inline]
    pub fn is_pending(&self, ticket: WriteTicket) -> bool {
        ticket.batch != 0 && ticket.batch == self.batch_number.get() && !self.pending.borrow().writes.is_empty()
    }

    /// Counts the work of tasks: one step for a receive, and several for a send. After [`STEPS_PER_FLUSH`] steps the
    /// batch is sent, for a runtime that always has tasks to run and so never parks.
    #[inline]
    pub fn count_steps(&self, steps: u32) {
        let steps = self.steps.get().saturating_add(steps);
        self.steps.set(steps);
        if steps >= STEPS_PER_FLUSH {
            self.flush();
        }
    }

    /// Sends the batch. If a socket has no room or reports an error, its task is woken and takes the unsent bytes back;
    /// the error is returned by the task's next send. Returns true if any bytes were not accepted.
    pub fn flush(&self) -> bool {
        self.steps.set(0);
        let before = self.unsent_count.get();
        let pending = &mut *self.pending.borrow_mut();
        let PendingWrites { bytes, writes } = pending;
        for (index, write) in writes.drain(..).enumerate() {
            let content = &bytes[write.start..write.end];
            #[allow(unsafe_code)]
            // SAFETY: the owner of the socket keeps it open until its write has been sent, as `push` requires.
            let socket = unsafe { BorrowedFd::borrow_raw(write.socket) };
            let sent = loop {
                match rustix::net::send(socket, content, SEND_FLAGS) {
                    Err(Errno::INTR) => {}
                    sent => break sent.unwrap_or(0),
                }
            };
            if let Some(rest) = content.get(sent..).filter(|rest| !rest.is_empty()) {
                let ticket = WriteTicket {
                    batch: self.batch_number.get(),
                    index: index as u32,
                };
                self.unsent.borrow_mut().push((ticket, rest.to_vec()));
                self.unsent_count.set(self.unsent_count.get() + 1);
                write.waker.wake();
            }
        }
        bytes.clear();
        self.unsent_count.get() > before
    }

    /// Returns whether part of the write was not accepted and has not been taken back.
    #[inline]
    pub fn has_unsent(&self, ticket: WriteTicket) -> bool {
        self.unsent_count.get() > 0 && self.unsent.borrow().iter().any(|(other, _)| *other == ticket)
    }

    /// Removes and returns the part of the write that the socket did not accept. `None` if the socket accepted all of
    /// it, if the write is still in the batch, or if the part has been taken already.
    #[inline]
    pub fn take_unsent(&self, ticket: WriteTicket) -> Option<Vec<u8>> {
        if self.unsent_count.get() == 0 {
            return None;
        }
        let mut unsent = self.unsent.borrow_mut();
        let at = unsent.iter().position(|(other, _)| *other == ticket)?;
        self.unsent_count.set(unsent.len() - 1);
        Some(unsent.swap_remove(at).1)
    }
}

#[cfg(test)]
mod tests;
