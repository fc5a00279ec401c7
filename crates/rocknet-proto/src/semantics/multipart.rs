//! Encodes `multipart/byteranges` response bodies (RFC 9110 §14.6): writes the head of each part, and computes the
//! total length in advance.

use super::range::{ByteRange, ContentRange};

/// Boundary between parts: 32 random hexadecimal digits. A random boundary cannot be predicted, so no file can be
/// prepared to contain it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Boundary([u8; Boundary::LENGTH]);

impl Boundary {
    /// Length of a boundary in bytes.
    pub const LENGTH: usize = 32;

    /// Creates a boundary from 16 random bytes.
    pub fn new(random: [u8; 16]) -> Boundary {
        let mut digits = [0; Boundary::LENGTH];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(random) {
            pair[0] = b"0123456789abcdef"[usize::from(byte >> 4)];
            pair[1] = b"0123456789abcdef"[usize::from(byte & 0xf)];
        }
        Boundary(digits)
    }

    /// Returns the boundary as ASCII.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Response body with several ranges. For each range, the caller sends the head that
/// [`write_part_head`](Self::write_part_head) appends, followed by the bytes of the range. Finally, the caller sends
/// the bytes that [`write_end`](Self::write_end) appends.
#[derive(Clone, Copy, Debug)]
pub struct MultipartRanges<'a> {
    ranges: &'a [ByteRange],
    /// Length of the whole representation in bytes.
    length: u64,
    /// `Content-Type` of the representation, which each part repeats.
    content_type: Option<&'a [u8]>,
    boundary: Boundary,
}

impl<'a> MultipartRanges<'a> {
    /// Creates the encoder for ranges of a representation of `length` bytes.
    pub fn new(
        ranges: &'a [ByteRange],
        length: u64,
        content_type: Option<&'a [u8]>,
        boundary: Boundary,
    ) -> MultipartRanges<'a> {
        MultipartRanges {
            ranges,
            length,
            content_type,
            boundary,
        }
    }

    /// Returns the ranges in their order.
    pub fn ranges(&self) -> &'a [ByteRange] {
        self.ranges
    }

    /// Appends the value of `Content-Type` of the response.
    pub fn write_content_type(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(CONTENT_TYPE);
        out.extend_from_slice(self.boundary.as_bytes());
    }

    /// Returns the length of the response body in bytes: all part heads, all ranges and the final boundary. The sum
    /// saturates: ranges that do not overlap fit into 64 bits, but they may not fit together with the part heads.
    pub fn content_length(&self) -> u64 {
        let end = (END_OPEN.len() + Boundary::LENGTH + END_CLOSE.len()) as u64;
        self.ranges.iter().fold(end, |sum, &range| {
            sum.saturating_add(self.part_head_length(range))
                .saturating_add(range.size())
        })
    }

    /// Appends the head of the part that holds `range`.
    pub fn write_part_head(&self, range: ByteRange, out: &mut Vec<u8>) {
        out.extend_from_slice(OPEN);
        out.extend_from_slice(self.boundary.as_bytes());
        if let Some(content_type) = self.content_type {
            out.extend_from_slice(TYPE_NAME);
            out.extend_from_slice(content_type);
        }
        out.extend_from_slice(RANGE_NAME);
        out.extend_from_slice(ContentRange::new(range, self.length).as_bytes());
        out.extend_from_slice(HEAD_END);
    }

    /// Appends the final boundary, which follows the bytes of the last range.
    pub fn write_end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(END_OPEN);
        out.extend_from_slice(self.boundary.as_bytes());
        out.extend_from_slice(END_CLOSE);
    }

    fn part_head_length(&self, range: ByteRange) -> u64 {
        let content_type = self.content_type.map_or(0, |value| TYPE_NAME.len() + value.len());
        let content_range = ContentRange::new(range, self.length).as_bytes().len();
        (OPEN.len() + Boundary::LENGTH + content_type + RANGE_NAME.len() + content_range + HEAD_END.len()) as u64
    }
}

/// Value of `Content-Type` up to the boundary.
const CONTENT_TYPE: &[u8] = b"multipart/byteranges; boundary=";

