//! Reads a response: the frames of a request stream (RFC 9114 §4.1), in pieces of any length.

use crate::qpack;
use crate::varint::{self, DATA, HEADERS};

/// Maximum length of a field section. No server of the bench sends a longer one.
const MAX_SECTION: u64 = 16 << 10;
/// Maximum length of a frame header: two integers.
const MAX_HEADER: usize = 16;
const FIRST_FINAL_STATUS: u16 = 200;

/// A response that arrives.
#[derive(Default)]
pub struct Response {
    /// Status of the final response; `None` before its head.
    pub status: Option<u16>,
    /// Length of the body so far.
    pub length: u64,
    /// Bytes of an incomplete frame header or field section.
    partial: Vec<u8>,
    /// Frame whose payload arrives, with the number of missing bytes.
    frame: Option<(u64, u64)>,
}

/// The bytes are not an HTTP/3 response.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed;

impl Response {
    /// Reads the next bytes of the stream.
    pub fn receive(&mut self, mut bytes: &[u8]) -> Result<(), Malformed> {
        while !bytes.is_empty() {
            bytes = match self.frame {
                None => self.header(bytes)?,
                Some((kind, missing)) => self.payload(kind, missing, bytes)?,
            };
        }
        Ok(())
    }

    /// Returns true if the stream may end here.
    pub fn is_complete(&self) -> bool {
        self.frame.is_none() && self.partial.is_empty() && self.status.is_some()
    }

    /// Reads a frame header or a piece of it, and returns the bytes after it.
    fn header<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], Malformed> {
        if self.partial.is_empty() {
            if let Some((kind, length, rest)) = read_header(bytes) {
                self.begin(kind, length)?;
                return Ok(rest);
            }
            self.partial.extend_from_slice(bytes);
            return Ok(&[]);
        }
        // A header in pieces is rare, so it is completed byte by byte.
        self.partial.push(bytes[0]);
        if let Some((kind, length, _)) = read_header(&self.partial) {
            self.partial.clear();
            self.begin(kind, length)?;
        } else if self.partial.len() >= MAX_HEADER {
            return Err(Malformed);
        }
        Ok(&bytes[1..])
    }

    /// Begins the payload of a frame with this type and length.
    fn begin(&mut self, kind: u64, length: u64) -> Result<(), Malformed> {
        let is_wrong = match kind {
            HEADERS => length == 0 || length > MAX_SECTION,
            DATA => self.status.is_none(),
            _ => false,
        };
        if is_wrong {
            return Err(Malformed);
        }
        self.frame = Some((kind, length)).filter(|_| length > 0);
        Ok(())
    }

    /// Reads the payload of a frame, of which `missing` bytes have not arrived, and returns the bytes after it.
    fn payload<'b>(&mut self, kind: u64, missing: u64, bytes: &'b [u8]) -> Result<&'b [u8], Malformed> {
        let available = usize::try_from(missing).unwrap_or(usize::MAX).min(bytes.len());
        let (payload, rest) = bytes.split_at(available);
        let missing = missing - available as u64;
        self.frame = Some((kind, missing)).filter(|_| missing > 0);
        match kind {
            DATA => self.length += available as u64,
            HEADERS if self.partial.is_empty() && missing == 0 => self.head(payload)?,
            HEADERS => {
                self.partial.extend_from_slice(payload);
                if missing == 0 {
                    let section = std::mem::take(&mut self.partial);
                    self.head(&section)?;
                }
            }
            _ => {}
        }
        Ok(rest)
    }

    /// Reads the status from the field section of a head.
    fn head(&mut self, section: &[u8]) -> Result<(), Malformed> {
        // A head after the final one is a trailer section.
        if self.status.is_none() {
            let status = qpack::status(section).ok_or(Malformed)?;
            self.status = Some(status).filter(|status| *status >= FIRST_FINAL_STATUS);
        }
        Ok(())
    }
}

/// Returns type, length and remaining bytes of a frame header at the start of `bytes`.
fn read_header(bytes: &[u8]) -> Option<(u64, u64, &[u8])> {
    let (kind, first) = varint::read(bytes)?;
    let (length, second) = varint::read(&bytes[first..])?;
    Some((kind, length, &bytes[first + second..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::varint::write_frame;

    fn frames(all: &[(u64, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        for (kind, payload) in all {
            write_frame(*kind, payload, &mut out);
        }
        out
    }

    #[test]
    fn a_response_is_read_whole_and_byte_by_byte() {
        let head = qpack::ok(&[(4, "100")]);
        let early = b"\0\0\xd8";
        let bytes = frames(&[
            (HEADERS, early),
            (0x21, b"grease"),
            (HEADERS, &head),
            (DATA, &[b'x'; 99]),
            (DATA, b""),
            (DATA, b"x"),
            (HEADERS, b"\0\0\x23etc"),
        ]);
        for size in [bytes.len(), 1, 2, 3, 64] {
            let mut response = Response::default();
            for piece in bytes.chunks(size) {
                response.receive(piece).expect("a response");
            }
            assert!(response.is_complete(), "pieces of {size}");
            assert_eq!((response.status, response.length), (Some(200), 100), "pieces of {size}");
        }
        let mut response = Response::default();
        response.receive(&bytes[..bytes.len() - 1]).expect("a part");
        assert!(!response.is_complete());
    }

    #[test]
    fn wrong_frames_are_refused() {
        for bytes in [
            frames(&[(DATA, b"x")]),
            frames(&[(HEADERS, b"")]),
            frames(&[(HEADERS, b"\0\0\xd1")]),
            vec![HEADERS as u8, 0x80, 1, 0, 0],
        ] {
            assert_eq!(Response::default().receive(&bytes), Err(Malformed), "{bytes:?}");
        }
        assert!(!Response::default().is_complete());
    }
}
