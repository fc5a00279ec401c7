//! Bounds what a connection commits ahead of the link: frames that were rendered or handed to the kernel and have not been
//! sent. A response that becomes ready waits for all of it, whatever its priority ([decision 18]).
//!
//! The bound follows the measured rate of the link. Bytes and time are counted only while the link is full, because at other
//! times the rate is that of the handlers. No clock is read and no option is set before a connection has sent more than
//! [`INITIAL`], and none on a link that is never full.
//!
//! [decision 18]: ../../../../../docs/decisions/0018-late-scheduling.md

use std::time::{Duration, Instant};

/// Most that is rendered before it is sent, so that a client that requests without reading cannot fill memory. On slow links
/// less is allowed.
pub(super) const OUTPUT_BOUND: u64 = 256 * 1024;

/// What is committed is what the link sends in this time: about a round trip within a country, and long enough for a busy
/// worker to come back before the link runs dry.
const AHEAD: Duration = Duration::from_millis(20);

/// Smallest bound: a full record under TLS. Below it wake-ups cost more than the wait that they save.
const LEAST: u64 = 16 * 1024;

/// The bound before anything was measured: four times the first flight of a new connection, 50 ms at 10 Mbit/s.
const INITIAL: u64 = 64 * 1024;

/// From here on (105 Mbit/s) the kernel decides, as it does for every other connection. Fast links lose by a limit: what lies
/// in the socket when the client has read leaves on the client's core, and what does not has to wait for the server.
const UNLIMITED: u64 = OUTPUT_BOUND;

/// A connection that has no limit gets one again below this, so that small differences change nothing.
const LIMITED_AGAIN: u64 = UNLIMITED / 2;

/// A sample ends after this much time on a full link.
const SAMPLE_TIME: Duration = Duration::from_millis(50);

/// A sample also ends after this many times the bound. A buffer on the way that fills at once looks like a fast link; it has
/// to hold eight times the bound to raise it.
const SAMPLE_LIMITS: u64 = 8;

/// Most that one sample raises the bound, for the same reason.
const GROWTH: u64 = 2;

/// Full rounds that the link must take whole, one after another, before more is rendered in one round.
const WHOLE_ROUNDS: u8 = 4;

/// The bound of one connection, and the sample that it is measured by.
#[derive(Debug)]
pub(super) struct SendAhead {
    /// Bytes that may be committed in the kernel.
    limit: u64,
    /// Bytes that may be rendered in one round.
    round: u64,
    /// Full rounds since the link was full.
    whole_rounds: u8,
    /// What the kernel was told last; `UNLIMITED` is its default.
    told: u64,
    /// Bytes sent before the kernel was told anything.
    sent: u64,
    /// Bytes of the sample.
    bytes: u64,
    /// Time for which the link was full in the sample.
    full: Duration,
    full_since: Option<Instant>,
    /// The link was full and has not been idle since.
    is_sampling: bool,
}

impl Default for SendAhead {
    fn default() -> SendAhead {
        SendAhead {
            limit: INITIAL,
            round: INITIAL,
            whole_rounds: 0,
            told: UNLIMITED,
            sent: 0,
            bytes: 0,
            full: Duration::ZERO,
            full_since: None,
            is_sampling: false,
        }
    }
}

impl SendAhead {
    /// Bytes of frames to render in the next round. Less if `tight`: a more urgent response may be ready at any moment.
    pub fn round(&self, tight: bool) -> u64 {
        if tight && self.is_limited() { LEAST } else { self.round }
    }

    /// Whether the link is slow enough for the order of frames to matter.
    pub fn is_limited(&self) -> bool {
        self.limit < UNLIMITED
    }

    /// Returns the limit for [`rocknet_io::link::Link::limit_unsent`] if it has to change before `queued` bytes are sent.
    pub fn change(&mut self, queued: u64, tight: bool) -> Option<Option<u32>> {
        if self.sent <= INITIAL {
            self.sent = self.sent.saturating_add(queued);
            if self.sent <= INITIAL {
                return None;
            }
        }
        let wanted = if tight && self.is_limited() { LEAST } else { self.limit };
        // A system call for every small difference would cost more than it gains.
        let is_near = wanted * 4 >= self.told * 3 && wanted * 3 <= self.told * 4;
        if is_near && (wanted < UNLIMITED) == (self.told < UNLIMITED) {
            return None;
        }
        self.told = wanted;
        Some(u32::try_from(wanted).ok().filter(|_| wanted < UNLIMITED))
    }

    /// Returns true if the kernel has to be told that there is no limit any more: the end of a TLS session is sent once and
    /// does not wait for room.
    pub fn lift(&mut self) -> bool {
        std::mem::replace(&mut self.told, UNLIMITED) < UNLIMITED
    }

    /// The link took `bytes`.
    pub fn moved(&mut self, bytes: u64) {
        if self.is_sampling {
            self.bytes += bytes;
        }
    }

    /// The link took a whole round of `bytes`.
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

    /// The link is full.
    pub fn filled(&mut self, now: Instant) {
        self.whole_rounds = 0;
        self.round = self.limit.min(OUTPUT_BOUND);
        self.is_sampling = true;
        self.full_since = Some(now);
    }

    /// The link has taken all that it had left.
    pub fn drained(&mut self, now: Instant) {
        if let Some(since) = self.full_since.take() {
            self.full += now.saturating_duration_since(since);
            self.measure();
        }
    }

