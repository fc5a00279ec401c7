//! All bounds that the kept entries share: bytes and number of all, open files, and the bytes of kinds that clients choose.

use super::eviction_queue::{EvictionQueue, Position};
use super::key::{Key, MAX_ENTRIES};
use super::weight::weight;
use crate::entry::Entry;
use crate::entry_kind::EntryKind;

/// Names a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    Fallbacks,
    Missing,
    OpenFiles,
    Total,
}

impl Bound {
    /// All after the kinds: what these give back is not taken from others.
    pub const EACH: [Bound; 4] = [Bound::Fallbacks, Bound::Missing, Bound::OpenFiles, Bound::Total];
}

/// The places of one entry.
pub(super) type Positions = [Option<Position>; Bound::EACH.len()];

pub(super) struct EvictionQueues([EvictionQueue; Bound::EACH.len()]);

impl EvictionQueues {
    pub fn new(memory: u64, files: u64) -> EvictionQueues {
        EvictionQueues(Bound::EACH.map(|bound| match bound {
            Bound::Fallbacks => EvictionQueue::new(EntryKind::Fallback.limit(memory)),
            Bound::Missing => EvictionQueue::new(EntryKind::Missing.limit(memory)),
            Bound::OpenFiles => EvictionQueue::new(files),
            Bound::Total => EvictionQueue::with_max_len(memory.max(1), MAX_ENTRIES),
        }))
    }

    pub fn set_memory(&mut self, memory: u64) {
        self.of_mut(Bound::Fallbacks)
            .set_limit(EntryKind::Fallback.limit(memory));
        self.of_mut(Bound::Missing).set_limit(EntryKind::Missing.limit(memory));
        self.of_mut(Bound::Total).set_limit(memory.max(1));
    }

    pub fn of(&self, bound: Bound) -> &EvictionQueue {
        &self.0[bound as usize]
    }

    pub fn of_mut(&mut self, bound: Bound) -> &mut EvictionQueue {
        &mut self.0[bound as usize]
    }

    /// Puts an entry into each order that counts it.
    pub fn push(&mut self, key: &Key, entry: &Entry, now: u64) -> Positions {
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

    /// Adds bytes to an entry.
    pub fn grow(&mut self, positions: &Positions, bytes: u64) {
        for bound in [Bound::Fallbacks, Bound::Missing, Bound::Total] {
            if let Some(position) = positions[bound as usize] {
                self.of_mut(bound).grow(position, bytes);
            }
        }
    }
}
