//! Counters of the log.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the start of the server.
#[derive(Debug, Default)]
pub(super) struct Stats {
    /// Responses that were read.
    pub hits: AtomicU64,
    /// Responses that were appended.
    pub written: AtomicU64,
    /// Writes, each of several records.
    pub writes: AtomicU64,
    /// Responses in memory that were not appended.
    pub skipped: AtomicU64,
    /// Reads that were not started or were given up, because the disk was busy or no memory was free.
    pub busy: AtomicU64,
    /// Failed reads and writes, and damaged records.
    pub errors: AtomicU64,
    /// Responses that were dropped because their site has exceeded its quota.
    pub trimmed: AtomicU64,
    /// Segments with an incomplete end.
    pub torn: AtomicU64,
    /// Responses that were appended again when their segment was dropped.
    pub kept: AtomicU64,
    /// Size of all segments in bytes.
    pub size: AtomicU64,
}

impl Stats {
    /// Counts an error, and logs it if the number of errors is 1, 2, 4, 8 and so on.
    pub fn fail(&self, message: &str) {
        let count = self.errors.fetch_add(1, Ordering::Relaxed) + 1;
        // The number of lines stays small if a disk fails often.
        if count.is_power_of_two() {
            tracing::warn!("response cache on disk: {message} ({count} errors so far)");
        }
    }
}
