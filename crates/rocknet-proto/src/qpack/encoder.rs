//! Encoder of the field sections of responses: its dynamic table, and the references that the client acknowledges.

use super::decoder_stream::DecoderInstruction;
use super::field_line::{
    EntryIndex, NameSource, STATIC_PREFIX, encode_static, indexed_dynamic, indexed_static, literal,
};
use super::instruction_buffer::InstructionBuffer;
use super::prefix::{SectionPrefix, max_entries};
use super::references::{References, SectionReferences};
use super::static_table::{self, StaticMatch};
use super::table::Table;
use super::{QpackError, encoder_stream};
use crate::hpack::NameClass;
use crate::hpack::dynamic_table::ENTRY_OVERHEAD;
use crate::hpack::indexing::{entry_size, hash, is_indexed, is_sensitive};

/// Largest capacity in bytes, even if the client allows more. A server's responses have few distinct fields, and a
/// larger table would only use memory of idle connections.
const CAPACITY_MAX: usize = 4096;

/// Size in bytes of the pending output at which no more entries are inserted; it equals [`CAPACITY_MAX`]. Output is
/// pending until the caller takes it. A caller may delay that while flow control blocks the encoder stream.
const OUTPUT_MAX: usize = 4096;

/// Encoder of one connection.
#[derive(Debug)]
pub(crate) struct Encoder {
    table: Table,
    /// Maximum number of entries, derived from the client's settings and not from the capacity in use.
    max_entries: u64,
    /// Number of streams that may be blocked at the client at once.
    blocked_max: u64,
    references: References,
    instructions: InstructionBuffer,
    /// Bytes to send on the encoder stream.
    output: Vec<u8>,
}

/// Section that is being encoded.
#[derive(Clone, Copy, Debug)]
struct OpenSection {
    /// Absolute index from which the indices in field lines are counted.
    base: u64,
    /// Required Insert Count so far.
    required: u64,
    /// Absolute index of the oldest entry referred to so far; `u64::MAX` without references.
    oldest: u64,
    /// Set if references to entries that the client may not have received are allowed in the section.
    may_block: bool,
}

impl OpenSection {
    /// Records a reference and returns its index.
    fn refer(&mut self, absolute: u64) -> EntryIndex {
        self.required = self.required.max(absolute + 1);
        self.oldest = self.oldest.min(absolute);
        EntryIndex::new(absolute, self.base)
    }

    /// Returns the prefix. Without references it is [`STATIC_PREFIX`].
    fn prefix(&self) -> SectionPrefix {
        SectionPrefix {
            required: self.required,
            base: if self.required > 0 { self.base } else { 0 },
        }
    }
}

/// Entries that match a field, by their absolute indices.
#[derive(Clone, Copy, Debug, Default)]
struct TableMatch {
    /// Entry with the field that may be referred to. An entry that the client has received is preferred.
    field: Option<u64>,
    /// Set if an entry has the field, even if it may not be referred to.
    has_field: bool,
    /// Set if `field` will be evicted soon, and no newer entry has the field.
    is_draining: bool,
    /// Newest entry that has the name with another value, that the client has received, and that will not be evicted
    /// soon. Entries that the client may not have received do not qualify, because a name alone is not worth the risk
    /// of blocking.
    name: Option<u64>,
    /// Set if an entry has the name with another value.
    has_name: bool,
}

impl Encoder {
    /// Creates an encoder that does not use the dynamic table before the client's settings arrive.
    pub(crate) const fn new() -> Self {
        Self {
            table: Table::new(),
            max_entries: 0,
            blocked_max: 0,
            references: References::new(),
            instructions: InstructionBuffer::new(),
            output: Vec::new(),
        }
    }

    /// Applies the client's settings, which arrive once (RFC 9114 §7.2.4).
    pub(crate) fn set_client_settings(&mut self, max_capacity: u64, blocked_streams: u64) {
        self.max_entries = max_entries(max_capacity);
        self.blocked_max = blocked_streams;
        let capacity = usize::try_from(max_capacity).map_or(CAPACITY_MAX, |max| max.min(CAPACITY_MAX));
        if capacity >= ENTRY_OVERHEAD {
            self.table.set_capacity(capacity);
            encoder_stream::set_capacity(capacity as u64, &mut self.output);
        }
    }

    /// Receives bytes of the client's decoder stream. The bytes may be split at any position. Returns the number of
    /// instructions that were completed.
    pub(crate) fn receive_instructions(&mut self, bytes: &[u8]) -> Result<usize, QpackError> {
        let (references, inserted) = (&mut self.references, self.table.inserted());
        self.instructions.receive(bytes, |unread| {
            let Some((instruction, length)) = DecoderInstruction::read(unread)? else {
                return Ok(None);
            };
            match instruction {
                DecoderInstruction::Acknowledge(stream) => references.acknowledge(stream)?,
                DecoderInstruction::Cancel(stream) => references.cancel(stream),
                DecoderInstruction::Increment(entries) => references.increment(entries, inserted)?,
            }
            Ok(Some(length))
        })
    }

