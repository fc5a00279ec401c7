//! Collects decoded fields for comparisons.

use crate::hpack::{FieldSink, NameClass};

/// Name and value of a field.
pub type OwnedField = (Vec<u8>, Vec<u8>);

/// Maximum number of fields to keep, far below the maximum of the decoders, so that inputs reach it.
const MAX_FIELDS: usize = 256;

/// Fields of a block or section, in their order.
#[derive(Default)]
pub(super) struct FieldCollector {
    /// Field that the decoder appends.
    buffer: Vec<u8>,
    pub(super) fields: Vec<OwnedField>,
}

impl FieldSink for FieldCollector {
    fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    fn field(&mut self, _: NameClass, _: bool, name_start: usize, value_start: usize) {
        // Fields after the limit are dropped: once the sink is full, the decoder passes only fields that enter the
        // dynamic table, so the list would have gaps.
        if !self.is_full() {
            let (name, value) = (&self.buffer[name_start..value_start], &self.buffer[value_start..]);
            self.fields.push((name.to_vec(), value.to_vec()));
        }
        self.buffer.truncate(name_start);
    }

    fn is_full(&self) -> bool {
        self.fields.len() >= MAX_FIELDS
    }
}
