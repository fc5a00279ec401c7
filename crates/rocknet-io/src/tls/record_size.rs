//! Dynamic record size: small records first, so that the client can decrypt them as soon as they arrive, then large
//! ones.

use crate::wheel::Tick;

/// Maximum plaintext of a record in bytes (RFC 8446 §5.1).
pub const MAX_RECORD_PLAINTEXT: usize = 16 * 1024;
/// Plaintext of a small record in bytes, chosen so that the record fits into three TCP segments. A segment carries
/// 1,428 bytes: the 1,500 of an Ethernet frame, less 40 for IPv6, 20 for TCP and 12 for its timestamps. Three segments
/// have 4,284 bytes, so 55 bytes are left for the overhead of the record. TLS 1.3 needs 22 of them, and TLS 1.2 at most
/// 29. The rest is spare: Cloudflare's patch of nginx has the same size, with room for older ciphers. The client can
/// decrypt the first bytes of a response when these segments have arrived, and need not wait for a whole large record.
const SMALL_RECORD: usize = 4_229;
/// Maximum number of waiting bytes for which records are large even at the start of a transfer. This number of bytes
/// fits into the initial congestion window (ten segments, RFC 6928), so small records would not arrive earlier.
const INITIAL_WINDOW: u64 = 14_000;
/// Number of bytes after which records are large, because the congestion window then exceeds the largest record.
const WARM_AFTER: u64 = 256 * 1024;
/// Longest pause between two sends, in ticks, after which records stay large. After a longer pause, records start
/// small again, because the kernel shrinks the congestion window. Four ticks of 250 ms are one second.
const COLD_AFTER_TICKS: u32 = 4;

/// State of the transfer on a connection.
#[derive(Debug, Default)]
pub(super) struct RecordSize {
    /// Number of plaintext bytes sent since the start or the last pause, when the congestion window was small.
    sent: u64,
    /// Tick of the last send.
    last: Option<Tick>,
}

impl RecordSize {
    /// Must be called before bytes are sent at this tick. After a pause, records start small again.
    pub fn begin(&mut self, now: Tick) {
        if self.last.is_some_and(|last| now.since(last) > COLD_AFTER_TICKS) {
            self.sent = 0;
        }
        self.last = Some(now);
    }

    /// Returns the maximum plaintext size of the next record in bytes. `waiting` is the number of plaintext bytes
    /// still to be sent, including this record.
    pub fn next(&self, waiting: u64) -> usize {
        if waiting <= INITIAL_WINDOW || self.sent >= WARM_AFTER {
            MAX_RECORD_PLAINTEXT
        } else {
            SMALL_RECORD
        }
    }

    /// Counts plaintext bytes that were sent.
    pub fn count_sent(&mut self, bytes: usize) {
        self.sent = self.sent.saturating_add(bytes as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::wheel::Wheel;

    #[test]
    fn records_grow_with_the_transfer_and_restart_small_after_a_pause() {
        let mut size = RecordSize::default();
        // The wheel supplies only the first tick, so it reserves no memory for deadlines (0).
        let start = Wheel::new(Duration::from_millis(250), 0).now();
        // Tick, bytes in the queue, expected size; each record counts as full.
        for (now, waiting, expected) in [
            (1, 13, MAX_RECORD_PLAINTEXT),
            (1, INITIAL_WINDOW, MAX_RECORD_PLAINTEXT),
            (1, INITIAL_WINDOW + 1, SMALL_RECORD),
            (1, 1 << 30, SMALL_RECORD),
        ] {
            size.begin(start.after(now));
            assert_eq!(size.next(waiting), expected, "{waiting} at {now}");
            size.count_sent(expected);
        }
        size.count_sent(WARM_AFTER as usize);
        // Tick, bytes in the queue, expected size, as above.
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
