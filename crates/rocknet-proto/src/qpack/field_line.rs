//! Field lines of a section, from fields to bytes (RFC 9204 §4.5.2 to §4.5.6).

use super::static_table::{self, StaticMatch};
use super::{integer, string};
use crate::hpack::NameClass;
use crate::hpack::indexing::is_sensitive;
use crate::status::Status;

/// Prefix of a section without references to the dynamic table: a Required Insert Count and a Base of 0.
pub(crate) const STATIC_PREFIX: [u8; 2] = [0, 0];

/// Appends field lines that refer only to the static table, so that they are valid on every connection. Names must be
/// in lower case. The caller must write [`STATIC_PREFIX`] before the first field line.
pub(crate) fn encode_static<'a>(fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>, out: &mut Vec<u8>) {
    for (name, value) in fields {
        encode_static_field(name, value, out);
    }
}

/// Appends a field line that refers only to the static table. The name must be in lower case.
pub(crate) fn encode_static_field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let name_source = match static_table::find(name, value) {
        StaticMatch::Field(index) => return indexed_static(index, out),
        StaticMatch::NameOnly(index) => NameSource::Static(index),
        StaticMatch::Nothing => NameSource::Literal(name),
    };
    literal(name_source, value, is_sensitive(NameClass::of(name)), out);
}

/// Appends `:status`.
pub(crate) fn encode_status(status: Status, out: &mut Vec<u8>) {
    encode_static_field(b":status", &status.digits(), out);
}

/// Position of an entry in relation to the Base of a section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EntryIndex {
    /// Relative index, for an entry older than the Base (RFC 9204 §3.2.5).
    Relative(u64),
    /// Post-base index, for an entry as new as the Base or newer (RFC 9204 §3.2.6).
    PostBase(u64),
}

impl EntryIndex {
    pub(super) fn new(absolute: u64, base: u64) -> EntryIndex {
        match absolute.checked_sub(base) {
            Some(index) => EntryIndex::PostBase(index),
            None => EntryIndex::Relative(base - absolute - 1),
        }
    }
}

/// Source of the name of a literal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NameSource<'a> {
    Static(u64),
    Dynamic(EntryIndex),
    Literal(&'a [u8]),
}

/// Appends a reference to a field of the static table.
pub(super) fn indexed_static(index: u64, out: &mut Vec<u8>) {
    integer::encode(index, 6, 0xc0, out);
}

/// Appends a reference to an entry of the dynamic table.
pub(super) fn indexed_dynamic(index: EntryIndex, out: &mut Vec<u8>) {
    match index {
        EntryIndex::Relative(index) => integer::encode(index, 6, 0x80, out),
        EntryIndex::PostBase(index) => integer::encode(index, 4, 0x10, out),
    }
}

/// Appends a literal. `is_sensitive` sets the N bit, which forbids indexing on every hop.
pub(super) fn literal(name: NameSource<'_>, value: &[u8], is_sensitive: bool, out: &mut Vec<u8>) {
    let n = |bit: u8| if is_sensitive { bit } else { 0 };
    match name {
        NameSource::Static(index) => integer::encode(index, 4, 0x50 | n(0x20), out),
        NameSource::Dynamic(EntryIndex::Relative(index)) => integer::encode(index, 4, 0x40 | n(0x20), out),
        NameSource::Dynamic(EntryIndex::PostBase(index)) => integer::encode(index, 3, n(0x08), out),
        NameSource::Literal(name) => string::encode(name, 4, 0x20 | n(0x10), out),
    }
    string::encode(value, 8, 0, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_field_lines() {
        // Name, value, and the start of the expected field line.
        let rows: [(&[u8], &[u8], &[u8]); 6] = [
            (b":status", b"200", &[0xc0 | 25]),
            (b"x-frame-options", b"deny", &[0xff, 97 - 63]),
            (b"server", b"\x01", &[0x5f, 92 - 15, 1, 1]),
            (b"set-cookie", b"\x01", &[0x7e, 1, 1]),
            (b"\x01", b"\x02", &[0x21, 1, 1, 2]),
            // A field that must never be indexed. Its literal name has 12 bytes after Huffman coding.
            (b"www-authenticate", b"", &[0x3f, 5]),
        ];
        let mut expected_all = Vec::new();
        for (name, value, expected) in rows {
            let (mut out, text) = (Vec::new(), String::from_utf8_lossy(name));
            encode_static_field(name, value, &mut out);
            assert!(out.starts_with(expected), "{text}: {out:?}");
            // Only `www-authenticate` has 16 bytes. Its Huffman-coded name and the length of its empty value follow
            // `expected`.
            assert_eq!(
                out.len(),
                expected.len() + if name.len() == 16 { 12 + 1 } else { 0 },
                "{text}"
            );
            expected_all.extend_from_slice(&out);
        }
        let mut all = Vec::new();
        encode_static(rows.map(|(name, value, _)| (name, value)), &mut all);
        assert_eq!(all, expected_all);
    }

    #[test]
    fn statuses() {
        // Status, and the expected field line.
        for (status, expected) in [
            (Status::OK, [0xd9].as_slice()),
            (Status::NOT_FOUND, &[0xdb]),
            (Status::FORBIDDEN, &[0xff, 68 - 63]),
        ] {
            let mut out = Vec::new();
            encode_status(status, &mut out);
            assert_eq!(out, expected, "{status}");
        }
    }

    #[test]
    fn dynamic_field_lines() {
        // Absolute index, Base, and the expected field line.
        for (absolute, base, expected) in [(0, 1, 0x80), (0, 5, 0x84), (5, 5, 0x10), (7, 5, 0x12)] {
            let mut out = Vec::new();
            indexed_dynamic(EntryIndex::new(absolute, base), &mut out);
            assert_eq!(out, [expected]);
        }
        // Absolute index for a Base of 5, value of the N bit, and the first byte of the expected field line.
        for (absolute, is_sensitive, expected) in [(4, false, 0x40), (4, true, 0x60), (6, false, 0x01), (6, true, 0x09)]
        {
            let mut out = Vec::new();
            literal(
                NameSource::Dynamic(EntryIndex::new(absolute, 5)),
                b"",
                is_sensitive,
                &mut out,
            );
            assert_eq!(out, [expected, 0]);
        }
    }
}
