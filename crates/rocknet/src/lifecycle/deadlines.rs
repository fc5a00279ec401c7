//! Until when a connection may stay as it is, and what its passing means.

use std::rc::Rc;
use std::task::Waker;

use rocknet_io::wheel::{Deadline, Wheel};

use crate::worker::Ticks;

/// The event that an exchange waits for.
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
    /// A handler or the disk, for an answer or the next piece of one.
    Handler,
    /// Whatever a tunnel brings, for as long as it takes.
    Tunnel,
    /// The other side of a tunnel, of which one has ended: enough to be alive in each window.
    HalfTunnel,
    /// A tunnel to end by itself, as the server stops.
    Farewell,
    /// Nothing yet: a phase is over and the next has not begun. The old deadline still runs.
    Between,
}

/// Unacknowledged bytes that stand for nothing that the client has not taken: the end of our side counts as one.
pub const ONLY_THE_END: u64 = 1;

/// Unacknowledged bytes that the kernel may go on sending after a connection was closed because its client asked for that:
/// an answer that has just been sent is rarely acknowledged yet, and to wait for each of them would be a system call more.
pub const LEFT_TO_KERNEL: u64 = 64 * 1024;

/// As far away as a deadline can be: months, after which it is put as far away again.
const NEVER: u32 = u32::MAX;

/// The deadline of one connection.
pub struct Deadlines {
    deadline: Deadline,
    phase: Phase,
    /// Bytes moved since the window began.
    moved: u64,
    /// Bytes that the kernel held unacknowledged when the window began.
    held: u64,
    /// Ticks left of a window for content that a handler has interrupted; 0 where it has not.
    rest: u32,
    /// How long a handler may take, where what is asked for says so.
    patience: Option<u32>,
}

