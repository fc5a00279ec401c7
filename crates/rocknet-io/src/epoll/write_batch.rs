//! What the connections of one thread have to send, kept to leave in one go behind the last of them.
//!
//! ```text
//! events ▶ task: receive, answer, put ▶ task: receive, answer, put ▶ … ▶ send, send, … ▶ wait for events
//! ```
//! Each socket still has a system call of its own. But a peer on the same machine that sleeps is woken once for all of them
//! instead of falling asleep again between two, and the kernel's way of sending stays in the caches of the core.

mod sender;

use std::cell::{Cell, RefCell};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::rc::Rc;
use std::task::Waker;

use rustix::io::Errno;
use rustix::net::SendFlags;

pub(crate) use sender::BatchSender;

/// Larger ones are sent at once: to copy them would cost more than is won.
const MAX_WRITE_BYTES: usize = 8 * 1024;
/// Sockets that are sent to in one go at most: more would win nothing, and the first would wait for longer.
const MAX_WRITES: usize = 64;
/// Bytes that wait at most: a core's own cache holds them until they are sent.
const CAPACITY_BYTES: usize = 64 * 1024;
/// Steps of connections after which all leaves though tasks are still running: tasks that wake themselves or one another must
/// not keep everybody else waiting.
const STEPS_PER_FLUSH: u32 = 256;

/// No signal comes for a peer that has gone: the standard library has the process ignore it, and where a call can say so it
/// does.
#[cfg(target_os = "linux")]
pub(crate) const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL;
#[cfg(not(target_os = "linux"))]
pub(crate) const SEND_FLAGS: SendFlags = SendFlags::empty();

thread_local!(static CURRENT: RefCell<Option<Rc<WriteBatch>>> = const { RefCell::new(None) });

/// The one of this thread, if there is a runtime that sees to it that all leaves.
fn current() -> Option<Rc<WriteBatch>> {
    CURRENT.with_borrow(Option::clone)
}

pub(crate) fn install() -> BatchGuard {
    CURRENT.set(Some(Rc::default()));
    BatchGuard
}

pub(crate) struct BatchGuard;

impl Drop for BatchGuard {
    fn drop(&mut self) {
        CURRENT.set(None);
    }
}

/// Has all of this thread leave. True if some of it came back, and tasks were woken.
pub(crate) fn flush_current_thread() -> bool {
    CURRENT.with_borrow(|batch| batch.as_ref().is_some_and(|batch| batch.flush()))
}

/// What the runtime does when it has nothing to do: before it sleeps, all leaves.
pub(crate) fn flush_on_park() {
    flush_current_thread();
}

/// Bytes of one socket: which, of which go. Goes have 64 bits, so that no number comes twice: a connection at rest may keep its
/// ticket for long.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct WriteTicket {
    /// 0: of none.
    batch: u64,
    index: u32,
}

#[derive(Default)]
pub(crate) struct WriteBatch {
    batch_number: Cell<u64>,
    steps: Cell<u32>,
    /// Length of `unsent`, for those who need not look.
    unsent_count: Cell<usize>,
    pending: RefCell<PendingWrites>,
    unsent: RefCell<Vec<(WriteTicket, Vec<u8>)>>,
}

#[derive(Default)]
struct PendingWrites {
    bytes: Vec<u8>,
    writes: Vec<BatchedWrite>,
}

struct BatchedWrite {
    socket: RawFd,
    start: usize,
    end: usize,
    /// Of whoever is to take back what does not leave.
    waker: Waker,
}

impl PendingWrites {
    fn has_room(&self, length: usize) -> bool {
        self.writes.len() < MAX_WRITES && self.bytes.len() + length <= CAPACITY_BYTES
    }
}

impl WriteBatch {
    /// Takes bytes for a socket, which stays open until they have left: its owner calls `flush` before it closes it. False if
    /// they are not taken. `ticket`: of what was put before.
    #[inline]
    pub fn push(&self, socket: BorrowedFd<'_>, waker: &Waker, bytes: &[u8], ticket: &mut WriteTicket) -> bool {
        if bytes.len() > MAX_WRITE_BYTES || self.has_unsent(*ticket) {
            return false;
        }
        if self.is_pending(*ticket) {
            // In order.
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

    /// Whether what the ticket was given for still lies here.
    #[inline]
    pub fn is_pending(&self, ticket: WriteTicket) -> bool {
        ticket.batch != 0 && ticket.batch == self.batch_number.get() && !self.pending.borrow().writes.is_empty()
    }

    /// The runtime has all leave when it has nothing to do; this is for when it always has.
    #[inline]
    pub fn step(&self, steps: u32) {
        let steps = self.steps.get().saturating_add(steps);
        self.steps.set(steps);
        if steps >= STEPS_PER_FLUSH {
            self.flush();
        }
    }

    /// Sends all. What a socket has no room for, or refuses, comes back to its owner, who finds out why when it tries: true
    /// if there is such.
    pub fn flush(&self) -> bool {
        self.steps.set(0);
        let before = self.unsent_count.get();
        let pending = &mut *self.pending.borrow_mut();
        let PendingWrites { bytes, writes } = pending;
        for (index, write) in writes.drain(..).enumerate() {
            let content = &bytes[write.start..write.end];
            #[allow(unsafe_code)]
            // SAFETY: whoever put this in has the socket open until it has left, as `push` demands.
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

    #[inline]
    pub fn has_unsent(&self, ticket: WriteTicket) -> bool {
        self.unsent_count.get() > 0 && self.unsent.borrow().iter().any(|(other, _)| *other == ticket)
    }

    /// What did not leave.
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
