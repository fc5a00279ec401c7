//! A file kept open to be sent again and again.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// For so long a file seen in memory is taken to be there still. Pages in use by the second are the last that the
/// kernel gives up; asking it for every answer would cost a call each.
const RESIDENT_FOR_MS: u32 = 1000;

#[derive(Debug)]
pub struct OpenFile {
    pub file: Arc<File>,
    /// As it was when it was opened.
    pub length: u64,
    /// When it was last seen in memory whole, in milliseconds of uptime, with one added so that 0 means never.
    resident_ms: AtomicU32,
}

impl OpenFile {
    pub fn new(file: File, length: u64) -> OpenFile {
        OpenFile {
            file: Arc::new(file),
            length,
            resident_ms: AtomicU32::new(0),
        }
    }

    /// Whether it was seen in memory so short a time ago that it needs no new look.
    pub fn was_resident(&self, now_ms: u64) -> bool {
        let seen = self.resident_ms.load(Ordering::Relaxed);
        seen != 0 && (now_ms as u32).wrapping_add(1).wrapping_sub(seen) < RESIDENT_FOR_MS
    }

    pub fn note_resident(&self, now_ms: u64) {
        self.resident_ms
            .store((now_ms as u32).wrapping_add(1).max(1), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgets_after_a_second() {
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
