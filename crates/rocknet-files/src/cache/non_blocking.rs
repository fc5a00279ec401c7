//! What a worker sees by itself of the disk: what the kernel has in memory, and what the worker's loop can bring there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rocknet_config::model::Priority;
use rocknet_io::read_ahead::ReadAhead;

use crate::disk_lookup::{DiskLookup, PendingRead};
use crate::entry::{Entry, Found};
use crate::load::load;
use crate::tree::Tree;
use rocknet_handler::clock::uptime_ms;

/// How often something may be brought for a look before it is left to a thread: for each path to be tried, and then for the
/// content.
const MAX_ROUNDS: usize = 16;
/// LookupLimit of all workers that wait at once for what is brought, each of which may hold a few files open meanwhile: a disk that
/// hangs must not take the descriptors of connections. Beyond, looks wait for a thread.
const MAX_LOOKUPS: usize = 128;

/// The looks of one cache that wait.
#[derive(Clone, Default)]
pub(super) struct LookupLimit(Arc<AtomicUsize>);

/// One of these looks.
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

/// What a path leads to, if that can be told without a thread. Others who ask for the same at the same time do the same: the
/// kernel reads it once.
pub(super) async fn look_up(limit: &LookupLimit, tree: &Tree, path: &str) -> Option<Arc<Entry>> {
    let mut pending = match try_load(tree, path) {
        Ok(entry) => return Some(entry),
        Err(pending) => pending,
    };
    let _permit = limit.take()?;
    for _ in 0..MAX_ROUNDS {
        // In the pool, others go before what has low priority.
        if tree.route.priority == Priority::Low {
            return None;
        }
        // All of it at the same time: what is brought is under way from here on.
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
    // There is nothing that it could be the same as.
    let entry = entry.ok_or_else(|| vec![PendingRead::Unavailable])?;
    Ok(Arc::new(entry))
}

/// Whether `entry` still is what the path leads to, as far as the kernel can tell from memory. It then counts as looked at.
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

/// Whether it says nothing of the next request: a shortage may be over by then.
pub(super) fn is_transient(entry: &Entry) -> bool {
    matches!(&entry.found, Found::Failed(status) if status.code() >= 500)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_that_wait_are_bounded_and_leave_their_room_to_others() {
        let limit = LookupLimit::default();
        let permits: Vec<LookupPermit<'_>> = std::iter::from_fn(|| limit.take()).collect();
        assert_eq!(permits.len(), MAX_LOOKUPS);
        drop(permits);
        assert!(limit.take().is_some());
    }
}
