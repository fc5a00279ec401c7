//! Index of the responses on disk: 32 bytes for each, in hash tables with locks of their own.
//!
//! A key is represented by its hash. A response is used only if its record has the whole key. So if two keys have the
//! same hash, a response may be lost, but is never sent for the other key.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hashbrown::HashTable;
use smallvec::SmallVec;

use super::position::Position;
use crate::store::MAX_VARIANTS;

/// Number of tables, a power of two.
const SHARDS: usize = 64;

/// A response on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// Hash of the key.
    pub hash: u64,
    pub position: Position,
    /// Length of the record in bytes.
    pub length: u32,
    /// Tag of the values of the request fields that select the response.
    pub variant: u32,
    /// Time in seconds since 1970 after which the response has no use.
    pub expires: u32,
    /// Number of the list with the names of these fields (names.rs).
    pub names: u16,
    /// True if the response was used since it was written.
    pub is_hit: bool,
}

/// The entries for a key, the newest last.
pub(super) type Found = SmallVec<[Entry; 4]>;

type Table = HashTable<Entry>;

/// All entries.
pub(super) struct Index {
    shards: Box<[Mutex<Table>]>,
    len: AtomicUsize,
    /// Size of the records in bytes.
    bytes: AtomicU64,
}

impl Default for Index {
    fn default() -> Index {
        Index {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            len: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
        }
    }
}

impl Index {
    fn shard(&self, hash: u64) -> MutexGuard<'_, Table> {
        // Other bits of the hash than the lowest and the highest ones, which the tables use.
        let shard = (hash >> 40) as usize & (SHARDS - 1);
        self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn count_removed(&self, count: usize, bytes: u64) {
        self.len.fetch_sub(count, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns the entries for a key.
    pub fn find(&self, hash: u64) -> Found {
        let table = self.shard(hash);
        let mut found: Found = table
            .iter_hash(hash)
            .filter(|entry| entry.hash == hash)
            .copied()
            .collect();
        drop(table);
        found.sort_unstable_by_key(|entry| entry.position);
        found
    }

    /// Adds an entry in place of that for the same variant. Drops the oldest variant if there are too many.
    pub fn insert(&self, entry: Entry) {
        let mut table = self.shard(entry.hash);
        let mut removed = SmallVec::<[Entry; 2]>::new();
        let is_same =
            |other: &Entry| other.hash == entry.hash && other.variant == entry.variant && other.names == entry.names;
        if let Ok(same) = table.find_entry(entry.hash, is_same) {
            removed.push(same.remove().0);
        } else {
            let others = table.iter_hash(entry.hash).filter(|other| other.hash == entry.hash);
            let (count, oldest) = others.fold((0, None::<Position>), |(count, oldest), other| {
                let oldest = oldest.map_or(other.position, |oldest| oldest.min(other.position));
                (count + 1, Some(oldest))
            });
            if let Some(oldest) = oldest.filter(|_| count >= MAX_VARIANTS)
                && let Ok(oldest) = table.find_entry(entry.hash, |other| other.position == oldest)
            {
                removed.push(oldest.remove().0);
            }
        }
        table.insert_unique(entry.hash, entry, |entry| entry.hash);
        drop(table);
        self.len.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(u64::from(entry.length), Ordering::Relaxed);
        for old in removed {
            self.count_removed(1, u64::from(old.length));
        }
    }

    /// Drops all entries for a key, and returns their number.
    pub fn remove(&self, hash: u64) -> usize {
        let mut table = self.shard(hash);
        let (mut count, mut bytes) = (0, 0);
        while let Ok(entry) = table.find_entry(hash, |entry| entry.hash == hash) {
            bytes += u64::from(entry.remove().0.length);
            count += 1;
        }
        drop(table);
        self.count_removed(count, bytes);
        count
    }

    /// Returns the entry for a record.
    pub fn at(&self, hash: u64, position: Position) -> Option<Entry> {
        let table = self.shard(hash);
        table.find(hash, |entry| entry.position == position).copied()
    }

    /// Drops the entry for a record, if it is still in the index.
    pub fn remove_at(&self, hash: u64, position: Position) {
        let mut table = self.shard(hash);
        if let Ok(entry) = table.find_entry(hash, |entry| entry.position == position) {
            let length = entry.remove().0.length;
            drop(table);
            self.count_removed(1, u64::from(length));
        }
    }

    /// Records that a response was used.
    pub fn mark_hit(&self, hash: u64, position: Position) {
        if let Some(entry) = self.shard(hash).find_mut(hash, |entry| entry.position == position) {
            entry.is_hit = true;
        }
    }

    /// Drops all entries for which `keep` returns false.
    pub fn retain(&self, keep: impl Fn(&Entry) -> bool) {
        for shard in &self.shards {
            let (mut count, mut bytes) = (0, 0);
            let mut table = shard.lock().unwrap_or_else(PoisonError::into_inner);
            table.retain(|entry| {
                let is_kept = keep(entry);
                if !is_kept {
                    count += 1;
                    bytes += u64::from(entry.length);
                }
                is_kept
            });
            drop(table);
            self.count_removed(count, bytes);
        }
    }

    /// Drops all entries, and releases their memory.
    pub fn clear(&self) {
        self.retain(|_| false);
        for shard in &self.shards {
            *shard.lock().unwrap_or_else(PoisonError::into_inner) = Table::new();
        }
    }

    /// Returns the memory in use, in bytes.
    pub fn memory_size(&self) -> usize {
        let size = |shard: &Mutex<Table>| shard.lock().unwrap_or_else(PoisonError::into_inner).allocation_size();
        self.shards.iter().map(size).sum::<usize>() + SHARDS * size_of::<Mutex<Table>>()
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
