//! Limits the bytes that a connection commits ahead of the link: frames that were rendered or passed to the kernel and
//! have not been sent. A response that becomes ready waits for all these bytes, even if it is urgent ([decision 18]).
//! Frames are rendered in rounds, each of which begins after the output of the previous one has been sent.
//!
//! The limit follows the measured rate of the link. Time is counted only while the link is full, because at other times
//! the handlers determine the rate. The clock is read only when the link fills up or drains. Bytes are counted from the
//! moment at which the link is full until the connection has nothing to send. If the link drains before that, the next
//! round is rendered without a wait for a handler. Its bytes are counted too, because they take the room of bytes that
//! the full link has sent. Bytes that the link takes before it is full are not counted, as their time is not.
//!
//! No socket option is set before a connection has sent more than [`INITIAL_LIMIT`].
//!
//! [decision 18]: ../../../../../docs/decisions/0018-late-scheduling.md

use std::time::{Duration, Instant};

/// Maximum number of bytes rendered before they are sent, so that a client that requests without reading cannot fill
/// memory. On slow links the limit is lower.
pub(super) const OUTPUT_BOUND: u64 = 256 * 1024;

/// Time in which the link should send the committed bytes: about a round trip within a country, and long enough for a
/// busy worker to return before the link runs dry.
const BUDGET_TIME: Duration = Duration::from_millis(20);

/// Minimum of the limit in bytes: a full TLS record. With a lower limit, wake-ups cost more than the wait that they
/// save.
const MIN_LIMIT: u64 = 16 * 1024;

/// Limit in bytes before the first measurement: four times the first flight of a new connection, 50 ms at 10 Mbit/s.
const INITIAL_LIMIT: u64 = 64 * 1024;

/// No limit is set once the measured limit reaches this number of bytes (105 Mbit/s with [`BUDGET_TIME`]). The kernel
/// then decides, as it does for connections of HTTP/1. On faster links, a limit costs CPU time: 1.2 times as much,
/// measured on loopback. The kernel sends bytes that are already in the socket without waking the server. With a
/// limit, fewer bytes are in the socket, and the others have to wait for the server.
const UNLIMITED: u64 = OUTPUT_BOUND;

/// A connection without a limit gets a limit again only if the measured limit is below this value, so that small
/// variations have no effect.
const LIMITED_AGAIN: u64 = UNLIMITED / 2;

/// Time with a full link after which a sample ends.
const SAMPLE_TIME: Duration = Duration::from_millis(50);

/// A sample also ends once this multiple of the limit has been sent. A buffer on the network path that fills
/// immediately looks like a fast link; it raises the limit only if it holds eight times the limit.
const SAMPLE_LIMITS: u64 = 8;

/// Maximum factor by which one sample raises the limit, because a buffer on the network path can look like a fast link.
const GROWTH: u64 = 2;

/// Number of full rounds that the link must take completely before the size of a round doubles. The count restarts when
/// the link is full; rounds with fewer bytes than the size do not count.
const WHOLE_ROUNDS: u8 = 4;

/// Send limit of one connection, and the sample from which the limit is measured.
#[derive(Debug)]
pub(super) struct SendBudget {
    /// Limit of committed bytes, from the last sample. It bounds the unsent bytes in the kernel.
    limit: u64,
    /// Maximum number of bytes rendered in one round.
    round: u64,
    /// Number of full rounds that the link has taken completely since the link was last full or the size of a round
    /// last doubled.
    whole_rounds: u8,
    /// Limit last set in the kernel; `UNLIMITED` if no limit is set.
    kernel_limit: u64,
    /// Bytes queued by the connection, counted until they exceed `INITIAL_LIMIT`.
    sent: u64,
    /// Bytes sent in the current sample.
    bytes: u64,
    /// Time for which the link was full in the current sample.
    full: Duration,
    /// Time at which the link became full; `None` if it is not full.
    full_since: Option<Instant>,
    /// True if the link was full, and the connection has always had bytes to send since. Only then are bytes counted.
    is_sampling: bool,
}

impl Default for SendBudget {
    fn default() -> SendBudget {
        SendBudget {
            limit: INITIAL_LIMIT,
            round: INITIAL_LIMIT,
            whole_rounds: 0,
            kernel_limit: UNLIMITED,
            sent: 0,
            bytes: 0,
            full: Duration::ZERO,
            full_since: None,
            is_sampling: false,
        }
    }
}

impl SendBudget {
    /// Returns the number of bytes to render in the next round: fewer if `urgent_pending`, because a more urgent
    /// response may become ready at any moment.
    pub fn round_bytes(&self, urgent_pending: bool) -> u64 {
        if urgent_pending && self.is_limited() {
            MIN_LIMIT
        } else {
            self.round
        }
    }

