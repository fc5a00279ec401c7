//! Generic cell rate algorithm (ITU-T I.371): a token bucket whose whole state is one time.
//!
//! The state is the time at which the bucket will be full again. A bucket that was never used is full since time 0.
//! Each request moves the time by one interval. The number of intervals between now and that time is the number of
//! tokens that are missing.

/// Rate of requests with a burst. Times are in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Time between two requests at the rate.
    interval: u64,
    /// Time in which an empty bucket becomes full: `burst` intervals.
    capacity: u64,
    /// Missing time up to which requests do not wait.
    immediate: u64,
}

/// Decision about one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// The request is admitted.
    Admitted {
        /// Time that the request has to wait before it is handled; 0 if it need not wait.
        wait: u64,
    },
    /// The request is above the limit. It changes nothing.
    Refused {
        /// Time after which a request is admitted, if no other comes first.
        retry_after: u64,
    },
}

impl Rate {
    /// Creates a rate. `interval`: time between two requests, in nanoseconds. `burst`: number of requests that may come
    /// at once. `immediate`: number of requests that may come at once without waiting; `None`: all of them. Zeros count
    /// as 1.
    pub fn new(interval: u64, burst: u32, immediate: Option<u32>) -> Rate {
        let interval = interval.max(1);
        let burst = burst.max(1);
        let immediate = immediate.unwrap_or(burst).clamp(1, burst);
        Rate {
            interval,
            capacity: interval.saturating_mul(burst.into()),
            immediate: interval.saturating_mul(immediate.into()),
        }
    }

    /// Takes a token from a bucket. `full_at`: the state of the bucket, which is changed if the request is admitted.
    #[inline]
    pub fn take(&self, full_at: &mut u64, now: u64) -> Taken {
        let next = (*full_at).max(now).saturating_add(self.interval);
        let missing = next - now;
        if missing > self.capacity {
            return Taken::Refused {
                retry_after: missing - self.capacity,
            };
        }
        *full_at = next;
        Taken::Admitted {
            wait: missing.saturating_sub(self.immediate),
        }
    }

    /// Returns a token to a bucket, for a request that does not count after all. `elapsed`: time since it was taken.
    ///
    /// Without the request, the bucket might have been full, and would then not have been refilled during `elapsed`.
    /// The part of a token refilled in this time is therefore subtracted, so that the bucket never gains tokens.
    pub fn give_back(&self, full_at: &mut u64, elapsed: u64) {
        *full_at = full_at.saturating_sub(self.interval.saturating_sub(elapsed));
    }

