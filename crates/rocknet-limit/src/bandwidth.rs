//! Divides a bandwidth among the responses that share it, such as all responses to one client.
//!
//! Responses that share a bandwidth have the same key. The bucket of the key holds the bandwidth of one second, and
//! each response takes its bytes from the bucket before it sends them. Without a further rule, the first response that
//! takes bytes would leave none for the others. Therefore:
//! - Each response has a credit that grows with time, divided by the number of responses of the key. One half of the
//!   bucket is reserved for the credits: a response saves at most an even share of this half.
//! - Every response may use the other half. It fills while some responses use less than their share, because their
//!   clients are slow.
//!
//! Levels and credits are in nanoseconds: the time in which the bandwidth adds up to them.

use std::sync::Arc;

use crate::connections::{ConnectionPermit, ConnectionTable};
use crate::table::{Budget, RateTable};

/// Capacity of the bucket of a key: one second of its bandwidth.
pub const CAPACITY: u64 = 1_000_000_000;

/// Part of `CAPACITY` that is reserved for the credits of the responses.
const RESERVED: u64 = CAPACITY / 2;

/// Bandwidth of one limit by key, which all workers share.
#[derive(Debug)]
pub struct BandwidthTable {
    buckets: RateTable,
    /// Responses in progress by key.
    responses: Arc<ConnectionTable>,
}

/// Part that one response has in the bandwidth of its key. The response counts as in progress until the value is
/// dropped.
#[derive(Debug)]
pub struct BandwidthPart {
    table: Arc<BandwidthTable>,
    key: u64,
    /// Bytes per second of the key.
    rate: u64,
    /// Part of the reserved half that this response may use now.
    credit: u64,
    /// Time up to which `credit` has grown.
    at: u64,
    /// Counts the response; `None` only beyond `u32::MAX` responses of the key.
    _permit: Option<ConnectionPermit>,
}

impl BandwidthTable {
    /// Creates an empty table.
    pub fn new(budget: &Arc<Budget>) -> BandwidthTable {
        BandwidthTable {
            buckets: RateTable::new(budget),
            responses: Arc::default(),
        }
    }

    /// Returns the buckets of the keys. A bucket is full after at most [`CAPACITY`].
    pub fn buckets(&self) -> &RateTable {
        &self.buckets
    }

    /// Adds a response. `key`: hash of the key with a secret seed. `rate`: bytes per second of the key, at least 1.
    /// `now`: nanoseconds of a monotonic clock.
    pub fn join(self: &Arc<Self>, key: u64, rate: u64, now: u64) -> BandwidthPart {
        BandwidthPart {
            table: Arc::clone(self),
            key,
            rate: rate.max(1),
            credit: 0,
            at: now,
            _permit: self.responses.take(key, u32::MAX),
        }
    }
}

impl BandwidthPart {
    /// Takes at most `max` bytes, which may then be sent. Returns 0 if the response has to wait. `interval`: time
    /// between two attempts in nanoseconds. The response waits while less is available than half of its even share of
    /// the bandwidth in this time, because a smaller piece is not worth its cost.
    pub fn take(&mut self, max: u64, interval: u64, now: u64) -> u64 {
        let responses = u64::from(self.table.responses.of_key(self.key).max(1));
        let passed = now.saturating_sub(self.at);
        // The remainder of the division is kept for the next call.
        self.at = self.at.max(now - passed % responses);
        self.credit = (self.credit.saturating_add(passed / responses)).min(RESERVED / responses);
        let (credit, rate, least) = (self.credit, self.rate, interval / 2 / responses);
        let bytes = self.table.buckets.update(self.key, now, |full_at| {
            let level = CAPACITY.saturating_sub(full_at.saturating_sub(now));
            let available = credit.max(level.saturating_sub(RESERVED)).min(level);
            if available < least {
                return 0;
            }
            let bytes = bytes_of(rate, available).min(max);
            *full_at = (*full_at).max(now).saturating_add(time_of(rate, bytes));
            bytes
        });
        self.credit -= time_of(rate, bytes).min(self.credit);
        bytes
    }

