//! Names of header fields.

/// Fields the server writes or acts on itself: set by hand they would tear message framing apart.
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

/// Returns whether a field is the server's own.
pub(crate) fn is_own(name: &str) -> bool {
    OWN.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// Returns whether a text is a token (RFC 9110 §5.6.2), as names of fields and of cookies are.
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_NAME && text.bytes().all(is_token_byte)
}

pub(crate) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Longest name: none in use has a third of it.
const MAX_NAME: usize = 128;
