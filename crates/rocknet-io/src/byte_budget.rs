//! Bounds the bytes in a queue that several threads share: counted by those that put something in and those that take it out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Clones share the same count.
#[derive(Clone)]
pub struct ByteBudget {
    used: Arc<AtomicU64>,
    limit: u64,
}

impl ByteBudget {
    pub fn new(limit: u64) -> ByteBudget {
        ByteBudget {
            used: Arc::default(),
            limit,
        }
    }

    /// Reserves `bytes`; false if that is too much. An empty queue takes anything, because otherwise an item larger than the
    /// whole budget could never pass.
    #[must_use]
    pub fn try_reserve(&self, bytes: u64) -> bool {
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        let fits = before == 0 || before.saturating_add(bytes) <= self.limit;
        if !fits {
            self.release(bytes);
        }
        fits
    }

    pub fn release(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_bounded_and_one_large_thing_passes() {
        let budget = ByteBudget::new(100);
        assert!(budget.try_reserve(60) && budget.try_reserve(40));
        assert!(!budget.try_reserve(1), "all is taken");
        budget.release(60);
        assert!(budget.try_reserve(60) && !budget.try_reserve(1));
        budget.release(100);
        assert!(budget.try_reserve(1000), "nothing else is there");
        assert!(!budget.try_reserve(1));
        budget.release(1000);
        assert!(budget.try_reserve(100));
    }
}
