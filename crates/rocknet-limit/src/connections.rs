//! Numbers of requests in progress by key, which all workers share.
//!
//! A key has an entry only while it has requests, so the number of requests in progress bounds the table.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of shards, which are locked separately.
const SHARDS: usize = 16;

/// Number of entries for which an empty shard keeps memory.
const MAX_IDLE: usize = 64;

/// Requests in progress of one limit. Named after `limit.connections` of the configuration, which limits requests.
#[derive(Debug, Default)]
pub struct ConnectionTable {
    shards: [Mutex<HashMap<u64, u32>>; SHARDS],
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
        let count = shard.entry(key).or_insert(0);
        if *count >= max {
            // An entry of 0 requests is left only by `max = 0`.
            return None;
        }
        *count += 1;
        Some(ConnectionPermit {
            table: Arc::clone(self),
            key,
        })
    }

    /// Returns the number of requests of a key in progress.
    pub fn of_key(&self, key: u64) -> u32 {
        self.shard(key).get(&key).copied().unwrap_or(0)
    }

    /// Returns the number of requests in progress.
    pub fn in_progress(&self) -> u64 {
        let sum = |shard: &Mutex<HashMap<u64, u32>>| lock(shard).values().copied().map(u64::from).sum::<u64>();
        self.shards.iter().map(sum).sum()
    }

    fn shard(&self, key: u64) -> MutexGuard<'_, HashMap<u64, u32>> {
        lock(&self.shards[(key >> 32) as usize % SHARDS])
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut shard = self.table.shard(self.key);
        if let Some(count) = shard.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                shard.remove(&self.key);
            }
        }
        // Otherwise the table would keep its memory after a flood.
        if shard.is_empty() && shard.capacity() > MAX_IDLE {
            shard.shrink_to(0);
        }
    }
}

fn lock(shard: &Mutex<HashMap<u64, u32>>) -> MutexGuard<'_, HashMap<u64, u32>> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
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
