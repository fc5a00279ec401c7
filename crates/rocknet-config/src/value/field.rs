//! Names of header fields.

/// Header fields that the server sets itself, because other values would break the framing of messages.
const OWN: [&str; 8] = [
    "connection",
    "content-length",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Returns true if the server sets this field itself.
pub(crate) fn is_own(name: &str) -> bool {
    OWN.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// Returns true if a text is a token (RFC 9110 §5.6.2) of bounded length. The names of fields and cookies are tokens.
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_NAME && text.bytes().all(is_token_byte)
}

/// Returns true for a byte of a token.
pub(crate) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Maximum length of a name, in bytes. Names in use are less than a third as long.
const MAX_NAME: usize = 128;
