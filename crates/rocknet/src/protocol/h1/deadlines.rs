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
    /// What the kernel held for the client, unacknowledged, when the window began.
    held: u64,
}

impl Deadlines {
    pub fn new(wheel: &Rc<Wheel>) -> Deadlines {
        Deadlines {
            deadline: wheel.deadline(),
            phase: Phase::Handler,
            moved: 0,
            held: 0,
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

    /// Begins a window in which the client has to take its answer; the kernel holds `in_flight` bytes of it already.
    pub fn begin_send(&mut self, ticks: u32, in_flight: u64) {
        self.begin(Phase::Send, ticks);
        self.held = in_flight;
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

    /// Goes on as another phase under the same deadline.
    pub fn go_on_as(&mut self, phase: Phase) {
        self.phase = phase;
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
    /// `in_flight` tells what the kernel holds now: a slow client takes from that before we can send again.
    pub fn poll_past(&mut self, waker: &Waker, enough: u64, ticks: u32, in_flight: impl Fn() -> u64) -> bool {
        while self.deadline.poll_past(waker) {
            let taken = match self.phase {
                Phase::Content => self.moved,
                Phase::Send => {
                    let now = in_flight();
                    let taken = (self.moved + self.held).saturating_sub(now);
                    self.held = now;
                    taken
                }
                _ => return true,
            };
            if taken < enough.max(1) {
                return true;
            }
            self.begin(self.phase, ticks);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// One look at the end of each window: bytes moved by then, bytes the kernel still holds, whether that is too slow.
    fn check(phase: Phase, held: u64, windows: &[(u64, u64, bool)]) {
        const TICKS: u32 = 4;
        let wheel = Wheel::new(Duration::from_millis(250), 1);
        let mut deadlines = Deadlines::new(&wheel);
        match phase {
            Phase::Send => deadlines.begin_send(TICKS, held),
            _ => deadlines.begin(phase, TICKS),
        }
        for &(moved, in_flight, too_slow) in windows {
            assert!(!deadlines.poll_past(Waker::noop(), 100, TICKS, || in_flight));
            deadlines.moved(moved);
            for _ in 0..TICKS {
                wheel.advance();
            }
            let past = deadlines.poll_past(Waker::noop(), 100, TICKS, || in_flight);
            assert_eq!(past, too_slow, "{phase:?}: {moved} moved, {in_flight} held");
        }
    }

    #[test]
    fn a_window_asks_for_enough() {
        check(Phase::Content, 0, &[(100, 0, false), (250, 0, false), (99, 0, true)]);
        check(Phase::Send, 0, &[(100, 0, false), (0, 0, true)]);
        // The socket took nothing more, but the client took from what the kernel held.
        check(
            Phase::Send,
            1000,
            &[(0, 900, false), (0, 800, false), (500, 1200, false), (0, 1101, true)],
        );
        // The kernel took much and the client nothing.
        check(Phase::Send, 0, &[(5000, 5000, true)]);
        for phase in [Phase::First, Phase::Header, Phase::KeepAlive, Phase::Linger] {
            check(phase, 0, &[(1 << 20, 0, true)]);
        }
    }
}
