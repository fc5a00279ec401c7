//! Validates tokens, such as field names (RFC 9110 §5.6.2).

use crate::bytes;

/// Returns true for `token = 1*tchar`, the syntax of field names, methods, codings and parameter names.
pub fn is_token(bytes: &[u8]) -> bool {
    bytes::is_token(bytes)
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
}
