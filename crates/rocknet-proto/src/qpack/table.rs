//! Dynamic table with absolute indices (RFC 9204 §3.2). Entries are stored and evicted by the dynamic table of HPACK.

use crate::hpack::NameClass;
use crate::hpack::dynamic_table::{DynamicTable, ENTRY_OVERHEAD, TableEntry};

/// Dynamic table of one direction of a connection. Its capacity is 0 at first (RFC 9204 §3.2.2).
#[derive(Debug)]
pub(super) struct Table {
    fields: DynamicTable,
    /// Number of entries inserted so far, which is the absolute index of the next entry.
    inserted: u64,
}

impl Table {
    pub(super) const fn new() -> Self {
        Self {
            fields: DynamicTable::new(0),
            inserted: 0,
        }
    }

    /// Returns the capacity in bytes.
    #[inline]
    pub(super) fn capacity(&self) -> usize {
        self.fields.max()
    }

    /// Changes the capacity and evicts entries as needed (RFC 9204 §3.2.2).
    pub(super) fn set_capacity(&mut self, capacity: usize) {
        self.fields.set_max(capacity);
    }

    /// Returns the insert count (RFC 9204 §1.1).
    #[inline]
    pub(super) fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Returns the absolute index of the oldest entry.
    fn oldest(&self) -> u64 {
        self.inserted - self.fields.len() as u64
    }

    /// Returns the entry at an absolute index, unless it was evicted or is not inserted yet.
    #[inline]
    pub(super) fn get(&self, absolute: u64) -> Option<&TableEntry> {
        let position = self.inserted.checked_sub(absolute)?.checked_sub(1)?;
        self.fields.at(usize::try_from(position).ok()?)
    }

    /// Returns the entry at an index relative to the newest entry; `None` if the table has fewer entries. Instructions
    /// use such indices (RFC 9204 §3.2.5).
    pub(super) fn newest(&self, relative: u64) -> Option<&TableEntry> {
        self.fields.at(usize::try_from(relative).ok()?)
    }

    /// Iterates over the entries with their absolute indices, newest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &TableEntry)> {
        (0..self.inserted).rev().zip(self.fields.iter())
    }

    /// Returns the table of HPACK, in which callers look up entries and from which they copy bytes.
    #[inline]
    pub(super) fn fields(&self) -> &DynamicTable {
        &self.fields
    }

    /// Inserts a field and evicts the oldest entries as needed, even those that are still referred to: an encoder calls
    /// [`has_room`](Self::has_room) first. Returns false, without a change, if the field is larger than the capacity.
    /// [`TableEntry`] describes `hash`, `class` and `value_valid`.
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8], hash: u32, class: NameClass, value_valid: bool) -> bool {
        if name.len() + value.len() + ENTRY_OVERHEAD > self.capacity() {
            return false;
        }
        self.fields.insert(name, value, hash, class, value_valid);
        self.inserted += 1;
        true
    }

    /// Returns whether an entry of `size` bytes, overhead included, fits without the eviction of an entry at the
    /// absolute index `pinned` or above.
    pub(super) fn has_room(&self, size: usize, pinned: u64) -> bool {
        let (mut used, mut absolute) = (self.fields.size(), self.oldest());
        while used + size > self.capacity() {
            match self.get(absolute) {
                Some(entry) if absolute < pinned => used -= entry.size() + ENTRY_OVERHEAD,
                _ => return false,
            }
            absolute += 1;
        }
        true
    }

    /// Returns the memory used, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.fields.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Inserts a field with an empty value. Returns false if it is larger than the capacity.
    fn insert(table: &mut Table, name: &[u8]) -> bool {
        table.insert(name, b"", 0, NameClass::Other, true)
    }

    #[test]
    fn absolute_indices_are_fixed() {
        let mut table = Table::new();
        assert!(!insert(&mut table, b"a"));
        // Two entries with a name of one byte and an empty value fit.
        table.set_capacity(2 * 33);
        for name in [b"a", b"b", b"c"] {
            assert!(insert(&mut table, name));
        }
        let names: Vec<_> = (0..4)
            .map(|absolute| {
                table.get(absolute).map(|entry| {
                    let mut name = Vec::new();
                    table.fields().copy_name(entry, &mut name);
                    name
                })
            })
            .collect();
        assert_eq!(names, [None, Some(b"b".to_vec()), Some(b"c".to_vec()), None]);
        assert_eq!((table.inserted(), table.oldest()), (3, 1));
        assert_eq!(table.iter().map(|(absolute, _)| absolute).collect::<Vec<_>>(), [2, 1]);
        assert!(table.newest(1).is_some() && table.newest(2).is_none());
        assert!(!insert(&mut table, &[b'x'; 35]));
        assert_eq!((table.inserted(), table.iter().count()), (3, 2));
    }

    #[test]
    fn room_is_made_only_by_entries_that_are_not_pinned() {
        let mut table = Table::new();
        table.set_capacity(2 * 33);
        assert!(table.has_room(66, 0) && !table.has_room(67, 0));
        insert(&mut table, b"a");
        insert(&mut table, b"b");
        // Size of an entry, lowest absolute index that must not be evicted, and true if the entry fits.
        for (size, pinned, expected) in [
            (33, 0, false),
            (33, 1, true),
            (34, 1, false),
            (66, 2, true),
            (67, 2, false),
        ] {
            assert_eq!(table.has_room(size, pinned), expected, "{size} {pinned}");
        }
    }
}
