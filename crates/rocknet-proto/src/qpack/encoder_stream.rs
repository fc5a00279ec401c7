//! Instructions of the encoder stream, which change the dynamic table of the peer (RFC 9204 §4.3).

use super::read_error::ReadError;
use super::string::{self, StringLiteral};
use super::{QpackError, integer};

/// Instruction as it was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EncoderInstruction<'a> {
    /// New capacity of the table, in bytes.
    SetCapacity(u64),
    /// Insertion with the name of the static table's field at `index`.
    InsertStaticName { index: u64, value: StringLiteral<'a> },
    /// Insertion with the name of the dynamic table's entry at `index`, relative to the newest entry.
    InsertDynamicName { index: u64, value: StringLiteral<'a> },
    /// Insertion with a name that the instruction contains.
    InsertLiteralName {
        name: StringLiteral<'a>,
        value: StringLiteral<'a>,
    },
    /// Insertion of a copy of the entry at this index, relative to the newest entry.
    Duplicate(u64),
}

impl<'a> EncoderInstruction<'a> {
    /// Reads the instruction at the start of `bytes` and returns it with its length; `None` if the instruction is
    /// incomplete. Fails if the length of a name or value shows that it decodes to more than `limit` bytes.
    pub(super) fn read(bytes: &'a [u8], limit: u64) -> Result<Option<(Self, usize)>, QpackError> {
        match Self::read_complete(bytes, limit) {
            Ok(found) => Ok(Some(found)),
            Err(ReadError::Incomplete) => Ok(None),
            Err(ReadError::IntegerTooLarge) => Err(QpackError::InstructionInteger),
            Err(ReadError::StringTooLong) => Err(QpackError::EntryTooLarge),
            Err(ReadError::Huffman) => Err(QpackError::InstructionHuffman),
        }
    }

    /// Reads an instruction like [`read`](Self::read), but returns [`ReadError::Incomplete`] if it is incomplete.
    fn read_complete(bytes: &'a [u8], limit: u64) -> Result<(Self, usize), ReadError> {
        let first = *bytes.first().ok_or(ReadError::Incomplete)?;
        if first & 0x80 != 0 {
            let (index, at) = integer::decode(bytes, 0, 6)?;
            let (value, end) = StringLiteral::read(bytes, at, 8, limit)?;
            let instruction = if first & 0x40 != 0 {
                Self::InsertStaticName { index, value }
            } else {
                Self::InsertDynamicName { index, value }
            };
            return Ok((instruction, end));
        }
        if first & 0x40 != 0 {
            let (name, at) = StringLiteral::read(bytes, 0, 6, limit)?;
            let (value, end) = StringLiteral::read(bytes, at, 8, limit)?;
            return Ok((Self::InsertLiteralName { name, value }, end));
        }
        let (number, end) = integer::decode(bytes, 0, 5)?;
        let instruction = if first & 0x20 != 0 {
            Self::SetCapacity(number)
        } else {
            Self::Duplicate(number)
        };
        Ok((instruction, end))
    }
}

/// Appends Set Dynamic Table Capacity (RFC 9204 §4.3.1).
pub(super) fn set_capacity(capacity: u64, out: &mut Vec<u8>) {
    integer::encode(capacity, 5, 0x20, out);
}

/// Appends an insertion, with its name from the static table if an index is given (RFC 9204 §4.3.2, §4.3.3).
pub(super) fn insert(static_name: Option<u64>, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    match static_name {
        Some(index) => integer::encode(index, 6, 0xc0, out),
        None => string::encode(name, 6, 0x40, out),
    }
    string::encode(value, 8, 0, out);
}

/// Appends a Duplicate instruction. `relative` is the index of the entry, relative to the newest entry (RFC 9204
/// §4.3.4).
pub(super) fn duplicate(relative: u64, out: &mut Vec<u8>) {
    integer::encode(relative, 5, 0, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_read_back() {
        let string = |literal: StringLiteral<'_>| {
            let mut out = Vec::new();
            literal.append_to(&mut out).map(|()| out)
        };
        let mut bytes = Vec::new();
        set_capacity(4096, &mut bytes);
        insert(Some(92), b"server", b"RockNet", &mut bytes);
        insert(None, b"x-name", b"a value", &mut bytes);
        duplicate(40, &mut bytes);
        let mut at = 0;
        // Reads the next instruction. All shorter prefixes of the bytes are incomplete.
        let mut next = || {
            let read = |end: usize| EncoderInstruction::read(&bytes[at..end], 100).expect("a valid instruction");
            let (end, (instruction, length)) = (at + 1..=bytes.len())
                .find_map(|end| Some((end, read(end)?)))
                .expect("a further instruction");
            at += length;
            assert_eq!(at, end);
            instruction
        };
        assert_eq!(next(), EncoderInstruction::SetCapacity(4096));
        let EncoderInstruction::InsertStaticName { index: 92, value } = next() else {
            panic!("a wrong instruction")
        };
        assert_eq!(string(value), Ok(b"RockNet".to_vec()));
        let EncoderInstruction::InsertLiteralName { name, value } = next() else {
            panic!("a wrong instruction")
        };
        assert_eq!(
            (string(name), string(value)),
            (Ok(b"x-name".to_vec()), Ok(b"a value".to_vec()))
        );
        assert_eq!(next(), EncoderInstruction::Duplicate(40));
        assert_eq!(at, bytes.len());
    }

    #[test]
    fn strings_and_integers_are_bounded_before_they_are_complete() {
        // The first three instructions announce a string of 101 bytes, one more than the limit.
        for (bytes, error) in [
            ([0x80, 0x65].as_slice(), QpackError::EntryTooLarge),
            (&[0x5f, 0x46], QpackError::EntryTooLarge),
            (&[0x41, b'a', 0x65], QpackError::EntryTooLarge),
            (&[0xff; 11], QpackError::InstructionInteger),
            (
                &[0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
                QpackError::InstructionInteger,
            ),
        ] {
            assert_eq!(EncoderInstruction::read(bytes, 100), Err(error), "{bytes:?}");
        }
    }
}
