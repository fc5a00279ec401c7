//! Bounded table of buckets, one for each key of a limit, which all workers share.
//!
//! The table has shards, each with a lock and with sets of 8 buckets. The hash of a key selects shard and set,
//! so a lookup reads one set. A table begins small. A shard doubles the number of its sets, up to a maximum, if a new
//! key finds no place in its set.
//!
//! Once the shard cannot grow any more, a new key takes the place of the bucket that will be full again first, which
//! has the least to lose:
//! - A bucket that is full already equals one that was never used. Idle clients therefore go first, without effect.
//! - A flood of new addresses drops the buckets of its own addresses, each with one request. A client that has used up
//!   its limit keeps its bucket. To drop it, an attacker needs 8 keys in the same set that have each used more
//!   of their limits. The seed of the hash is secret, so keys of one set cannot be selected.
//! - A new key always finds a place, so a full table refuses no client.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::gcra::{Rate, Taken};

/// Number of buckets in one set.
const WAYS: usize = 8;

/// Number of shards, which are locked separately.
const SHARDS: usize = 16;

/// Number of sets in a new shard.
const FIRST_SETS: usize = 1;

/// Maximum number of sets in a shard, which limits a table to 2 MiB.
const MAX_SETS: usize = 1_024;

/// Maximum number of keys that one table remembers.
pub const MAX_KEYS: usize = SHARDS * MAX_SETS * WAYS;

/// Maximum number of bytes of one table.
pub const MAX_BYTES: usize = MAX_KEYS * size_of::<Bucket>();

/// Number of sets that all tables of one budget may have together, beyond the first ones of each shard: as many as
/// eight tables of the maximum size have.
const BUDGET_SETS: usize = 8 * SHARDS * MAX_SETS;

/// Memory that several tables share, such as those of all limits of a server. A site with many keys cannot use up the
/// memory for the others, because every table has its first sets, and drops buckets when it cannot grow.
#[derive(Debug)]
pub struct Budget {
    /// Number of sets that tables may still add.
    sets: AtomicUsize,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget {
            sets: AtomicUsize::new(BUDGET_SETS),
        }
    }
}

impl Budget {
    /// Takes sets; returns false if too few are left.
    fn take(&self, sets: usize) -> bool {
        let take = |left: usize| left.checked_sub(sets);
        self.sets
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .is_ok()
    }

    fn give_back(&self, sets: usize) {
        self.sets.fetch_add(sets, Ordering::Relaxed);
    }
}

/// Buckets of one limit.
#[derive(Debug)]
pub struct RateTable {
    shards: Box<[Mutex<Shard>]>,
    budget: Arc<Budget>,
}

/// Part of the table with a lock of its own. Its cache lines are not shared with other shards.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Shard {
    /// Sets; their number is a power of two, or 0 in a shard without a key.
    sets: Vec<[Bucket; WAYS]>,
}

/// Bucket of one key.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    /// Hash of the key; 0 in a place without a bucket.
    key: u64,
    /// State for [`Rate::take`]: time at which the bucket is full.
    full_at: u64,
}

impl RateTable {
    /// Creates an empty table.
    pub fn new(budget: &Arc<Budget>) -> RateTable {
        RateTable {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            budget: Arc::clone(budget),
        }
    }

    /// Takes a token from the bucket of a key. `key`: hash of the key with a secret seed. `now`: nanoseconds of a
    /// monotonic clock.
    #[inline]
    pub fn take(&self, rate: &Rate, key: u64, now: u64) -> Taken {
        self.update(key, now, |full_at| rate.take(full_at, now))
    }

    /// Changes the state of the bucket of a key: the time at which it is full. `key` and `now`: as for
    /// [`RateTable::take`].
    #[inline]
    pub fn update<T>(&self, key: u64, now: u64, change: impl FnOnce(&mut u64) -> T) -> T {
        let key = stored(key);
        let mut shard = self.shard(key);
        if let Some(bucket) = shard.find(key) {
            return change(&mut bucket.full_at);
        }
        let mut full_at = 0;
        let result = change(&mut full_at);
        // A bucket that is full equals a missing one.
        if full_at > now {
            shard.insert(Bucket { key, full_at }, now, &self.budget);
        }
        result
    }

