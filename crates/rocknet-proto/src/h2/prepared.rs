//! Response heads encoded in advance. They do not refer to the dynamic table, so they are valid on every connection.

use crate::h1::EncodeError;
use crate::hpack::{encode_field, encode_status};
use crate::multiplexed::{DATE_SIZE, check_field, digits};
use crate::status::Status;

/// Encoded head of an HTTP/2 response (RFC 7541 §6). The value of Date is missing at its end and is appended when the
/// head is written.
#[derive(Clone, Debug)]
pub struct PreparedHead {
    block: Box<[u8]>,
}

/// Start of the Date field: a literal without indexing (RFC 7541 §6.2.2). Its name is entry 33 of the static table, and
/// the index is an integer with a 4-bit prefix: 15 in the first byte, and the rest in the second. The length of the
/// value and its 29 bytes follow.
const DATE_PREFIX: [u8; 3] = [0x0f, 33 - 15, DATE_SIZE as u8];

impl PreparedHead {
    /// Encodes a head. `length` becomes Content-Length; it is `None` if there is no body or its length is unknown.
    ///
    /// `fields` must not contain Date. This is not checked, and a second Date would be sent.
    ///
    /// # Errors
    ///
    /// [`EncodeError`] if a field name or value is invalid, or if a field frames the message or is connection-specific
    /// (RFC 9113 §8.2.2).
    pub fn new<'a>(
        status: Status,
        length: Option<u64>,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<PreparedHead, EncodeError> {
        // Initial capacity in bytes, enough for a few fields. A longer block reallocates.
        let mut block = Vec::with_capacity(128);
        encode_status(status, &mut block);
        for (name, value) in fields {
            let (name, value) = check_field(name, value)?;
            encode_field(&name, value, &mut block);
        }
        if let Some(length) = length {
            encode_field(b"content-length", &digits(length), &mut block);
        }
        block.extend_from_slice(&DATE_PREFIX);
        Ok(PreparedHead {
            block: block.into_boxed_slice(),
        })
    }

    /// Encodes a head with only `:status`, Content-Length if `length` is given, and Date.
    pub fn bare(status: Status, length: Option<u64>) -> PreparedHead {
        // Capacity in bytes, enough for any status and length.
        let mut block = Vec::with_capacity(32);
        encode_status(status, &mut block);
        if let Some(length) = length {
            encode_field(b"content-length", &digits(length), &mut block);
        }
        block.extend_from_slice(&DATE_PREFIX);
        PreparedHead {
            block: block.into_boxed_slice(),
        }
    }

    /// Returns the size of the whole field block in bytes, Date included.
    #[inline]
    pub(crate) fn encoded_len(&self) -> usize {
        self.block.len() + DATE_SIZE
    }

    /// Appends the field block with this date.
    #[inline]
    pub(crate) fn write(&self, date: &[u8; DATE_SIZE], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.block);
        out.extend_from_slice(date);
    }

    /// Returns the memory used, in bytes.
    pub fn memory_size(&self) -> usize {
        self.block.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_is_at_the_end() {
        let fields = [(b"Vary".as_slice(), b"X".as_slice())];
        let head = PreparedHead::new(Status::OK, Some(13), fields).expect("valid fields");
        let mut out = Vec::new();
        head.write(b"Sun, 06 Nov 1994 08:49:37 GMT", &mut out);
        assert_eq!(out.len(), head.encoded_len());
        // `:status: 200` is entry 8 of the static table.
        assert_eq!(out[0], 0x88);
        assert!(out.ends_with(b"\x0f\x12\x1dSun, 06 Nov 1994 08:49:37 GMT"));
    }
}
