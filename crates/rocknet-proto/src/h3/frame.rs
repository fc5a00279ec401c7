//! Frame headers: type and length (RFC 9114 §7.1).

use super::varint;

// Frame types of RFC 9114 §7.2 and RFC 9218 §7.2.
pub(crate) const DATA: u64 = 0x0;
pub(crate) const HEADERS: u64 = 0x1;
pub(crate) const CANCEL_PUSH: u64 = 0x3;
pub(crate) const SETTINGS: u64 = 0x4;
pub(crate) const PUSH_PROMISE: u64 = 0x5;
pub(crate) const GOAWAY: u64 = 0x7;
pub(crate) const MAX_PUSH_ID: u64 = 0xd;
pub(crate) const PRIORITY_UPDATE_REQUEST: u64 = 0xf_0700;
pub(crate) const PRIORITY_UPDATE_PUSH: u64 = 0xf_0701;

/// Returns whether a type belongs to HTTP/2 and is forbidden in HTTP/3 (RFC 9114 §7.2.8).
pub(crate) fn is_reserved_from_http2(kind: u64) -> bool {
    matches!(kind, 0x2 | 0x6 | 0x8 | 0x9)
}

/// Returns true if a frame of this type on a request stream is a connection error (RFC 9114 §7.2): a frame of the
/// control stream, PUSH_PROMISE, which a client must not send, or a reserved type of HTTP/2.
pub(crate) fn is_forbidden_in_requests(kind: u64) -> bool {
    let is_of_control = matches!(
        kind,
        CANCEL_PUSH | SETTINGS | GOAWAY | MAX_PUSH_ID | PRIORITY_UPDATE_REQUEST | PRIORITY_UPDATE_PUSH
    );
    is_of_control || kind == PUSH_PROMISE || is_reserved_from_http2(kind)
}

/// Header of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FrameHeader {
    pub kind: u64,
    /// Length of the payload in bytes.
    pub length: u64,
}

impl FrameHeader {
    /// Decodes a header at the start of `bytes`. Returns the header and its size in bytes; `None` if it is incomplete.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(FrameHeader, usize)> {
        let (kind, first) = varint::decode(bytes)?;
        let (length, second) = varint::decode(&bytes[first..])?;
        Some((FrameHeader { kind, length }, first + second))
    }
}

/// Reads frame headers that may arrive in pieces.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameHeaderReader {
    /// First bytes of a header that has not arrived completely.
    bytes: [u8; 2 * varint::LENGTH_MAX],
    /// Number of bytes of this header that have arrived.
    length: u8,
}

impl FrameHeaderReader {
    /// Returns whether a part of a header has arrived.
    pub(crate) fn is_partial(&self) -> bool {
        self.length > 0
    }

    /// Reads the header at `at` and moves `at` past it. Returns `None` if more bytes are needed; the bytes from `at` on
    /// are then consumed and kept for the next call.
    #[inline]
    pub(crate) fn read(&mut self, unread: &[u8], at: &mut usize) -> Option<FrameHeader> {
        if self.length == 0
            && let Some((header, size)) = FrameHeader::decode(&unread[*at..])
        {
            *at += size;
            return Some(header);
        }
        self.read_slowly(unread, at)
    }

    /// Does the work of [`read`](Self::read) byte by byte, together with the bytes that earlier calls have kept.
    #[cold]
    fn read_slowly(&mut self, unread: &[u8], at: &mut usize) -> Option<FrameHeader> {
        while let Some(&byte) = unread.get(*at) {
            self.bytes[usize::from(self.length)] = byte;
            self.length += 1;
            *at += 1;
            if let Some((header, _)) = FrameHeader::decode(&self.bytes[..usize::from(self.length)]) {
                self.length = 0;
                return Some(header);
            }
        }
        None
    }
}

/// Maximum size in bytes of the header of a DATA or HEADERS frame, whose type has one byte.
pub(crate) const HEADER_MAX: usize = 1 + varint::LENGTH_MAX;

/// Appends a frame header.
#[inline]
pub(crate) fn header(kind: u64, length: u64, out: &mut Vec<u8>) {
    varint::encode(kind, out);
    varint::encode(length, out);
}

/// Appends a frame whose payload is one integer.
pub(crate) fn integer_frame(kind: u64, value: u64, out: &mut Vec<u8>) {
    let mut payload = Vec::with_capacity(varint::LENGTH_MAX);
    varint::encode(value, &mut payload);
    header(kind, payload.len() as u64, out);
    out.extend_from_slice(&payload);
}

/// HEADERS frame whose payload is being appended. [`finish`](Self::finish) writes its length, in two bytes or four.
pub(crate) struct HeadersFrame {
    /// Position of the frame header in the buffer.
    start: usize,
}

impl HeadersFrame {
    /// Size in bytes of the type (one byte) and of the room for the length (two bytes, enough for less than 16 KiB).
    const HEADER: usize = 3;

    /// Appends the frame header, with room for the length.
    pub(crate) fn begin(out: &mut Vec<u8>) -> HeadersFrame {
        let start = out.len();
        out.extend_from_slice(&[HEADERS as u8, 0, 0]);
        HeadersFrame { start }
    }

    /// Writes the length.
    pub(crate) fn finish(self, out: &mut Vec<u8>) {
        let payload = self.start + Self::HEADER;
        let length = out.len() - payload;
        // The upper two bits of the first byte are 01 for a length of two bytes, and 10 for four (RFC 9000 §16). Four
        // bytes hold lengths below 1 GiB, far more than a head has.
        if length < 0x4000 {
            let length = length as u16 | 0x4000;
            out[self.start + 1..payload].copy_from_slice(&length.to_be_bytes());
        } else {
            let length = (length as u32 & 0x3fff_ffff | 0x8000_0000).to_be_bytes();
            out.splice(self.start + 1..payload, length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_in_any_pieces() {
        let mut bytes = Vec::new();
        let headers = [
            (DATA, 5),
            (PRIORITY_UPDATE_REQUEST, 70_000),
            (HEADERS, 0),
            (varint::MAX, varint::MAX),
        ];
        for (kind, length) in headers {
            header(kind, length, &mut bytes);
        }
        for size in 1..=bytes.len() {
            let (mut reader, mut found) = (FrameHeaderReader::default(), Vec::new());
            for piece in bytes.chunks(size) {
                let mut at = 0;
                while let Some(header) = reader.read(piece, &mut at) {
                    found.push((header.kind, header.length));
                }
                assert_eq!(at, piece.len());
            }
            assert_eq!(found, headers);
            assert!(!reader.is_partial());
        }
    }

    #[test]
    fn the_length_of_a_headers_frame_follows_its_payload() {
        for length in [0, 1, 63, 64, 0x3fff, 0x4000, 100_000] {
            let mut out = vec![9];
            let frame = HeadersFrame::begin(&mut out);
            out.resize(out.len() + length, 7);
            frame.finish(&mut out);
            let (header, size) = FrameHeader::decode(&out[1..]).expect("a header");
            assert_eq!((header.kind, header.length), (HEADERS, length as u64));
            assert_eq!(out.len(), 1 + size + length);
            assert!(out[1 + size..].iter().all(|&byte| byte == 7));
        }
    }
}
