//! Error of the functions that write responses.

use crate::h1::EncodeError;

/// Reason why a part of a response cannot be sent. Nothing was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum SendError {
    /// The stream no longer exists, or its response has ended.
    Gone,
    /// The part is out of order. Interim responses must precede the final head, which is sent once. The body follows
    /// it and ends once, and trailers follow the whole body. Also reported for a final head with an interim status, for
    /// an interim head with a final status or 101, and for a push that is not allowed.
    OutOfOrder,
    /// A field, or the request of a push, is not allowed.
    Field(EncodeError),
}

impl std::fmt::Display for SendError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Gone => f.write_str("the stream no longer exists, or its response has ended"),
            Self::OutOfOrder => f.write_str("a part of the response is out of order"),
            Self::Field(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SendError {}

impl From<EncodeError> for SendError {
    fn from(error: EncodeError) -> Self {
        Self::Field(error)
    }
}
