//! Prefixed integers of up to 62 bits, the form of lengths, indices and stream IDs in QPACK (RFC 9204 §4.1.1).

use super::read_error::ReadError;
pub(super) use crate::hpack::integer::encode;

/// Largest integer: 2^62-1, like the largest stream ID.
pub(super) const MAX: u64 = (1 << 62) - 1;

/// Maximum number of bytes after a full prefix. Nine hold 63 bits, more than [`MAX`] needs. Without this limit an
/// integer could be padded with zeros without end.
const MAX_CONTINUATION_BYTES: usize = 9;

/// Decodes the integer whose prefix is the low `prefix` bits of the byte at `at`. Returns the integer and its end.
#[inline]
pub(super) fn decode(bytes: &[u8], at: usize, prefix: u32) -> Result<(u64, usize), ReadError> {
    let full = (1u64 << prefix) - 1;
    let first = u64::from(*bytes.get(at).ok_or(ReadError::Incomplete)?) & full;
    if first < full {
        return Ok((first, at + 1));
    }
    decode_continued(bytes, at + 1, full)
}

/// Decodes the bytes after a full prefix, whose value is `full`. Returns the integer and its end.
fn decode_continued(bytes: &[u8], start: usize, full: u64) -> Result<(u64, usize), ReadError> {
    let mut value = full;
    for index in 0..MAX_CONTINUATION_BYTES {
        let byte = *bytes.get(start + index).ok_or(ReadError::Incomplete)?;
        value += u64::from(byte & 0x7f) << (7 * index);
        if value > MAX {
            break;
        }
        if byte & 0x80 == 0 {
            return Ok((value, start + index + 1));
        }
    }
    Err(ReadError::IntegerTooLarge)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 7541 appendix C.1, and the smallest and largest values.
    #[test]
    fn examples_both_ways() {
        // Value, size of the prefix in bits, and the encoded integer.
        let rows: &[(u64, u32, &[u8])] = &[
            (10, 5, &[0x0a]),
            (1337, 5, &[0x1f, 0x9a, 0x0a]),
            (42, 8, &[0x2a]),
            (7, 3, &[0x07, 0x00]),
            (254, 8, &[0xfe]),
            (255, 8, &[0xff, 0x00]),
            (MAX, 3, &[0x07, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f]),
        ];
        for &(value, prefix, bytes) in rows {
            let mut out = Vec::new();
            encode(value, prefix, 0, &mut out);
            assert_eq!(out, bytes, "{value}");
            assert_eq!(decode(bytes, 0, prefix), Ok((value, bytes.len())), "{value}");
        }
    }

    #[test]
    fn integers_of_more_than_62_bits_are_rejected() {
        let mut above = Vec::new();
        encode(MAX + 1, 8, 0, &mut above);
        for bytes in [&above[..], &[0xff; 20], &[[0xff].as_slice(), &[0x80; 9], &[0]].concat()] {
            assert_eq!(decode(bytes, 0, 8), Err(ReadError::IntegerTooLarge), "{bytes:?}");
        }
        let padded = [[0xff].as_slice(), &[0x80; 8], &[0]].concat();
        assert_eq!(decode(&padded, 0, 8), Ok((255, 10)));
    }

    proptest! {
        #[test]
        fn decoding_inverts_encoding(value in 0..=MAX, shift in 0u32..62, prefix in 3u32..=8) {
            let (value, mut bytes) = (value >> shift, Vec::new());
            encode(value, prefix, 0, &mut bytes);
            prop_assert_eq!(decode(&bytes, 0, prefix), Ok((value, bytes.len())));
            for cut in 0..bytes.len() {
                prop_assert_eq!(decode(&bytes[..cut], 0, prefix), Err(ReadError::Incomplete));
            }
        }
    }
}
