//! Prefixed integers, the form of lengths and indices in HPACK (RFC 7541 §5.1).

use super::HpackError;

/// Maximum number of bytes after a full prefix. Four hold 28 bits, and no valid length or index needs more. Without
/// this limit an integer could be padded with zeros without end.
const MAX_CONTINUATION_BYTES: usize = 4;

/// Decodes the integer whose prefix is the low `prefix` bits of the byte at `at`. Returns the integer and its end.
#[inline]
pub(crate) fn decode(bytes: &[u8], at: usize, prefix: u32) -> Result<(usize, usize), HpackError> {
    let full = (1usize << prefix) - 1;
    let first = usize::from(*bytes.get(at).ok_or(HpackError::Truncated)?) & full;
    if first < full {
        return Ok((first, at + 1));
    }
    decode_continued(bytes, at + 1, full)
}

/// Decodes the bytes after a full prefix, whose value is `full`. Returns the integer and its end.
fn decode_continued(bytes: &[u8], start: usize, full: usize) -> Result<(usize, usize), HpackError> {
    let mut value = full;
    for index in 0..MAX_CONTINUATION_BYTES {
        let byte = *bytes.get(start + index).ok_or(HpackError::Truncated)?;
        value += usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok((value, start + index + 1));
        }
    }
    Err(HpackError::IntegerTooLarge)
}

/// Appends an integer. `pattern` holds the bits above the prefix.
#[inline]
pub(crate) fn encode(value: u64, prefix: u32, pattern: u8, out: &mut Vec<u8>) {
    let full = (1u64 << prefix) - 1;
    if value < full {
        out.push(pattern | value as u8);
        return;
    }
    out.push(pattern | full as u8);
    let mut rest = value - full;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7541 appendix C.1, and the smallest and largest values.
    #[test]
    fn examples_encode_and_decode() {
        // Value, size of the prefix in bits, and the encoded integer.
        let rows: &[(usize, u32, &[u8])] = &[
            (10, 5, &[0x0a]),
            (1337, 5, &[0x1f, 0x9a, 0x0a]),
            (42, 8, &[0x2a]),
            (30, 5, &[0x1e]),
            (31, 5, &[0x1f, 0x00]),
            (0, 7, &[0x00]),
            (127, 7, &[0x7f, 0x00]),
            (15 + (1 << 28) - 1, 4, &[0x0f, 0xff, 0xff, 0xff, 0x7f]),
        ];
        for &(value, prefix, bytes) in rows {
            let mut out = Vec::new();
            encode(value as u64, prefix, 0, &mut out);
            assert_eq!(out, bytes, "{value}");
            assert_eq!(decode(bytes, 0, prefix), Ok((value, bytes.len())), "{value}");
            for cut in 0..bytes.len() {
                assert_eq!(decode(&bytes[..cut], 0, prefix), Err(HpackError::Truncated), "{value}");
            }
        }
    }

    #[test]
    fn bits_above_the_prefix_are_ignored() {
        assert_eq!(decode(&[0xea], 0, 5), Ok((10, 1)));
        let mut out = Vec::new();
        encode(10, 5, 0xe0, &mut out);
        assert_eq!(out, [0xea]);
    }

    #[test]
    fn overlong_integers_are_rejected() {
        for bytes in [
            [0x1f, 0x80, 0x80, 0x80, 0x80, 0x00].as_slice(),
            &[0x1f, 0xff, 0xff, 0xff, 0xff, 0x0f],
            &[0x1f, 0x80, 0x80, 0x80, 0x80],
        ] {
            assert_eq!(decode(bytes, 0, 5), Err(HpackError::IntegerTooLarge), "{bytes:?}");
        }
    }
}
