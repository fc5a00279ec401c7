//! Cache of verified credentials, so that a page with fifty images costs one verification. Times are in milliseconds of
//! a monotonic clock, which the caller reads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use crate::fingerprint::Fingerprint;

/// Maximum number of entries, which is the number of users that can be active within five minutes. With more users, the
/// oldest entry is evicted, and its credentials are verified again.
pub const MAX_ENTRIES: usize = 4_096;

/// Maximum memory of the entries in bytes. The hash table has two slots for each entry, each with a control byte.
/// Adding an entry needs twice this memory for a moment.
pub const MAX_BYTES: usize = MAX_ENTRIES * 2 * (size_of::<(Fingerprint, u64)>() + 1);

/// Lifetime of an entry in milliseconds. An entry is bound to the hash, so a changed password or a removed user takes
/// effect immediately.
pub const MAX_AGE_MS: u64 = 5 * 60 * 1_000;

/// Fingerprints with their time of expiry in milliseconds.
type Entries = HashMap<Fingerprint, u64>;

/// Set of verified credentials. Lookups take no lock. Adding an entry copies the set, which costs little compared to
/// the verification before it.
#[derive(Default)]
pub(crate) struct Verified {
    entries: ArcSwap<Entries>,
    /// Held while the set is copied and replaced, so that no concurrent insert is lost.
    write_lock: Mutex<()>,
}

impl Verified {
    pub fn contains(&self, fingerprint: &Fingerprint, now_ms: u64) -> bool {
        let expires_ms = self.entries.load().get(fingerprint).copied();
        expires_ms.is_some_and(|expires_ms| now_ms < expires_ms)
    }

    pub fn insert(&self, fingerprint: Fingerprint, now_ms: u64) {
        let _guard = self.write_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let mut entries = Entries::clone(&self.entries.load());
        if entries.len() >= MAX_ENTRIES && !entries.contains_key(&fingerprint) {
            entries.retain(|_, expires_ms| now_ms < *expires_ms);
            make_room(&mut entries);
        }
        entries.insert(fingerprint, now_ms.saturating_add(MAX_AGE_MS));
        self.entries.store(Arc::new(entries));
    }
}

/// Removes the entry that expires first if the set is full.
fn make_room(entries: &mut Entries) {
    if entries.len() < MAX_ENTRIES {
        return;
    }
    let first = entries
        .iter()
        .min_by_key(|(_, expires_ms)| **expires_ms)
        .map(|(first, _)| *first);
    first.map(|first| entries.remove(&first));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint(number: usize) -> Fingerprint {
        let mut fingerprint = [0; 32];
        fingerprint[..8].copy_from_slice(&number.to_le_bytes());
        fingerprint
    }

    #[test]
    fn entries_expire() {
        let verified = Verified::default();
        verified.insert(fingerprint(1), 1_000);
        assert!(verified.contains(&fingerprint(1), 1_000));
        assert!(verified.contains(&fingerprint(1), 1_000 + MAX_AGE_MS - 1));
        assert!(!verified.contains(&fingerprint(1), 1_000 + MAX_AGE_MS));
        assert!(!verified.contains(&fingerprint(2), 1_000));
    }

    #[test]
    fn the_oldest_entries_are_evicted() {
        let verified = Verified::default();
        for number in 0..MAX_ENTRIES + 2 {
            verified.insert(fingerprint(number), number as u64);
        }
        assert_eq!(verified.entries.load().len(), MAX_ENTRIES);
        let is_cached = |number| verified.contains(&fingerprint(number), MAX_ENTRIES as u64);
        assert!(!is_cached(0) && !is_cached(1) && is_cached(2) && is_cached(MAX_ENTRIES + 1));
        // Expired entries are removed before others, and all of them at the same time.
        verified.insert(fingerprint(0), 2 * MAX_AGE_MS);
        assert_eq!(verified.entries.load().len(), 1);
    }
}
