//! The stored entries: added, removed, and evicted beyond the limits of the cache.

use std::sync::Arc;

use rocknet_handler::clock::uptime_ms;

use super::{CacheThread, StoredEntry};
use crate::cache::eviction::Bound;
use crate::cache::eviction_queue::QueuedEntry;
use crate::cache::key::Key;
use crate::entry::Entry;

/// Minimum of the number of entries that the table is considered to need. It is higher than the number of entries if
/// there are few, so that a small table is never shrunk.
pub(super) const MIN_NEEDED: usize = 1024;

impl CacheThread {
    pub(super) fn store(&mut self, key: &Key, entry: &Arc<Entry>) {
        let stored = StoredEntry {
            entry: Arc::clone(entry),
            positions: self.queues.push(key, entry, uptime_ms()),
        };
        self.entries.entry(key.clone()).or_default().stored = Some(stored);
    }

    pub(super) fn remove(&mut self, key: &Key) {
        let state = self.entries.remove(key);
        if let Some(stored) = state.and_then(|state| state.stored) {
            stored.entry.retire();
            self.queues.remove(&stored.positions);
        }
        // After a flood of requests, the table may have room for more than 8 times as many entries as needed. It is
        // then shrunk, but keeps room for at least twice as many as needed.
        let needed = self.entries.len().max(MIN_NEEDED);
        if self.entries.capacity() > 8 * needed {
            self.entries.shrink_to(2 * needed);
        }
    }

    pub(super) fn evict(&mut self) {
        for bound in Bound::EACH {
            self.evict_from(bound);
        }
    }

    /// Evicts by the second-chance algorithm: the oldest entry is removed unless it was used since it was queued. An
    /// entry that a job is loading again is kept, because removing it would drop the requests that wait for the job.
    fn evict_from(&mut self, bound: Bound) {
        // Number of entries that may still be queued again: initially all. At 0, used entries are removed too.
        let mut chances = self.queues.of(bound).len();
        while self.queues.of(bound).is_over() {
            let Some(QueuedEntry { key, since, share }) = self.queues.of_mut(bound).pop() else {
                return;
            };
            let state = self.entries.get_mut(&key);
            let Some((stored, is_loading)) =
                state.and_then(|state| Some((state.stored.as_mut()?, state.loading.is_some())))
            else {
                continue;
            };
            let used = stored.entry.used_ms() > since;
            if !is_loading && (!used || chances == 0) {
                self.remove(&key);
                continue;
            }
            // Queues the entry again even if no chances are left, because an entry without a position is never evicted.
            let position = self.queues.of_mut(bound).push(key, uptime_ms(), share);
            stored.positions[bound as usize] = Some(position);
            if chances == 0 {
                return;
            }
            chances -= 1;
        }
    }
}
