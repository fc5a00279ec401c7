//! String literals whose Huffman flag and length share a byte with other bits (RFC 9204 §4.1.2).

use super::integer;
use super::read_error::ReadError;
use crate::hpack::huffman;

/// Largest number of bytes of a coded symbol, whose code has at most 30 bits.
const SYMBOL_MAX: u64 = 4;

/// String as it was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct StringLiteral<'a> {
    /// True if `bytes` is Huffman-coded.
    is_coded: bool,
    bytes: &'a [u8],
}

impl<'a> StringLiteral<'a> {
    /// Reads the string whose Huffman flag and length begin in the low `prefix` bits of the byte at `at`. Returns the
    /// string and its end. A string whose length shows that it decodes to more than `limit` bytes is an error, even
    /// before all of it has arrived.
    #[inline]
    pub(super) fn read(
        bytes: &'a [u8],
        at: usize,
        prefix: u32,
        limit: u64,
    ) -> Result<(StringLiteral<'a>, usize), ReadError> {
        let first = *bytes.get(at).ok_or(ReadError::Incomplete)?;
        let is_coded = first & 1 << (prefix - 1) != 0;
        let (length, start) = integer::decode(bytes, at, prefix - 1)?;
        let limit = if is_coded {
            limit.saturating_mul(SYMBOL_MAX)
        } else {
            limit
        };
        if length > limit {
            return Err(ReadError::StringTooLong);
        }
        let length = usize::try_from(length).map_err(|_| ReadError::Incomplete)?;
        let rest = bytes.get(start..).unwrap_or_default();
        let bytes = rest.get(..length).ok_or(ReadError::Incomplete)?;
        Ok((StringLiteral { is_coded, bytes }, start + length))
    }

    /// Appends the decoded string. It has at most 8/5 of the bytes received, because the shortest Huffman code has 5
    /// bits.
    #[inline]
    pub(super) fn append_to(self, out: &mut Vec<u8>) -> Result<(), ReadError> {
        if self.is_coded {
            return huffman::decode(self.bytes, out).map_err(|_| ReadError::Huffman);
        }
        out.extend_from_slice(self.bytes);
        Ok(())
    }
}

/// Appends a string, Huffman-coded if that is shorter. Its Huffman flag and length begin in the low `prefix` bits of
/// the first byte; `pattern` holds the bits above them.
pub(super) fn encode(string: &[u8], prefix: u32, pattern: u8, out: &mut Vec<u8>) {
    let coded = huffman::coded_length(string);
    if coded < string.len() {
        integer::encode(coded as u64, prefix - 1, pattern | 1 << (prefix - 1), out);
        huffman::encode(string, out);
    } else {
        integer::encode(string.len() as u64, prefix - 1, pattern, out);
        out.extend_from_slice(string);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn strings_above_the_limit_are_rejected_before_they_arrive() {
        let read = |bytes, limit| StringLiteral::read(bytes, 0, 8, limit).map(|(_, end)| end);
        assert_eq!(read(&[5], 4), Err(ReadError::StringTooLong));
        assert_eq!(read(&[5], 5), Err(ReadError::Incomplete));
        // The code of a rare symbol is longer than a byte, so a coded string may be longer than the limit.
        assert_eq!(read(&[0x80 | 16], 4), Err(ReadError::Incomplete));
        assert_eq!(read(&[0x80 | 17], 4), Err(ReadError::StringTooLong));
        let mut huge = Vec::new();
        integer::encode(integer::MAX, 7, 0, &mut huge);
        assert_eq!(read(&huge, u64::MAX), Err(ReadError::Incomplete));
    }

    #[test]
    fn invalid_codes_are_rejected() {
        for bytes in [[0x82, 0xff, 0xff].as_slice(), &[0x84, 0xff, 0xff, 0xff, 0xfc]] {
            let (literal, end) = StringLiteral::read(bytes, 0, 8, 100).expect("a complete string");
            assert_eq!(
                (literal.append_to(&mut Vec::new()), end),
                (Err(ReadError::Huffman), bytes.len())
            );
        }
    }

    proptest! {
        #[test]
        fn decoding_inverts_encoding(
            string in prop::collection::vec(any::<u8>(), 0..200),
            ascii: bool,
            prefix in 4u32..=8,
        ) {
            let string: Vec<u8> = string.iter().map(|byte| if ascii { byte & 0x7f } else { *byte }).collect();
            let (mut bytes, mut decoded) = (Vec::new(), Vec::new());
            encode(&string, prefix, 0, &mut bytes);
            let limit = string.len() as u64;
            let (literal, end) = StringLiteral::read(&bytes, 0, prefix, limit).expect("a complete string");
            prop_assert_eq!(literal.append_to(&mut decoded), Ok(()));
            prop_assert_eq!((decoded, end), (string, bytes.len()));
            for cut in 0..bytes.len() {
                prop_assert_eq!(StringLiteral::read(&bytes[..cut], 0, prefix, 200), Err(ReadError::Incomplete));
            }
        }
    }
}
