//! Index of the responses on disk: 32 bytes for each, in hash tables with locks of their own.
//!
//! A key is represented by its hash. A response is used only if its record has the whole key. So if two keys have the
//! same hash, a response may be lost, but is never sent for the other key.
//!
//! A site that exceeds its quota gets a position before which its entries do not count any longer (sites.rs). These
//! responses have left the index, but their entries stay in the tables until [`Index::sweep`] removes them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hashbrown::HashTable;
use smallvec::SmallVec;

use super::ages::Dropped;
use super::entry::Entry;
use super::position::Position;
use super::sites::{Numbered, Sites};
use crate::store::MAX_VARIANTS;

/// Number of tables, a power of two.
const SHARDS: usize = 64;

/// Divisor of the number of responses in the index. Entries of responses that have left the index are removed from the
/// tables once their number is 1/8 of that number.
const DROPPED_DIVISOR: usize = 8;

/// Number of such entries below which a search through all tables is not worth its cost.
const MIN_DROPPED: usize = 1024;

/// The entries for a key, the newest last.
pub(super) type Found = SmallVec<[Entry; 4]>;

type Table = HashTable<Entry>;

/// All entries.
pub(super) struct Index {
    shards: Box<[Mutex<Table>]>,
    /// Sites of the entries. Locked before a shard.
    pub sites: Sites,
    len: AtomicUsize,
    /// Size of the records in bytes.
    bytes: AtomicU64,
    /// Number of entries in the tables whose responses have left the index.
    dropped: AtomicUsize,
}

impl Default for Index {
    fn default() -> Index {
        Index {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            sites: Sites::default(),
            len: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
            dropped: AtomicUsize::new(0),
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

    /// Counts entries that were removed from the tables.
    fn count_removed(&self, sites: &Numbered, removed: impl IntoIterator<Item = Entry>) {
        let (mut count, mut bytes, mut dropped) = (0, 0, 0);
        for entry in removed {
            match sites.remove(&entry) {
                true => {
                    count += 1;
                    bytes += u64::from(entry.length);
                }
                false => dropped += 1,
            }
        }
        self.len.fetch_sub(count, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.dropped.fetch_sub(dropped, Ordering::Relaxed);
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
        if !found.is_empty() {
            let sites = self.sites.read();
            found.retain(|entry| !sites.of(entry).has_dropped(entry.position));
        }
        found.sort_unstable_by_key(|entry| entry.position);
        found
    }

    /// Adds an entry in place of that for the same variant. Drops the oldest variant if there are too many. The entry
    /// must be newer than all others of its site.
    pub fn insert(&self, entry: Entry) {
        let sites = self.sites.read();
        // Before the table has the entry, because another thread could remove it at once.
        sites.add(&entry);
        self.len.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(u64::from(entry.length), Ordering::Relaxed);
        let mut table = self.shard(entry.hash);
        let mut removed = None;
        let is_same =
            |other: &Entry| other.hash == entry.hash && other.variant == entry.variant && other.names == entry.names;
        if let Ok(same) = table.find_entry(entry.hash, is_same) {
            removed = Some(same.remove().0);
        } else {
            let others = table.iter_hash(entry.hash).filter(|other| other.hash == entry.hash);
            let (count, oldest) = others.fold((0, None::<Position>), |(count, oldest), other| {
                let oldest = oldest.map_or(other.position, |oldest| oldest.min(other.position));
                (count + 1, Some(oldest))
            });
            if let Some(oldest) = oldest.filter(|_| count >= MAX_VARIANTS)
                && let Ok(oldest) = table.find_entry(entry.hash, |other| other.position == oldest)
            {
                removed = Some(oldest.remove().0);
            }
        }
        table.insert_unique(entry.hash, entry, |entry| entry.hash);
        drop(table);
        self.count_removed(&sites, removed);
    }

    /// Drops all entries for a key, and returns their number.
    pub fn remove(&self, hash: u64) -> usize {
        let sites = self.sites.read();
        let mut table = self.shard(hash);
        let mut removed = Found::new();
        while let Ok(entry) = table.find_entry(hash, |entry| entry.hash == hash) {
            removed.push(entry.remove().0);
        }
        drop(table);
        let count = removed.len();
        self.count_removed(&sites, removed);
        count
    }

    /// Returns the entry for a record.
    pub fn at(&self, hash: u64, position: Position) -> Option<Entry> {
        let found = self.shard(hash).find(hash, |entry| entry.position == position).copied();
        found.filter(|entry| !self.sites.read().of(entry).has_dropped(position))
    }

    /// Drops the entry for a record, if it is still in the index.
    pub fn remove_at(&self, hash: u64, position: Position) {
        let sites = self.sites.read();
        let mut table = self.shard(hash);
        if let Ok(entry) = table.find_entry(hash, |entry| entry.position == position) {
            let removed = entry.remove().0;
            drop(table);
            self.count_removed(&sites, [removed]);
        }
    }

    /// Records that a response was used.
    pub fn mark_hit(&self, hash: u64, position: Position) {
        if let Some(entry) = self.shard(hash).find_mut(hash, |entry| entry.position == position) {
            entry.mark.set_hit();
        }
    }

    /// Drops all entries for which `keep` returns false.
    pub fn retain(&self, keep: impl Fn(&Entry) -> bool) {
        let sites = self.sites.read();
        for shard in &self.shards {
            let mut removed = Vec::new();
            let mut table = shard.lock().unwrap_or_else(PoisonError::into_inner);
            table.retain(|entry| {
                let is_kept = keep(entry) && !sites.of(entry).has_dropped(entry.position);
                if !is_kept {
                    removed.push(*entry);
                }
                is_kept
            });
            drop(table);
            self.count_removed(&sites, removed);
        }
    }

    /// Drops the oldest responses of a site that exceeds its quota. Returns them, with the name of the site. Must be
    /// called with the lock of the log.
    pub fn trim(&self, site: u16) -> Option<(Box<[u8]>, Dropped)> {
        let (name, dropped) = self.sites.trim(site)?;
        self.len.fetch_sub(dropped.count, Ordering::Relaxed);
        self.bytes.fetch_sub(dropped.bytes, Ordering::Relaxed);
        self.dropped.fetch_add(dropped.count, Ordering::Relaxed);
        Some((name, dropped))
    }

    /// Removes entries whose responses have left the index from the tables, if they are many. On average, that costs a
    /// look at a few entries for each removed one.
    pub fn sweep(&self) {
        let dropped = self.dropped.load(Ordering::Relaxed);
        if dropped >= MIN_DROPPED.max(self.len() / DROPPED_DIVISOR) {
            self.retain(|_| true);
        }
    }

    /// Drops all entries, and releases their memory. Afterwards, positions may begin at 0 again.
    pub fn clear(&self) {
        self.retain(|_| false);
        for shard in &self.shards {
            *shard.lock().unwrap_or_else(PoisonError::into_inner) = Table::new();
        }
        self.sites.clear();
    }

    /// Returns the number of entries in the tables, with those of responses that have left the index.
    #[cfg(test)]
    pub fn entries(&self) -> usize {
        let count = |shard: &Mutex<Table>| shard.lock().unwrap_or_else(PoisonError::into_inner).len();
        self.shards.iter().map(count).sum()
    }

    /// Returns the memory in use, in bytes.
    pub fn memory_size(&self) -> usize {
        let size = |shard: &Mutex<Table>| shard.lock().unwrap_or_else(PoisonError::into_inner).allocation_size();
        let tables: usize = self.shards.iter().map(size).sum();
        tables + SHARDS * size_of::<Mutex<Table>>() + self.sites.memory_size()
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
