//! A file that is kept open because it is sent repeatedly.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Time for which a residency check is valid, in milliseconds. The kernel is unlikely to evict pages that were used
/// within the last second, and a check for each response would cost a system call.
const RESIDENT_FOR_MS: u32 = 1000;

/// An open file with its length, and the time of its last residency check.
#[derive(Debug)]
pub struct OpenFile {
    /// The file.
    pub file: Arc<File>,
    /// Length in bytes when the file was opened.
    pub length: u64,
    /// Time of the last check that found the whole file in memory: the lower 32 bits of the milliseconds of uptime,
    /// which repeat after 49 days, plus 1. 0: never.
    resident_ms: AtomicU32,
}

impl OpenFile {
    /// Wraps an open file of `length` bytes.
    pub fn new(file: File, length: u64) -> OpenFile {
        OpenFile {
            file: Arc::new(file),
            length,
            resident_ms: AtomicU32::new(0),
        }
    }

    /// Returns true if a check has found the whole file in memory within the second before `now_ms` of uptime.
    pub fn was_resident(&self, now_ms: u64) -> bool {
        let seen = self.resident_ms.load(Ordering::Relaxed);
        seen != 0 && (now_ms as u32).wrapping_add(1).wrapping_sub(seen) < RESIDENT_FOR_MS
    }

    /// Records that a check has found the whole file in memory at `now_ms` of uptime.
    pub fn note_resident(&self, now_ms: u64) {
        self.resident_ms
            .store((now_ms as u32).wrapping_add(1).max(1), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residency_is_valid_for_a_second() {
        let file = OpenFile::new(tempfile::tempfile().unwrap(), 0);
        for (now, expected) in [(0, false), (5, false)] {
            assert_eq!(file.was_resident(now), expected);
        }
        file.note_resident(5);
        for (now, expected) in [(5, true), (1004, true), (1005, false), (90_000, false)] {
            assert_eq!(file.was_resident(now), expected, "at {now}");
        }
    }
}
