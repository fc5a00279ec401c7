//! How much plain text goes into one record: little at first, so that it can be read as soon as it arrives, then much.

use crate::wheel::Tick;

/// RFC 8446 §5.1: the most plain text in a record.
pub const MAX_RECORD_PLAINTEXT: usize = 16 * 1024;
/// With its overhead it fills three segments of 1,460 bytes: whoever waits for the first bytes of a page has them when
/// those have come, not when a whole record has.
const SMALL_RECORD: usize = 4_229;
/// An answer that fits into the first flight of a fresh connection (ten segments, RFC 6928) arrives at once in any case.
const INITIAL_WINDOW: u64 = 14_000;
/// After so much the window of the connection has grown beyond the largest record.
const WARM_AFTER: u64 = 256 * 1024;
/// After a second without sending, the kernel begins with a small window again.
const COLD_AFTER_TICKS: u32 = 4;

/// What a connection remembers of its transfer.
#[derive(Debug, Default)]
pub(super) struct RecordSize {
    /// Bytes sent since it was cold.
    sent: u64,
    /// When something was sent last.
    last: Option<Tick>,
}

impl RecordSize {
    /// Something is to be sent at this tick.
    pub fn begin(&mut self, now: Tick) {
        if self.last.is_some_and(|last| now.since(last) > COLD_AFTER_TICKS) {
            self.sent = 0;
        }
        self.last = Some(now);
    }

    /// The size of the next record, with `waiting` bytes in the queue.
    pub fn next(&self, waiting: u64) -> usize {
        if waiting <= INITIAL_WINDOW || self.sent >= WARM_AFTER {
            MAX_RECORD_PLAINTEXT
        } else {
            SMALL_RECORD
        }
    }

    pub fn sent(&mut self, bytes: usize) {
        self.sent = self.sent.saturating_add(bytes as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::wheel::Wheel;

    #[test]
    fn records_grow_with_the_transfer_and_begin_anew_after_a_rest() {
        let mut size = RecordSize::default();
        let start = Wheel::new(Duration::from_millis(250), 0).now();
        // Now, bytes in the queue, expected size; all of a record is sent.
        for (now, waiting, expected) in [
            (1, 13, MAX_RECORD_PLAINTEXT),
            (1, INITIAL_WINDOW, MAX_RECORD_PLAINTEXT),
            (1, INITIAL_WINDOW + 1, SMALL_RECORD),
            (1, 1 << 30, SMALL_RECORD),
        ] {
            size.begin(start.after(now));
            assert_eq!(size.next(waiting), expected, "{waiting} at {now}");
            size.sent(expected);
        }
        size.sent(WARM_AFTER as usize);
        for (now, waiting, expected) in [
            (2, 1 << 30, MAX_RECORD_PLAINTEXT),
            (2 + COLD_AFTER_TICKS, 1 << 30, MAX_RECORD_PLAINTEXT),
            (3 + 2 * COLD_AFTER_TICKS, 1 << 30, SMALL_RECORD),
            (3 + 2 * COLD_AFTER_TICKS, 100, MAX_RECORD_PLAINTEXT),
        ] {
            size.begin(start.after(now));
            assert_eq!(size.next(waiting), expected, "{waiting} at {now}");
        }
    }
}
