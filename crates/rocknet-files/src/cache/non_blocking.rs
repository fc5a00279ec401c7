//! Non-blocking lookups on a worker, with data that is in the page cache or that the event loop can read ahead.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rocknet_config::model::Priority;
use rocknet_io::read_ahead::ReadAhead;

use crate::disk_lookup::{DiskLookup, PendingRead};
use crate::entry::{Entry, Found};
use crate::load::load;
use crate::tree::Tree;
use rocknet_handler::clock::uptime_ms;

/// Maximum number of read-ahead rounds per lookup before a thread of the blocking pool takes over. A lookup can need a
/// round for each path that it tries, and one for the content.
const MAX_ROUNDS: usize = 16;
/// Maximum number of lookups of all workers that wait for a read-ahead. Each lookup can keep a few files open. Without
/// a limit, a disk that hangs would use up the descriptors that connections need. Further lookups wait for a thread of
/// the pool.
const MAX_LOOKUPS: usize = 128;

/// Limits the waiting lookups of one cache.
#[derive(Clone, Default)]
pub(super) struct LookupLimit(Arc<AtomicUsize>);

/// Permit for one waiting lookup.
struct LookupPermit<'l>(&'l LookupLimit);

impl LookupLimit {
    fn take(&self) -> Option<LookupPermit<'_>> {
        let more = |count| (count < MAX_LOOKUPS).then_some(count + 1);
        self.0
            .fetch_update(Relaxed, Relaxed, more)
            .ok()
            .map(|_| LookupPermit(self))
    }
}

impl Drop for LookupPermit<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Relaxed);
    }
}

/// Looks up a path without another thread; `None` if that is impossible. Concurrent lookups of one path repeat the
/// work, but the kernel reads the data only once.
pub(super) async fn look_up(limit: &LookupLimit, tree: &Tree, path: &str) -> Option<Arc<Entry>> {
    let mut pending = match try_load(tree, path) {
        Ok(entry) => return Some(entry),
        Err(pending) => pending,
    };
    let _permit = limit.take()?;
    for _ in 0..MAX_ROUNDS {
        // Low-priority lookups use the pool, which runs jobs of higher priority first.
        if tree.route.priority == Priority::Low {
            return None;
        }
        // Starts all read-aheads before it waits for the first. `None` if one of them is impossible.
        let read_aheads: Option<Vec<ReadAhead>> = pending.iter().map(PendingRead::read_ahead).collect();
        for read_ahead in read_aheads? {
            read_ahead.await;
        }
        match try_load(tree, path) {
            Ok(entry) => return Some(entry),
            Err(now)
                if now
                    .iter()
                    .any(|now| pending.iter().any(|before| now.is_same_as(before))) =>
            {
                // The data was read ahead and is still not in memory, so another round would not help.
                return None;
            }
            Err(now) => pending = now,
        }
    }
    None
}

/// Loads an entry without blocking.
///
/// # Errors
///
/// Returns the data that has to be read from the disk first.
fn try_load(tree: &Tree, path: &str) -> Result<Arc<Entry>, Vec<PendingRead>> {
    let entry = DiskLookup::non_blocking(|lookup| load(lookup, tree, path, None))?;
    // Without a previous entry, `load` always returns a new one.
    let entry = entry.ok_or_else(|| vec![PendingRead::Unavailable])?;
    Ok(Arc::new(entry))
}

/// Returns true if a non-blocking lookup of `path` still leads to `entry`, or a shortage of resources prevents the
/// check. The entry is then marked as checked. Returns false if the lookup has another result or would block.
pub fn is_unchanged(entry: &Entry, tree: &Tree, path: &str) -> bool {
    let now = uptime_ms();
    let is_same = match DiskLookup::non_blocking(|lookup| load(lookup, tree, path, Some(entry))) {
        // Either the entry is unchanged, or a shortage of resources prevents the check.
        Ok(None) => true,
        Ok(Some(found)) => found.is_same(entry),
        Err(_) => false,
    };
    if is_same {
        entry.mark_checked(now);
    }
    is_same
}

/// Returns true for an error that may be gone by the next request, such as a shortage of descriptors.
pub(super) fn is_transient(entry: &Entry) -> bool {
    matches!(&entry.found, Found::Failed(status) if status.code() >= 500)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_lookups_are_bounded_and_permits_are_released() {
        let limit = LookupLimit::default();
        let permits: Vec<LookupPermit<'_>> = std::iter::from_fn(|| limit.take()).collect();
        assert_eq!(permits.len(), MAX_LOOKUPS);
        drop(permits);
        assert!(limit.take().is_some());
    }
}
