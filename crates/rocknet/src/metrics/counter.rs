//! A counter that one worker changes while other threads read it.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that one thread changes and any thread can read.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `more`. Must not be called by two threads at the same time: the addition is a load and a store without a
    /// lock prefix, so that an update could be lost.
    #[inline]
    pub fn add(&self, more: u64) {
        self.0
            .store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    /// Subtracts `less`, which the same thread has added earlier.
    pub fn subtract(&self, less: u64) {
        self.0
            .store(self.0.load(Ordering::Relaxed).wrapping_sub(less), Ordering::Relaxed);
    }

    /// Returns the value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
