//! Until when a connection may stay as it is, and what its passing means.

use std::rc::Rc;
use std::task::Waker;

use rocknet_io::wheel::{Deadline, Wheel};

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The first byte of the first request.
    First,
    /// The rest of a head: hard, however many bytes trickle in.
    Header,
    /// The next request.
    KeepAlive,
    /// Request content: enough of it in each window.
    Content,
    /// The client to take the answer: enough of it in each window.
    Send,
    /// The client to close after our last answer.
    Linger,
    /// A handler; it has its own deadlines.
    Handler,
    /// Nothing yet: a phase is over and the next has not begun. The old deadline still runs.
    Between,
}

/// The deadline of one connection.
pub struct Deadlines {
    deadline: Deadline,
    phase: Phase,
    /// Bytes moved since the window began.
    moved: u64,
}

impl Deadlines {
    pub fn new(wheel: &Rc<Wheel>) -> Deadlines {
        Deadlines {
            deadline: wheel.deadline(),
            phase: Phase::Handler,
            moved: 0,
        }
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Begins a phase, anew even if it was on already.
    #[inline]
    pub fn begin(&mut self, phase: Phase, ticks: u32) {
        self.phase = phase;
        self.moved = 0;
        self.deadline.set(ticks);
    }

    /// Begins a phase unless it is on already.
    #[inline]
    pub fn enter(&mut self, phase: Phase, ticks: u32) {
        if self.phase != phase {
            self.begin(phase, ticks);
        }
    }

    /// Ends a phase, for the next wait to begin one: a store, where moving the deadline would cost more.
    #[inline]
    pub fn leave(&mut self) {
        self.phase = Phase::Between;
    }

    /// Waits for a handler, without a deadline of ours.
    pub fn suspend(&mut self) {
        if self.phase != Phase::Handler {
            self.phase = Phase::Handler;
            self.deadline.clear();
        }
    }

    #[inline]
    pub fn moved(&mut self, bytes: u64) {
        self.moved += bytes;
    }

    /// Whether the deadline has passed; if at least `enough` bytes were moved in its window, another window begins.
    pub fn poll_past(&mut self, waker: &Waker, enough: u64, ticks: u32) -> bool {
        while self.deadline.poll_past(waker) {
            if !matches!(self.phase, Phase::Content | Phase::Send) || self.moved < enough.max(1) {
                return true;
            }
            self.begin(self.phase, ticks);
        }
        false
    }
}
