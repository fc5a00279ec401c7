//! Field blocks in and out through tables that stay, for fuzz targets and for another implementation to talk to.

use crate::h2::hpack::{Decoder, Encoder, FieldSink, NameClass};

/// A field, its name and its value.
pub type OwnedField = (Vec<u8>, Vec<u8>);

/// Both directions of one connection.
#[derive(Debug)]
pub struct Hpack {
    decoder: Decoder,
    encoder: Encoder,
}

impl Hpack {
    /// A decoder whose table has at most so many bytes, and an encoder as connections have it.
    pub fn new(table_size: usize) -> Hpack {
        Hpack {
            decoder: Decoder::new(table_size),
            encoder: Encoder::new(),
        }
    }

    /// The other side lets our table be so large.
    pub fn set_max_table_size(&mut self, size: u32) {
        self.encoder.set_max_table_size(size);
    }

    /// Reads a block; the fields before what is wrong with it, and whether anything is.
    pub fn decode(&mut self, block: &[u8]) -> (Vec<OwnedField>, bool) {
        let mut found = FieldCollector::default();
        let is_valid = self.decoder.decode(block, &mut found).is_ok();
        (found.fields, is_valid)
    }

    pub fn encode(&mut self, fields: &[OwnedField]) -> Vec<u8> {
        let mut out = Vec::new();
        self.encoder.begin_block(&mut out);
        for (name, value) in fields {
            self.encoder.encode(name, value, &mut out);
        }
        out
    }
}

/// Most fields that are kept of one block.
const MAX_FIELDS: usize = 256;

#[derive(Default)]
struct FieldCollector {
    buffer: Vec<u8>,
    fields: Vec<OwnedField>,
}

impl FieldSink for FieldCollector {
    fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    fn field(&mut self, _: NameClass, _: bool, start: usize, value: usize) {
        // What comes when it is full is not written out whole.
        if !self.is_full() {
            let field = (self.buffer[start..value].to_vec(), self.buffer[value..].to_vec());
            self.fields.push(field);
        }
        self.buffer.truncate(start);
    }

    fn is_full(&self) -> bool {
        self.fields.len() >= MAX_FIELDS
    }
}

/// Any bytes as field blocks: no panic, bounded memory, and what is read can be written and read again.
pub fn hpack(data: &[u8]) {
    let (first, data) = data.split_first().unwrap_or((&0, data));
    let size = usize::from(*first) * 32;
    let (mut codec, mut again) = (Hpack::new(size), Hpack::new(4096));
    codec.set_max_table_size(u32::from(*first) * 32);
    // Blocks of the bytes' own choosing, one behind the other through the same tables.
    for block in data.split(|&byte| byte == 0xfe) {
        let (fields, is_valid) = codec.decode(block);
        assert!(codec.decoder.memory() <= 4 * size + 1024, "the table is bounded");
        let out = codec.encode(&fields);
        assert_eq!(again.decode(&out), (fields, true));
        if !is_valid {
            return;
        }
    }
}
