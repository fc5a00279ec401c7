//! Dynamic table of HPACK (RFC 7541 §2.3.2): recent fields, newest first, in a ring of bytes that grows with use.

use std::collections::VecDeque;

use super::name::NameClass;

/// Bytes that each entry counts in addition to its name and value (RFC 7541 §4.1).
pub(crate) const ENTRY_OVERHEAD: usize = 32;

/// Largest table size in bytes, because lengths within an entry have 16 bits.
pub(crate) const SIZE_CEILING: usize = u16::MAX as usize;

/// Size in bytes of the first ring. Most clients never fill it.
const RING_MIN: usize = 256;

/// Dynamic table of one direction of a connection.
#[derive(Debug)]
pub(crate) struct DynamicTable {
    /// The newest entry is at the back.
    entries: VecDeque<TableEntry>,
    /// Names and values one after the other. The length is a power of two, or 0.
    ring: Vec<u8>,
    /// Position of the next byte, counted without wrapping at the end of the ring.
    head: u32,
    /// Bytes of all entries, without overhead.
    bytes: usize,
    /// Largest size in bytes, overhead included.
    max: usize,
}

/// One field. The entry occupies 16 bytes in addition to the name and value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableEntry {
    /// Position of the name, counted like `DynamicTable::head`. The value follows the name.
    start: u32,
    /// Length of the name in bytes.
    name_length: u16,
    /// Length of the value in bytes.
    value_length: u16,
    /// Hash of the name and value by which an encoder looks the entry up; 0 in the table of a decoder.
    pub hash: u32,
    /// Class of the name.
    pub class: NameClass,
    /// Result of [`is_valid_value`](super::is_valid_value).
    pub value_valid: bool,
}

impl TableEntry {
    /// Returns the length of the name and the value together, without [`ENTRY_OVERHEAD`].
    #[inline]
    pub(crate) fn size(&self) -> usize {
        usize::from(self.name_length) + usize::from(self.value_length)
    }
}

impl DynamicTable {
    pub(crate) const fn new(max: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            ring: Vec::new(),
            head: 0,
            bytes: 0,
            max: if max < SIZE_CEILING { max } else { SIZE_CEILING },
        }
    }

    /// Returns the maximum size in bytes, overhead included.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the size as the protocol counts it (RFC 7541 §4.1).
    pub(crate) fn size(&self) -> usize {
        self.bytes + self.entries.len() * ENTRY_OVERHEAD
    }

    /// Returns the memory used, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.ring.capacity() + self.entries.capacity() * size_of::<TableEntry>()
    }

    /// Returns the entry at an index; 0 is the newest. Returns `None` if the table has fewer entries.
    #[inline]
    pub(crate) fn at(&self, index: usize) -> Option<&TableEntry> {
        self.entries.get(self.entries.len().checked_sub(index + 1)?)
    }

    /// Iterates over the entries, newest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &TableEntry> {
        self.entries.iter().rev()
    }

    #[inline]
    pub(crate) fn copy_name(&self, entry: &TableEntry, out: &mut Vec<u8>) {
        self.copy(entry.start, usize::from(entry.name_length), out);
    }

    /// Appends the name and the value. Returns the length of the name.
    #[inline]
    pub(crate) fn copy_field(&self, entry: &TableEntry, out: &mut Vec<u8>) -> usize {
        self.copy(entry.start, entry.size(), out);
        usize::from(entry.name_length)
    }

    /// Returns true if the entry has this name and this value.
    pub(crate) fn matches_field(&self, entry: &TableEntry, name: &[u8], value: &[u8]) -> bool {
        usize::from(entry.value_length) == value.len()
            && self.matches_name(entry, name)
            && self.matches_bytes(entry.start.wrapping_add(u32::from(entry.name_length)), value)
    }

    /// Returns true if the entry has this name.
    pub(crate) fn matches_name(&self, entry: &TableEntry, name: &[u8]) -> bool {
        usize::from(entry.name_length) == name.len() && self.matches_bytes(entry.start, name)
    }

    /// Returns true if the ring has these bytes from `start` on.
    fn matches_bytes(&self, start: u32, bytes: &[u8]) -> bool {
        let (front, back) = self.span(start, bytes.len());
        bytes.get(..front.len()) == Some(front) && bytes.get(front.len()..) == Some(back)
    }

    #[inline]
    fn copy(&self, start: u32, length: usize, out: &mut Vec<u8>) {
        let (front, back) = self.span(start, length);
        out.extend_from_slice(front);
        if !back.is_empty() {
            out.extend_from_slice(back);
        }
    }

    /// Returns `length` bytes of the ring from `start` on, in two parts if they wrap.
    #[inline]
    fn span(&self, start: u32, length: usize) -> (&[u8], &[u8]) {
        // The length is a power of two, so the mask yields the remainder. From an empty ring, only 0 bytes are read.
        let start = start as usize & self.ring.len().wrapping_sub(1);
        match self.ring.get(start..start + length) {
            Some(whole) => (whole, &[]),
            None => {
                let front = self.ring.get(start..).unwrap_or_default();
                let rest = length.saturating_sub(front.len());
                (front, self.ring.get(..rest).unwrap_or_default())
            }
        }
    }

    /// Inserts a field as the newest entry and evicts the oldest entries as needed. A field larger than the table
    /// empties it (RFC 7541 §4.4). [`TableEntry`] describes `hash`, `class` and `value_valid`.
    pub(crate) fn insert(&mut self, name: &[u8], value: &[u8], hash: u32, class: NameClass, value_valid: bool) {
        let size = name.len() + value.len();
        if size + ENTRY_OVERHEAD > self.max {
            self.clear();
            return;
        }
        self.shrink_to(self.max - size - ENTRY_OVERHEAD);
        self.reserve(self.bytes + size);
        let start = self.head;
        self.write(name);
        self.write(value);
        self.bytes += size;
        // Both lengths fit in 16 bits, because the maximum size of the table does.
        self.entries.push_back(TableEntry {
            start,
            name_length: name.len() as u16,
            value_length: value.len() as u16,
            hash,
            class,
            value_valid,
        });
    }

    /// Changes the maximum size (RFC 7541 §4.3).
    pub(crate) fn set_max(&mut self, max: usize) {
        self.max = max.min(SIZE_CEILING);
        self.shrink_to(self.max);
        if self.max == 0 {
            (self.entries, self.ring) = (VecDeque::new(), Vec::new());
        }
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.bytes = 0;
    }

    /// Evicts the oldest entries until the table has at most `size` bytes.
    fn shrink_to(&mut self, size: usize) {
        while self.size() > size
            && let Some(oldest) = self.entries.pop_front()
        {
            self.bytes -= oldest.size();
        }
    }

    /// Grows the ring to hold `bytes` bytes of names and values.
    fn reserve(&mut self, bytes: usize) {
        if bytes <= self.ring.len() {
            return;
        }
        let mut larger = vec![0; bytes.next_power_of_two().max(RING_MIN)];
        let tail = self.head.wrapping_sub(self.bytes as u32);
        let mask = larger.len() - 1;
        for step in 0..self.bytes as u32 {
            let position = tail.wrapping_add(step);
            let byte = self.ring[position as usize & (self.ring.len() - 1)];
            larger[position as usize & mask] = byte;
        }
        self.ring = larger;
    }

    /// Writes bytes at the head of the ring, which must have room for them.
    fn write(&mut self, bytes: &[u8]) {
        let start = self.head as usize & self.ring.len().wrapping_sub(1);
        let room = self.ring.len() - start.min(self.ring.len());
        let (front, back) = bytes.split_at(bytes.len().min(room));
        if let Some(target) = self.ring.get_mut(start..start + front.len()) {
            target.copy_from_slice(front);
        }
        if let Some(target) = self.ring.get_mut(..back.len()) {
            target.copy_from_slice(back);
        }
        self.head = self.head.wrapping_add(bytes.len() as u32);
    }
}

