//! Checks of the fields to be sent by HTTP/2 and HTTP/3: names are written in lower case, and framing fields are
//! refused.

use crate::bytes::{is_token, trim};
use crate::fields::{KnownField, KnownFieldSet};
use crate::h1::{EncodeError, decimal};
use crate::hpack::is_valid_value;
use smallvec::SmallVec;

/// Size of a Date value in bytes (IMF-fixdate, RFC 9110 §5.6.7).
pub const DATE_SIZE: usize = 29;

/// Field name in lower case. Nearly all names fit without a heap allocation.
pub(crate) type LowerName = SmallVec<[u8; 40]>;

/// Fields that frame the message or are connection-specific. The connection writes Content-Length; the other fields are
/// forbidden in HTTP/2 and HTTP/3 (RFC 9113 §8.2.2, RFC 9114 §4.2).
const FRAMING_FIELDS: KnownFieldSet = KnownFieldSet::of(&[
    KnownField::Connection,
    KnownField::ContentLength,
    KnownField::KeepAlive,
    KnownField::ProxyConnection,
    KnownField::TransferEncoding,
    KnownField::Upgrade,
]);

/// Validates a field to be sent. Returns its name in lower case and its value without surrounding white space.
pub(crate) fn check_field<'a>(name: &[u8], value: &'a [u8]) -> Result<(LowerName, &'a [u8]), EncodeError> {
    if !is_token(name) {
        return Err(EncodeError::FieldName);
    }
    if KnownField::from_name(name).is_some_and(|known| FRAMING_FIELDS.contains(known)) {
        return Err(EncodeError::FramingField);
    }
    let value = trim(value);
    if !is_valid_value(value) {
        return Err(EncodeError::FieldValue);
    }
    let mut lower = LowerName::from_slice(name);
    lower.make_ascii_lowercase();
    Ok((lower, value))
}

/// Formats a decimal number.
pub(crate) fn digits(number: u64) -> Vec<u8> {
    // `u64::MAX` has 20 digits.
    let mut digits = Vec::with_capacity(20);
    decimal(number, &mut digits);
    digits
}

/// Fields that passed [`check_field`]. Up to 16 fields need no heap allocation.
pub(crate) type CheckedFields<'a> = SmallVec<[(LowerName, &'a [u8]); 16]>;

/// Checks all fields before any is encoded. Encoding changes the dynamic table, so an encoded field would have to be
/// sent even if a later field is invalid.
pub(crate) fn check_fields<'a>(
    fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
) -> Result<CheckedFields<'a>, EncodeError> {
    fields
        .into_iter()
        .map(|(name, value)| check_field(name, value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_fields_are_accepted() {
        // Name, value, and the expected error.
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
            let found = check_field(name.as_bytes(), value.as_bytes()).err();
            assert_eq!(found, expected, "{name}: {value}");
        }
    }
}
