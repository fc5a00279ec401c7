//! The eviction queues of the cache, one for each bound: total bytes and entries, open files, bytes of fallbacks, and
//! bytes of missing paths.

use super::eviction_queue::{EvictionQueue, Position};
use super::key::{Key, MAX_ENTRIES};
use super::weight::weight;
use crate::entry::Entry;
use crate::entry_kind::EntryKind;

/// A bound of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    /// Bytes of fallbacks ([`EntryKind::Fallback`]).
    Fallbacks,
    /// Bytes of missing paths ([`EntryKind::Missing`]).
    Missing,
    /// Number of open files.
    OpenFiles,
    /// Bytes and number of all entries.
    Total,
}

impl Bound {
    /// All bounds in the order of eviction. The total comes last, so that a kind that exceeds its own bound is reduced
    /// first and does not evict entries of other kinds.
    pub const EACH: [Bound; 4] = [Bound::Fallbacks, Bound::Missing, Bound::OpenFiles, Bound::Total];
}

/// Positions of one entry in the queues, indexed by [`Bound`]; `None` for a bound that does not count the entry.
pub(super) type Positions = [Option<Position>; Bound::EACH.len()];

/// The eviction queues of all bounds, indexed by [`Bound`].
pub(super) struct EvictionQueues([EvictionQueue; Bound::EACH.len()]);

impl EvictionQueues {
    /// Creates empty queues for `memory` bytes of all entries and `files` open files.
    pub fn new(memory: u64, files: u64) -> EvictionQueues {
        EvictionQueues(Bound::EACH.map(|bound| match bound {
            Bound::Fallbacks => EvictionQueue::new(EntryKind::Fallback.limit(memory)),
            Bound::Missing => EvictionQueue::new(EntryKind::Missing.limit(memory)),
            Bound::OpenFiles => EvictionQueue::new(files),
            Bound::Total => EvictionQueue::with_max_len(memory, MAX_ENTRIES),
        }))
    }

    /// Sets the maximum size of all entries in bytes. The caller evicts entries afterwards.
    pub fn set_memory(&mut self, memory: u64) {
        self.of_mut(Bound::Fallbacks)
            .set_limit(EntryKind::Fallback.limit(memory));
        self.of_mut(Bound::Missing).set_limit(EntryKind::Missing.limit(memory));
        self.of_mut(Bound::Total).set_limit(memory);
    }

    pub fn of(&self, bound: Bound) -> &EvictionQueue {
        &self.0[bound as usize]
    }

    pub fn of_mut(&mut self, bound: Bound) -> &mut EvictionQueue {
        &mut self.0[bound as usize]
    }

    /// Adds an entry to each queue whose bound applies to it. `now` is the uptime in milliseconds.
    pub fn push(&mut self, key: &Key, entry: &Entry, now: u64) -> Positions {
        // The second part of a key is the path.
        let (bytes, files, kind) = (weight(&key.1, entry), entry.descriptors(), entry.kind());
        Bound::EACH.map(|bound| {
            let share = match bound {
                Bound::Fallbacks if kind == EntryKind::Fallback => bytes,
                Bound::Missing if kind == EntryKind::Missing => bytes,
                Bound::OpenFiles if files > 0 => files,
                Bound::Total => bytes,
                _ => return None,
            };
            Some(self.of_mut(bound).push(key.clone(), now, share))
        })
    }

    pub fn remove(&mut self, positions: &Positions) {
        for (queue, position) in self.0.iter_mut().zip(positions) {
            if let Some(position) = position {
                queue.remove(*position);
            }
        }
    }

    /// Adds `bytes` to the share of an entry in each bound that counts bytes.
    pub fn grow(&mut self, positions: &Positions, bytes: u64) {
        for bound in [Bound::Fallbacks, Bound::Missing, Bound::Total] {
            if let Some(position) = positions[bound as usize] {
                self.of_mut(bound).grow(position, bytes);
            }
        }
    }
}