    /// Returns a token to the bucket of a key. `elapsed`: as for [`Rate::give_back`], in nanoseconds.
    pub fn give_back(&self, rate: &Rate, key: u64, elapsed: u64) {
        let key = stored(key);
        if let Some(bucket) = self.shard(key).find(key) {
            rate.give_back(&mut bucket.full_at, elapsed);
        }
    }

    /// Returns the number of keys whose buckets are not full at a time. Reads the whole table.
    pub fn used(&self, now: u64) -> usize {
        let mut used = 0;
        self.for_each_used(now, |_, _| used += 1);
        used
    }

    /// Calls a function with the key of each bucket that is not full at a time, and with the nanoseconds until it is.
    pub fn for_each_used(&self, now: u64, mut each: impl FnMut(u64, u64)) {
        let mut sets = Vec::new();
        for shard in &self.shards {
            // Requests wait for the copy only.
            sets.clone_from(&lock(shard).sets);
            let used = sets.iter().flatten().filter(|bucket| bucket.full_at > now);
            used.for_each(|bucket| each(bucket.key, bucket.full_at - now));
        }
    }

    /// Adopts a bucket of another table with the same keys. `left`: nanoseconds until the bucket is full.
    pub fn adopt(&self, key: u64, left: u64, now: u64) {
        let adopted = now.saturating_add(left);
        self.update(key, now, |full_at| *full_at = (*full_at).max(adopted));
    }

    #[inline]
    fn shard(&self, key: u64) -> MutexGuard<'_, Shard> {
        // The upper bits select the shard, and the lower bits the set.
        lock(&self.shards[(key >> 32) as usize % SHARDS])
    }
}

impl Drop for RateTable {
    fn drop(&mut self) {
        let taken = |shard: &mut Mutex<Shard>| {
            let shard = shard.get_mut().unwrap_or_else(PoisonError::into_inner);
            shard.sets.len().saturating_sub(FIRST_SETS)
        };
        let sets = self.shards.iter_mut().map(taken).sum();
        self.budget.give_back(sets);
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the form of a key in which it is stored and looked up, which is never 0.
fn stored(key: u64) -> u64 {
    key.max(1)
}

impl Shard {
    #[inline]
    fn find(&mut self, key: u64) -> Option<&mut Bucket> {
        let at = self.set_of(key)?;
        self.sets[at].iter_mut().find(|bucket| bucket.key == key)
    }

    #[inline]
    fn set_of(&self, key: u64) -> Option<usize> {
        Some(key as usize & self.sets.len().checked_sub(1)?)
    }

    /// Stores a new bucket, whose key is not in the shard yet, in place of the one that is full first.
    fn insert(&mut self, bucket: Bucket, now: u64, budget: &Budget) {
        if self.sets.is_empty() {
            self.sets = vec![Default::default(); FIRST_SETS];
        }
        loop {
            let Some(at) = self.set_of(bucket.key) else { return };
            let Some(first) = self.sets[at].iter_mut().min_by_key(|bucket| bucket.full_at) else {
                return;
            };
            // A bucket that is full equals a missing one.
            if first.full_at <= now || !self.take_memory_to_double(budget) {
                // Looked up again, because the shard was borrowed in between.
                if let Some(first) = self.sets[at].iter_mut().min_by_key(|bucket| bucket.full_at) {
                    *first = bucket;
                }
                return;
            }
            self.double();
        }
    }

    /// Takes the memory for twice the sets; returns false if too little is left.
    fn take_memory_to_double(&self, budget: &Budget) -> bool {
        self.sets.len() < MAX_SETS && budget.take(self.sets.len())
    }

    /// Doubles the number of sets. Each bucket stays at its number, or moves to the same number in the new half.
    fn double(&mut self) {
        let half = self.sets.len();
        self.sets.resize(2 * half, Default::default());
        let (old, new) = self.sets.split_at_mut(half);
        for (old, new) in old.iter_mut().zip(new) {
            for (place, target) in old.iter_mut().zip(new) {
                if place.key as usize & half != 0 {
                    *target = std::mem::take(place);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
