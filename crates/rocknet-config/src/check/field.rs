//! Names of fields, wherever one may be written.

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

/// Whether a field is the server's own.
pub(super) fn is_own(name: &str) -> bool {
    OWN.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// RFC 9110 §5.6.2, which cookies keep to as well.
pub(super) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_NAME && text.bytes().all(is_token_byte)
}

pub(super) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Longest name: none in use has a third of it.
const MAX_NAME: usize = 128;
