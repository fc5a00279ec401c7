//! List of fields to send, stored as HTTP/1 field lines, so that an HTTP/1 head is encoded by copying them.

use std::fmt;

use super::{Field, KnownField, KnownFieldSet};
use crate::bytes::{is_token, is_value};

/// Header fields of a response, or trailer fields, in order. `Date`, framing and connection fields are added by the
/// encoder.
///
/// Each field is validated once, when it is added. An invalid field is stored separately, and the encoder refuses the
/// whole head until the field is removed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct FieldList {
    /// `name: value CRLF` of each valid field, as UTF-8. Names are tokens and values contain no line breaks, so the
    /// bytes can be split into fields again.
    lines: Vec<u8>,
    /// Known names of the valid fields.
    present: KnownFieldSet,
    /// Names and values of invalid fields, which must not be sent.
    invalid: Vec<(String, String)>,
}

/// A field that is validated at compile time, so that adding it costs only a copy.
#[derive(Debug)]
pub struct ConstField {
    known: KnownField,
    line: &'static str,
}

impl ConstField {
    /// Creates a field from its whole line, such as `Server: RockNet\r\n`. `known` must be the name in the line.
    ///
    /// # Panics
    ///
    /// Panics if the line has a name other than `known`, has no `: ` after the name, has a byte other than printable
    /// ASCII in its value, or does not end with CRLF.
    pub const fn new(known: KnownField, line: &'static str) -> ConstField {
        let (bytes, name) = (line.as_bytes(), known.as_str().as_bytes());
        let mut at = 0;
        while at < name.len() {
            assert!(
                bytes[at].to_ascii_lowercase() == name[at],
                "the line has a name other than `known`"
            );
            at += 1;
        }
        assert!(
            bytes[at] == b':' && bytes[at + 1] == b' ',
            "the line has no colon and space"
        );
        at += 2;
        while at < bytes.len() - 2 {
            assert!(
                bytes[at] >= 0x20 && bytes[at] < 0x7f,
                "the value has a byte that is not printable ASCII"
            );
            at += 1;
        }
        assert!(
            bytes[at] == b'\r' && bytes[at + 1] == b'\n',
            "the line does not end with CRLF"
        );
        ConstField { known, line }
    }
}

impl FieldList {
    /// Returns the heap memory in use, in bytes.
    pub fn memory_size(&self) -> usize {
        let invalid = self
            .invalid
            .iter()
            .map(|(name, value)| name.capacity() + value.capacity());
        self.lines.capacity() + self.invalid.capacity() * size_of::<(String, String)>() + invalid.sum::<usize>()
    }

    /// Returns a copy with room for `more` bytes of further fields, so that adding them allocates no memory.
    pub fn clone_with_room(&self, more: usize) -> FieldList {
        let mut lines = Vec::with_capacity(self.lines.len() + more);
        lines.extend_from_slice(&self.lines);
        FieldList {
            lines,
            present: self.present,
            invalid: self.invalid.clone(),
        }
    }

    /// Adds a field at the end of the list.
    pub fn add(&mut self, name: impl AsRef<str>, value: impl AsRef<str>) {
        self.add_field(Field::new(name.as_ref().as_bytes(), value.as_ref().as_bytes()));
    }

    /// Adds a field that was validated at compile time.
    pub fn add_const(&mut self, field: &ConstField) {
        self.reserve(field.line.len());
        self.lines.extend_from_slice(field.line.as_bytes());
        self.present = self.present.union(KnownFieldSet::of(&[field.known]));
    }

    /// Adds a field. If the field is invalid, stores it separately, so that the encoder refuses the head, and returns
    /// false. Reads a value that is not UTF-8 as Latin-1, the historical charset of HTTP (RFC 9110 §5.5).
    pub fn add_field(&mut self, field: Field<'_>) -> bool {
        let Field { known, name, value } = field;
        if !field.is_sendable() {
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            self.invalid.push((text(name), text(value)));
            return false;
        }
        if let Some(known) = known {
            self.present = self.present.union(KnownFieldSet::of(&[known]));
        }
        self.reserve(name.len() + value.len() + LINE_OVERHEAD);
        self.lines.extend_from_slice(name);
        self.lines.extend_from_slice(b": ");
        if value.is_ascii() || std::str::from_utf8(value).is_ok() {
            self.lines.extend_from_slice(value);
        } else {
            let text: String = value.iter().copied().map(char::from).collect();
            self.lines.extend_from_slice(text.as_bytes());
        }
        self.lines.extend_from_slice(b"\r\n");
        true
    }

