//! Names of header fields.

/// Header fields that cannot be configured, because they frame a message or apply to one connection only. The server
/// sets those that it needs.
const RESERVED: [&str; 8] = [
    "connection",
    "content-length",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Returns true if only the server may set this field.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name))
}

/// Returns true if a text is a token (RFC 9110 §5.6.2) of bounded length. The names of fields and cookies are tokens.
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_NAME && text.bytes().all(is_token_byte)
}

/// Returns true for a byte of a token.
pub(crate) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Maximum length of a name, in bytes. The longest names in use are about half as long.
const MAX_NAME: usize = 128;
