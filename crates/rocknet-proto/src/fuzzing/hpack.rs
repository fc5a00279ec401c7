//! HPACK codec with persistent tables, for fuzz targets and for comparisons with another implementation.

use super::field_collector::{FieldCollector, OwnedField};
use crate::hpack::{Decoder, Encoder};

/// Decoder and encoder of one connection.
#[derive(Debug)]
pub struct Hpack {
    decoder: Decoder,
    encoder: Encoder,
}

impl Hpack {
    /// Creates a decoder with a dynamic table of at most `table_size` bytes, and an encoder with the default table size
    /// of a new connection.
    pub fn new(table_size: usize) -> Hpack {
        Hpack {
            decoder: Decoder::new(table_size),
            encoder: Encoder::new(),
        }
    }

    /// Sets the maximum size of the encoder's dynamic table, in bytes.
    pub fn set_max_table_size(&mut self, size: u32) {
        self.encoder.set_max_table_size(size);
    }

    /// Decodes a block. Returns the fields before the first error, at most 256, and true if there is no error.
    pub fn decode(&mut self, block: &[u8]) -> (Vec<OwnedField>, bool) {
        let mut found = FieldCollector::default();
        let is_valid = self.decoder.decode(block, &mut found).is_ok();
        (found.fields, is_valid)
    }

    /// Encodes fields to a block.
    pub fn encode(&mut self, fields: &[OwnedField]) -> Vec<u8> {
        let mut out = Vec::new();
        self.encoder.begin_block(&mut out);
        for (name, value) in fields {
            self.encoder.encode(name, value, &mut out);
        }
        out
    }
}

/// Decodes arbitrary bytes as field blocks; checks that tables are bounded, and that decoded fields survive encoding
/// and decoding.
pub fn hpack(data: &[u8]) {
    let (first, data) = data.split_first().unwrap_or((&0, data));
    // The first byte is the table size in units of 32 bytes, the overhead of an entry (RFC 7541 §4.1).
    let size = usize::from(*first) * 32;
    // `second` decodes what the encoder of `codec` writes. That encoder uses at most 4,096 bytes, even if more are
    // permitted.
    let (mut codec, mut second) = (Hpack::new(size), Hpack::new(4096));
    codec.set_max_table_size(u32::from(*first) * 32);
    // The byte 0xfe separates blocks, which share the tables.
    for block in data.split(|&byte| byte == 0xfe) {
        let (fields, is_valid) = codec.decode(block);
        // The table has a ring of bytes and a queue of entries of 16 bytes each. The bound allows both to grow by
        // doubling.
        assert!(codec.decoder.memory() <= 4 * size + 1024, "the table is bounded");
        let out = codec.encode(&fields);
        assert_eq!(second.decode(&out), (fields, true));
        if !is_valid {
            return;
        }
    }
}
