//! Counts the requests in progress of each key, such as a client, for all workers together.
//!
//! A key has an entry only while it has requests, so the number of requests in progress bounds the table.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashTable;

/// Number of shards, which are locked separately.
const SHARDS: usize = 16;

/// Number of entries for which an empty shard keeps memory.
const MAX_IDLE: usize = 64;

/// Requests in progress of one limit. Named after `limit.connections` of the configuration, which limits requests.
#[derive(Debug, Default)]
pub struct ConnectionTable {
    shards: [ConnectionShard; SHARDS],
}

/// Part of the table with a lock of its own. Its cache line is not shared with other shards.
#[derive(Debug, Default)]
#[repr(align(64))]
struct ConnectionShard(Mutex<HashTable<Entry>>);

/// A key with requests in progress.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Hash of the key with a secret seed. The table needs no further hash.
    key: u64,
    count: u32,
}

/// A request in progress. It is counted until the value is dropped.
#[derive(Debug)]
pub struct ConnectionPermit {
    table: Arc<ConnectionTable>,
    key: u64,
}

impl ConnectionTable {
    /// Counts a request; `None` if its key has `max` requests in progress. `key`: hash of the key with a secret seed.
    pub fn take(self: &Arc<Self>, key: u64, max: u32) -> Option<ConnectionPermit> {
        let mut shard = self.shard(key);
        match shard.find_mut(key, |entry| entry.key == key) {
            Some(entry) if entry.count >= max => return None,
            Some(entry) => entry.count += 1,
            None if max == 0 => return None,
            None => {
                shard.insert_unique(key, Entry { key, count: 1 }, |entry| entry.key);
            }
        }
        Some(ConnectionPermit {
            table: Arc::clone(self),
            key,
        })
    }

    /// Returns true if a key has fewer than `max` requests in progress. Called instead of [`Self::take`] for a request
    /// whose response is so small that the send buffer of the socket usually takes it whole. Such a request ends
    /// immediately, so it needs no permit.
    #[inline]
    pub fn has_room(&self, key: u64, max: u32) -> bool {
        self.of_key(key) < max
    }

    /// Returns the number of requests of a key in progress.
    #[inline]
    pub fn of_key(&self, key: u64) -> u32 {
        let shard = self.shard(key);
        shard.find(key, |entry| entry.key == key).map_or(0, |entry| entry.count)
    }

    /// Returns the number of requests in progress.
    pub fn in_progress(&self) -> u64 {
        let sum = |shard: &ConnectionShard| lock(shard).iter().map(|entry| u64::from(entry.count)).sum::<u64>();
        self.shards.iter().map(sum).sum()
    }

    fn shard(&self, key: u64) -> MutexGuard<'_, HashTable<Entry>> {
        lock(&self.shards[(key >> 32) as usize % SHARDS])
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut shard = self.table.shard(self.key);
        if let Ok(mut occupied) = shard.find_entry(self.key, |entry| entry.key == self.key) {
            occupied.get_mut().count -= 1;
            if occupied.get().count == 0 {
                occupied.remove();
            }
        }
        // Otherwise the table would keep its memory after a flood.
        if shard.is_empty() && shard.capacity() > MAX_IDLE {
            shard.shrink_to(0, |entry| entry.key);
        }
    }
}

fn lock(shard: &ConnectionShard) -> MutexGuard<'_, HashTable<Entry>> {
    shard.0.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_until_they_end() {
        let table: Arc<ConnectionTable> = Arc::default();
        let first = table.take(7, 2).unwrap();
        let second = table.take(7, 2).unwrap();
        assert!(table.take(7, 2).is_none());
        let other = table.take(8, 2).unwrap();
        assert_eq!(table.in_progress(), 3);
        drop(first);
        let third = table.take(7, 2).unwrap();
        assert!(table.take(7, 2).is_none());
        // A lower limit applies to new requests.
        drop(second);
        assert!(table.take(7, 1).is_none());
        assert!(!table.has_room(7, 1) && table.has_room(7, 2) && table.has_room(9, 1));
        drop((third, other));
        assert_eq!(table.in_progress(), 0);
        assert!(table.shards.iter().all(|shard| lock(shard).is_empty()));
    }

    #[test]
    fn threads_share_the_numbers() {
        let table: Arc<ConnectionTable> = Arc::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for key in (0..1_000).map(|number| number % 10) {
                        let permit = table.take(key, 3);
                        assert!(table.in_progress() <= 30);
                        drop(permit);
                    }
                });
            }
        });
        assert_eq!(table.in_progress(), 0);
    }
}
