//! Errors in the response of an upstream, for which the proxy sends 502.

use crate::refusal::{ChunkError, FieldError, FramingError};

/// Error in a response. The connection reads nothing after it, and the invalid response is never corrected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ResponseError {
    /// Bytes without a request, such as a response planted for the next client of a shared connection.
    Unsolicited,
    /// A status line that is not `HTTP-version SP 3DIGIT [ SP reason ] CRLF` (RFC 9112 §4).
    StatusLine,
    /// A status line with a bare LF or CR.
    StatusLineEnd,
    /// A version other than 1.0 and 1.1.
    Version,
    /// A 101 response to a request without an upgrade, over HTTP/1.0, or without Upgrade or the option `upgrade` in
    /// Connection (RFC 9110 §7.8, §15.2.2).
    UnsolicitedUpgrade,
    /// More than [`MAX_INTERIM`](super::MAX_INTERIM) interim responses.
    TooManyInterim,
    /// An invalid field line, or a head with too many lines or bytes.
    Field(FieldError),
    /// Ambiguous or invalid framing of the body.
    Framing(FramingError),
    /// An invalid chunked body.
    Chunk(ChunkError),
    /// The connection ended before the response did.
    Truncated,
}

impl ResponseError {
    /// Returns a phrase for logs, without any bytes of the upstream.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Unsolicited => "a response without a request",
            Self::StatusLine => "a malformed status line",
            Self::StatusLineEnd => "a bare CR or LF in the status line",
            Self::Version => "an unsupported version",
            Self::UnsolicitedUpgrade => "an upgrade that was not requested or is invalid",
            Self::TooManyInterim => "too many interim responses",
            Self::Field(error) => error.reason(),
            Self::Framing(error) => error.reason(),
            Self::Chunk(error) => error.reason(),
            Self::Truncated => "the connection ended within a response",
        }
    }
}
