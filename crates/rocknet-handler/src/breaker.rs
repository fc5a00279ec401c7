//! Circuit breaker of one server: blocks requests to the server after repeated failures, and admits trial requests
//! until it recovers.
//!
//! ```text
//! Closed ──`fails` within `window`──▶ Open ──its pause has passed──▶ Half-open: one trial request
//!    ▲                                 ▲                              │
//!    └──────────────success────────────┼──────────────────────────────┤
//!                                      └──failure: doubles its pause──┘
//! ```

/// Conditions for opening a circuit, and the length of its pause.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Number of failures that open the circuit; 0 if it never opens.
    pub fails: u32,
    /// Window in which the failures have to occur, and the first pause of the open circuit, in milliseconds.
    pub window_ms: u64,
}

/// Maximum number of times that a failed trial request doubles the pause. A server that is down for a day costs few
/// requests. A server that has recovered is detected within two minutes, given the default window of 10 s.
const MAX_DOUBLINGS: u32 = 3;

/// The circuit of one server.
#[derive(Debug, Default)]
pub struct Breaker {
    /// Number of failures in the current window.
    fails: u32,
    /// Time of the first failure that `fails` counts, in milliseconds of uptime.
    first_failure_ms: u64,
    /// End of the pause in milliseconds of uptime; 0 if the circuit is closed.
    open_until_ms: u64,
    /// Number of consecutive failed trial requests, at most `MAX_DOUBLINGS`.
    failed_trials: u32,
    /// Time at which the trial request in progress is considered lost, in milliseconds of uptime.
    trial_until_ms: u64,
}

impl Breaker {
    /// Returns true if the circuit is closed and no failure is recorded.
    pub fn is_closed(&self) -> bool {
        self.fails == 0 && self.open_until_ms == 0
    }

    /// Returns true if a request may be sent. While the circuit is open, one request per pause may be sent as a
    /// trial. Two are sent if two workers call this method at the same moment.
    pub fn admits(&self, now_ms: u64) -> bool {
        self.open_until_ms == 0 || now_ms >= self.open_until_ms && now_ms >= self.trial_until_ms
    }

    /// Records that a request is sent; a trial request if the circuit is open.
    pub fn begin(&mut self, now_ms: u64, rules: Rules) {
        if self.open_until_ms != 0 {
            self.trial_until_ms = now_ms + rules.window_ms;
        }
    }

    /// Records that a response has begun. Returns true if this closed an open circuit.
    pub fn succeeded(&mut self) -> bool {
        let was_open = self.open_until_ms != 0;
        *self = Breaker::default();
        was_open
    }

    /// Records a failed request. Returns true if this opened the circuit.
    pub fn failed(&mut self, now_ms: u64, rules: Rules) -> bool {
        if rules.fails == 0 {
            return false;
        }
        if self.open_until_ms != 0 {
            // Failures during the pause are no new information, because these requests were sent before the circuit
            // opened.
            if now_ms >= self.open_until_ms {
                self.failed_trials = (self.failed_trials + 1).min(MAX_DOUBLINGS);
                self.open_until_ms = now_ms + (rules.window_ms << self.failed_trials);
                self.trial_until_ms = 0;
            }
            return false;
        }
        if self.fails == 0 || now_ms.saturating_sub(self.first_failure_ms) > rules.window_ms {
            (self.fails, self.first_failure_ms) = (0, now_ms);
        }
        self.fails += 1;
        let opens = self.fails >= rules.fails;
        if opens {
            self.open_until_ms = (now_ms + rules.window_ms).max(1);
        }
        opens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules {
        fails: 3,
        window_ms: 10_000,
    };

    enum Event {
        Fail,
        Succeed,
        Begin,
        Pass,
    }
    use Event::{Begin, Fail, Pass, Succeed};

    /// Applies events at their times, and checks after each whether a request is admitted. A row is the time in
    /// milliseconds, the event, and the expected result.
    #[track_caller]
    fn check(rules: Rules, rows: &[(u64, Event, bool)]) {
        let mut breaker = Breaker::default();
        for (number, (now_ms, event, admits)) in rows.iter().enumerate() {
            match event {
                Fail => {
                    breaker.failed(*now_ms, rules);
                }
                Succeed => {
                    breaker.succeeded();
                }
                Begin => breaker.begin(*now_ms, rules),
                Pass => {}
            }
            assert_eq!(breaker.admits(*now_ms), *admits, "row {number}: {breaker:?}");
        }
    }

    #[test]
    fn the_circuit_opens_pauses_and_closes() {
        check(
            RULES,
            &[
                (0, Fail, true),
                (1, Fail, true),
                (2, Fail, false),
                (9_000, Begin, false),
            ],
        );
        // Failures that are too far apart, or have a success in between, do not open the circuit.
        check(
            RULES,
            &[
                (0, Fail, true),
                (1, Fail, true),
                (10_002, Fail, true),
                (10_003, Fail, true),
                (10_004, Fail, false),
            ],
        );
        check(
            RULES,
            &[
                (0, Fail, true),
                (1, Fail, true),
                (2, Succeed, true),
                (3, Fail, true),
                (4, Fail, true),
            ],
        );
        // A trial request after the pause succeeds, and the circuit closes.
        check(
            RULES,
            &[
                (0, Fail, true),
                (0, Fail, true),
                (0, Fail, false),
                (10_000, Begin, false),
                (10_500, Succeed, true),
                (10_501, Fail, true),
            ],
        );
        // A failed trial request doubles the pause; failures during the pause change nothing.
        check(
            RULES,
            &[
                (0, Fail, true),
                (0, Fail, true),
                (0, Fail, false),
                (5_000, Fail, false),
                (10_000, Begin, false),
                (11_000, Fail, false),
                (30_999, Begin, false),
                (31_000, Succeed, true),
            ],
        );
        // A trial request without a result is considered lost.
        check(
            RULES,
            &[
                (0, Fail, true),
                (0, Fail, true),
                (0, Fail, false),
                (10_000, Begin, false),
                (19_999, Pass, false),
                (20_000, Pass, true),
                (20_000, Begin, false),
                (30_000, Succeed, true),
            ],
        );
        let never = Rules { fails: 0, ..RULES };
        check(
            never,
            &[(0, Fail, true), (0, Fail, true), (0, Fail, true), (0, Fail, true)],
        );
        let once = Rules { fails: 1, ..RULES };
        check(once, &[(0, Fail, false), (9_999, Begin, false)]);
    }

    #[test]
    fn pauses_grow_up_to_a_bound() {
        let mut breaker = Breaker::default();
        for _ in 0..RULES.fails {
            breaker.failed(0, RULES);
        }
        let mut now_ms = 0;
        for pause_ms in [10_000, 20_000, 40_000, 80_000, 80_000, 80_000] {
            assert!(!breaker.admits(now_ms + pause_ms - 1), "{pause_ms}");
            now_ms += pause_ms;
            assert!(breaker.admits(now_ms), "{pause_ms}");
            breaker.failed(now_ms, RULES);
        }
    }
}
