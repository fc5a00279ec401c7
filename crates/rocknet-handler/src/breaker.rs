//! Whether a server that failed is asked again: the circuit that its own answers open and close.
//!
//! ```text
//! Closed ──`fails` within `window`──▶ Open ──its rest is over──▶ one request tries
//!    ▲                                 ▲                              │
//!    └──────────────answered───────────┼──────────────────────────────┤
//!                                      └──────failed: rests longer────┘
//! ```

/// When a circuit opens, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Failures that open it; 0: it never opens.
    pub fails: u32,
    /// They count when they lie within so long, and it rests as long.
    pub window_ms: u64,
}

/// Each failed try doubles the rest, up to so many times: a server that is gone for a day costs few requests, and one that
/// is back is found within two minutes by the usual ten seconds.
const MAX_DOUBLINGS: u32 = 3;

/// The circuit of one server.
#[derive(Debug, Default)]
pub struct Breaker {
    fails: u32,
    /// When the first of these failures was.
    first_failure_ms: u64,
    /// It rests until then; 0: it is closed.
    open_until_ms: u64,
    /// Tries that failed one after the other.
    failed_probes: u32,
    /// A try is under way, and is given up for lost then.
    probe_until_ms: u64,
}

impl Breaker {
    /// All is well, and nothing is remembered.
    pub fn is_closed(&self) -> bool {
        self.fails == 0 && self.open_until_ms == 0
    }

    /// Whether a request may go there. While the circuit is open, one in each rest may, or two whose workers look at the very
    /// same time.
    pub fn admits(&self, now_ms: u64) -> bool {
        self.open_until_ms == 0 || now_ms >= self.open_until_ms && now_ms >= self.probe_until_ms
    }

    /// A request goes there.
    pub fn begin(&mut self, now_ms: u64, rules: Rules) {
        if self.open_until_ms != 0 {
            self.probe_until_ms = now_ms + rules.window_ms;
        }
    }

    /// An answer has begun. True if that closed the circuit.
    pub fn succeeded(&mut self) -> bool {
        let was_open = self.open_until_ms != 0;
        *self = Breaker::default();
        was_open
    }

    /// There was none. True if that opened the circuit.
    pub fn failed(&mut self, now_ms: u64, rules: Rules) -> bool {
        if rules.fails == 0 {
            return false;
        }
        if self.open_until_ms != 0 {
            // Of those that were under way when it opened nothing new is learnt.
            if now_ms >= self.open_until_ms {
                self.failed_probes = (self.failed_probes + 1).min(MAX_DOUBLINGS);
                self.open_until_ms = now_ms + (rules.window_ms << self.failed_probes);
                self.probe_until_ms = 0;
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

    enum Did {
        Fail,
        Answer,
        Begin,
    }
    use Did::{Answer, Begin, Fail};

    /// What happened when, and whether a request may go there right after.
    #[track_caller]
    fn check(rules: Rules, rows: &[(u64, Did, bool)]) {
        let mut breaker = Breaker::default();
        for (number, (now_ms, did, admits)) in rows.iter().enumerate() {
            match did {
                Fail => {
                    breaker.failed(*now_ms, rules);
                }
                Answer => {
                    breaker.succeeded();
                }
                Begin => breaker.begin(*now_ms, rules),
            }
            assert_eq!(breaker.admits(*now_ms), *admits, "row {number}: {breaker:?}");
        }
    }

    #[test]
    fn the_circuit_opens_rests_and_closes() {
        check(
            RULES,
            &[
                (0, Fail, true),
                (1, Fail, true),
                (2, Fail, false),
                (9_000, Begin, false),
            ],
        );
        // Too far apart, or with an answer in between.
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
                (2, Answer, true),
                (3, Fail, true),
                (4, Fail, true),
            ],
        );
        // One try after the rest; answered, all is well.
        check(
            RULES,
            &[
                (0, Fail, true),
                (0, Fail, true),
                (0, Fail, false),
                (10_000, Begin, false),
                (10_500, Answer, true),
                (10_501, Fail, true),
            ],
        );
        // Failed, it rests twice as long; late news of old requests change nothing.
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
                (31_000, Answer, true),
            ],
        );
        // A try that nobody hears of again is no try.
        check(
            RULES,
            &[
                (0, Fail, true),
                (0, Fail, true),
                (0, Fail, false),
                (10_000, Begin, false),
                (20_000, Begin, false),
                (30_000, Answer, true),
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
    fn rests_grow_to_a_bound() {
        let mut breaker = Breaker::default();
        for _ in 0..RULES.fails {
            breaker.failed(0, RULES);
        }
        let mut now_ms = 0;
        for rest_ms in [10_000, 20_000, 40_000, 80_000, 80_000, 80_000] {
            assert!(!breaker.admits(now_ms + rest_ms - 1), "{rest_ms}");
            now_ms += rest_ms;
            assert!(breaker.admits(now_ms), "{rest_ms}");
            breaker.failed(now_ms, RULES);
        }
    }
}
