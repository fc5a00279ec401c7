//! Base64url without padding, random texts, and the comparison of secrets.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::rand;
use base64ct::{Base64UrlUnpadded, Encoding};

/// Encodes bytes as base64url without padding (RFC 4648 §5).
pub(crate) fn encode(bytes: &[u8]) -> String {
    Base64UrlUnpadded::encode_string(bytes)
}

/// Decodes base64url without padding; `None` if the text has another form.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    Base64UrlUnpadded::decode_vec(text).ok()
}

/// Returns `N` random bytes as base64url; `None` if the system has no random numbers.
pub fn random_text<const N: usize>() -> Option<String> {
    let mut bytes = [0; N];
    rand::fill(&mut bytes).ok()?;
    Some(encode(&bytes))
}

/// Compares two secrets in a time that does not depend on their contents.
pub fn is_same_secret(one: &str, other: &str) -> bool {
    verify_slices_are_equal(one.as_bytes(), other.as_bytes()).is_ok()
}
