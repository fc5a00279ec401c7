//! Classification of field names and validation of field values. The dynamic table stores both results with each entry.
//! The static table stores the class; its values are all valid.

use crate::bytes::{TOKEN, find_control, is};
use crate::fields::KnownField;

/// Pseudo-header field of requests (RFC 9113 §8.3.1, RFC 8441 §4) or responses (RFC 9113 §8.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Pseudo {
    Method,
    Scheme,
    Authority,
    Path,
    Protocol,
    Status,
}

impl Pseudo {
    pub(crate) const ALL: &'static [Pseudo] = &[
        Pseudo::Method,
        Pseudo::Scheme,
        Pseudo::Authority,
        Pseudo::Path,
        Pseudo::Protocol,
        Pseudo::Status,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Method => ":method",
            Self::Scheme => ":scheme",
            Self::Authority => ":authority",
            Self::Path => ":path",
            Self::Protocol => ":protocol",
            Self::Status => ":status",
        }
    }
}

/// Class of a field name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NameClass {
    /// Known name in lower case.
    Known(KnownField),
    /// Name of a defined pseudo-header field.
    Pseudo(Pseudo),
    /// Valid name that is not in [`KnownField`].
    Other,
    /// Name that is not a token in lower case (RFC 9113 §8.2.1), or an undefined pseudo-header field.
    Invalid,
}

impl NameClass {
    /// Classifies a name.
    pub(crate) fn of(name: &[u8]) -> NameClass {
        if let Some(known) = KnownField::from_name(name) {
            // The lookup ignores case, but HTTP/2 and HTTP/3 allow only lower case.
            return if known.as_str().as_bytes() == name {
                NameClass::Known(known)
            } else {
                NameClass::Invalid
            };
        }
        if name.first() == Some(&b':') {
            let pseudo = Pseudo::ALL.iter().find(|pseudo| pseudo.as_str().as_bytes() == name);
            return pseudo.map_or(NameClass::Invalid, |&pseudo| NameClass::Pseudo(pseudo));
        }
        let is_valid = !name.is_empty() && name.iter().all(|&byte| is(byte, TOKEN) && !byte.is_ascii_uppercase());
        if is_valid { NameClass::Other } else { NameClass::Invalid }
    }
}

/// Returns whether a field value is valid: no control characters except HTAB, and no white space at either end. RFC
/// 9113 §8.2.1 forbids NUL, CR and LF. Other control characters are rejected too, because the value may be forwarded
/// over HTTP/1.
#[inline]
pub(crate) fn is_valid_value(value: &[u8]) -> bool {
    if let (Some(b' ' | b'\t'), _) | (_, Some(b' ' | b'\t')) = (value.first(), value.last()) {
        return false;
    }
    let mut at = find_control(value, 0);
    while let Some(b'\t') = value.get(at) {
        at = find_control(value, at + 1);
    }
    at == value.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classifies_names() {
        // Field name, and its class.
        let rows = [
            ("host", NameClass::Known(KnownField::Host)),
            ("Host", NameClass::Invalid),
            (":path", NameClass::Pseudo(Pseudo::Path)),
            (":Path", NameClass::Invalid),
            (":status", NameClass::Pseudo(Pseudo::Status)),
            (":new", NameClass::Invalid),
            (":", NameClass::Invalid),
            ("", NameClass::Invalid),
            ("x-a", NameClass::Other),
            ("x-A", NameClass::Invalid),
            ("x a", NameClass::Invalid),
            ("x:a", NameClass::Invalid),
            ("x\0", NameClass::Invalid),
            ("\u{e4}", NameClass::Invalid),
        ];
        for (name, expected) in rows {
            assert_eq!(NameClass::of(name.as_bytes()), expected, "{name:?}");
        }
    }

    #[test]
    fn validates_values() {
        // Field value, and true if it is valid.
        let rows: [(&[u8], bool); 12] = [
            (b"", true),
            (b"a", true),
            (b"a b\tc", true),
            (b"\xff\x80", true),
            (b" a", false),
            (b"a ", false),
            (b"\ta", false),
            (b"\t", false),
            (b"a\rb", false),
            (b"a\nb", false),
            // Longer than the eight bytes that the check reads at once.
            (b"long enough for a word\0", false),
            (b"a\x7f", false),
        ];
        for (value, expected) in rows {
            assert_eq!(is_valid_value(value), expected, "{value:?}");
        }
    }
}
