//! Deadline of a connection or stream: the event that it waits for, and the rate at which the client has to move bytes.

use std::rc::Rc;
use std::task::Waker;

use rocknet_handler::handler::ANSWER_TIMEOUT;
use rocknet_io::wheel::{Deadline, Wheel};

use crate::pipeline::HandlerTimeout;
use crate::worker::Ticks;

/// Event that a connection or exchange waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// First byte of the first request.
    FirstByte,
    /// Rest of a head. Received bytes do not extend this deadline.
    Header,
    /// Next request.
    KeepAlive,
    /// Request body, at the minimum rate in each window.
    RequestBody,
    /// Progress of the client in taking the response, at the minimum rate in each window.
    Send,
    /// Close by the client after the last response, or acknowledgement of all sent bytes.
    Linger,
    /// Response, or next piece of its body, from the handler or the disk.
    Handler,
    /// Data in a tunnel, without a deadline.
    Tunnel,
    /// Data from the open side of a half-closed tunnel: at least one byte in each window.
    HalfTunnel,
    /// Voluntary end of a tunnel while the server stops.
    TunnelGrace,
    /// No event: a wait has ended and the next has not begun. The old deadline still runs.
    Unset,
}

/// Number of unacknowledged bytes up to which the client counts as having acknowledged all data. It is not 0, because a
/// sent FIN counts as one byte.
pub const FIN_ONLY: u64 = 1;

/// Maximum number of unacknowledged bytes that are left to the kernel when the client has closed its side, or when the
/// server closes a connection after its last response. A response that was just sent is rarely acknowledged yet, and
/// waiting for the acknowledgement would cost each of these connections a system call.
pub const MAX_UNACKNOWLEDGED: u64 = 64 * 1024;

/// Ticks of a wait without a deadline. The wheel shortens them to its maximum, which is 248 days with the shortest
/// tick (10 ms). When this time has passed, the deadline is set again.
const NEVER: u32 = u32::MAX;

/// Deadline of one connection or stream. Every parameter `ticks` is the time until the deadline, or the length of a
/// window, in ticks of the timer wheel.
pub struct Deadlines {
    deadline: Deadline,
    wait: Wait,
    /// Bytes that were sent or received since the window began.
    moved: u64,
    /// Unacknowledged bytes in the kernel when the window began.
    held: u64,
    /// Remaining ticks of the request body window that a handler has interrupted; 0 if no window was interrupted.
    interrupted: u32,
    /// Timeout of the handler of the current request; `None`: the general timeout.
    handler_timeout: Option<HandlerTimeout>,
}

impl Deadlines {
    /// Creates a deadline that is not set.
    pub fn new(wheel: &Rc<Wheel>) -> Deadlines {
        Deadlines {
            deadline: wheel.deadline(),
            wait: Wait::Unset,
            moved: 0,
            held: 0,
            interrupted: 0,
            handler_timeout: None,
        }
    }

    /// Returns the event that the deadline belongs to.
    pub fn wait(&self) -> Wait {
        self.wait
    }

    /// Sets the timeout of the handler of a request, until the next call; `None`: the general timeout.
    pub fn set_handler_timeout(&mut self, timeout: Option<HandlerTimeout>) {
        self.handler_timeout = timeout;
    }

    /// Returns the ticks that the handler, or the next piece of its response, may take. `ticks`: the general timeout.
    pub fn handler_ticks(&self, ticks: u32) -> u32 {
        self.handler_timeout.map_or(ticks, |timeout| timeout.ticks)
    }

