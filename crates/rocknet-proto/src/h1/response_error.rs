//! Why an upstream's bytes are not taken: the fault is the upstream's, and the client behind us gets 502.

use crate::refusal::{ChunkError, FieldError, FramingError};

/// A response that is not taken. The connection reads no further after one; nothing is repaired.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ResponseError {
    /// Bytes without a request: an answer laid in wait for the next client of a shared connection.
    Unsolicited,
    /// No `HTTP-version SP 3DIGIT SP reason CRLF` (RFC 9112 §4).
    StatusLine,
    /// A status line with a bare LF or CR.
    StatusLineEnd,
    /// A version that is neither 1.0 nor 1.1.
    Version,
    /// 101 without a request for an upgrade, or to one that was not asked for (RFC 9110 §15.2.2).
    UnsolicitedUpgrade,
    /// More interim responses than any server has reason to send.
    TooManyInterim,
    /// A bad field line, or too many of them.
    Field(FieldError),
    /// Fields that disagree about where the content ends.
    Framing(FramingError),
    /// Bad chunked content.
    Chunk(ChunkError),
    /// The connection ended before the response did.
    Truncated,
}

impl ResponseError {
    /// One sentence part for logs; it holds nothing the upstream sent.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Unsolicited => "a response without a request",
            Self::StatusLine => "a malformed status line",
            Self::StatusLineEnd => "the status line does not end with CRLF",
            Self::Version => "a version that is not spoken here",
            Self::UnsolicitedUpgrade => "an upgrade that nobody asked for",
            Self::TooManyInterim => "too many interim responses",
            Self::Field(error) => error.reason(),
            Self::Framing(error) => error.reason(),
            Self::Chunk(error) => error.reason(),
            Self::Truncated => "the connection ended within a response",
        }
    }
}