/// Start of a part head. The first part head begins with a line break, too, so that all part heads have the same form.
/// Parsers skip the line break before the first part as an empty preamble (RFC 2046 §5.1.1).
const OPEN: &[u8] = b"\r\n--";
/// Start of the Content-Type line in a part head.
const TYPE_NAME: &[u8] = b"\r\nContent-Type: ";
/// Start of the Content-Range line in a part head.
const RANGE_NAME: &[u8] = b"\r\nContent-Range: ";
/// End of a part head.
const HEAD_END: &[u8] = b"\r\n\r\n";
/// Start of the line with the final boundary.
const END_OPEN: &[u8] = b"\r\n--";
/// End of the line with the final boundary.
const END_CLOSE: &[u8] = b"--\r\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::semantics::range::{self, Ranges};
    use proptest::prelude::*;

    const BOUNDARY: [u8; 16] = [
        0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff,
    ];

    /// Returns the whole response body for the representation `content`.
    fn body(parts: &MultipartRanges<'_>, content: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for &range in parts.ranges() {
            parts.write_part_head(range, &mut out);
            out.extend_from_slice(&content[range.first() as usize..=range.last() as usize]);
        }
        parts.write_end(&mut out);
        out
    }

    #[test]
    fn writes_parts() {
        let Ranges::Many(ranges) = range::parse(b"bytes=0-1,-3", 10) else {
            panic!("two ranges")
        };
        // Content-Type of the representation, and the expected response body.
        let rows: &[(Option<&[u8]>, &str)] = &[
            (
                Some(b"text/plain"),
                "\r\n--00112233445566778899aabbccddeeff\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/10\r\n\r\n01\
                 \r\n--00112233445566778899aabbccddeeff\r\nContent-Type: text/plain\r\nContent-Range: bytes 7-9/10\r\n\r\n789\
                 \r\n--00112233445566778899aabbccddeeff--\r\n",
            ),
            (
                None,
                "\r\n--00112233445566778899aabbccddeeff\r\nContent-Range: bytes 0-1/10\r\n\r\n01\
                 \r\n--00112233445566778899aabbccddeeff\r\nContent-Range: bytes 7-9/10\r\n\r\n789\
                 \r\n--00112233445566778899aabbccddeeff--\r\n",
            ),
        ];
        for &(content_type, expected) in rows {
            let parts = MultipartRanges::new(&ranges, 10, content_type, Boundary::new(BOUNDARY));
            assert_eq!(String::from_utf8(body(&parts, b"0123456789")).unwrap(), expected);
            assert_eq!(parts.content_length(), expected.len() as u64);
        }
    }

    #[test]
    fn the_content_type_names_the_boundary() {
        let mut value = Vec::new();
        MultipartRanges::new(&[], 0, None, Boundary::new(BOUNDARY)).write_content_type(&mut value);
        assert_eq!(
            value,
            b"multipart/byteranges; boundary=00112233445566778899aabbccddeeff"
        );
    }

    #[test]
    fn lengths_saturate() {
        let Ranges::Many(ranges) = range::parse(b"bytes=0-0,1-", u64::MAX) else {
            panic!("two ranges")
        };
        let parts = MultipartRanges::new(&ranges, u64::MAX, None, Boundary::new(BOUNDARY));
        assert_eq!(parts.content_length(), u64::MAX);
    }

    proptest! {
        #[test]
        fn content_length_is_exact(
            value in "bytes=[0-9]{1,2}-[0-9]{0,2}(,[0-9]{1,2}-[0-9]{0,2}){1,5}",
            content in prop::collection::vec(any::<u8>(), 1..100),
            content_type in "[a-z]{1,20}/[a-z]{1,20}",
        ) {
            if let Ranges::Many(ranges) = range::parse(value.as_bytes(), content.len() as u64) {
                let content_type = content_type.as_bytes();
                let parts = MultipartRanges::new(&ranges, content.len() as u64, Some(content_type), Boundary::new(BOUNDARY));
                prop_assert_eq!(body(&parts, &content).len() as u64, parts.content_length());
            }
        }
    }
}