    /// Ensures capacity for `more` bytes; an allocation adds at least [`MIN_CAPACITY`] bytes.
    #[inline]
    fn reserve(&mut self, more: usize) {
        if self.lines.capacity() - self.lines.len() < more {
            self.lines.reserve(more.max(MIN_CAPACITY));
        }
    }

    /// Copies received fields into a list.
    pub fn from_fields<'f>(fields: impl IntoIterator<Item = Field<'f>>) -> FieldList {
        let mut all = FieldList::default();
        for field in fields {
            all.add_field(field);
        }
        all
    }

    /// Replaces all fields of this name with one field at the position of the first, whose spelling of the name is
    /// kept. Appends the field if the name does not occur.
    pub fn set(&mut self, name: impl AsRef<str>, value: impl AsRef<str>) {
        let (name, value) = (name.as_ref(), value.as_ref());
        if self.value(name).is_none() {
            return self.add(name, value);
        }
        let before = std::mem::take(self);
        let mut is_first = true;
        for (old_name, old_value) in before.iter() {
            if !old_name.eq_ignore_ascii_case(name) {
                self.add(old_name, old_value);
            } else if std::mem::take(&mut is_first) {
                self.add(old_name, value);
            }
        }
    }

    /// Removes all fields of this name, in any case, valid or not.
    pub fn remove(&mut self, name: &str) {
        if self.value(name).is_some() {
            self.retain(|other| !other.eq_ignore_ascii_case(name));
        }
    }

    /// Calls `keep` with the name of each field, and removes the field if the result is false.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        let before = std::mem::take(self);
        for (name, value) in before.iter().filter(|(name, _)| keep(name)) {
            self.add(name, value);
        }
    }

    /// Returns the value of the first field of this name, in any case; `None` if no field has the name. Valid fields
    /// take precedence over invalid fields.
    pub fn value(&self, name: &str) -> Option<&str> {
        if let Some(known) = KnownField::from_name(name.as_bytes())
            && !self.present.contains(known)
        {
            // No valid line has this name, so only the invalid fields are searched.
            let mut invalid = self.invalid.iter();
            return invalid
                .find(|(other, _)| other.eq_ignore_ascii_case(name))
                .map(|(_, value)| &**value);
        }
        self.iter()
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// Returns true if the list has a valid field of this name.
    #[inline]
    pub fn contains(&self, name: KnownField) -> bool {
        self.present.contains(name)
    }

    /// Returns names and values as text; invalid fields come last.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
        self.bytes().map(move |(name, value)| (text(name), text(value)))
    }

    /// Returns names and values as bytes; invalid fields come last.
    pub fn bytes(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let invalid = self
            .invalid
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        LineIter(&self.lines).chain(invalid)
    }

    /// Returns true if there are no fields.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.invalid.is_empty()
    }

    /// Returns all lines and the known names that occur in them; `None` if the list has an invalid field.
    #[inline]
    pub(crate) fn lines(&self) -> Option<(&[u8], KnownFieldSet)> {
        self.invalid.is_empty().then_some((&self.lines, self.present))
    }
}

impl fmt::Debug for FieldList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl Field<'_> {
    /// Returns true if the name is a token and the value has neither DEL nor a control byte except HTAB, so that the
    /// value cannot end its line.
    #[inline]
    pub fn is_sendable(&self) -> bool {
        (self.known.is_some() || is_token(self.name)) && is_value(self.value)
    }
}

/// Minimum size of an allocation in bytes: enough for the fields of a short response, so that its list allocates once.
const MIN_CAPACITY: usize = 192;

/// Number of bytes of a line in addition to its name and value.
const LINE_OVERHEAD: usize = ": \r\n".len();

