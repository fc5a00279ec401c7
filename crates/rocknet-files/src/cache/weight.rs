//! Computes the memory of entries, with their share of the cache's tables.

use super::eviction_queue::QUEUED_BYTES;
use crate::entry::Entry;

/// Size in bytes of a slot in the table of entries: a key with its state. `thread.rs` checks the size at compile time.
pub(super) const ENTRY_BYTES: usize = 160;

/// Returns the memory of an entry under `path` in bytes, with its path and its slots in the tables of the cache.
pub fn weight(path: &str, entry: &Entry) -> u64 {
    // The slot counts twice, because a table that has just grown is half empty. Most entries are in one or two eviction
    // queues. Two reference counts precede the path.
    const TABLES: usize = 2 * ENTRY_BYTES + 2 * QUEUED_BYTES + 2 * size_of::<usize>();
    (TABLES + path.len()) as u64 + entry.size()
}
