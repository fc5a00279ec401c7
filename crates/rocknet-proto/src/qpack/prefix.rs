//! Prefix of a field section: the Required Insert Count and the Base (RFC 9204 §4.5.1).

use super::QpackError;
use super::integer;
use super::read_error::ReadError;
use crate::hpack::dynamic_table::ENTRY_OVERHEAD;

/// State of the dynamic table to which a field section refers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SectionPrefix {
    /// Number of insertions after which the section can be decoded. 0 if the section does not refer to the dynamic
    /// table.
    pub required: u64,
    /// Absolute index from which the indices in field lines are counted (RFC 9204 §3.2.5, §3.2.6).
    pub base: u64,
}

/// Returns the maximum number of entries of a table with this maximum capacity. Insert counts are encoded modulo twice
/// this number.
pub(super) const fn max_entries(max_capacity: u64) -> u64 {
    max_capacity / ENTRY_OVERHEAD as u64
}

impl SectionPrefix {
    /// Decodes the prefix at the start of a section. Returns the prefix and its end. `inserted` is the insert count of
    /// the decoder's table.
    #[inline]
    pub(super) fn decode(section: &[u8], max_entries: u64, inserted: u64) -> Result<(Self, usize), QpackError> {
        let (encoded, at) = integer::decode(section, 0, 8).map_err(section_error)?;
        let required = decode_required(encoded, max_entries, inserted).ok_or(QpackError::InsertCount)?;
        let is_negative = section.get(at).is_some_and(|byte| byte & 0x80 != 0);
        let (delta, end) = integer::decode(section, at, 7).map_err(section_error)?;
        let base = if is_negative {
            required.checked_sub(delta + 1).ok_or(QpackError::Base)?
        } else {
            required + delta
        };
        Ok((Self { required, base }, end))
    }

    /// Appends the prefix. With a `max_entries` of 0, `required` must be 0, because the table has no entries.
    pub(super) fn encode(self, max_entries: u64, out: &mut Vec<u8>) {
        let encoded = match self.required {
            0 => 0,
            required => required % (2 * max_entries) + 1,
        };
        integer::encode(encoded, 8, 0, out);
        match self.base.checked_sub(self.required) {
            Some(delta) => integer::encode(delta, 7, 0, out),
            None => integer::encode(self.required - self.base - 1, 7, 0x80, out),
        }
    }
}

/// Restores a Required Insert Count that was encoded modulo twice the maximum number of entries (RFC 9204 §4.5.1.1).
/// Returns `None` if no encoder produces `encoded`.
fn decode_required(encoded: u64, max_entries: u64, inserted: u64) -> Option<u64> {
    if encoded == 0 {
        return Some(0);
    }
    let full_range = 2 * max_entries;
    if encoded > full_range {
        return None;
    }
    let max = inserted + max_entries;
    let required = max / full_range * full_range + encoded - 1;
    let required = if required > max {
        required.checked_sub(full_range)?
    } else {
        required
    };
    // 0 is always encoded as 0.
    (required > 0).then_some(required)
}

/// Maps an error from reading a field section. All bytes of the section have been received, so missing bytes are an
/// error.
pub(super) fn section_error(error: ReadError) -> QpackError {
    match error {
        // `StringTooLong` does not occur, because the strings of a section are read without a limit.
        ReadError::Incomplete | ReadError::StringTooLong => QpackError::Truncated,
        ReadError::IntegerTooLarge => QpackError::IntegerTooLarge,
        ReadError::Huffman => QpackError::Huffman,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the Required Insert Count and the Base of a section.
    fn decode(section: &[u8], max_entries: u64, inserted: u64) -> Result<(u64, u64), QpackError> {
        SectionPrefix::decode(section, max_entries, inserted).map(|(prefix, _)| (prefix.required, prefix.base))
    }

    #[test]
    fn prefixes() {
        // Section, `max_entries`, `inserted`, and the expected Required Insert Count and Base. The first two rows are
        // examples of RFC 9204 §4.5.1.
        type Row = (&'static [u8], u64, u64, Result<(u64, u64), QpackError>);
        let rows: &[Row] = &[
            (&[4, 0], 3, 10, Ok((9, 9))),
            (&[4, 0x82], 3, 10, Ok((9, 6))),
            (&[0, 0], 0, 0, Ok((0, 0))),
            (&[0, 5], 0, 0, Ok((0, 5))),
            (&[0, 0x80], 0, 0, Err(QpackError::Base)),
            (&[4, 0x88], 3, 10, Ok((9, 0))),
            (&[4, 0x89], 3, 10, Err(QpackError::Base)),
            (&[1, 0], 0, 0, Err(QpackError::InsertCount)),
            (&[7, 0], 3, 10, Err(QpackError::InsertCount)),
            // An insert count of 0 that is not encoded as 0.
            (&[1, 0], 3, 0, Err(QpackError::InsertCount)),
            // A count of 4. No entries were received and the table has room for 3, so the largest valid count is 3.
            (&[5, 0], 3, 0, Err(QpackError::InsertCount)),
            (&[4, 0], 3, 0, Ok((3, 3))),
            (&[], 3, 0, Err(QpackError::Truncated)),
            (&[0], 3, 0, Err(QpackError::Truncated)),
            (&[0, 0x7f], 3, 0, Err(QpackError::Truncated)),
            (&[0xff; 12], 3, 0, Err(QpackError::IntegerTooLarge)),
        ];
        for &(section, max_entries, inserted, expected) in rows {
            assert_eq!(
                decode(section, max_entries, inserted),
                expected,
                "{section:?} {max_entries} {inserted}"
            );
        }
    }

    proptest! {
        /// The required count may exceed the decoder's insert count by up to `max_entries`, or be lower by less than
        /// `max_entries`.
        #[test]
        fn decoding_inverts_encoding(
            max_entries in prop_oneof![1u64..200, 1u64..1 << 57],
            inserted in prop_oneof![0u64..1000, 0u64..1 << 60],
            offset: u64,
            base in 0u64..3000,
        ) {
            let lowest = (inserted + 1).saturating_sub(max_entries).max(1);
            let required = lowest + offset % (inserted + max_entries + 1 - lowest);
            let base = (required + base).saturating_sub(1000);
            let (prefix, mut out) = (SectionPrefix { required, base }, Vec::new());
            prefix.encode(max_entries, &mut out);
            prop_assert_eq!(SectionPrefix::decode(&out, max_entries, inserted), Ok((prefix, out.len())));
        }
    }
}