    /// Returns true if the link is slow enough for the order of frames to matter.
    pub fn is_limited(&self) -> bool {
        self.limit < UNLIMITED
    }

    /// Returns the argument for [`rocknet_io::link::Link::limit_unsent`] if the limit in the kernel has to change
    /// before `queued` bytes are sent. `Some(None)` removes the limit. `urgent_pending`: true if a more urgent response
    /// may become ready at any moment.
    pub fn kernel_limit_change(&mut self, queued: u64, urgent_pending: bool) -> Option<Option<u32>> {
        if self.sent <= INITIAL_LIMIT {
            self.sent = self.sent.saturating_add(queued);
            if self.sent <= INITIAL_LIMIT {
                return None;
            }
        }
        let new_limit = if urgent_pending && self.is_limited() {
            MIN_LIMIT
        } else {
            self.limit
        };
        // A system call for a difference of less than about a quarter would cost more than it gains.
        let is_near = new_limit * 4 >= self.kernel_limit * 3 && new_limit * 3 <= self.kernel_limit * 4;
        if is_near && (new_limit < UNLIMITED) == (self.kernel_limit < UNLIMITED) {
            return None;
        }
        self.kernel_limit = new_limit;
        Some(u32::try_from(new_limit).ok().filter(|_| new_limit < UNLIMITED))
    }

    /// Returns true if a limit is set in the kernel, which the caller must then remove: the `close_notify` of TLS is
    /// sent once and does not wait for room in the socket.
    pub fn clear_kernel_limit(&mut self) -> bool {
        std::mem::replace(&mut self.kernel_limit, UNLIMITED) < UNLIMITED
    }

    /// Counts `bytes` that the link has taken. Ignores them at first and after an idle time, until the link is full.
    pub fn moved(&mut self, bytes: u64) {
        if self.is_sampling {
            self.bytes += bytes;
        }
    }

    /// Records that the link took a round of `bytes` completely.
    pub fn took_round(&mut self, bytes: u64) {
        if bytes < self.round || self.round == OUTPUT_BOUND {
            return;
        }
        self.whole_rounds += 1;
        if self.whole_rounds == WHOLE_ROUNDS {
            self.whole_rounds = 0;
            self.round = (self.round * 2).min(OUTPUT_BOUND);
        }
    }

    /// Records that the link is full.
    pub fn filled(&mut self, now: Instant) {
        self.whole_rounds = 0;
        self.round = self.limit.min(OUTPUT_BOUND);
        self.is_sampling = true;
        self.full_since = Some(now);
    }

    /// Records that the link has taken the backlog.
    pub fn drained(&mut self, now: Instant) {
        if let Some(since) = self.full_since.take() {
            self.full += now.saturating_duration_since(since);
            self.measure();
        }
    }

    /// Records that the connection has nothing to send for now. Bytes are not counted until the link is full again.
    pub fn idle(&mut self) {
        self.is_sampling = false;
    }