    /// Gives back bytes that were taken and not sent.
    pub fn give_back(&mut self, bytes: u64) {
        let time = time_of(self.rate, bytes);
        // The time `u64::MAX` keeps `update` from creating a bucket, because it creates only buckets that are not full
        // at the given time. A key without a bucket needs none here: a missing bucket counts as full. An existing
        // bucket is changed regardless of the time.
        self.table
            .buckets
            .update(self.key, u64::MAX, |full_at| *full_at = full_at.saturating_sub(time));
        self.credit = self.credit.saturating_add(time).min(RESERVED);
    }
}

/// Returns the number of bytes at a rate in a time in nanoseconds.
fn bytes_of(rate: u64, time: u64) -> u64 {
    u64::try_from(u128::from(rate) * u128::from(time) / 1_000_000_000).unwrap_or(u64::MAX)
}

/// Returns the time of a number of bytes at a rate in nanoseconds, rounded up.
fn time_of(rate: u64, bytes: u64) -> u64 {
    let time = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(rate));
    u64::try_from(time).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const TICK: u64 = 250 * MS;
    const RATE: u64 = 1_000_000;

    fn table() -> Arc<BandwidthTable> {
        Arc::new(BandwidthTable::new(&Arc::default()))
    }

    #[test]
    fn responses_of_a_key_share_its_bandwidth_evenly() {
        let table = table();
        let start = 5_000 * MS;
        let mut parts: Vec<BandwidthPart> = (0..4).map(|_| table.join(7, RATE, start)).collect();
        let mut other = table.join(8, RATE, start);
        let (mut sent, mut of_other) = ([0; 4], 0);
        let seconds = 20;
        for tick in 0..=4 * seconds {
            let now = start + tick * TICK;
            // The first response is always served first, and takes bytes until it gets none.
            for (part, sent) in parts.iter_mut().zip(&mut sent) {
                while let bytes @ 1.. = part.take(10_000, TICK, now) {
                    *sent += bytes;
                }
            }
            while let bytes @ 1.. = other.take(10_000, TICK, now) {
                of_other += bytes;
            }
        }
        let all: u64 = sent.iter().sum();
        // The bucket holds the bandwidth of one second.
        assert!(
            all <= RATE * (seconds + 1) && all >= RATE * seconds * 95 / 100,
            "{sent:?}"
        );
        let part = RATE * seconds / 4;
        assert!(sent.iter().all(|sent| sent * 10 >= part * 9), "{sent:?}");
        assert!(of_other >= RATE * seconds * 95 / 100, "{of_other}");
    }

    #[test]
    fn the_bandwidth_that_slow_responses_leave_is_used() {
        let table = table();
        let mut parts: Vec<BandwidthPart> = (0..3).map(|_| table.join(7, RATE, 0)).collect();
        let mut sent = 0;
        for tick in 1..=40 {
            // The others get bytes only now and then.
            if tick % 10 == 0 {
                parts[1].take(1_000, TICK, tick * TICK);
            }
            while let bytes @ 1.. = parts[0].take(100_000, TICK, tick * TICK) {
                sent += bytes;
            }
        }
        assert!(sent >= RATE * 10 * 95 / 100, "{sent}");
        // A response that ends leaves its part at once.
        parts.truncate(1);
        assert_eq!(table.responses.of_key(7), 1);
        drop(parts);
        assert_eq!(table.responses.in_progress(), 0);
    }

    #[test]
    fn bytes_that_were_not_sent_return() {
        let table = table();
        let mut part = table.join(7, RATE, 0);
        let taken = part.take(u64::MAX, TICK, 0);
        assert_eq!(taken, RATE / 2);
        assert_eq!(part.take(u64::MAX, TICK, 0), 0);
        part.give_back(taken);
        assert_eq!(part.take(u64::MAX, TICK, 0), taken);
        // Sequential short responses share the bandwidth too.
        drop(part);
        let mut next = table.join(7, RATE, 0);
        assert_eq!(next.take(u64::MAX, TICK, 0), 0);
        assert_eq!(next.take(u64::MAX, TICK, TICK), RATE / 4);
    }

    #[test]
    fn extreme_values_do_not_overflow() {
        let table = table();
        for rate in [1, u64::MAX] {
            let mut part = table.join(rate, rate, u64::MAX);
            part.take(u64::MAX, u64::MAX, 0);
            part.take(u64::MAX, 0, u64::MAX);
            part.give_back(u64::MAX);
            part.take(u64::MAX, 0, u64::MAX);
        }
    }
}
