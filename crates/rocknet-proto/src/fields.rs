//! Index of the fields of a message: it stores positions in the message instead of copies, and is reused for the next
//! message.

mod framing;
mod known;
mod list;

pub use framing::is_framing;
pub use known::{KnownField, KnownFieldSet};
pub use list::{ConstField, FieldList};

/// The position of a part of a message in its bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct ByteSpan {
    /// Position of the first byte.
    pub start: u32,
    /// Position after the last byte.
    pub end: u32,
}

impl ByteSpan {
    /// Creates a span; positions must be below 4 GiB, because they are stored in 32 bits.
    #[inline]
    pub const fn new(start: usize, end: usize) -> Self {
        Self {
            start: start as u32,
            end: end as u32,
        }
    }

    /// Returns the bytes of the span; empty if the span extends beyond the end of `bytes`.
    #[inline]
    pub fn of(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// Returns true if the span has no bytes.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// Positions of the fields of one message, in their order.
#[derive(Clone, Debug)]
pub struct FieldIndex {
    lines: Vec<Line>,
    /// Set of the known names that occur, one bit each.
    present: u64,
    /// Set of the known names that occur more than once, one bit each.
    repeated: u64,
    /// For each known name that is present, the index of its first line; other elements are stale.
    first: [u16; 64],
}

/// One field line in 16 bytes.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// Position of the first byte of the name.
    name: u32,
    /// The length of the name in the upper 24 bits; the number of the known name or `UNKNOWN_NAME` in the low eight.
    length_and_number: u32,
    value: ByteSpan,
}

/// Number of a name that is not in [`KnownField`], which has at most 64 variants.
const UNKNOWN_NAME: u8 = u8::MAX;

impl Default for FieldIndex {
    fn default() -> Self {
        Self {
            lines: Vec::new(),
            present: 0,
            repeated: 0,
            first: [0; 64],
        }
    }
}

impl FieldIndex {
    /// Clears the index and keeps its allocations.
    #[inline]
    pub fn clear(&mut self) {
        self.lines.clear();
        self.present = 0;
        self.repeated = 0;
    }

    /// Returns the number of field lines.
    #[inline]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns true if there are no field lines.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Adds a line; `known` is the result of [`KnownField::from_name`] for its name.
    ///
    /// A name must be shorter than 16 MiB, which the ceiling of head sizes in [`limits`](crate::limits) ensures. There
    /// must be fewer than 65,536 lines. For HTTP/1, the ceiling of field lines in that module ensures this; for HTTP/2
    /// and HTTP/3, the maximum number of fields in the HPACK and QPACK decoders does.
    #[inline]
    pub fn push(&mut self, name: ByteSpan, known: Option<KnownField>, value: ByteSpan) {
        let number = match known {
            Some(known) => {
                let bit = known.bit();
                if self.present & bit == 0 {
                    self.first[known as usize] = self.lines.len() as u16;
                } else {
                    self.repeated |= bit;
                }
                self.present |= bit;
                known as u8
            }
            None => UNKNOWN_NAME,
        };
        let length = name.end - name.start;
        self.lines.push(Line {
            name: name.start,
            length_and_number: length << 8 | u32::from(number),
            value,
        });
    }

    /// Adds a line and looks up the known name of `name` in `bytes`.
    pub fn push_named(&mut self, bytes: &[u8], name: ByteSpan, value: ByteSpan) {
        self.push(name, KnownField::from_name(name.of(bytes)), value);
    }

    /// Returns true if any of the names occurs.
    #[inline]
    pub fn contains_any(&self, names: KnownFieldSet) -> bool {
        self.present & names.0 != 0
    }

    /// Returns true if the name occurs.
    #[inline]
    pub fn contains(&self, name: KnownField) -> bool {
        self.present & name.bit() != 0
    }

    /// Returns true if the name occurs more than once.
    #[inline]
    pub fn is_repeated(&self, name: KnownField) -> bool {
        self.repeated & name.bit() != 0
    }

    /// Returns the position of the value of the first line with this name; `None` if the name does not occur.
    #[inline]
    pub fn value_span(&self, name: KnownField) -> Option<ByteSpan> {
        if !self.contains(name) {
            return None;
        }
        self.lines
            .get(usize::from(self.first[name as usize]))
            .map(|line| line.value)
    }

    /// Returns a view of the fields; `bytes` must be the buffer that the index was filled from.
    #[inline]
    pub fn view<'a>(&'a self, bytes: &'a [u8]) -> Fields<'a> {
        Fields { bytes, index: self }
    }
}

impl Line {
    #[inline]
    fn name(self, bytes: &[u8]) -> &[u8] {
        let start = self.name as usize;
        bytes
            .get(start..start + (self.length_and_number >> 8) as usize)
            .unwrap_or_default()
    }

    /// Returns the number of the known name, or [`UNKNOWN_NAME`].
    #[inline]
    fn number(self) -> u8 {
        self.length_and_number as u8
    }
}

/// The fields of a message: an index with the bytes it refers to.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    bytes: &'a [u8],
    index: &'a FieldIndex,
}

/// One field, received or to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field<'a> {
    /// Known name that `name` spells, if any, so that encoders need no second lookup.
    pub known: Option<KnownField>,
    /// Field name, in the spelling that was received or is to be sent.
    pub name: &'a [u8],
    /// Field value. That of a received field has no surrounding whitespace.
    pub value: &'a [u8],
}

