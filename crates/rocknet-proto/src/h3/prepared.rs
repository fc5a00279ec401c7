//! Response heads encoded in advance. They refer to the static table only, so they are valid on every connection.

use super::frame;
use crate::h1::EncodeError;
use crate::multiplexed::{DATE_SIZE, check_field, digits};
use crate::qpack;
use crate::status::Status;

/// Encoded head of an HTTP/3 response: a HEADERS frame (RFC 9114 §4.1). The value of Date is missing at its end and is
/// appended when the head is written.
#[derive(Clone, Debug)]
pub struct PreparedHead {
    frame: Box<[u8]>,
}

/// First bytes of the Date field (RFC 9204 §4.5.4): the pattern 0101 for a literal whose name is in the static table,
/// the name's index 6, and the length of the value. The 29 bytes of the value follow.
const DATE_PREFIX: [u8; 2] = [0x50 | 6, DATE_SIZE as u8];

impl PreparedHead {
    /// Encodes a head. `length` becomes Content-Length; it is `None` if there is no body or its length is unknown.
    ///
    /// `fields` must not contain Date. This is not checked, and a second Date would be sent.
    ///
    /// # Errors
    ///
    /// [`EncodeError`] if a field name or value is invalid, or if a field frames the message or is connection-specific
    /// (RFC 9114 §4.2).
    pub fn new<'a>(
        status: Status,
        length: Option<u64>,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<PreparedHead, EncodeError> {
        let mut section = section(status);
        for (name, value) in fields {
            let (name, value) = check_field(name, value)?;
            qpack::encode_static_field(&name, value, &mut section);
        }
        Ok(PreparedHead::finish(section, length))
    }

    /// Encodes a head with only `:status`, Content-Length if `length` is given, and Date.
    pub fn bare(status: Status, length: Option<u64>) -> PreparedHead {
        PreparedHead::finish(section(status), length)
    }

    /// Adds Content-Length and the start of Date to a section, and encodes the frame.
    fn finish(mut section: Vec<u8>, length: Option<u64>) -> PreparedHead {
        if let Some(length) = length {
            qpack::encode_static_field(b"content-length", &digits(length), &mut section);
        }
        section.extend_from_slice(&DATE_PREFIX);
        // Four bytes are enough for the frame header unless the section exceeds 16 KiB.
        let mut frame = Vec::with_capacity(section.len() + 4);
        frame::header(frame::HEADERS, (section.len() + DATE_SIZE) as u64, &mut frame);
        frame.extend_from_slice(&section);
        PreparedHead {
            frame: frame.into_boxed_slice(),
        }
    }

    /// Appends the HEADERS frame with this date.
    #[inline]
    pub(super) fn write(&self, date: &[u8; DATE_SIZE], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.frame);
        out.extend_from_slice(date);
    }

    /// Returns the maximum number of bytes that writing the head and the header of a DATA frame takes.
    pub fn max_written(&self) -> usize {
        self.frame.len() + DATE_SIZE + frame::HEADER_MAX
    }

    /// Returns the memory used, in bytes.
    pub fn memory_size(&self) -> usize {
        self.frame.len()
    }
}

/// Returns the start of a field section: its prefix and `:status`.
fn section(status: Status) -> Vec<u8> {
    // Initial capacity in bytes, enough for a few fields. A longer section reallocates.
    let mut section = Vec::with_capacity(128);
    section.extend_from_slice(&qpack::STATIC_PREFIX);
    qpack::encode_status(status, &mut section);
    section
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_is_at_the_end_of_one_frame() {
        let fields = [(b"Vary".as_slice(), b"X".as_slice())];
        let head = PreparedHead::new(Status::OK, Some(13), fields).expect("valid fields");
        let mut out = Vec::new();
        head.write(b"Sun, 06 Nov 1994 08:49:37 GMT", &mut out);
        let mut at = 0;
        let header = frame::FrameHeaderReader::default()
            .read(&out, &mut at)
            .expect("a header");
        assert_eq!((header.kind, header.length), (frame::HEADERS, (out.len() - at) as u64));
        // :status 200 has the index 25.
        assert_eq!(out[at..at + 3], [0, 0, 0xc0 | 25]);
        assert!(out.ends_with(b"\x56\x1dSun, 06 Nov 1994 08:49:37 GMT"));
    }

    #[test]
    fn fields_that_frame_the_message_are_rejected() {
        for name in ["Connection", "content-length", "Transfer-Encoding", "a b"] {
            let fields = [(name.as_bytes(), b"1".as_slice())];
            assert!(PreparedHead::new(Status::OK, None, fields).is_err(), "{name}");
        }
    }
}
