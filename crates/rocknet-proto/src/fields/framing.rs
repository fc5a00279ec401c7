//! Identifies framing and connection fields. They are never copied from the response of a back end, or of a controller
//! (a function of a shared library that handles requests); the server writes those that it needs.

use super::{KnownField, KnownFieldSet};

/// Fields that frame a message (RFC 9112 §6) or apply to one connection only (RFC 9110 §7.6.1), and Trailer (RFC 9110
/// §6.6.2), because the server decides whether it sends trailers.
const FRAMING: KnownFieldSet = KnownFieldSet::of(&[
    KnownField::Connection,
    KnownField::ContentLength,
    KnownField::KeepAlive,
    KnownField::ProxyConnection,
    KnownField::Te,
    KnownField::Trailer,
    KnownField::TransferEncoding,
    KnownField::Upgrade,
]);

/// Returns true if a field with this name frames a message or its trailers, or controls its connection.
pub fn is_framing(name: &[u8]) -> bool {
    KnownField::from_name(name).is_some_and(KnownField::is_framing)
}

impl KnownField {
    /// Returns true if a field with this name frames a message or its trailers, or controls its connection.
    #[inline]
    pub const fn is_framing(self) -> bool {
        FRAMING.contains(self)
    }
}

#[cfg(test)]
mod tests {
    use super::is_framing;

    #[test]
    fn framing_fields_are_recognized_in_any_case() {
        for name in ["Connection", "content-length", "TE", "Transfer-Encoding", "upgrade"] {
            assert!(is_framing(name.as_bytes()), "{name}");
        }
        for name in ["", "Date", "Content-Type", "Connection2", "X-Upgrade"] {
            assert!(!is_framing(name.as_bytes()), "{name}");
        }
    }
}
