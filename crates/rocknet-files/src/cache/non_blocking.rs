//! Non-blocking lookups on a worker: from the page cache, and from what the event loop can read ahead.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rocknet_config::model::Priority;
use rocknet_io::read_ahead::ReadAhead;

use crate::disk_lookup::{DiskLookup, PendingRead};
use crate::entry::{Entry, Found};
use crate::load::load;
use crate::tree::Tree;
use rocknet_handler::clock::uptime_ms;

/// Maximum number of read-aheads per lookup before a thread takes over: for each path to be tried, and then for the
/// content.
const MAX_ROUNDS: usize = 16;
/// Maximum number of lookups of all workers that wait for a read-ahead. Each may hold a few open files, and a disk that
/// hangs must not take the descriptors of connections. Further lookups wait for a thread.
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

/// Looks up a path without a thread; `None` if that is not possible. Concurrent lookups of one path do the same work,
/// but the kernel reads the data once.
pub(super) async fn look_up(limit: &LookupLimit, tree: &Tree, path: &str) -> Option<Arc<Entry>> {
    let mut pending = match try_load(tree, path) {
        Ok(entry) => return Some(entry),
        Err(pending) => pending,
    };
    let _permit = limit.take()?;
    for _ in 0..MAX_ROUNDS {
        // Low-priority lookups use the pool, where others are served first.
        if tree.route.priority == Priority::Low {
            return None;
        }
        // Starts all read-aheads before it waits for the first one.
        let under_way: Option<Vec<ReadAhead>> = pending.iter().map(PendingRead::read_ahead).collect();
        for ahead in under_way? {
            ahead.await;
        }
        match try_load(tree, path) {
            Ok(entry) => return Some(entry),
            Err(now)
                if now
                    .iter()
                    .any(|now| pending.iter().any(|before| now.is_same_as(before))) =>
            {
                return None;
            }
            Err(now) => pending = now,
        }
    }
    None
}

fn try_load(tree: &Tree, path: &str) -> Result<Arc<Entry>, Vec<PendingRead>> {
    let entry = DiskLookup::non_blocking(|lookup| load(lookup, tree, path, None))?;
    // Without a previous entry, there is always a new one.
    let entry = entry.ok_or_else(|| vec![PendingRead::Unavailable])?;
    Ok(Arc::new(entry))
}

/// Returns true if `path` still leads to `entry`, as far as that can be determined without blocking. The entry then
/// counts as checked.
pub fn is_unchanged(entry: &Entry, tree: &Tree, path: &str) -> bool {
    let now = uptime_ms();
    let holds = match DiskLookup::non_blocking(|lookup| load(lookup, tree, path, Some(entry))) {
        Ok(None) => true,
        Ok(Some(found)) => found.is_same(entry),
        Err(_) => false,
    };
    if holds {
        entry.mark_checked(now);
    }
    holds
}

/// Returns true for an error that may have passed by the next request, such as a shortage of descriptors.
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
