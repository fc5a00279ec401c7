//! What is known of a field's name and value: judged once when they are written out, and remembered by the table.

use crate::bytes::{TOKEN, control_from, is};
use crate::fields::Known;

/// A pseudo-header field of a request (RFC 9113 §8.3.1, RFC 8441 §4), or the one of responses.
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

/// What a name is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NameClass {
    Known(Known),
    Pseudo(Pseudo),
    /// A good name without a number.
    Other,
    /// No token in lower case (RFC 9113 §8.2.1), or a pseudo field that nobody defined.
    Invalid,
}

impl NameClass {
    pub(crate) fn of(name: &[u8]) -> NameClass {
        if let Some(known) = Known::from_name(name) {
            // Found in any case; on this wire only one is right.
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
        let is_good = !name.is_empty() && name.iter().all(|&byte| is(byte, TOKEN) && !byte.is_ascii_uppercase());
        if is_good { NameClass::Other } else { NameClass::Invalid }
    }
}

/// Whether a value may stand in a field: no control but HTAB, and no space around it (RFC 9113 §8.2.1 forbids NUL, CR and
/// LF; other controls are refused in HTTP/1 too, and what comes here may leave there).
#[inline]
pub(crate) fn is_valid_value(value: &[u8]) -> bool {
    if let (Some(b' ' | b'\t'), _) | (_, Some(b' ' | b'\t')) = (value.first(), value.last()) {
        return false;
    }
    let mut at = control_from(value, 0);
    while let Some(b'\t') = value.get(at) {
        at = control_from(value, at + 1);
    }
    at == value.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let rows = [
            ("host", NameClass::Known(Known::Host)),
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
    fn values() {
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
            (b"long enough for a word\0", false),
            (b"a\x7f", false),
        ];
        for (value, expected) in rows {
            assert_eq!(is_valid_value(value), expected, "{value:?}");
        }
    }
}