    /// Nothing was left to send.
    pub fn idle(&mut self) {
        self.is_sampling = false;
    }

    fn measure(&mut self) {
        if self.full < SAMPLE_TIME && self.bytes < self.limit * SAMPLE_LIMITS {
            return;
        }
        let nanoseconds = self.full.as_nanos().max(1);
        let ahead = u128::from(self.bytes) * AHEAD.as_nanos() / nanoseconds;
        let most = (self.limit * GROWTH).min(UNLIMITED);
        let limit = u64::try_from(ahead).unwrap_or(u64::MAX).clamp(LEAST, most);
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
    fn drain(ahead: &mut SendAhead, steps: u32, bytes: u64, time: Duration) {
        let mut now = Instant::now();
        for _ in 0..steps {
            ahead.filled(now);
            now += time;
            ahead.moved(bytes);
            ahead.drained(now);
        }
    }

    #[test]
    fn the_bound_is_what_the_link_sends_in_its_time() {
        // Bytes and time of one step, steps, bound.
        for (bytes, time, steps, expected) in [
            (12_500, 10 * MILLISECOND, 100, 25_000),
            (125_000, 10 * MILLISECOND, 100, 250_000),
            (132_000, 10 * MILLISECOND, 100, UNLIMITED),
            (1_000, 10 * MILLISECOND, 100, LEAST),
            (100_000, MILLISECOND / 20, 1000, UNLIMITED),
            (0, 1000 * MILLISECOND, 1, LEAST),
        ] {
            let mut ahead = SendAhead::default();
            drain(&mut ahead, steps, bytes, time);
            assert_eq!(ahead.limit, expected, "{bytes} in {time:?}");
            assert_eq!(ahead.round(false), expected.min(OUTPUT_BOUND));
            assert_eq!(ahead.round(true) == LEAST, expected < UNLIMITED);
        }
    }

    #[test]
    fn a_buffer_on_the_way_does_not_look_like_a_fast_link() {
        let mut ahead = SendAhead::default();
        drain(&mut ahead, 16, INITIAL / 2 - 1, MILLISECOND / 100);
        assert_eq!(ahead.limit, INITIAL, "500 KB at once");
        drain(&mut ahead, 1, INITIAL / 2, MILLISECOND / 100);
        assert_eq!(ahead.limit, INITIAL * GROWTH, "one sample raises it this far");
        drain(&mut ahead, 1, 62_500, 50 * MILLISECOND);
        assert_eq!(ahead.limit, 25_000, "and the next one corrects it");
    }

    #[test]
    fn a_fast_link_has_to_become_much_slower() {
        let mut ahead = SendAhead::default();
        drain(&mut ahead, 100, 200_000, 10 * MILLISECOND);
        assert!(!ahead.is_limited());
        drain(&mut ahead, 100, 70_000, 10 * MILLISECOND);
        assert!(!ahead.is_limited());
        drain(&mut ahead, 100, 60_000, 10 * MILLISECOND);
        assert_eq!(ahead.limit, 120_000);
        drain(&mut ahead, 100, 70_000, 10 * MILLISECOND);
        assert_eq!(ahead.limit, 140_000);
    }

    #[test]
    fn only_a_full_link_is_measured() {
        let mut ahead = SendAhead::default();
        let now = Instant::now();
        ahead.moved(100 * UNLIMITED);
        ahead.filled(now);
        ahead.drained(now + MILLISECOND);
        ahead.idle();
        ahead.moved(100 * UNLIMITED);
        ahead.filled(now + 1000 * MILLISECOND);
        ahead.moved(61_250);
        ahead.drained(now + 1049 * MILLISECOND);
        assert_eq!(ahead.limit, 24_500, "61,250 bytes in 50 ms");
    }

    #[test]
    fn rounds_grow_on_a_link_that_takes_all() {
        let mut ahead = SendAhead::default();
        let mut rounds = 0;
        while ahead.round(false) < OUTPUT_BOUND {
            ahead.took_round(ahead.round(false) - 1);
            ahead.took_round(ahead.round(false));
            rounds += 1;
            assert!(rounds <= 8);
        }
        assert_eq!(rounds, 8);
        ahead.filled(Instant::now());
        assert_eq!(ahead.round(false), INITIAL);
    }

    #[test]
    fn the_kernel_is_told_once_and_when_it_matters() {
        let mut ahead = SendAhead::default();
        assert_eq!(ahead.change(INITIAL, false), None, "small connections cost no call");
        assert_eq!(ahead.change(1, false), Some(Some(INITIAL as u32)));
        assert_eq!(ahead.change(1 << 30, false), None);
        assert_eq!(ahead.change(1, true), Some(Some(LEAST as u32)));
        assert_eq!(ahead.change(1, true), None);
        assert_eq!(ahead.change(1, false), Some(Some(INITIAL as u32)));
        ahead.limit = INITIAL / 6 * 5;
        assert_eq!(ahead.change(1, false), None);
        ahead.limit = INITIAL * 2;
        assert_eq!(ahead.change(1, false), Some(Some(2 * INITIAL as u32)));
        assert_eq!(ahead.change(1, false), None);
        ahead.limit = UNLIMITED;
        assert_eq!(ahead.change(1, true), Some(None));
        assert_eq!(ahead.change(1, true), None);
        ahead.limit = UNLIMITED / 6 * 5;
        assert!(ahead.change(1, false).is_some());
        assert!(ahead.lift(), "the last bytes go in whatever the limit was");
        assert!(!ahead.lift());
    }
}
