//! Base64 as used by crypt(3): encodes digests of SHA-crypt and apr1, and decodes the salt and digest of bcrypt.

/// Alphabet of SHA-crypt and apr1.
const CRYPT: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Alphabet of bcrypt.
const BCRYPT: &[u8; 64] = b"./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Writes three bytes of a digest for each group of indices, as four characters with the lowest bits first.
pub(crate) fn write(digest: &[u8], groups: &[[usize; 3]], out: &mut Vec<u8>) {
    for [high, middle, low] in groups {
        let bits = u32::from(digest[*high]) << 16 | u32::from(digest[*middle]) << 8 | u32::from(digest[*low]);
        write_bits(bits, 4, out);
    }
}

/// Writes the lowest `6 * count` bits of a number as `count` characters, with the lowest bits first.
pub(crate) fn write_bits(mut bits: u32, count: usize, out: &mut Vec<u8>) {
    for _ in 0..count {
        out.push(CRYPT[bits as usize & 0x3f]);
        bits >>= 6;
    }
}

/// Decodes bcrypt's base64, highest bits first. Bits beyond `out` are ignored, because old programs set them at random.
/// Returns false if a character is not in the alphabet or the text is too short.
pub(crate) fn read_bcrypt(text: &[u8], out: &mut [u8]) -> bool {
    // The lowest `held` bits of `bits` have been read and not yet written. `at` is the index of the next byte of `out`.
    let (mut bits, mut held, mut at) = (0_u32, 0, 0);
    for byte in text {
        let Some(value) = BCRYPT.iter().position(|known| known == byte) else {
            return false;
        };
        bits = bits << 6 | value as u32;
        held += 6;
        if held >= 8 && at < out.len() {
            held -= 8;
            out[at] = (bits >> held) as u8;
            at += 1;
        }
    }
    at == out.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_written_lowest_first() {
        let mut out = Vec::new();
        write_bits(0b000001_000010, 2, &mut out);
        write(&[0xff, 0, 0], &[[0, 1, 2]], &mut out);
        // Values 2 and 1, and then 0, 0, 48 and 63 of 0xff0000.
        assert_eq!(out, b"0/..kz");
    }

    #[test]
    fn bcrypt_text_is_read_highest_bits_first() {
        let mut out = [0; 3];
        assert!(read_bcrypt(b"abcd", &mut out));
        // The characters a, b, c and d have the values 28 to 31.
        assert_eq!(out, [0b0111_0001, 0b1101_0111, 0b1001_1111]);
        assert!(!read_bcrypt(b"abc", &mut out) && !read_bcrypt(b"ab=d", &mut out));
    }
}
