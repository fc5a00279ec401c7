//! Limits the bytes in a queue shared by several threads: producers reserve them, and consumers release them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A limited counter of bytes. Clones share the counter.
#[derive(Clone)]
pub struct ByteBudget {
    /// Number of bytes reserved now.
    used: Arc<AtomicU64>,
    /// Maximum number of bytes reserved at the same time.
    limit: u64,
}

impl ByteBudget {
    /// Creates a budget of `limit` bytes.
    pub fn new(limit: u64) -> ByteBudget {
        ByteBudget {
            used: Arc::default(),
            limit,
        }
    }

    /// Reserves `bytes` and returns true, or returns false if the limit would be exceeded. While no bytes are reserved,
    /// any number is accepted, because otherwise an item larger than the limit could never pass. A refused call counts
    /// its bytes for a moment, so a concurrent call may return false although its bytes would fit.
    #[must_use]
    pub fn try_reserve(&self, bytes: u64) -> bool {
        // `Relaxed` is enough, because the counter protects no other memory.
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        let fits = before == 0 || before.saturating_add(bytes) <= self.limit;
        if !fits {
            self.release(bytes);
        }
        fits
    }

    /// Releases `bytes` that were reserved.
    pub fn release(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_limited_and_one_large_item_passes() {
        let budget = ByteBudget::new(100);
        assert!(budget.try_reserve(60) && budget.try_reserve(40));
        assert!(!budget.try_reserve(1), "the whole budget is reserved");
        budget.release(60);
        assert!(budget.try_reserve(60) && !budget.try_reserve(1));
        budget.release(100);
        assert!(budget.try_reserve(1000), "an empty queue accepts an item of any size");
        assert!(!budget.try_reserve(1));
        budget.release(1000);
        assert!(budget.try_reserve(100));
    }
}