/// Iterator over the fields in valid lines.
struct LineIter<'a>(&'a [u8]);

impl<'a> Iterator for LineIter<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let end = memchr::memchr(b'\n', self.0)?;
        let colon = memchr::memchr(b':', self.0)?;
        let (line, rest) = self.0.split_at(end + 1);
        self.0 = rest;
        // The value is between `: ` and CR LF.
        Some((line.get(..colon)?, line.get(colon + 2..end - 1)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(fields: &[(&str, &str)]) -> FieldList {
        let mut all = FieldList::default();
        fields.iter().for_each(|(name, value)| all.add(name, value));
        all
    }

    /// Checks that the list has exactly the `expected` names and values in this order, and finds each of them by name.
    #[track_caller]
    fn check(fields: &FieldList, expected: &[(&str, &str)]) {
        assert_eq!(fields.iter().collect::<Vec<_>>(), expected);
        assert_eq!(fields.is_empty(), expected.is_empty());
        for (name, _) in expected {
            let first = expected.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
            assert_eq!(fields.value(&name.to_uppercase()), first.map(|(_, value)| *value));
            if let Some(known) = KnownField::from_name(name.as_bytes()) {
                assert!(fields.contains(known), "{name}");
            }
        }
    }

    #[test]
    fn set_leaves_one_field_and_remove_leaves_none() {
        let mut fields = list(&[("A", "1"), ("b", "2"), ("a", "3"), ("C", "4"), ("A", "5")]);
        fields.set("a", "new");
        check(&fields, &[("A", "new"), ("b", "2"), ("C", "4")]);
        fields.set("d", "5");
        fields.remove("B");
        check(&fields, &[("A", "new"), ("C", "4"), ("d", "5")]);
        fields.retain(|name| name == "C");
        check(&fields, &[("C", "4")]);
        fields.remove("c");
        check(&fields, &[]);
    }

    #[test]
    fn changes_update_the_set_of_known_names() {
        let mut fields = list(&[("server", "x"), ("X-A", ""), ("Vary", "a:b\tc")]);
        check(&fields, &[("server", "x"), ("X-A", ""), ("Vary", "a:b\tc")]);
        fields.set("Server", "y");
        check(&fields, &[("server", "y"), ("X-A", ""), ("Vary", "a:b\tc")]);
        fields.remove("SERVER");
        assert!(!fields.contains(KnownField::Server) && fields.value("server").is_none());
        check(&fields, &[("X-A", ""), ("Vary", "a:b\tc")]);
        fields.add_const(const { &ConstField::new(KnownField::Server, "Server: z\r\n") });
        check(&fields, &[("X-A", ""), ("Vary", "a:b\tc"), ("Server", "z")]);
    }

    #[test]
    fn an_invalid_field_withholds_the_lines_until_it_is_removed() {
        for (name, value) in [
            ("", "x"),
            ("a b", "x"),
            ("a:", "x"),
            ("Server", "x\r\nA: b"),
            ("A", "\0"),
        ] {
            let mut fields = list(&[("X-A", "1"), (name, value), ("X-B", "2")]);
            assert!(fields.lines().is_none(), "{name}: {value:?}");
            assert_eq!(fields.value(name), Some(value));
            assert_eq!(fields.iter().count(), 3);
            fields.remove(name);
            assert!(fields.lines().is_some(), "{name}: {value:?}");
            check(&fields, &[("X-A", "1"), ("X-B", "2")]);
        }
    }

    #[test]
    fn values_are_utf8() {
        let mut fields = FieldList::default();
        assert!(
            fields.add_field(Field::new(b"X-A", b"caf\xe9")) && fields.add_field(Field::new(b"X-B", "é".as_bytes()))
        );
        check(&fields, &[("X-A", "caf\u{e9}"), ("X-B", "\u{e9}")]);
        let (lines, _) = fields.lines().expect("valid fields");
        assert_eq!(lines, "X-A: caf\u{e9}\r\nX-B: \u{e9}\r\n".as_bytes());
        assert_eq!(
            FieldList::from_fields([Field::new(b"X-A", b"caf\xe9"), Field::new(b"X-B", "é".as_bytes())]),
            fields
        );
    }
}
