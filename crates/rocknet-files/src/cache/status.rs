//! Statistics of the cache, written by the cache thread and the workers.

use std::sync::atomic::{AtomicU64, Ordering};

/// Statistics of the cache.
#[derive(Debug, Default)]
pub struct CacheStatus {
    /// Number of entries.
    pub entries: AtomicU64,
    /// Bytes of all entries, with their paths and tables.
    pub bytes: AtomicU64,
    /// Number of open files.
    pub files: AtomicU64,
    /// Number of lookups that the first level of a worker could not serve.
    pub misses: AtomicU64,
}

impl CacheStatus {
    /// Counts a lookup that the first level could not serve.
    pub fn count_miss(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }
}