const _: () = assert!(size_of::<TableEntry>() <= 16);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the name and the value of an entry, and checks that the entry matches them.
    fn field(table: &DynamicTable, index: usize) -> Option<(Vec<u8>, Vec<u8>)> {
        let entry = table.at(index)?;
        let (mut name, mut field) = (Vec::new(), Vec::new());
        table.copy_name(entry, &mut name);
        let length = table.copy_field(entry, &mut field);
        let value = field.split_off(length);
        assert_eq!(field, name);
        assert!(table.matches_field(entry, &name, &value) && table.matches_name(entry, &name));
        Some((name, value))
    }

    #[test]
    fn a_field_larger_than_the_table_empties_it() {
        let mut table = DynamicTable::new(64);
        table.insert(b"a", b"b", 0, NameClass::Other, true);
        assert_eq!((table.len(), table.size()), (1, 34));
        table.insert(&[b'x'; 33], b"", 0, NameClass::Other, true);
        assert_eq!((table.len(), table.size()), (0, 0));
    }

    #[test]
    fn memory_grows_with_use_and_is_freed_at_size_zero() {
        let mut table = DynamicTable::new(4096);
        assert_eq!(table.memory(), 0);
        for _ in 0..1000 {
            table.insert(b"name", &[b'v'; 60], 0, NameClass::Other, true);
        }
        // The ring has at most 4096 bytes, and room for 64 entries of 16 bytes suffices.
        assert!(table.memory() <= 4096 + 64 * 16, "{}", table.memory());
        table.set_max(0);
        assert_eq!((table.len(), table.memory()), (0, 0));
    }

    proptest! {
        /// Compares the table with a list while its size changes. Each step has the lengths of a name and a value, the
        /// byte that fills them, and a number that changes the table size instead if it is below 3.
        #[test]
        fn agrees_with_a_plain_list(steps in prop::collection::vec((0usize..120, 0usize..300, any::<u8>(), 0usize..40), 0..200)) {
            let mut table = DynamicTable::new(600);
            let mut list: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
            let mut max = 600;
            let size = |list: &[(Vec<u8>, Vec<u8>)]| list.iter().map(|(n, v)| n.len() + v.len() + 32).sum::<usize>();
            for (name, value, byte, change) in steps {
                if change < 3 {
                    max = value * 4;
                    table.set_max(max);
                } else {
                    let (name, value) = (vec![byte; name], vec![byte ^ 1; value]);
                    table.insert(&name, &value, u32::from(byte), NameClass::Other, true);
                    list.insert(0, (name, value));
                }
                while size(&list) > max {
                    list.pop();
                }
                prop_assert_eq!((table.len(), table.size()), (list.len(), size(&list)));
                for (index, expected) in list.iter().enumerate() {
                    let found = field(&table, index);
                    prop_assert_eq!(found.as_ref(), Some(expected));
                }
                prop_assert!(table.at(list.len()).is_none());
            }
        }
    }
}
