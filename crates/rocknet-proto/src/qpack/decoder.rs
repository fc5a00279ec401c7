//! Decoder of the field sections of a client: its dynamic table, blocked streams, and acknowledgments.

use super::decoder_stream::DecoderInstruction;
use super::encoder_stream::EncoderInstruction;
use super::instruction_buffer::InstructionBuffer;
use super::prefix::{SectionPrefix, max_entries};
use super::read_error::ReadError;
use super::section_reader::SectionReader;
use super::string::StringLiteral;
use super::table::Table;
use super::{QpackError, static_table};
use crate::hpack::dynamic_table::{ENTRY_OVERHEAD, SIZE_CEILING};
use crate::hpack::{FieldSink, NameClass, is_valid_value};

/// Decoder of one connection.
#[derive(Debug)]
pub(crate) struct Decoder {
    table: Table,
    /// Announced capacity in bytes; the client chooses any capacity up to it.
    max_capacity: usize,
    /// Number of streams that may be blocked at once.
    blocked_max: usize,
    blocked: Vec<BlockedStream>,
    /// Insert count that the decoder has acknowledged to the client.
    acknowledged: u64,
    instructions: InstructionBuffer,
    /// Bytes to send on the decoder stream.
    output: Vec<u8>,
}

/// Stream whose section refers to entries that have not been received.
#[derive(Clone, Copy, Debug)]
struct BlockedStream {
    stream: u64,
    /// Insert count that the section requires.
    required: u64,
}

/// Result of [`Decoder::decode`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SectionOutcome {
    /// The sink received all fields.
    Decoded,
    /// The sink received nothing, because entries of the dynamic table are missing. The section must be passed again
    /// when [`Decoder::is_ready`] returns true.
    Blocked,
}

impl Decoder {
    /// Creates a decoder for the announced settings. `capacity` is at most 65,535 bytes.
    pub(crate) const fn new(capacity: usize, blocked_streams: usize) -> Self {
        assert!(capacity <= SIZE_CEILING, "the capacity exceeds the largest table");
        Self {
            table: Table::new(),
            max_capacity: capacity,
            blocked_max: blocked_streams,
            blocked: Vec::new(),
            acknowledged: 0,
            instructions: InstructionBuffer::new(),
            output: Vec::new(),
        }
    }

    /// Receives bytes of the client's encoder stream. The bytes may be split at any position. Returns the number of
    /// instructions that were completed.
    pub(crate) fn receive_instructions(&mut self, bytes: &[u8]) -> Result<usize, QpackError> {
        let (table, max_capacity, mut field) = (&mut self.table, self.max_capacity, Vec::new());
        self.instructions.receive(bytes, |unread| {
            // An entry with a longer string would exceed the capacity. The limit also bounds the memory of an
            // incomplete instruction.
            let limit = table.capacity().saturating_sub(ENTRY_OVERHEAD) as u64;
            let Some((instruction, length)) = EncoderInstruction::read(unread, limit)? else {
                return Ok(None);
            };
            apply(instruction, table, max_capacity, &mut field)?;
            Ok(Some(length))
        })
    }

    /// Decodes a complete field section of a stream.
    pub(crate) fn decode(
        &mut self,
        stream: u64,
        section: &[u8],
        sink: &mut impl FieldSink,
    ) -> Result<SectionOutcome, QpackError> {
        let (prefix, at) = self.prefix(section)?;
        if prefix.required > self.table.inserted() {
            self.block(stream, prefix.required)?;
            return Ok(SectionOutcome::Blocked);
        }
        self.unblock(stream);
        let table = &self.table;
        SectionReader { table, prefix, section }.decode(at, sink)?;
        if prefix.required > 0 {
            DecoderInstruction::Acknowledge(stream).write(&mut self.output);
            self.acknowledged = self.acknowledged.max(prefix.required);
        }
        Ok(SectionOutcome::Decoded)
    }

    /// Returns whether a section that was blocked can be decoded now. A section that is invalid is ready too, because
    /// decoding it returns its error.
    pub(crate) fn is_ready(&self, section: &[u8]) -> bool {
        match self.prefix(section) {
            Ok((prefix, _)) => prefix.required <= self.table.inserted(),
            Err(_) => true,
        }
    }

