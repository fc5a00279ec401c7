//! Validates tokens, such as field names, and field values (RFC 9110 §5).

use crate::bytes;

/// Returns true for `token = 1*tchar`, the syntax of field names, methods, codings and parameter names.
pub fn is_token(bytes: &[u8]) -> bool {
    bytes::is_token(bytes)
}

/// Returns true for a field value that may be sent: visible bytes and obs-text, with spaces or tabs only between them,
/// or no bytes at all. Line breaks, NUL and other controls are invalid, so that a value cannot inject fields.
pub fn is_field_value(bytes: &[u8]) -> bool {
    let blank = |b: Option<&u8>| matches!(b, Some(b' ' | b'\t'));
    bytes::is_value(bytes) && !blank(bytes.first()) && !blank(bytes.last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_recognized() {
        // Bytes, and true if they are a token.
        let rows: &[(&[u8], bool)] = &[
            (b"X-Frame-Options", true),
            (b"!#$%&'*+-.^_`|~09azAZ", true),
            (b"", false),
            (b"a b", false),
            (b"a:", false),
            (b"a\r\n", false),
            (b"a\0", false),
            (b"(a)", false),
            (b"\xc3\xa9", false),
        ];
        for &(bytes, expected) in rows {
            assert_eq!(is_token(bytes), expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn field_values_cannot_inject_lines() {
        // Bytes, and true if they are a field value that may be sent.
        let rows: &[(&[u8], bool)] = &[
            (b"DENY", true),
            (b"", true),
            (b"a b\tc", true),
            (b"\"quoted, text\"; x=1", true),
            (b"caf\xc3\xa9", true),
            (b" a", false),
            (b"a\t", false),
            (b"a\r\nSet-Cookie: x", false),
            (b"a\nb", false),
            (b"a\rb", false),
            (b"a\0b", false),
            (b"a\x7fb", false),
            (b"a\x1bb", false),
        ];
        for &(bytes, expected) in rows {
            assert_eq!(is_field_value(bytes), expected, "{}", bytes.escape_ascii());
        }
    }
}
