//! The memory that entries take in the tables of the cache.

use super::eviction_queue::QUEUED_BYTES;
use crate::entry::Entry;

/// Bytes of a slot in the table of entries: a key with its state. The owner checks it when it is compiled.
pub(super) const ENTRY_BYTES: usize = 160;

/// Memory that an entry under `path` takes, with its path and its places in the tables of the cache.
pub fn weight(path: &str, entry: &Entry) -> u64 {
    // A table that has just grown is half empty. Counts of references stand before the path.
    const TABLES: usize = 2 * ENTRY_BYTES + 2 * QUEUED_BYTES + 2 * size_of::<usize>();
    (TABLES + path.len()) as u64 + entry.size()
}
