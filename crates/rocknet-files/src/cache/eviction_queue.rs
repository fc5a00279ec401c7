//! The eviction queue for one limit (bytes or open files): stored entries in order of insertion, each with its share of
//! the limit.

use std::collections::BTreeMap;

use super::key::Key;

/// Entries that share a limit, oldest first.
///
/// The entries are in a map by position, so that any entry can be removed. In an ordinary queue, the keys of removed
/// entries would remain, and with paths of 8 KiB these keys would use more memory than the entries.
pub(super) struct EvictionQueue {
    queue: BTreeMap<Position, QueuedEntry>,
    next: Position,
    /// Sum of all shares.
    used: u64,
    /// Maximum of `used`.
    limit: u64,
    /// Maximum number of entries.
    max_len: usize,
}

/// Identifies a queued entry. Positions have 64 bits, so each is used only once.
pub(super) type Position = u64;

pub(super) struct QueuedEntry {
    pub key: Key,
    /// Uptime at which the entry was queued, in milliseconds.
    pub since: u64,
    /// Bytes or open files that the entry counts against the limit.
    pub share: u64,
}

/// Memory of a queued entry in bytes, given that the nodes of the map are at least half full.
pub(super) const QUEUED_BYTES: usize = 2 * (size_of::<Position>() + size_of::<QueuedEntry>());

impl EvictionQueue {
    pub fn new(limit: u64) -> EvictionQueue {
        EvictionQueue::with_max_len(limit, usize::MAX)
    }

    /// Like [`EvictionQueue::new`], and also limits the number of entries.
    pub fn with_max_len(limit: u64, max_len: usize) -> EvictionQueue {
        EvictionQueue {
            queue: BTreeMap::new(),
            next: 0,
            used: 0,
            limit,
            max_len,
        }
    }

    pub fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    pub fn push(&mut self, key: Key, since: u64, share: u64) -> Position {
        let position = self.next;
        self.next += 1;
        self.used += share;
        self.queue.insert(position, QueuedEntry { key, since, share });
        position
    }

    /// Removes and returns the oldest entry; `None` if the queue is empty.
    pub fn pop(&mut self) -> Option<QueuedEntry> {
        let (_, queued) = self.queue.pop_first()?;
        self.used -= queued.share;
        Some(queued)
    }

    pub fn remove(&mut self, position: Position) {
        if let Some(queued) = self.queue.remove(&position) {
            self.used -= queued.share;
        }
    }

    /// Adds to the share of an entry.
    pub fn grow(&mut self, position: Position, more: u64) {
        if let Some(queued) = self.queue.get_mut(&position) {
            queued.share += more;
            self.used += more;
        }
    }

    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns the sum of all shares.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Returns true if the shares exceed the limit, or the number of entries its maximum.
    pub fn is_over(&self) -> bool {
        self.used > self.limit || self.queue.len() > self.max_len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(tree: u32) -> Key {
        (tree, "/".into())
    }

    #[test]
    fn shares_are_counted_and_removed_entries_leave_nothing_behind() {
        let mut queue = EvictionQueue::with_max_len(100, 3);
        let positions: Vec<Position> = (0..3).map(|n| queue.push(key(n), u64::from(n), 30)).collect();
        assert_eq!((queue.used(), queue.len(), queue.is_over()), (90, 3, false));
        queue.grow(positions[1], 10);
        assert!(!queue.is_over(), "the limit is exactly met");
        queue.grow(positions[1], 1);
        assert!(queue.is_over());
        queue.remove(positions[1]);
        queue.remove(positions[1]);
        assert_eq!((queue.used(), queue.len()), (60, 2));
        queue.push(key(3), 3, 0);
        assert!(!queue.is_over(), "the maximum number of entries is exactly met");
        queue.push(key(4), 4, 0);
        assert!(queue.is_over(), "one entry too many");
        let keys: Vec<u32> = std::iter::from_fn(|| queue.pop()).map(|queued| queued.key.0).collect();
        assert_eq!(keys, [0, 2, 3, 4]);
        assert_eq!(queue.used(), 0);
    }
}