impl<'a> Field<'a> {
    /// Creates a field and looks up its known name.
    #[inline]
    pub fn new(name: &'a [u8], value: &'a [u8]) -> Self {
        Self {
            known: KnownField::from_name(name),
            name,
            value,
        }
    }
}

impl<'a> Fields<'a> {
    /// Combines an index with the bytes that it was filled from.
    #[inline]
    pub fn new(bytes: &'a [u8], index: &'a FieldIndex) -> Self {
        Self { bytes, index }
    }

    /// Returns the value of the first line with this name; `None` if the name does not occur.
    #[inline]
    pub fn get(&self, name: KnownField) -> Option<&'a [u8]> {
        self.index.value_span(name).map(|span| span.of(self.bytes))
    }

    /// Returns true if any of the names occurs.
    #[inline]
    pub fn contains_any(&self, names: KnownFieldSet) -> bool {
        self.index.contains_any(names)
    }

    /// Returns true if the name occurs.
    #[inline]
    pub fn contains(&self, name: KnownField) -> bool {
        self.index.contains(name)
    }

    /// Returns true if the name occurs more than once.
    #[inline]
    pub fn is_repeated(&self, name: KnownField) -> bool {
        self.index.is_repeated(name)
    }

    /// Returns the values of all lines with this name, in their order.
    pub fn get_all(&self, name: KnownField) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let from = if self.contains(name) {
            usize::from(self.index.first[name as usize])
        } else {
            usize::MAX
        };
        let bytes = self.bytes;
        let lines = self.index.lines.get(from..).unwrap_or_default();
        lines
            .iter()
            .filter(move |line| line.number() == name as u8)
            .map(move |line| line.value.of(bytes))
    }

    /// Returns the values of all lines with this name, whether or not it is a known name. Names are compared
    /// case-insensitively.
    pub fn by_name<'n>(&self, name: &'n [u8]) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        let bytes = self.bytes;
        let lines = self.index.lines.iter();
        lines
            .filter(move |line| line.name(bytes).eq_ignore_ascii_case(name))
            .map(move |line| line.value.of(bytes))
    }

    /// Returns the names and values of all lines, in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        self.lines().map(|line| (line.name, line.value))
    }

    /// Returns all lines in their order, each with its known name if it has one.
    pub fn lines(&self) -> impl ExactSizeIterator<Item = Field<'a>> + use<'a> {
        let bytes = self.bytes;
        self.index.lines.iter().map(move |line| Field {
            known: KnownField::ALL.get(usize::from(line.number())).copied(),
            name: line.name(bytes),
            value: line.value.of(bytes),
        })
    }

    /// Returns the number of field lines.
    #[inline]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns true if there are no field lines.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a message of these names and values, one after the other, and its index.
    fn index(lines: &[(&str, &str)]) -> (Vec<u8>, FieldIndex) {
        let (mut bytes, mut index) = (Vec::new(), FieldIndex::default());
        for (name, value) in lines {
            let start = bytes.len();
            bytes.extend_from_slice(name.as_bytes());
            let middle = bytes.len();
            bytes.extend_from_slice(value.as_bytes());
            index.push_named(&bytes, ByteSpan::new(start, middle), ByteSpan::new(middle, bytes.len()));
        }
        (bytes, index)
    }

    #[test]
    fn finds_fields_by_number_and_by_name() {
        let (bytes, mut fields) = index(&[
            ("X-A", "1"),
            ("accept", "a"),
            ("ACCEPT", "b"),
            ("Range", "r"),
            ("x-a", "2"),
        ]);
        let view = fields.view(&bytes);
        assert_eq!(view.get(KnownField::Accept), Some(b"a".as_slice()));
        assert!(view.is_repeated(KnownField::Accept) && !view.is_repeated(KnownField::Range));
        assert_eq!(view.get_all(KnownField::Accept).collect::<Vec<_>>(), [b"a", b"b"]);
        assert_eq!(view.get_all(KnownField::Host).count(), 0);
        assert_eq!(view.by_name(b"x-A").collect::<Vec<_>>(), [b"1", b"2"]);
        assert_eq!(view.by_name(b"range").collect::<Vec<_>>(), [b"r"]);
        assert!(
            view.contains_any(KnownFieldSet::of(&[KnownField::Host, KnownField::Range]))
                && !view.contains_any(KnownFieldSet::of(&[KnownField::Host]))
        );
        assert_eq!(
            (view.len(), view.iter().next()),
            (5, Some((b"X-A".as_slice(), b"1".as_slice())))
        );
        assert_eq!(view.lines().filter(|line| line.known.is_none()).count(), 2);
        fields.clear();
        assert!(fields.is_empty() && fields.value_span(KnownField::Accept).is_none());
        assert_eq!(fields.view(&bytes).get_all(KnownField::Accept).count(), 0);
    }

    /// An index that is used with bytes that are too short yields empty values and does not panic.
    #[test]
    fn spans_beyond_the_bytes_yield_empty_values() {
        let (_, fields) = index(&[("host", "example.com")]);
        assert_eq!(fields.view(b"ab").get(KnownField::Host), Some(b"".as_slice()));
        assert_eq!(fields.view(b"").iter().next(), Some((b"".as_slice(), b"".as_slice())));
    }
}
