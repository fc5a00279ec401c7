//! Fields that frame a message or rule a connection: whoever sends the message writes them, and no application can.

use super::{Known, KnownSet};

/// What RFC 9110 §7.6.1 and RFC 9112 §6 leave to those who send, and two names that never were a standard.
const FRAMING: KnownSet = KnownSet::of(&[
    Known::Connection,
    Known::ContentLength,
    Known::KeepAlive,
    Known::ProxyConnection,
    Known::Te,
    Known::Trailer,
    Known::TransferEncoding,
    Known::Upgrade,
]);

/// Whether a field of that name is the protocol's own.
pub fn is_framing(name: &[u8]) -> bool {
    Known::from_name(name).is_some_and(Known::is_framing)
}

impl Known {
    /// Whether a field of that name is the protocol's own.
    #[inline]
    pub const fn is_framing(self) -> bool {
        FRAMING.contains(self)
    }
}

#[cfg(test)]
mod tests {
    use super::is_framing;

    #[test]
    fn framing_rows() {
        for name in ["Connection", "content-length", "TE", "Transfer-Encoding", "upgrade"] {
            assert!(is_framing(name.as_bytes()), "{name}");
        }
        for name in ["", "Date", "Content-Type", "Connection2", "X-Upgrade"] {
            assert!(!is_framing(name.as_bytes()), "{name}");
        }
    }
}