    /// Returns the names of the limits that the timeout of the handler consists of.
    pub fn handler_limits(&self) -> &'static str {
        self.handler_timeout.map_or(ANSWER_TIMEOUT, |timeout| timeout.limits)
    }

    /// Begins a wait. A running wait for the same event begins again.
    #[inline]
    pub fn begin(&mut self, wait: Wait, ticks: u32) {
        self.wait = wait;
        self.moved = 0;
        self.interrupted = 0;
        self.deadline.set(ticks);
    }

    /// Begins the wait until all sent bytes are acknowledged by a client that has closed its side. This usually takes
    /// one round trip, so the first check is at the next tick. Returns the ticks until that check, for
    /// [`Deadlines::extend_ack_wait`].
    pub fn begin_ack_wait(&mut self) -> u32 {
        self.begin(Wait::Linger, 1);
        1
    }

    /// Sets the next check of a wait that has lasted `waited` ticks. Returns the time from the beginning of the wait to
    /// this check in ticks: twice `waited`, but at most `max_ticks`. Returns `None` if `max_ticks` have passed.
    pub fn extend_ack_wait(&mut self, waited: u32, max_ticks: u32) -> Option<u32> {
        let ticks = waited.min(max_ticks.saturating_sub(waited));
        if ticks == 0 {
            return None;
        }
        self.begin(Wait::Linger, ticks);
        Some(waited + ticks)
    }

    /// Begins a window in which the client has to take its response. `in_flight`: unacknowledged bytes in the kernel.
    pub fn begin_send(&mut self, ticks: u32, in_flight: u64) {
        self.begin(Wait::Send, ticks);
        self.held = in_flight;
    }

    /// Returns the ticks until the deadline.
    pub fn left(&self) -> u32 {
        self.deadline.left()
    }

    /// Begins a wait unless it is already running.
    #[inline]
    pub fn enter(&mut self, wait: Wait, ticks: u32) {
        if self.wait != wait {
            self.begin(wait, ticks);
        }
    }

    /// Ends a wait and leaves the deadline in place, because moving it would cost more than this assignment.
    #[inline]
    pub fn end_wait(&mut self) {
        self.wait = Wait::Unset;
    }

    /// Changes the event without moving the deadline.
    pub fn continue_as(&mut self, wait: Wait) {
        self.wait = wait;
    }

    /// Waits for the request body. Resumes a window that a handler interrupted. Restarting it would let a slow
    /// handler give the client a new window for each chunk.
    pub fn enter_request_body(&mut self, ticks: u32) {
        if self.wait == Wait::Handler && self.interrupted > 0 {
            self.wait = Wait::RequestBody;
            self.deadline.set(self.interrupted);
            self.interrupted = 0;
        }
        self.enter(Wait::RequestBody, ticks);
    }

    /// Waits for a handler or the disk. The client's window for the request body is suspended during this wait.
    pub fn enter_handler(&mut self, ticks: u32) {
        // A passed deadline keeps one tick, so that it is checked when the wait for the request body continues.
        let interrupted = if self.wait == Wait::RequestBody {
            self.deadline.left().max(1)
        } else {
            0
        };
        let moved = self.moved;
        self.enter(Wait::Handler, ticks);
        if interrupted > 0 {
            (self.interrupted, self.moved) = (interrupted, moved);
        }
    }

    /// Waits for a tunnel: without a deadline, unless the server stops or one side of the tunnel has ended
    /// (`is_half`). Unless the server stops, a client that does not take the sent bytes keeps its deadline. `grace`:
    /// ticks until the deadline if the server stops. A second stop may bring the deadline forward.
    pub fn enter_tunnel(&mut self, is_half: bool, grace: Option<u32>, ticks: &Ticks) {
        if let Some(grace) = grace {
            if self.wait != Wait::TunnelGrace || grace < self.deadline.left() {
                self.begin(Wait::TunnelGrace, grace);
            }
            return;
        }
        if self.wait == Wait::Send {
            return;
        }
        if is_half {
            self.enter(Wait::HalfTunnel, ticks.send);
        } else {
            self.enter(Wait::Tunnel, NEVER);
        }
    }

    /// Begins or continues the send window of a client whose socket takes no more bytes of a tunnel for now. During
    /// [`Wait::TunnelGrace`], nothing changes. `moved`: bytes that the socket took before it stopped. `in_flight`
    /// returns the unacknowledged bytes in the kernel.
    pub fn stall_tunnel(&mut self, moved: u64, ticks: u32, in_flight: impl FnOnce() -> u64) {
        match self.wait {
            Wait::Send => self.moved(moved),
            Wait::TunnelGrace => {}
            _ => self.begin_send(ticks, in_flight()),
        }
    }

    /// Ends the send window, because the socket has taken all bytes of the tunnel. `moved`: bytes that it has taken
    /// now; they count as moved if the current wait is not a send window.
    pub fn tunnel_sent(&mut self, moved: u64) {
        match self.wait {
            Wait::Send => self.wait = Wait::Unset,
            _ => self.moved(moved),
        }
    }

    /// Counts bytes that the client has sent. They do not count in a send window, because they do not prove that the
    /// client takes bytes.
    #[inline]
    pub fn received(&mut self, bytes: u64) {
        if self.wait != Wait::Send {
            self.moved(bytes);
        }
    }

    /// Ends the wait for a handler or the disk, so that the next piece gets its full time.
    pub fn end_handler_wait(&mut self) {
        if self.wait == Wait::Handler {
            self.wait = Wait::Unset;
        }
    }

    /// Counts bytes that the client has sent or taken in the current window.
    #[inline]
    pub fn moved(&mut self, bytes: u64) {
        self.moved += bytes;
    }

    /// Returns true if the deadline of a wait without a rate window has passed.
    #[inline]
    pub fn poll_past(&mut self, waker: &Waker) -> bool {
        // The values are not used, because the wait has no rate window.
        self.poll_rate(waker, |_| (1, 0), || 0)
    }

    /// Returns true if the deadline has passed. In a wait with a rate window, also requires that too few bytes were
    /// moved in the window; otherwise another window begins. Only `RequestBody`, `Send` and `HalfTunnel` have rate
    /// windows. Never true for `Tunnel`.
    ///
    /// `rate` returns the minimum number of bytes in a window of this wait and the ticks of the window. A minimum of
    /// 0 counts as one byte; for `HalfTunnel`, the minimum is always one byte. `rate` is called only if the deadline
    /// has passed. `in_flight` returns the unacknowledged bytes in the kernel. A slow client takes these bytes before
    /// the server can send again.
    #[inline]
    pub fn poll_rate(&mut self, waker: &Waker, rate: impl Fn(Wait) -> (u64, u32), in_flight: impl Fn() -> u64) -> bool {
        while self.deadline.poll_past(waker) {
            let (enough, ticks) = rate(self.wait);
            let taken = match self.wait {
                // A tunnel has no deadline, so the longest possible one is set again.
                Wait::Tunnel => {
                    self.begin(Wait::Tunnel, NEVER);
                    continue;
                }
                Wait::HalfTunnel if self.moved > 0 => {
                    self.begin(Wait::HalfTunnel, ticks);
                    continue;
                }
                Wait::RequestBody => self.moved,
                Wait::Send => {
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
            self.begin(self.wait, ticks);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Checks the rate at the end of each of `windows`: bytes moved, unacknowledged bytes in the kernel, and true if
    /// the client was too slow. `held`: unacknowledged bytes in the kernel when the first window begins.
    fn check(wait: Wait, held: u64, windows: &[(u64, u64, bool)]) {
        const TICKS: u32 = 4;
        let wheel = Wheel::new(Duration::from_millis(250), 1);
        let mut deadlines = Deadlines::new(&wheel);
        match wait {
            Wait::Send => deadlines.begin_send(TICKS, held),
            _ => deadlines.begin(wait, TICKS),
        }
        for &(moved, in_flight, too_slow) in windows {
            assert!(!deadlines.poll_rate(Waker::noop(), |_| (100, TICKS), || in_flight));
            deadlines.moved(moved);
            for _ in 0..TICKS {
                wheel.advance();
            }
            let past = deadlines.poll_rate(Waker::noop(), |_| (100, TICKS), || in_flight);
            assert_eq!(past, too_slow, "{wait:?}: {moved} moved, {in_flight} held");
        }
    }

    #[test]
    fn a_window_requires_the_minimum_number_of_bytes() {
        check(Wait::RequestBody, 0, &[(100, 0, false), (250, 0, false), (99, 0, true)]);
        check(Wait::Send, 0, &[(100, 0, false), (0, 0, true)]);
        // The socket took no more bytes, but the client took bytes that the kernel held.
        check(
            Wait::Send,
            1000,
            &[(0, 900, false), (0, 800, false), (500, 1200, false), (0, 1101, true)],
        );
        // The kernel took 5000 bytes, and the client none.
        check(Wait::Send, 0, &[(5000, 5000, true)]);
        // These waits have no rate window.
        for wait in [
            Wait::FirstByte,
            Wait::Header,
            Wait::KeepAlive,
            Wait::Linger,
            Wait::Handler,
        ] {
            check(wait, 0, &[(1 << 20, 0, true)]);
        }
    }

    #[test]
    fn received_bytes_do_not_count_in_a_send_window() {
        const TICKS: u32 = 4;
        for (wait, too_slow) in [(Wait::Send, true), (Wait::RequestBody, false)] {
            let wheel = Wheel::new(Duration::from_millis(250), 1);
            let mut deadlines = Deadlines::new(&wheel);
            deadlines.begin(wait, TICKS);
            deadlines.received(1 << 20);
            for _ in 0..TICKS {
                wheel.advance();
            }
            let past = deadlines.poll_rate(Waker::noop(), |_| (100, TICKS), || 0);
            assert_eq!(past, too_slow, "{wait:?}");
        }
    }

    #[test]
    fn a_handler_suspends_the_window_of_the_request_body() {
        const TICKS: u32 = 4;
        let wheel = Wheel::new(Duration::from_millis(250), 1);
        let mut deadlines = Deadlines::new(&wheel);
        let past = |deadlines: &mut Deadlines| deadlines.poll_rate(Waker::noop(), |_| (100, TICKS), || 0);
        deadlines.enter_request_body(TICKS);
        // Each row: the bytes that the client moved, the ticks in the handler afterwards, and true if the client is
        // then too slow.
        for (moved, ticks_in_handler, too_slow) in [
            // One byte in each tick of waiting for the client, and three ticks in the handler. The window of four ticks
            // ends in the fourth row, with 4 of the required 100 bytes.
            (1, 3, false),
            (1, 3, false),
            (1, 3, false),
            (1, 3, true),
        ] {
            deadlines.moved(moved);
            deadlines.enter_handler(1000);
            for _ in 0..ticks_in_handler {
                wheel.advance();
            }
            assert!(
                !past(&mut deadlines),
                "time in the handler does not count against the client"
            );
            deadlines.enter_request_body(TICKS);
            wheel.advance();
            assert_eq!(past(&mut deadlines), too_slow);
        }
        // Enough bytes were moved in the interrupted window, so another window begins.
        deadlines.begin(Wait::RequestBody, TICKS);
        deadlines.moved(100);
        deadlines.enter_handler(1000);
        deadlines.enter_request_body(TICKS);
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