impl Deadlines {
    pub fn new(wheel: &Rc<Wheel>) -> Deadlines {
        Deadlines {
            deadline: wheel.deadline(),
            phase: Phase::Between,
            moved: 0,
            held: 0,
            rest: 0,
            patience: None,
        }
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Says how long the handler of the request that follows may take; `None`: as long as all others.
    pub fn set_patience(&mut self, ticks: Option<u32>) {
        self.patience = ticks;
    }

    /// How long the handler, or the next piece of its response, may take: `ticks` where the request says nothing else.
    pub fn handler_ticks(&self, ticks: u32) -> u32 {
        self.patience.unwrap_or(ticks)
    }

    /// Begins a phase, anew even if it was on already.
    #[inline]
    pub fn begin(&mut self, phase: Phase, ticks: u32) {
        self.phase = phase;
        self.moved = 0;
        self.rest = 0;
        self.deadline.set(ticks);
    }

    /// Begins to wait for a client that has ended its side to acknowledge what was sent, which mostly takes one round trip:
    /// the first look comes with the next tick. Returns the ticks until that look, to be given to [`Deadlines::look_again`].
    pub fn begin_ended(&mut self) -> u32 {
        self.begin(Phase::Linger, 1);
        1
    }

    /// Waits for the next look as long as was waited before, `waited` ticks, up to `most` in all. Returns the ticks until that
    /// look, counted from the beginning; `None`: the time is over.
    pub fn look_again(&mut self, waited: u32, most: u32) -> Option<u32> {
        let ticks = waited.min(most.saturating_sub(waited));
        if ticks == 0 {
            return None;
        }
        self.begin(Phase::Linger, ticks);
        Some(waited + ticks)
    }

    /// Begins a window in which the client has to take its answer; the kernel holds `in_flight` bytes of it already.
    pub fn begin_send(&mut self, ticks: u32, in_flight: u64) {
        self.begin(Phase::Send, ticks);
        self.held = in_flight;
    }

    /// Ticks until the deadline.
    pub fn left(&self) -> u32 {
        self.deadline.left()
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

    /// Waits for content, in the window that a handler interrupted if it did: a client whose handler takes its time
    /// over each chunk would else have a new window with each of them, and never be too slow.
    pub fn enter_content(&mut self, ticks: u32) {
        if self.phase == Phase::Handler && self.rest > 0 {
            self.phase = Phase::Content;
            self.deadline.set(self.rest);
            self.rest = 0;
        }
        self.enter(Phase::Content, ticks);
    }

    /// Waits for a handler or the disk. The time that takes is not the client's: its window for content stands still.
    pub fn enter_handler(&mut self, ticks: u32) {
        // One that is past was not looked at yet, and shall be when content is waited for again.
        let rest = if self.phase == Phase::Content {
            self.deadline.left().max(1)
        } else {
            0
        };
        let moved = self.moved;
        self.enter(Phase::Handler, ticks);
        if rest > 0 {
            (self.rest, self.moved) = (rest, moved);
        }
    }

    /// Waits for a tunnel: as long as it takes, unless it is in the way of a stop, or one of its sides has ended. A client
    /// that does not take what it is sent keeps the deadline of that.
    pub fn enter_tunnel(&mut self, is_half: bool, is_stopping: bool, ticks: &Ticks) {
        if is_stopping {
            return self.enter(Phase::Farewell, ticks.farewell);
        }
        if self.phase == Phase::Send {
            return;
        }
        if is_half {
            self.enter(Phase::HalfTunnel, ticks.send);
        } else {
            self.enter(Phase::Tunnel, NEVER);
        }
    }

    /// The client takes no more of a tunnel for now; `moved` is what it took before.
    pub fn stall_tunnel(&mut self, moved: u64, ticks: u32, in_flight: impl FnOnce() -> u64) {
        match self.phase {
            Phase::Send => self.moved(moved),
            Phase::Farewell => {}
            _ => self.begin_send(ticks, in_flight()),
        }
    }

    /// The client has taken all that a tunnel had for it.
    pub fn flow_on(&mut self, moved: u64) {
        match self.phase {
            Phase::Send => self.phase = Phase::Between,
            _ => self.moved(moved),
        }
    }

    /// The client has sent something into a tunnel: it is alive, but has taken nothing.
    pub fn moved_in_tunnel(&mut self, bytes: u64) {
        if self.phase != Phase::Send {
            self.moved(bytes);
        }
    }

    /// What a handler or the disk was waited for has come; the next piece has a time of its own.
    pub fn leave_handler(&mut self) {
        if self.phase == Phase::Handler {
            self.phase = Phase::Between;
        }
    }

    #[inline]
    pub fn moved(&mut self, bytes: u64) {
        self.moved += bytes;
    }

    /// Returns true if the deadline has passed, without another window.
    #[inline]
    pub fn poll_past(&mut self, waker: &Waker) -> bool {
        self.poll_rate(waker, |_| (1, 0), || 0)
    }

    /// Returns true if the deadline has passed; if enough bytes were moved in its window, another window begins. `rate` returns
    /// the bytes of a window of this phase and its ticks, and is called for a passed deadline alone. `in_flight` returns the bytes
    /// that the kernel holds now: a slow client takes from these before the server can send again.
    #[inline]
    pub fn poll_rate(
        &mut self,
        waker: &Waker,
        rate: impl Fn(Phase) -> (u64, u32),
        in_flight: impl Fn() -> u64,
    ) -> bool {
        while self.deadline.poll_past(waker) {
            let (enough, ticks) = rate(self.phase);
            let taken = match self.phase {
                // There is none; the farthest one there is has come.
                Phase::Tunnel => {
                    self.begin(Phase::Tunnel, NEVER);
                    continue;
                }
                Phase::HalfTunnel if self.moved > 0 => {
                    self.begin(Phase::HalfTunnel, ticks);
                    continue;
                }
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
            assert!(!deadlines.poll_rate(Waker::noop(), |_| (100, TICKS), || in_flight));
            deadlines.moved(moved);
            for _ in 0..TICKS {
                wheel.advance();
            }
            let past = deadlines.poll_rate(Waker::noop(), |_| (100, TICKS), || in_flight);
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
        for phase in [
            Phase::First,
            Phase::Header,
            Phase::KeepAlive,
            Phase::Linger,
            Phase::Handler,
        ] {
            check(phase, 0, &[(1 << 20, 0, true)]);
        }
    }

    #[test]
    fn a_handler_interrupts_a_window_and_begins_none() {
        const TICKS: u32 = 4;
        let wheel = Wheel::new(Duration::from_millis(250), 1);
        let mut deadlines = Deadlines::new(&wheel);
        let past = |deadlines: &mut Deadlines| deadlines.poll_rate(Waker::noop(), |_| (100, TICKS), || 0);
        deadlines.enter_content(TICKS);
        for (moved, tick_in_handler, too_slow) in [
            // A byte in each tick of waiting for the client, and much time in the handler.
            (1, 3, false),
            (1, 3, false),
            (1, 3, false),
            (1, 3, true),
        ] {
            deadlines.moved(moved);
            deadlines.enter_handler(1000);
            for _ in 0..tick_in_handler {
                wheel.advance();
            }
            assert!(!past(&mut deadlines), "the time of the handler is not the client's");
            deadlines.enter_content(TICKS);
            wheel.advance();
            assert_eq!(past(&mut deadlines), too_slow);
        }
        // Enough in a window that was interrupted: another begins, and the next request has one of its own.
        deadlines.begin(Phase::Content, TICKS);
        deadlines.moved(100);
        deadlines.enter_handler(1000);
        deadlines.enter_content(TICKS);
        for _ in 0..TICKS {
            wheel.advance();
        }
        assert!(!past(&mut deadlines));
        deadlines.enter_handler(2);
        for _ in 0..2 {
            wheel.advance();
        }
        assert!(past(&mut deadlines), "a handler has a deadline too");
    }
}
