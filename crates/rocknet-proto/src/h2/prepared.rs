//! Response heads encoded in advance. They do not refer to the dynamic table, so they are valid on every connection.

use super::hpack::{encode_field, encode_status};
use crate::bytes::{is_token, trim};
use crate::fields::{Known, KnownSet};
use crate::h1::{EncodeError, decimal};
use crate::status::Status;
use smallvec::SmallVec;

/// Encoded head of an HTTP/2 response (RFC 7541 §6). The value of Date is missing at its end and is appended when the
/// head is written.
#[derive(Clone, Debug)]
pub struct PreparedHead {
    block: Box<[u8]>,
}

/// Size of a Date value in bytes (IMF-fixdate, RFC 9110 §5.6.7).
pub const DATE_SIZE: usize = 29;

/// Start of the Date field: a literal without indexing, with the name from the static table and the length of the value
/// (RFC 7541 §6.2.2). The 29 bytes of the value follow.
const DATE_PREFIX: [u8; 3] = [0x0f, 33 - 15, DATE_SIZE as u8];

impl PreparedHead {
    /// Encodes a head. `fields` must not contain Date. `length` becomes Content-Length; it is `None` if there is no
    /// body or its length is unknown.
    ///
    /// # Errors
    ///
    /// [`EncodeError`] if a field name or value is invalid, or if a field frames the message or concerns the
    /// connection.
    pub fn new<'a>(
        status: Status,
        length: Option<u64>,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<PreparedHead, EncodeError> {
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

    /// Encodes a head without fields of its own. `length` becomes Content-Length.
    pub fn bare(status: Status, length: Option<u64>) -> PreparedHead {
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
    pub(crate) fn length(&self) -> usize {
        self.block.len() + DATE_SIZE
    }

    /// Appends the field block with this date.
    #[inline]
    pub(crate) fn write(&self, date: &[u8; DATE_SIZE], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.block);
        out.extend_from_slice(date);
    }

    /// Returns the memory used, in bytes.
    pub fn size(&self) -> usize {
        self.block.len()
    }
}

/// Field name in lower case. Nearly all names fit without a heap allocation.
pub(crate) type LowerName = SmallVec<[u8; 40]>;

/// Fields that frame the message or concern the connection. The engine writes Content-Length; the others are forbidden
/// in HTTP/2 (RFC 9113 §8.2.2).
const FRAMING_FIELDS: KnownSet = KnownSet::of(&[
    Known::Connection,
    Known::ContentLength,
    Known::KeepAlive,
    Known::ProxyConnection,
    Known::TransferEncoding,
    Known::Upgrade,
]);

/// Validates a field to be sent. Returns its name in lower case and its value without surrounding white space.
pub(crate) fn check_field<'a>(name: &[u8], value: &'a [u8]) -> Result<(LowerName, &'a [u8]), EncodeError> {
    if !is_token(name) {
        return Err(EncodeError::FieldName);
    }
    if Known::from_name(name).is_some_and(|known| FRAMING_FIELDS.contains(known)) {
        return Err(EncodeError::FramingField);
    }
    let value = trim(value);
    if !super::hpack::is_valid_value(value) {
        return Err(EncodeError::FieldValue);
    }
    let mut lower = LowerName::from_slice(name);
    lower.make_ascii_lowercase();
    Ok((lower, value))
}

/// Formats a decimal number.
pub(crate) fn digits(number: u64) -> Vec<u8> {
    let mut digits = Vec::with_capacity(20);
    decimal(number, &mut digits);
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_fields_are_rejected() {
        for (name, value, expected) in [
            ("Content-Type", "text/html", None),
            ("X", " a ", None),
            ("", "a", Some(EncodeError::FieldName)),
            (":status", "200", Some(EncodeError::FieldName)),
            ("a b", "a", Some(EncodeError::FieldName)),
            ("a", "a\r\nb: c", Some(EncodeError::FieldValue)),
            ("a", "\0", Some(EncodeError::FieldValue)),
            ("Connection", "close", Some(EncodeError::FramingField)),
            ("Content-Length", "5", Some(EncodeError::FramingField)),
            ("upgrade", "h2c", Some(EncodeError::FramingField)),
        ] {
            let fields = [(name.as_bytes(), value.as_bytes())];
            let found = PreparedHead::new(Status::OK, None, fields).err();
            assert_eq!(found, expected, "{name}: {value}");
        }
    }

    #[test]
    fn the_date_is_at_the_end() {
        let fields = [(b"Vary".as_slice(), b"X".as_slice())];
        let head = PreparedHead::new(Status::OK, Some(13), fields).expect("valid fields");
        let mut out = Vec::new();
        head.write(b"Sun, 06 Nov 1994 08:49:37 GMT", &mut out);
        assert_eq!(out.len(), head.length());
        assert_eq!(out[0], 0x88);
        assert!(out.ends_with(b"\x0f\x12\x1dSun, 06 Nov 1994 08:49:37 GMT"));
    }
}
