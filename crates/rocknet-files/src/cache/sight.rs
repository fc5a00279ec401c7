//! What a worker sees by itself of the disk: what the kernel has in memory, and what the worker's loop can bring there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rocknet_config::model::Priority;
use rocknet_io::read_ahead::ReadAhead;

use crate::entry::{Entry, Found};
use crate::load::load;
use crate::look::{Look, Missing};
use crate::tree::Tree;
use rocknet_handler::clock::uptime_ms;

/// How often something may be brought for a look before it is left to a thread: for each path to be tried, and then for the
/// content.
const MOST_ROUNDS: usize = 16;
/// Looks of all workers that wait at once for what is brought, each of which may hold a few files open meanwhile: a disk that
/// hangs must not take the descriptors of connections. Beyond, looks wait for a thread.
const MOST_LOOKS: usize = 128;

/// The looks of one cache that wait.
#[derive(Clone, Default)]
pub(super) struct Looks(Arc<AtomicUsize>);

/// One of these looks.
struct Turn<'l>(&'l Looks);

impl Looks {
    fn take(&self) -> Option<Turn<'_>> {
        let more = |looks| (looks < MOST_LOOKS).then_some(looks + 1);
        self.0.fetch_update(Relaxed, Relaxed, more).ok().map(|_| Turn(self))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Relaxed);
    }
}

/// What a path leads to, if that can be told without a thread. Others who ask for the same at the same time do the same: the
/// kernel reads it once.
pub(super) async fn see(looks: &Looks, tree: &Tree, path: &str) -> Option<Arc<Entry>> {
    let mut missing = match from_memory(tree, path) {
        Ok(entry) => return Some(entry),
        Err(missing) => missing,
    };
    let _turn = looks.take()?;
    for _ in 0..MOST_ROUNDS {
        // In the pool, others go before what has low priority.
        if tree.route.priority == Priority::Low {
            return None;
        }
        // All of it at the same time: what is brought is under way from here on.
        let under_way: Option<Vec<ReadAhead>> = missing.iter().map(Missing::bring).collect();
        for ahead in under_way? {
            ahead.await;
        }
        match from_memory(tree, path) {
            Ok(entry) => return Some(entry),
            Err(now) if now.iter().any(|now| missing.iter().any(|before| now.is_still(before))) => return None,
            Err(now) => missing = now,
        }
    }
    None
}

fn from_memory(tree: &Tree, path: &str) -> Result<Arc<Entry>, Vec<Missing>> {
    let entry = Look::from_memory(|look| load(look, tree, path, None))?;
    // There is nothing that it could be the same as.
    let entry = entry.ok_or_else(|| vec![Missing::Else])?;
    Ok(Arc::new(entry))
}

/// Whether `entry` still is what the path leads to, as far as the kernel can tell from memory. It then counts as looked at.
pub fn still_holds(entry: &Entry, tree: &Tree, path: &str) -> bool {
    let now = uptime_ms();
    let holds = match Look::from_memory(|look| load(look, tree, path, Some(entry))) {
        Ok(None) => true,
        Ok(Some(found)) => found.is_same(entry),
        Err(_) => false,
    };
    if holds {
        entry.looked_at(now);
    }
    holds
}

/// Whether it says nothing of the next request: a shortage may be over by then.
pub(super) fn is_passing(entry: &Entry) -> bool {
    matches!(&entry.found, Found::Failed(status) if status.code() >= 500)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_that_wait_are_bounded_and_leave_their_room_to_others() {
        let looks = Looks::default();
        let turns: Vec<Turn<'_>> = std::iter::from_fn(|| looks.take()).collect();
        assert_eq!(turns.len(), MOST_LOOKS);
        drop(turns);
        assert!(looks.take().is_some());
    }
}
