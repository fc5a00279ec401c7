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

pub(crate) use sender::Sender;

/// Larger ones are sent at once: to copy them would cost more than is won.
const LARGEST: usize = 8 * 1024;
/// Sockets that are sent to in one go at most: more would win nothing, and the first would wait for longer.
const MOST: usize = 64;
/// Bytes that wait at most: a core's own cache holds them until they are sent.
const CAPACITY: usize = 64 * 1024;
/// Steps of connections after which all leaves though tasks are still running: tasks that wake themselves or one another must
/// not keep everybody else waiting.
const STEPS_PER_TURN: u32 = 256;

/// No signal comes for a peer that has gone: the standard library has the process ignore it, and where a call can say so it
/// does.
#[cfg(target_os = "linux")]
pub(crate) const SEND: SendFlags = SendFlags::NOSIGNAL;
#[cfg(not(target_os = "linux"))]
pub(crate) const SEND: SendFlags = SendFlags::empty();

thread_local!(static CURRENT: RefCell<Option<Rc<Outgoing>>> = const { RefCell::new(None) });

/// The one of this thread, if there is a runtime that sees to it that all leaves.
fn current() -> Option<Rc<Outgoing>> {
    CURRENT.with_borrow(Option::clone)
}

pub(crate) fn install() -> Installed {
    CURRENT.set(Some(Rc::default()));
    Installed
}

pub(crate) struct Installed;

impl Drop for Installed {
    fn drop(&mut self) {
        CURRENT.set(None);
    }
}

/// Has all of this thread leave. True if some of it came back, and tasks were woken.
pub(crate) fn leave() -> bool {
    CURRENT.with_borrow(|outgoing| outgoing.as_ref().is_some_and(|outgoing| outgoing.leave()))
}

/// What the runtime does when it has nothing to do: before it sleeps, all leaves.
pub(crate) fn park() {
    leave();
}

/// Bytes of one socket: which, of which go. Goes have 64 bits, so that no number comes twice: a connection at rest may keep its
/// ticket for long.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Ticket {
    /// 0: of none.
    go: u64,
    number: u32,
}

#[derive(Default)]
pub(crate) struct Outgoing {
    go: Cell<u64>,
    steps: Cell<u32>,
    /// Length of `returned`, for those who need not look.
    returned_count: Cell<usize>,
    waiting: RefCell<Waiting>,
    returned: RefCell<Vec<(Ticket, Vec<u8>)>>,
}

#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    letters: Vec<Letter>,
}

struct Letter {
    socket: RawFd,
    start: usize,
    end: usize,
    /// Of whoever is to take back what does not leave.
    waker: Waker,
}

impl Waiting {
    fn has_room(&self, length: usize) -> bool {
        self.letters.len() < MOST && self.bytes.len() + length <= CAPACITY
    }
}

impl Outgoing {
    /// Takes bytes for a socket, which stays open until they have left: its owner calls `leave` before it closes it. False if
    /// they are not taken. `ticket`: of what was put before.
    #[inline]
    pub fn put(&self, socket: BorrowedFd<'_>, waker: &Waker, bytes: &[u8], ticket: &mut Ticket) -> bool {
        if bytes.len() > LARGEST || self.has_returned(*ticket) {
            return false;
        }
        if self.holds(*ticket) {
            // In order.
            self.leave();
            if self.has_returned(*ticket) {
                return false;
            }
        }
        if !self.waiting.borrow().has_room(bytes.len()) {
            self.leave();
        }
        let waiting = &mut *self.waiting.borrow_mut();
        let start = waiting.bytes.len();
        waiting.bytes.extend_from_slice(bytes);
        if waiting.letters.is_empty() {
            self.go.set(self.go.get() + 1);
        }
        *ticket = Ticket {
            go: self.go.get(),
            number: waiting.letters.len() as u32,
        };
        waiting.letters.push(Letter {
            socket: socket.as_raw_fd(),
            start,
            end: waiting.bytes.len(),
            waker: waker.clone(),
        });
        true
    }

    /// Whether what the ticket was given for still lies here.
    #[inline]
    pub fn holds(&self, ticket: Ticket) -> bool {
        ticket.go != 0 && ticket.go == self.go.get() && !self.waiting.borrow().letters.is_empty()
    }

    /// The runtime has all leave when it has nothing to do; this is for when it always has.
    #[inline]
    pub fn step(&self, steps: u32) {
        let steps = self.steps.get().saturating_add(steps);
        self.steps.set(steps);
        if steps >= STEPS_PER_TURN {
            self.leave();
        }
    }

    /// Sends all. What a socket has no room for, or refuses, comes back to its owner, who finds out why when it tries: true
    /// if there is such.
    pub fn leave(&self) -> bool {
        self.steps.set(0);
        let before = self.returned_count.get();
        let waiting = &mut *self.waiting.borrow_mut();
        let Waiting { bytes, letters } = waiting;
        for (number, letter) in letters.drain(..).enumerate() {
            let content = &bytes[letter.start..letter.end];
            #[allow(unsafe_code)]
            // SAFETY: whoever put this in has the socket open until it has left, as `put` demands.
            let socket = unsafe { BorrowedFd::borrow_raw(letter.socket) };
            let sent = loop {
                match rustix::net::send(socket, content, SEND) {
                    Err(Errno::INTR) => {}
                    sent => break sent.unwrap_or(0),
                }
            };
            if let Some(rest) = content.get(sent..).filter(|rest| !rest.is_empty()) {
                let ticket = Ticket {
                    go: self.go.get(),
                    number: number as u32,
                };
                self.returned.borrow_mut().push((ticket, rest.to_vec()));
                self.returned_count.set(self.returned_count.get() + 1);
                letter.waker.wake();
            }
        }
        bytes.clear();
        self.returned_count.get() > before
    }

    #[inline]
    pub fn has_returned(&self, ticket: Ticket) -> bool {
        self.returned_count.get() > 0 && self.returned.borrow().iter().any(|(other, _)| *other == ticket)
    }

    /// What did not leave.
    #[inline]
    pub fn take_returned(&self, ticket: Ticket) -> Option<Vec<u8>> {
        if self.returned_count.get() == 0 {
            return None;
        }
        let mut returned = self.returned.borrow_mut();
        let at = returned.iter().position(|(other, _)| *other == ticket)?;
        self.returned_count.set(returned.len() - 1);
        Some(returned.swap_remove(at).1)
    }
}

#[cfg(test)]
mod tests;