    /// Appends a whole field section, prefix included. Names must be in lower case. New entries are written to
    /// [`output`](Self::output), which should be sent no later than the section.
    pub(crate) fn encode<'a>(
        &mut self,
        stream: u64,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        out: &mut Vec<u8>,
    ) {
        if self.table.capacity() == 0 || self.references.is_full() {
            out.extend_from_slice(&STATIC_PREFIX);
            encode_static(fields, out);
            return;
        }
        let start = out.len();
        let mut section = OpenSection {
            base: self.table.inserted(),
            required: 0,
            oldest: u64::MAX,
            may_block: self.references.may_block(stream, self.blocked_max),
        };
        for (name, value) in fields {
            self.encode_field(name, value, &mut section, out);
        }
        let prefix = section.prefix();
        if prefix.required > 0 {
            self.references.push(SectionReferences {
                stream,
                required: prefix.required,
                oldest: section.oldest,
            });
        }
        // The prefix depends on the field lines, so it is written after them and then moved before them.
        let end = out.len();
        prefix.encode(self.max_entries, out);
        let length = out.len() - end;
        if let Some(section) = out.get_mut(start..) {
            section.rotate_right(length);
        }
    }

    /// Appends one field line. Inserts or duplicates an entry if later sections are likely to refer to it. The last
    /// argument of `Table::insert`, whether the value is valid, matters only to a decoder.
    fn encode_field(&mut self, name: &[u8], value: &[u8], section: &mut OpenSection, out: &mut Vec<u8>) {
        let class = NameClass::of(name);
        let static_name = match static_table::find(name, value) {
            StaticMatch::Field(index) => return indexed_static(index, out),
            StaticMatch::NameOnly(index) => Some(index),
            StaticMatch::Nothing => None,
        };
        let is_sensitive = is_sensitive(class);
        let hash = hash(name, value);
        let found = self.find(name, value, hash, section.may_block);
        if let Some(absolute) = found.field {
            indexed_dynamic(section.refer(absolute), out);
            if found.is_draining && self.can_insert(entry_size(name, value), section) {
                encoder_stream::duplicate(self.table.inserted() - absolute - 1, &mut self.output);
                self.table.insert(name, value, hash, class, true);
            }
            return;
        }
        // If the table already has the name with another value, the field is not indexed, because the next value will
        // probably be different too.
        if !found.has_field
            && !found.has_name
            && is_indexed(class, name, value, self.table.capacity())
            && self.can_insert(entry_size(name, value), section)
        {
            let absolute = self.table.inserted();
            encoder_stream::insert(static_name, name, value, &mut self.output);
            self.table.insert(name, value, hash, class, true);
            if section.may_block {
                return indexed_dynamic(section.refer(absolute), out);
            }
        }
        let source = match (static_name, found.name) {
            (Some(index), _) => NameSource::Static(index),
            (None, Some(absolute)) => NameSource::Dynamic(section.refer(absolute)),
            (None, None) => NameSource::Literal(name),
        };
        literal(source, value, is_sensitive, out);
    }

    /// Looks a field up. Entries that the client may not have received are referred to only if `may_block` is set.
    fn find(&self, name: &[u8], value: &[u8], hash: u32, may_block: bool) -> TableMatch {
        let known_received = self.references.known_received();
        let (mut found, fields, mut size) = (TableMatch::default(), self.table.fields(), 0);
        for (absolute, entry) in self.table.iter() {
            size += entry.size() + ENTRY_OVERHEAD;
            // The oldest quarter of a full table will be evicted by the next insertions (RFC 9204 §2.1.1.1).
            let is_draining = size > self.table.capacity() / 4 * 3;
            // The low 16 bits of a hash are the hash of the name alone.
            if entry.hash == hash && fields.matches_field(entry, name, value) {
                found.is_draining = is_draining && !found.has_field;
                found.has_field = true;
                if absolute < known_received {
                    found.field = Some(absolute);
                    return found;
                }
                if may_block && found.field.is_none() {
                    found.field = Some(absolute);
                }
            } else if entry.hash as u16 == hash as u16 && fields.matches_name(entry, name) {
                found.has_name = true;
                if absolute < known_received && !is_draining && found.name.is_none() {
                    found.name = Some(absolute);
                }
            }
        }
        found
    }

    /// Returns whether an entry can be inserted. The pending output must be below its limit. The insertion must not
    /// evict an entry that is referred to or that the client has not acknowledged (RFC 9204 §2.1.1).
    fn can_insert(&self, size: usize, section: &OpenSection) -> bool {
        self.output.len() < OUTPUT_MAX && self.table.has_room(size, self.references.pinned().min(section.oldest))
    }

    /// Returns the bytes to send on the encoder stream.
    pub(crate) fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Returns the memory used, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.table.memory() + self.references.memory() + self.instructions.memory() + self.output.capacity()
    }
}
