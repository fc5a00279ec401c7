//! QPACK (RFC 9204) as far as a load generator needs it: a constant request, and the status of a response. The dynamic
//! table is not used, because the client announces no capacity for it.

use crate::varint::{HEADERS, write_frame};

/// Required Insert Count and Base of a field section without dynamic references (RFC 9204 §4.5.1).
pub const PREFIX: [u8; 2] = [0, 0];
/// Indexed field lines of the static table (RFC 9204, appendix A).
const METHOD_GET: u8 = 0xc0 | 17;
const SCHEME_HTTPS: u8 = 0xc0 | 23;
/// Literal field lines with a name of the static table: the names `:authority` and `:path`.
const AUTHORITY: u8 = 0x50;
const PATH: u8 = 0x50 | 1;
/// Statuses of the static table with their indexes.
const STATUSES: [(u8, u16); 14] = [
    (24, 103),
    (25, 200),
    (26, 304),
    (27, 404),
    (28, 503),
    (63, 100),
    (64, 204),
    (65, 206),
    (66, 302),
    (67, 400),
    (68, 403),
    (69, 421),
    (70, 425),
    (71, 500),
];
/// Maximum length of a string with a length of one byte (7-bit prefix, RFC 9204 §4.1.2).
const MAX_SHORT: usize = 126;
/// Mask of the index of an indexed or literal field line before its continuation (RFC 7541 §5.1).
const INDEX_6: u8 = 0x3f;
const INDEX_4: u8 = 0x0f;

/// Returns the HEADERS frame of a GET request, or `None` if the host or path is longer than 126 bytes.
pub fn get(host: &str, path: &str) -> Option<Vec<u8>> {
    let mut section = PREFIX.to_vec();
    section.extend_from_slice(&[METHOD_GET, SCHEME_HTTPS]);
    for (name, value) in [(AUTHORITY, host), (PATH, path)] {
        let length = u8::try_from(value.len())
            .ok()
            .filter(|&length| usize::from(length) <= MAX_SHORT)?;
        section.extend_from_slice(&[name, length]);
        section.extend_from_slice(value.as_bytes());
    }
    let mut frame = Vec::new();
    write_frame(HEADERS, &section, &mut frame);
    Some(frame)
}

/// Returns the field section of a response with status 200 and literal fields: the static index of each name, below
/// 270, and its value of at most 126 bytes.
pub fn ok(fields: &[(u8, &str)]) -> Vec<u8> {
    let mut section = PREFIX.to_vec();
    section.push(0xc0 | 25);
    for (name, value) in fields {
        if *name < INDEX_4 {
            section.push(0x50 | name);
        } else {
            section.extend_from_slice(&[0x50 | INDEX_4, name - INDEX_4]);
        }
        section.push(value.len() as u8);
        section.extend_from_slice(value.as_bytes());
    }
    section
}

/// Returns the status of a response: its first field line (RFC 9114 §4.3). `None` if it is not a status.
pub fn status(section: &[u8]) -> Option<u16> {
    let line = section.strip_prefix(&PREFIX)?;
    let (index, line) = match *line.first()? {
        // Indexed field line of the static table.
        first if first & 0xc0 == 0xc0 => {
            let (index, _) = integer(line, INDEX_6)?;
            return status_of(index);
        }
        // Literal field line with a name of the static table.
        first if first & 0xd0 == 0x50 => integer(line, INDEX_4)?,
        _ => return None,
    };
    status_of(index)?;
    let first = *line.first()?;
    let value = line.get(1..)?.get(..usize::from(first & 0x7f))?;
    let digits = if first & 0x80 == 0 {
        decimal(value)
    } else {
        huffman(value)
    };
    digits.filter(|status| (100..1000).contains(status))
}

fn status_of(index: u8) -> Option<u16> {
    STATUSES
        .iter()
        .find(|(known, _)| *known == index)
        .map(|(_, status)| *status)
}

/// Reads an integer with the prefix `mask` (RFC 7541 §5.1), and returns it with the bytes after it.
fn integer(bytes: &[u8], mask: u8) -> Option<(u8, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    if first & mask < mask {
        return Some((first & mask, rest));
    }
    let (&more, rest) = rest.split_first()?;
    (more < 0x80).then_some(())?;
    Some((mask.checked_add(more)?, rest))
}

fn decimal(value: &[u8]) -> Option<u16> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Decodes three digits in the Huffman code of RFC 7541, appendix B: 0, 1 and 2 have five bits, the others six. The
/// code of a digit with six bits is the digit plus 0x16.
fn huffman(value: &[u8]) -> Option<u16> {
    let mut bits = value.iter().fold(0_u32, |bits, &byte| bits << 8 | u32::from(byte));
    let mut left = 8 * u32::try_from(value.len()).ok().filter(|&length| length <= 3)?;
    bits <<= 32 - left.max(1);
    let mut number = 0;
    for _ in 0..3 {
        let (digit, length) = match bits >> 27 {
            digit @ 0..=2 => (digit, 5),
            _ => (
                (bits >> 26).checked_sub(0x16).filter(|digit| (3..=9).contains(digit))?,
                6,
            ),
        };
        left = left.checked_sub(length)?;
        bits <<= length;
        number = 10 * number + digit;
    }
    u16::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_four_fields() {
        assert_eq!(
            get("a", "/x").expect("a frame"),
            *b"\x01\x0b\0\0\xd1\xd7\x50\x01a\x51\x02/x"
        );
        assert_eq!(get("a", &"x".repeat(MAX_SHORT + 1)), None);
    }

    #[test]
    fn the_status_is_read_in_every_form() {
        for (section, expected) in [
            (&b"\0\0\xd9"[..], Some(200)),
            (b"\0\0\xdb\x51\x01x", Some(404)),
            // The index 71 continues in a second byte.
            (b"\0\0\xff\x08", Some(500)),
            (b"\0\0\x5f\x09\x03404", Some(404)),
            // `302` in the Huffman code has 16 bits: 011001 00000 00010.
            (b"\0\0\x5f\x09\x82\x64\x02", Some(302)),
            // `403`: 011010 00000 011001, and seven bits of padding.
            (b"\0\0\x5f\x09\x83\x68\x0c\xff", Some(403)),
            (b"\0\0\x5f\x09\x0399", None),
            (b"\0\0\xd1", None),
            (b"\x02\0\xd9", None),
            (b"\0\0", None),
        ] {
            assert_eq!(status(section), expected, "{section:?}");
        }
        assert_eq!(status(&ok(&[(92, "Floor"), (4, "13")])), Some(200));
    }
}
