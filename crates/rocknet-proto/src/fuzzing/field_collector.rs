//! Collects decoded fields for comparisons.

use crate::hpack::{FieldSink, NameClass};

/// Name and value of a field.
pub type OwnedField = (Vec<u8>, Vec<u8>);

/// Maximum number of fields to keep, far below the maximum of the decoders, so that inputs reach it.
const MAX_FIELDS: usize = 256;

/// Fields of a block or section, in their order.
#[derive(Default)]
pub(super) struct FieldCollector {
    buffer: Vec<u8>,
    pub(super) fields: Vec<OwnedField>,
}

impl FieldSink for FieldCollector {
    fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    fn field(&mut self, _: NameClass, _: bool, start: usize, value: usize) {
        // The name begins at `start`, and the value extends from `value` to the end of the buffer. Fields after the
        // limit are dropped: once the sink is full, the decoder passes only fields that enter the dynamic table, so the
        // list would have gaps.
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
