//! Invalidation of responses on disk by URL, if a template such as `{host}?page={query.page}` has made their keys.
//!
//! A change of a URL is a request, such as a successful POST, that may have changed the resource. It invalidates all
//! earlier responses to the URL. The keys of these responses cannot be derived from the URL, so they are not removed.
//! Instead, each response is compared with the last change of its URL when it is read.
//!
//! Responses and changes are records in the log of the cache (`log.rs`). A record at a smaller position is earlier.
//!
//! The hash of a URL selects a slot of a table, and several URLs share a slot. A change invalidates the responses to
//! all URLs of its slot, which costs only the requests that fetch them again.
//!
//! A change gets no record if the slot has no response that is newer than its last record of a change. That record
//! may be of another URL of the slot. So that it applies to both URLs after a restart, the seed of the hashes is
//! stored, and each URL keeps its slot.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::position::Position;

/// Number of slots of a site, a power of two. The positions of all slots take 32 KiB.
const SLOTS: usize = 1 << 12;

/// Slots of a site. While the log is open, they change only under its lock.
#[derive(Default)]
pub(super) struct UrlPositions {
    /// A bit for each slot: set if a response was appended after the last change. Created with the first response.
    has_newer: OnceLock<Box<[AtomicU64]>>,
    /// Position of the last change of each slot, as a number; 0 without one. Created with the first change.
    changes: OnceLock<Box<[AtomicU64]>>,
}

fn zeros(count: usize) -> Box<[AtomicU64]> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

/// Returns the slot of a hash.
fn slot(hash: u64) -> usize {
    hash as usize % SLOTS
}

/// Returns the index of the word that has the bit of a hash's slot, and this bit.
fn bit(hash: u64) -> (usize, u64) {
    (slot(hash) / 64, 1 << (slot(hash) % 64))
}

impl UrlPositions {
    /// Notes that a response to a URL was appended.
    pub fn note_response(&self, hash: u64) {
        let words = self.has_newer.get_or_init(|| zeros(SLOTS / 64));
        let (word, bit) = bit(hash);
        words[word].fetch_or(bit, Ordering::Relaxed);
    }

    /// Returns true if a change of a URL needs a record: if a response of its slot is newer than the last change.
    pub fn needs_change(&self, hash: u64) -> bool {
        let (word, bit) = bit(hash);
        let words = self.has_newer.get();
        words.is_some_and(|words| words[word].load(Ordering::Relaxed) & bit != 0)
    }

    /// Notes a change of a URL. `position`: position of its record in the log.
    pub fn note_change(&self, hash: u64, position: Position) {
        let changes = self.changes.get_or_init(|| zeros(SLOTS));
        changes[slot(hash)].store(position.to_number(), Ordering::Release);
        if let Some(words) = self.has_newer.get() {
            let (word, bit) = bit(hash);
            words[word].fetch_and(!bit, Ordering::Relaxed);
        }
    }

    /// Returns true if a URL was changed after the position of a response to it.
    pub fn is_changed(&self, hash: u64, position: Position) -> bool {
        let changes = self.changes.get();
        changes.is_some_and(|changes| changes[slot(hash)].load(Ordering::Acquire) > position.to_number())
    }

    /// Forgets all changes and responses.
    pub fn clear(&self) {
        let words = self.has_newer.get().into_iter().flatten();
        let all = words.chain(self.changes.get().into_iter().flatten());
        all.for_each(|number| number.store(0, Ordering::Release));
    }

    /// Returns the memory in use, in bytes.
    pub fn memory_size(&self) -> usize {
        let size = |numbers: Option<&Box<[AtomicU64]>>| numbers.map_or(0, |numbers| size_of_val(&**numbers));
        size(self.has_newer.get()) + size(self.changes.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_responses_from_before_a_change_are_invalid() {
        let at = |offset| Position { segment: 1, offset };
        let urls = UrlPositions::default();
        assert!(!urls.needs_change(5) && !urls.is_changed(5, at(0)) && urls.memory_size() == 0);
        urls.note_response(5);
        assert!(urls.needs_change(5) && urls.needs_change(5 + SLOTS as u64) && !urls.needs_change(6));
        urls.note_change(5, at(20));
        assert!(!urls.needs_change(5));
        assert!(urls.is_changed(5, at(10)) && !urls.is_changed(5, at(30)) && !urls.is_changed(6, at(10)));
        urls.note_response(5);
        assert!(urls.needs_change(5) && urls.is_changed(5, at(10)));
        urls.clear();
        assert!(!urls.needs_change(5) && !urls.is_changed(5, at(10)));
    }
}