    /// Ends the sample if it is large enough, and sets the limit from its rate.
    fn measure(&mut self) {
        if self.full < SAMPLE_TIME && self.bytes < self.limit * SAMPLE_LIMITS {
            return;
        }
        let nanoseconds = self.full.as_nanos().max(1);
        let limit = u128::from(self.bytes) * BUDGET_TIME.as_nanos() / nanoseconds;
        let max_limit = (self.limit * GROWTH).min(UNLIMITED);
        let limit = u64::try_from(limit).unwrap_or(u64::MAX).clamp(MIN_LIMIT, max_limit);
        if self.is_limited() || limit < LIMITED_AGAIN {
            self.limit = limit;
        }
        self.round = self.limit.min(OUTPUT_BOUND);
        (self.bytes, self.full) = (0, Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    /// Fills and drains the link in steps of `bytes`, each taking `time`.
    fn drain(budget: &mut SendBudget, steps: u32, bytes: u64, time: Duration) {
        let mut now = Instant::now();
        for _ in 0..steps {
            budget.filled(now);
            now += time;
            budget.moved(bytes);
            budget.drained(now);
        }
    }

    #[test]
    fn the_limit_is_what_the_link_sends_in_the_budget_time() {
        // Bytes and time of one step, number of steps, expected limit.
        for (bytes, time, steps, expected) in [
            (12_500, 10 * MILLISECOND, 100, 25_000),
            (125_000, 10 * MILLISECOND, 100, 250_000),
            (132_000, 10 * MILLISECOND, 100, UNLIMITED),
            (1_000, 10 * MILLISECOND, 100, MIN_LIMIT),
            (100_000, MILLISECOND / 20, 1000, UNLIMITED),
            (0, 1000 * MILLISECOND, 1, MIN_LIMIT),
        ] {
            let mut budget = SendBudget::default();
            drain(&mut budget, steps, bytes, time);
            assert_eq!(budget.limit, expected, "{bytes} in {time:?}");
            assert_eq!(budget.round_bytes(false), expected.min(OUTPUT_BOUND));
            assert_eq!(budget.round_bytes(true) == MIN_LIMIT, expected < UNLIMITED);
        }
    }

    #[test]
    fn a_buffer_on_the_network_path_does_not_look_like_a_fast_link() {
        let mut budget = SendBudget::default();
        // 16 steps send just less than `SAMPLE_LIMITS` times the limit.
        drain(&mut budget, 16, INITIAL_LIMIT / 2 - 1, MILLISECOND / 100);
        assert_eq!(
            budget.limit, INITIAL_LIMIT,
            "a burst of 500 KB does not raise the limit"
        );
        drain(&mut budget, 1, INITIAL_LIMIT / 2, MILLISECOND / 100);
        assert_eq!(
            budget.limit,
            INITIAL_LIMIT * GROWTH,
            "one sample doubles the limit at most"
        );
        drain(&mut budget, 1, 62_500, 50 * MILLISECOND);
        assert_eq!(budget.limit, 25_000, "the next sample corrects the limit");
    }

    #[test]
    fn a_fast_link_gets_a_limit_again_only_if_it_becomes_much_slower() {
        let mut budget = SendBudget::default();
        drain(&mut budget, 100, 200_000, 10 * MILLISECOND);
        assert!(!budget.is_limited());
        drain(&mut budget, 100, 70_000, 10 * MILLISECOND);
        assert!(!budget.is_limited());
        drain(&mut budget, 100, 60_000, 10 * MILLISECOND);
        assert_eq!(budget.limit, 120_000);
        drain(&mut budget, 100, 70_000, 10 * MILLISECOND);
        assert_eq!(budget.limit, 140_000);
    }

    #[test]
    fn only_a_full_link_is_measured() {
        let mut budget = SendBudget::default();
        let now = Instant::now();
        budget.moved(100 * UNLIMITED);
        budget.filled(now);
        budget.drained(now + MILLISECOND);
        budget.idle();
        budget.moved(100 * UNLIMITED);
        budget.filled(now + 1000 * MILLISECOND);
        budget.moved(61_250);
        budget.drained(now + 1049 * MILLISECOND);
        assert_eq!(budget.limit, 24_500, "61,250 bytes in 50 ms");
    }

    #[test]
    fn rounds_grow_if_the_link_takes_them_completely() {
        let mut budget = SendBudget::default();
        let mut rounds = 0;
        while budget.round_bytes(false) < OUTPUT_BOUND {
            budget.took_round(budget.round_bytes(false) - 1);
            budget.took_round(budget.round_bytes(false));
            rounds += 1;
            assert!(rounds <= 8);
        }
        // The size of a round doubles twice, each time after four full rounds.
        assert_eq!(rounds, 8);
        budget.filled(Instant::now());
        assert_eq!(budget.round_bytes(false), INITIAL_LIMIT);
    }

    #[test]
    fn the_kernel_limit_is_set_only_if_it_changes_noticeably() {
        let mut budget = SendBudget::default();
        assert_eq!(
            budget.kernel_limit_change(INITIAL_LIMIT, false),
            None,
            "a connection with little data costs no system call"
        );
        assert_eq!(budget.kernel_limit_change(1, false), Some(Some(INITIAL_LIMIT as u32)));
        assert_eq!(budget.kernel_limit_change(1 << 30, false), None);
        assert_eq!(budget.kernel_limit_change(1, true), Some(Some(MIN_LIMIT as u32)));
        assert_eq!(budget.kernel_limit_change(1, true), None);
        assert_eq!(budget.kernel_limit_change(1, false), Some(Some(INITIAL_LIMIT as u32)));
        budget.limit = INITIAL_LIMIT / 6 * 5;
        assert_eq!(budget.kernel_limit_change(1, false), None);
        budget.limit = INITIAL_LIMIT * 2;
        assert_eq!(
            budget.kernel_limit_change(1, false),
            Some(Some(2 * INITIAL_LIMIT as u32))
        );
        assert_eq!(budget.kernel_limit_change(1, false), None);
        budget.limit = UNLIMITED;
        assert_eq!(budget.kernel_limit_change(1, true), Some(None));
        assert_eq!(budget.kernel_limit_change(1, true), None);
        budget.limit = UNLIMITED / 6 * 5;
        assert!(
            budget.kernel_limit_change(1, false).is_some(),
            "any limit differs noticeably from none"
        );
        assert!(
            budget.clear_kernel_limit(),
            "the limit is removed before the last bytes"
        );
        assert!(!budget.clear_kernel_limit());
    }
}
