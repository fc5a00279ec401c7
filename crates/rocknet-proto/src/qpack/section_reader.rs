//! Field lines of a section, from bytes to fields (RFC 9204 §4.5.2 to §4.5.6).

use super::prefix::{SectionPrefix, section_error};
use super::string::StringLiteral;
use super::table::Table;
use super::{QpackError, integer, static_table};
use crate::hpack::dynamic_table::TableEntry;
use crate::hpack::{FieldSink, NameClass, is_valid_value};

/// Maximum number of fields in one section. A section with more fields ends the connection. Only attacks send sections
/// of 2,000 or more fields.
pub(super) const MAX_FIELDS: usize = 2048;

/// Source of a name.
#[derive(Clone, Copy)]
enum Name<'a> {
    Static(&'static static_table::StaticField),
    Dynamic(&'a TableEntry),
    Literal(StringLiteral<'a>),
}

/// Section whose required entries have all been received.
pub(super) struct SectionReader<'a> {
    pub table: &'a Table,
    pub prefix: SectionPrefix,
    pub section: &'a [u8],
}

impl<'a> SectionReader<'a> {
    /// Decodes the field lines, which start at `at`. Memory use is bounded by the sink and by 8/5 of the section's
    /// size, because the shortest Huffman code has 5 bits.
    pub(super) fn decode(&self, mut at: usize, sink: &mut impl FieldSink) -> Result<(), QpackError> {
        let mut fields = 0;
        while let Some(&first) = self.section.get(at) {
            fields += 1;
            if fields > MAX_FIELDS {
                return Err(QpackError::TooManyFields);
            }
            at = if first & 0x80 != 0 {
                // Indexed field line (RFC 9204 §4.5.2).
                let (index, end) = self.integer(at, 6)?;
                if first & 0x40 != 0 {
                    copy_static(static_field(index)?, sink);
                } else {
                    self.copy_dynamic(self.before_base(index)?, sink);
                }
                end
            } else if first & 0x40 != 0 {
                // Literal with the name of an entry or of a field of the static table (§4.5.4).
                let (index, at) = self.integer(at, 4)?;
                let name = if first & 0x10 != 0 {
                    Name::Static(static_field(index)?)
                } else {
                    Name::Dynamic(self.before_base(index)?)
                };
                self.decode_literal(name, at, sink)?
            } else if first & 0x20 != 0 {
                // Literal with a literal name (§4.5.6).
                let (name, at) = self.string(at, 4)?;
                self.decode_literal(Name::Literal(name), at, sink)?
            } else if first & 0x10 != 0 {
                // Indexed field line with a post-base index (§4.5.3).
                let (index, end) = self.integer(at, 4)?;
                self.copy_dynamic(self.after_base(index)?, sink);
                end
            } else {
                // Literal with the name of an entry at a post-base index (§4.5.5).
                let (index, at) = self.integer(at, 3)?;
                self.decode_literal(Name::Dynamic(self.after_base(index)?), at, sink)?
            };
        }
        Ok(())
    }

    /// Reads the integer that begins in the low `prefix` bits of the byte at `at`. Returns the integer and its end.
    #[inline]
    fn integer(&self, at: usize, prefix: u32) -> Result<(u64, usize), QpackError> {
        integer::decode(self.section, at, prefix).map_err(section_error)
    }

    /// Reads the string that begins in the low `prefix` bits of the byte at `at`. Returns the string and its end.
    #[inline]
    fn string(&self, at: usize, prefix: u32) -> Result<(StringLiteral<'a>, usize), QpackError> {
        StringLiteral::read(self.section, at, prefix, u64::MAX).map_err(section_error)
    }

    /// Returns the entry at an index relative to the Base (RFC 9204 §3.2.5).
    #[inline]
    fn before_base(&self, index: u64) -> Result<&'a TableEntry, QpackError> {
        let base = self.prefix.base;
        self.entry(base.checked_sub(index).and_then(|end| end.checked_sub(1)))
    }

    /// Returns the entry at a post-base index (RFC 9204 §3.2.6).
    #[inline]
    fn after_base(&self, index: u64) -> Result<&'a TableEntry, QpackError> {
        self.entry(self.prefix.base.checked_add(index))
    }

    /// Returns the entry at an absolute index below the Required Insert Count (RFC 9204 §2.2.3).
    #[inline]
    fn entry(&self, absolute: Option<u64>) -> Result<&'a TableEntry, QpackError> {
        absolute
            .filter(|&absolute| absolute < self.prefix.required)
            .and_then(|absolute| self.table.get(absolute))
            .ok_or(QpackError::DynamicIndex)
    }

    #[inline]
    fn copy_dynamic(&self, entry: &TableEntry, sink: &mut impl FieldSink) {
        if sink.is_full() {
            return;
        }
        let buffer = sink.buffer();
        let start = buffer.len();
        let name_length = self.table.fields().copy_field(entry, buffer);
        sink.field(entry.class, entry.value_valid, start, start + name_length);
    }

    /// Decodes the value of a literal, which starts at `at`, and returns its end. Literals that must never be indexed
    /// are treated like other literals, because the server does not re-encode requests.
    fn decode_literal(&self, name: Name<'_>, at: usize, sink: &mut impl FieldSink) -> Result<usize, QpackError> {
        let (value, end) = self.string(at, 8)?;
        if sink.is_full() {
            return Ok(end);
        }
        let buffer = sink.buffer();
        let start = buffer.len();
        let class = match name {
            Name::Static(field) => {
                buffer.extend_from_slice(field.name);
                field.class
            }
            Name::Dynamic(entry) => {
                self.table.fields().copy_name(entry, buffer);
                entry.class
            }
            Name::Literal(name) => {
                name.append_to(buffer).map_err(section_error)?;
                NameClass::of(buffer.get(start..).unwrap_or_default())
            }
        };
        let value_start = buffer.len();
        value.append_to(buffer).map_err(section_error)?;
        let value_valid = is_valid_value(buffer.get(value_start..).unwrap_or_default());
        sink.field(class, value_valid, start, value_start);
        Ok(end)
    }
}

#[inline]
fn static_field(index: u64) -> Result<&'static static_table::StaticField, QpackError> {
    static_table::at(index).ok_or(QpackError::StaticIndex)
}

#[inline]
fn copy_static(field: &static_table::StaticField, sink: &mut impl FieldSink) {
    if sink.is_full() {
        return;
    }
    let buffer = sink.buffer();
    let start = buffer.len();
    buffer.extend_from_slice(field.name);
    buffer.extend_from_slice(field.value);
    // The values of the static table are all valid.
    sink.field(field.class, true, start, start + field.name.len());
}
