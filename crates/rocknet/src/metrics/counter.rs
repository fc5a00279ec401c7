//! A number that a worker counts, and that is read while it does.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that one thread changes and any thread may read.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Only ever called by the thread that owns the counter: a plain load and store, no locked instruction.
    #[inline]
    pub fn add(&self, more: u64) {
        self.0
            .store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    /// Less than was counted before, by the same thread.
    pub fn subtract(&self, less: u64) {
        self.0
            .store(self.0.load(Ordering::Relaxed).wrapping_sub(less), Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