    /// Decodes the prefix of a section. Returns the prefix and its end.
    #[inline]
    fn prefix(&self, section: &[u8]) -> Result<(SectionPrefix, usize), QpackError> {
        SectionPrefix::decode(section, max_entries(self.max_capacity as u64), self.table.inserted())
    }

    /// Counts a blocked stream. Fails if too many streams are blocked. Streams whose required entries have arrived are
    /// no longer blocked (RFC 9204 §2.2.1).
    fn block(&mut self, stream: u64, required: u64) -> Result<(), QpackError> {
        let inserted = self.table.inserted();
        self.blocked
            .retain(|blocked| blocked.stream != stream && blocked.required > inserted);
        if self.blocked.len() >= self.blocked_max {
            return Err(QpackError::BlockedStreams);
        }
        self.blocked.push(BlockedStream { stream, required });
        Ok(())
    }

    #[inline]
    fn unblock(&mut self, stream: u64) {
        if !self.blocked.is_empty() {
            self.blocked.retain(|blocked| blocked.stream != stream);
        }
    }

    /// Called when a stream is abandoned before all its sections were decoded (RFC 9204 §2.2.2.2). The client releases
    /// its references when it receives the Stream Cancellation. If the announced capacity is 0, there are no
    /// references, so no Stream Cancellation is sent.
    pub(crate) fn cancel(&mut self, stream: u64) {
        self.unblock(stream);
        if self.max_capacity > 0 {
            DecoderInstruction::Cancel(stream).write(&mut self.output);
        }
    }

    /// Returns the bytes to send on the decoder stream. Entries that no Section Acknowledgment has covered are
    /// acknowledged by one Insert Count Increment.
    pub(crate) fn output(&mut self) -> &mut Vec<u8> {
        let unacknowledged = self.table.inserted() - self.acknowledged;
        if unacknowledged > 0 {
            DecoderInstruction::Increment(unacknowledged).write(&mut self.output);
            self.acknowledged = self.table.inserted();
        }
        &mut self.output
    }

    /// Returns the memory used, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.table.memory()
            + self.blocked.capacity() * size_of::<BlockedStream>()
            + self.instructions.memory()
            + self.output.capacity()
    }
}

/// Hash of every entry, because a decoder does not look fields up.
const NO_HASH: u32 = 0;

/// Applies an instruction to the table. `field` is a buffer for the name and the value.
fn apply(
    instruction: EncoderInstruction<'_>,
    table: &mut Table,
    max_capacity: usize,
    field: &mut Vec<u8>,
) -> Result<(), QpackError> {
    field.clear();
    let (class, value) = match instruction {
        EncoderInstruction::SetCapacity(capacity) => {
            let capacity = usize::try_from(capacity)
                .ok()
                .filter(|&capacity| capacity <= max_capacity);
            table.set_capacity(capacity.ok_or(QpackError::TableCapacity)?);
            return Ok(());
        }
        EncoderInstruction::Duplicate(index) => {
            let entry = *table.newest(index).ok_or(QpackError::InstructionIndex)?;
            let name_length = table.fields().copy_field(&entry, field);
            let (name, value) = field.split_at(name_length);
            return check_fit(table.insert(name, value, NO_HASH, entry.class, entry.value_valid));
        }
        EncoderInstruction::InsertStaticName { index, value } => {
            let name = static_table::at(index).ok_or(QpackError::InstructionIndex)?;
            field.extend_from_slice(name.name);
            (name.class, value)
        }
        EncoderInstruction::InsertDynamicName { index, value } => {
            let entry = table.newest(index).ok_or(QpackError::InstructionIndex)?;
            table.fields().copy_name(entry, field);
            (entry.class, value)
        }
        EncoderInstruction::InsertLiteralName { name, value } => {
            append(name, field)?;
            (NameClass::of(field), value)
        }
    };
    let name_length = field.len();
    append(value, field)?;
    let (name, value) = field.split_at(name_length);
    check_fit(table.insert(name, value, NO_HASH, class, is_valid_value(value)))
}

/// Appends the decoded string of an instruction.
fn append(string: StringLiteral<'_>, out: &mut Vec<u8>) -> Result<(), QpackError> {
    string
        .append_to(out)
        .map_err(|_: ReadError| QpackError::InstructionHuffman)
}

/// Converts the result of [`Table::insert`], which is false if the entry is too large.
fn check_fit(fits: bool) -> Result<(), QpackError> {
    if fits { Ok(()) } else { Err(QpackError::EntryTooLarge) }
}
