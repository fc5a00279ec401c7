//! Variable-length integers of QUIC (RFC 9000 §16).

/// Largest value: 2^62-1.
pub(crate) const MAX: u64 = (1 << 62) - 1;
/// Longest encoding in bytes.
pub(crate) const LENGTH_MAX: usize = 8;

/// Decodes the integer at the start of `bytes`. Returns its value and its length, or `None` if it is incomplete.
#[inline]
pub(crate) fn decode(bytes: &[u8]) -> Option<(u64, usize)> {
    let &first = bytes.first()?;
    let length = 1 << (first >> 6);
    let encoded = bytes.get(..length)?;
    let value = encoded[1..]
        .iter()
        .fold(u64::from(first & 0x3f), |value, &byte| value << 8 | u64::from(byte));
    Some((value, length))
}

/// Appends the shortest encoding of a value. Values above [`MAX`] are not valid.
#[inline]
pub(crate) fn encode(value: u64, out: &mut Vec<u8>) {
    debug_assert!(value <= MAX);
    match value {
        0..0x40 => out.push(value as u8),
        0x40..0x4000 => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn examples_of_the_standard() {
        // RFC 9000 §A.1.
        let rows: [(&[u8], u64); 5] = [
            (
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c],
                151_288_809_941_952_652,
            ),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (bytes, value) in rows {
            assert_eq!(decode(bytes), Some((value, bytes.len())));
            for length in 0..bytes.len() {
                assert_eq!(decode(&bytes[..length]), None);
            }
        }
    }

    proptest! {
        #[test]
        fn decoding_inverts_encoding(value in 0..=MAX, shift in 0u32..62, rest in prop::collection::vec(any::<u8>(), 0..4)) {
            let value = value >> shift;
            let mut bytes = Vec::new();
            encode(value, &mut bytes);
            let length = bytes.len();
            bytes.extend_from_slice(&rest);
            prop_assert_eq!(decode(&bytes), Some((value, length)));
            // No shorter encoding can hold the value.
            let below = match length { 1 => 0, 2 => 0x40, 4 => 0x4000, _ => 0x4000_0000 };
            prop_assert!(value >= below);
        }
    }
}
