//! Invalidation of responses on disk by URL, if a template such as `{host}?page={query.page}` has made their keys. Such
//! a key cannot be derived from the URL. Therefore a response is compared with the last change of its URL when it is
//! read.
//!
//! URLs share the places of a table by their hash. Responses to URLs of one place are invalidated together, which costs
//! only the requests that fetch them again. A change gets no record if an earlier change at the same place covers all
//! responses. A restart keeps the seed of the hashes, and so the place of each URL, because a change without a record
//! relies on that earlier one.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::position::Position;

/// Number of places of a site, a power of two: 32 KiB.
const PLACES: usize = 1 << 12;

/// Places of a site. They change under the lock of the log.
#[derive(Default)]
pub(super) struct UrlPositions {
    /// A bit for each place: true if a response was appended after the last change. Created with the first response.
    has_newer: OnceLock<Box<[AtomicU64]>>,
    /// Positions of the last changes, as numbers; 0 without one. Created with the first change.
    changes: OnceLock<Box<[AtomicU64]>>,
}

fn zeros(count: usize) -> Box<[AtomicU64]> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

/// Returns the place of a hash.
fn place(hash: u64) -> usize {
    hash as usize % PLACES
}

/// Returns the word and the bit of the place of a hash.
fn bit(hash: u64) -> (usize, u64) {
    (place(hash) / 64, 1 << (place(hash) % 64))
}

impl UrlPositions {
    /// Notes that a response to a URL was appended.
    pub fn note_response(&self, hash: u64) {
        let words = self.has_newer.get_or_init(|| zeros(PLACES / 64));
        let (word, bit) = bit(hash);
        words[word].fetch_or(bit, Ordering::Relaxed);
    }

    /// Returns true if a change of a URL needs a record: if a response was appended since the last one.
    pub fn needs_change(&self, hash: u64) -> bool {
        let (word, bit) = bit(hash);
        let words = self.has_newer.get();
        words.is_some_and(|words| words[word].load(Ordering::Relaxed) & bit != 0)
    }

    /// Notes a change of a URL. `position`: that of its record.
    pub fn note_change(&self, hash: u64, position: Position) {
        let changes = self.changes.get_or_init(|| zeros(PLACES));
        changes[place(hash)].store(position.to_number(), Ordering::Release);
        if let Some(words) = self.has_newer.get() {
            let (word, bit) = bit(hash);
            words[word].fetch_and(!bit, Ordering::Relaxed);
        }
    }

    /// Returns true if a URL was changed after the position of a response to it.
    pub fn is_changed(&self, hash: u64, position: Position) -> bool {
        let changes = self.changes.get();
        changes.is_some_and(|changes| changes[place(hash)].load(Ordering::Acquire) > position.to_number())
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
        assert!(urls.needs_change(5) && urls.needs_change(5 + PLACES as u64) && !urls.needs_change(6));
        urls.note_change(5, at(20));
        assert!(!urls.needs_change(5));
        assert!(urls.is_changed(5, at(10)) && !urls.is_changed(5, at(30)) && !urls.is_changed(6, at(10)));
        urls.note_response(5);
        assert!(urls.needs_change(5) && urls.is_changed(5, at(10)));
        urls.clear();
        assert!(!urls.needs_change(5) && !urls.is_changed(5, at(10)));
    }
}
