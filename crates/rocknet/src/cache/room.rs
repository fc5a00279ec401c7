//! Bytes that may wait in a queue, counted by those who put something in and those who take it out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone)]
pub(super) struct Room {
    used: Arc<AtomicU64>,
    most: u64,
}

impl Room {
    pub fn new(most: u64) -> Room {
        Room {
            used: Arc::default(),
            most,
        }
    }

    /// Takes room for `bytes`; false if there is not enough. An empty queue has room for anything, or what is larger than
    /// the whole room could never pass.
    #[must_use]
    pub fn take(&self, bytes: u64) -> bool {
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        let fits = before == 0 || before.saturating_add(bytes) <= self.most;
        if !fits {
            self.give_back(bytes);
        }
        fits
    }

    pub fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_bounded_and_one_large_thing_passes() {
        let room = Room::new(100);
        assert!(room.take(60) && room.take(40));
        assert!(!room.take(1), "all is taken");
        room.give_back(60);
        assert!(room.take(60) && !room.take(1));
        room.give_back(100);
        assert!(room.take(1000), "nothing else is there");
        assert!(!room.take(1));
        room.give_back(1000);
        assert!(room.take(100));
    }
}
