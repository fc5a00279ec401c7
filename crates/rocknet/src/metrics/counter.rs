//! A counter that one worker changes while other threads read it.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that one thread changes and any thread may read.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `more`. Only the thread that owns the counter may call this: it is a plain load and store without a lock
    /// prefix.
    #[inline]
    pub fn add(&self, more: u64) {
        self.0
            .store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    /// Subtracts `less`, which the same thread has added before.
    pub fn subtract(&self, less: u64) {
        self.0
            .store(self.0.load(Ordering::Relaxed).wrapping_sub(less), Ordering::Relaxed);
    }

    /// Returns the value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