    /// Returns the time in which an empty bucket becomes full, in nanoseconds.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_burst_is_followed_by_the_rate() {
        let (rate, mut state) = (Rate::new(S / 10, 3, None), 0);
        let now = 7 * S;
        for _ in 0..3 {
            assert_eq!(rate.take(&mut state, now), Taken::Admitted { wait: 0 });
        }
        assert_eq!(rate.take(&mut state, now), Taken::Refused { retry_after: S / 10 });
        // A refused request does not move the time.
        assert_eq!(rate.take(&mut state, now), Taken::Refused { retry_after: S / 10 });
        assert_eq!(rate.take(&mut state, now + S / 10), Taken::Admitted { wait: 0 });
        assert!(matches!(rate.take(&mut state, now + S / 10), Taken::Refused { .. }));
        rate.give_back(&mut state, 0);
        assert_eq!(rate.take(&mut state, now + S / 10), Taken::Admitted { wait: 0 });
    }

    #[test]
    fn delayed_requests_leave_at_the_rate() {
        let (rate, mut state) = (Rate::new(S, 4, Some(2)), 0);
        let waits: Vec<_> = (0..5).map(|_| rate.take(&mut state, 100 * S)).collect();
        let admitted = |wait| Taken::Admitted { wait };
        let refused = Taken::Refused { retry_after: S };
        assert_eq!(waits, [admitted(0), admitted(0), admitted(S), admitted(2 * S), refused]);
    }

    #[test]
    fn extreme_values_do_not_overflow() {
        let (rate, mut state) = (Rate::new(u64::MAX, u32::MAX, None), 0);
        assert_eq!(rate.take(&mut state, u64::MAX), Taken::Admitted { wait: 0 });
        assert_eq!(rate.take(&mut state, 0), Taken::Admitted { wait: 0 });
        let (rate, mut state) = (Rate::new(0, 0, Some(0)), 0);
        assert_eq!(rate.take(&mut state, 5), Taken::Admitted { wait: 0 });
        assert_eq!(rate.take(&mut state, 5), Taken::Refused { retry_after: 1 });
    }

    #[test]
    fn a_token_is_returned_without_its_refilled_part() {
        // (time of the return, missing time in the bucket after it, which was 3 s at the beginning)
        for (elapsed, missing) in [
            (0, 2 * S),
            (S / 4, 2 * S),
            (S, 2 * S),
            (2 * S, S),
            (3 * S, 0),
            (9 * S, 0),
        ] {
            let (rate, mut state) = (Rate::new(S, 3, None), 0);
            for _ in 0..3 {
                rate.take(&mut state, 10 * S);
            }
            rate.give_back(&mut state, elapsed);
            assert_eq!(state.saturating_sub(10 * S + elapsed), missing, "{elapsed}");
        }
        let (rate, mut state) = (Rate::new(S, 3, None), 0);
        rate.give_back(&mut state, u64::MAX);
        rate.give_back(&mut state, 0);
        assert_eq!(state, 0);
    }

    /// A token bucket as textbooks have it, with tokens in units of one nanosecond of the rate.
    struct Simulation {
        interval: u64,
        capacity: u64,
        tokens: u64,
        at: u64,
    }

    impl Simulation {
        fn take(&mut self, now: u64) -> bool {
            self.tokens = self.capacity.min(self.tokens + (now - self.at));
            self.at = now;
            let is_admitted = self.tokens >= self.interval;
            if is_admitted {
                self.tokens -= self.interval;
            }
            is_admitted
        }
    }

    proptest! {
        #[test]
        fn decisions_equal_those_of_a_token_bucket(
            interval in 1_u64..5_000,
            burst in 1_u32..20,
            immediate in 1_u32..20,
            gaps in prop::collection::vec(0_u64..10_000, 1..200),
        ) {
            let rate = Rate::new(interval, burst, Some(immediate));
            let capacity = interval * u64::from(burst);
            let mut simulation = Simulation { interval, capacity, tokens: capacity, at: 0 };
            let (mut state, mut now, mut last_start) = (0, 0, 0);
            for gap in gaps {
                now += gap;
                let taken = rate.take(&mut state, now);
                prop_assert_eq!(simulation.take(now), matches!(taken, Taken::Admitted { .. }));
                match taken {
                    Taken::Admitted { wait } => {
                        // Requests of a key begin in their order.
                        prop_assert!(now + wait >= last_start);
                        last_start = now + wait;
                    }
                    Taken::Refused { retry_after } => {
                        let (mut early, mut on_time) = (state, state);
                        let is_refused = matches!(rate.take(&mut early, now + retry_after - 1), Taken::Refused { .. });
                        prop_assert!(is_refused);
                        let is_admitted = matches!(rate.take(&mut on_time, now + retry_after), Taken::Admitted { .. });
                        prop_assert!(is_admitted);
                    }
                }
            }
        }

        /// A reference bucket sees only the requests that count. It admits each of them that the bucket admits.
        #[test]
        fn returned_tokens_admit_no_more_than_the_rate(
            interval in 1_u64..5_000,
            burst in 1_u32..20,
            requests in prop::collection::vec((0_u64..10_000, prop::option::of(0_u64..20_000)), 1..200),
        ) {
            let rate = Rate::new(interval, burst, None);
            let capacity = interval * u64::from(burst);
            let mut reference = Simulation { interval, capacity, tokens: capacity, at: 0 };
            let (mut state, mut now) = (0, 0);
            // Times at which tokens were taken, and at which they are returned.
            let mut held: Vec<(u64, u64)> = Vec::new();
            for (gap, returned_after) in requests {
                now += gap;
                held.retain(|(taken, returned)| {
                    if *returned <= now {
                        rate.give_back(&mut state, returned - taken);
                    }
                    *returned > now
                });
                match (rate.take(&mut state, now), returned_after) {
                    (Taken::Refused { .. }, _) => {}
                    (Taken::Admitted { .. }, Some(after)) => held.push((now, now + after)),
                    (Taken::Admitted { .. }, None) => prop_assert!(reference.take(now)),
                }
            }
        }
    }
}
