//! HPACK encoder: writes indices for fields in a table and literals for others, Huffman-coded if that is shorter.

use super::dynamic_table::DynamicTable;
use super::indexing::{hash, is_indexed, is_sensitive};
use super::name::NameClass;
use super::static_table::{self, StaticMatch};
use super::{huffman, integer};
use crate::status::Status;

/// Largest dynamic table in bytes, even if the peer allows more. A server's responses have few distinct fields, and a
/// larger table would only use memory of idle connections.
const TABLE_MAX: usize = 4096;

// Forms of a literal (RFC 7541 §6.2): the pattern of the first byte, and the number of its bits for the index.

/// Literal that is added to the dynamic table.
const INCREMENTAL: (u8, u32) = (0x40, 6);
/// Literal that is not added to the dynamic table.
const WITHOUT_INDEXING: (u8, u32) = (0x00, 4);
/// Literal that no hop may add to a dynamic table.
const NEVER_INDEXED: (u8, u32) = (0x10, 4);

/// Encoder of one connection, with its dynamic table.
#[derive(Debug)]
pub(crate) struct Encoder {
    table: DynamicTable,
    /// Smallest and last table size since the last block, to be sent at the start of the next block (RFC 7541 §4.2).
    pending_sizes: Option<(usize, usize)>,
}

impl Encoder {
    pub(crate) const fn new() -> Self {
        Self {
            table: DynamicTable::new(TABLE_MAX),
            pending_sizes: None,
        }
    }

    /// Returns the memory used, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.table.memory()
    }

    /// Applies the peer's SETTINGS_HEADER_TABLE_SIZE.
    pub(crate) fn set_max_table_size(&mut self, allowed: u32) {
        let size = TABLE_MAX.min(allowed as usize);
        if size == self.pending_sizes.map_or(self.table.max(), |(_, last)| last) {
            return;
        }
        let smallest = self.pending_sizes.map_or(size, |(smallest, _)| smallest.min(size));
        self.pending_sizes = Some((smallest, size));
        // The peer evicts the entries that do not fit into the smallest size, so they are evicted here, too.
        self.table.set_max(smallest);
        self.table.set_max(size);
    }

    /// Returns whether the next block needs no table size update.
    #[inline]
    pub(crate) fn has_sent_table_size(&self) -> bool {
        self.pending_sizes.is_none()
    }

    /// Appends pending table size updates. Must be called at the start of every block, including prepared heads, unless
    /// [`has_sent_table_size`](Self::has_sent_table_size) returns `true`.
    #[inline]
    pub(crate) fn begin_block(&mut self, out: &mut Vec<u8>) {
        if let Some((smallest, last)) = self.pending_sizes.take() {
            if smallest < last {
                integer::encode(smallest as u64, 5, 0x20, out);
            }
            integer::encode(last as u64, 5, 0x20, out);
        }
    }

    /// Appends a field. The name must be in lower case.
    pub(crate) fn encode(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let class = NameClass::of(name);
        let mut index = match static_table::find(name, value) {
            StaticMatch::Field(index) => return integer::encode(index as u64, 7, 0x80, out),
            StaticMatch::NameOnly(index) => Some(index),
            StaticMatch::Nothing => None,
        };
        let hash = hash(name, value);
        let mut varies = false;
        if self.table.len() > 0 {
            for (position, entry) in self.table.iter().enumerate() {
                if entry.hash == hash && self.table.matches_field(entry, name, value) {
                    return integer::encode((static_table::COUNT + 1 + position) as u64, 7, 0x80, out);
                }
                // The low 16 bits of a hash are the hash of the name alone.
                if entry.hash as u16 == hash as u16 && self.table.matches_name(entry, name) {
                    // The previous value of the name was different, so the next value will probably differ, too.
                    varies = true;
                    index.get_or_insert(static_table::COUNT + 1 + position);
                }
            }
        }
        let form = if is_sensitive(class) {
            NEVER_INDEXED
        } else if !varies && is_indexed(class, name, value, self.table.max()) {
            INCREMENTAL
        } else {
            WITHOUT_INDEXING
        };
        encode_literal(form, index, name, value, out);
        if form == INCREMENTAL {
            // The last argument, whether the value is valid, matters only to a decoder.
            self.table.insert(name, value, hash, class, true);
        }
    }
}

/// Appends a field that refers only to the static table, so that it is valid on every connection.
pub(crate) fn encode_field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let index = match static_table::find(name, value) {
        StaticMatch::Field(index) => return integer::encode(index as u64, 7, 0x80, out),
        StaticMatch::NameOnly(index) => Some(index),
        StaticMatch::Nothing => None,
    };
    let form = if is_sensitive(NameClass::of(name)) {
        NEVER_INDEXED
    } else {
        WITHOUT_INDEXING
    };
    encode_literal(form, index, name, value, out);
}

/// Appends `:status`.
pub(crate) fn encode_status(status: Status, out: &mut Vec<u8>) {
    encode_field(b":status", &status.digits(), out);
}

/// Appends a literal field in the given form (RFC 7541 §6.2).
fn encode_literal(form: (u8, u32), index: Option<usize>, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let (pattern, prefix) = form;
    match index {
        Some(index) => integer::encode(index as u64, prefix, pattern, out),
        None => {
            out.push(pattern);
            encode_string(name, out);
        }
    }
    encode_string(value, out);
}

/// Appends a string literal (RFC 7541 §5.2).
fn encode_string(bytes: &[u8], out: &mut Vec<u8>) {
    let coded = huffman::coded_length(bytes);
    if coded < bytes.len() {
        integer::encode(coded as u64, 7, 0x80, out);
        huffman::encode(bytes, out);
    } else {
        integer::encode(bytes.len() as u64, 7, 0, out);
        out.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::super::decoder::{Decoder, FieldSink};
    use super::*;
    use crate::fields::KnownField;
    use proptest::prelude::*;

    #[derive(Default)]
    struct DecodedFields {
        buffer: Vec<u8>,
        fields: Vec<(Vec<u8>, Vec<u8>)>,
    }

    impl FieldSink for DecodedFields {
        fn buffer(&mut self) -> &mut Vec<u8> {
            &mut self.buffer
        }

        fn field(&mut self, _: NameClass, _: bool, name_start: usize, value_start: usize) {
            let (name, value) = (&self.buffer[name_start..value_start], &self.buffer[value_start..]);
            self.fields.push((name.to_vec(), value.to_vec()));
        }

        fn is_full(&self) -> bool {
            false
        }
    }

    /// Returns the names and values in a valid block.
    fn decoded(decoder: &mut Decoder, block: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut fields = DecodedFields::default();
        assert_eq!(decoder.decode(block, &mut fields), Ok(()));
        fields.fields
    }

    #[test]
    fn a_repeated_field_is_sent_as_an_index() {
        let (mut encoder, mut out) = (Encoder::new(), Vec::new());
        encoder.encode(b"x-frame-options", b"DENY", &mut out);
        let first = out.len();
        encoder.encode(b"x-frame-options", b"DENY", &mut out);
        // 62 is the first index of the dynamic table.
        assert_eq!(&out[first..], [0x80 | 62]);
        // A name with several values is not indexed again.
        for round in 0..3 {
            encoder.encode(b"x-frame-options", &[b'a' + round; 9], &mut out);
            assert_eq!(encoder.table.len(), 1);
        }
    }

    /// The first byte of a literal shows whether the encoder treats the field as sensitive or indexes it (RFC 7541
    /// §6.2).
    #[test]
    fn known_fields_are_encoded_as_sensitive_or_indexed() {
        for &known in KnownField::ALL {
            let (name, mut out) = (known.as_str().as_bytes(), Vec::new());
            Encoder::new().encode(name, b"a value", &mut out);
            let class = NameClass::Known(known);
            assert_eq!(is_sensitive(class), out[0] & 0xf0 == 0x10, "{}", known.as_str());
            assert_eq!(
                is_indexed(class, name, b"a value", TABLE_MAX),
                out[0] & 0x40 != 0,
                "{}",
                known.as_str()
            );
        }
    }

    #[test]
    fn fields_are_indexed_unless_sensitive_or_varying() {
        // Each row has a name and the first byte of the encoded field. 0x1f begins a never-indexed literal, and 0x0f
        // a literal without indexing; in both, the index of the name is above 14. `vary` has index 59 and is added to
        // the table.
        for (name, first) in [("set-cookie", 0x1f), ("etag", 0x0f), ("vary", 0x40 | 59)] {
            let (mut encoder, mut out) = (Encoder::new(), Vec::new());
            encoder.encode(name.as_bytes(), b"value", &mut out);
            assert_eq!(
                (out[0], encoder.table.len()),
                (first, usize::from(name == "vary")),
                "{name}"
            );
            out.clear();
            encode_field(name.as_bytes(), b"value", &mut out);
            assert_eq!(out[0], if name == "set-cookie" { 0x1f } else { 0x0f }, "{name}");
        }
    }

    #[test]
    fn size_updates_are_sent_once_smallest_and_final() {
        // Sizes that the peer allows one after the other, and the bytes at the start of the next block.
        let rows: &[(&[u32], &[u8])] = &[
            (&[65536], &[]),
            (&[4096], &[]),
            (&[0], &[0x20]),
            (&[0, 65536], &[0x20, 0x3f, 0xe1, 0x1f]),
            (&[100, 10, 20], &[0x2a, 0x34]),
        ];
        for (sizes, expected) in rows {
            let (mut encoder, mut out) = (Encoder::new(), Vec::new());
            encoder.encode(b"x", b"y", &mut out);
            for &size in *sizes {
                encoder.set_max_table_size(size);
            }
            out.clear();
            encoder.begin_block(&mut out);
            assert_eq!(out, *expected, "{sizes:?}");
            encoder.begin_block(&mut out);
            assert_eq!(out.len(), expected.len(), "{sizes:?}");
        }
    }

    #[test]
    fn statuses_are_encoded_compactly() {
        // Status, and a form that the encoded field must not exceed in length.
        for (status, reference) in [
            (Status::OK, [0x88].as_slice()),
            (Status::NOT_FOUND, &[0x8d]),
            (Status::FORBIDDEN, &[0x08, 0x03, b'4', b'0', b'3']),
        ] {
            let mut out = Vec::new();
            encode_status(status, &mut out);
            let (mut decoder, mut coded) = (Decoder::new(0), DecodedFields::default());
            assert_eq!(decoder.decode(&out, &mut coded), Ok(()));
            assert_eq!(coded.fields, [(b":status".to_vec(), status.digits().to_vec())]);
            assert!(out.len() <= reference.len(), "{status}");
        }
    }

    proptest! {
        /// A decoder in sync reads back fields that were encoded while the table size changed. Each block has an
        /// optional new table size and a list of fields, and each field has an index into `NAMES` and a value.
        #[test]
        fn decoding_inverts_encoding(
            blocks in prop::collection::vec(
                (
                    prop::option::weighted(0.3, 0u32..5000),
                    prop::collection::vec((0usize..8, prop::collection::vec(any::<u8>(), 0..40)), 0..20),
                ),
                0..12,
            ),
        ) {
            const NAMES: [&str; 8] = ["a", "vary", "server", "set-cookie", "etag", "x-one", "x-two", "content-type"];
            let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(TABLE_MAX));
            for (size, fields) in blocks {
                if let Some(size) = size {
                    encoder.set_max_table_size(size);
                }
                let mut out = Vec::new();
                encoder.begin_block(&mut out);
                let mut expected = Vec::new();
                for (name, value) in fields {
                    // Few distinct values, so that the table is used.
                    let value: Vec<u8> = value.iter().map(|byte| byte % 3 * 60).collect();
                    encoder.encode(NAMES[name].as_bytes(), &value, &mut out);
                    expected.push((NAMES[name].as_bytes().to_vec(), value));
                }
                let mut found = DecodedFields::default();
                prop_assert_eq!(decoder.decode(&out, &mut found), Ok(()));
                // Each field starts where the last field ended.
                let mut at = 0;
                for (name, value) in &expected {
                    let end = at + name.len() + value.len();
                    prop_assert_eq!(&found.buffer[at..end], [name.as_slice(), value].concat());
                    at = end;
                }
                prop_assert_eq!(found.fields.len(), expected.len());
            }
        }
    }

    #[test]
    fn static_encoding_is_independent_of_the_dynamic_table() {
        let mut out = Vec::new();
        for (name, value) in [("content-type", "text/html"), ("x-a", "b"), (":status", "418")] {
            encode_field(name.as_bytes(), value.as_bytes(), &mut out);
        }
        let mut decoder = Decoder::new(4096);
        // The decoder's dynamic table has an entry before the fields are decoded.
        let mut before = DecodedFields::default();
        assert_eq!(decoder.decode(&[0x40, 1, b'q', 1, b'r'], &mut before), Ok(()));
        let fields = decoded(&mut decoder, &out);
        assert_eq!(fields.len(), 3);
        assert!(fields[1].0.ends_with(b"x-a") && fields[2].1.starts_with(b"418"));
    }
}
