//! A received response of any HTTP version: an index of positions, and the view that joins it with the bytes.

use crate::fields::{FieldIndex, Fields, Span};
use crate::request::Version;
use crate::status::Status;

/// Positions of the parts of one response in its bytes; reused for the next response.
#[derive(Clone, Debug)]
pub struct ResponseIndex {
    /// Status code.
    pub status: Status,
    /// Version in the status line.
    pub version: Version,
    /// Reason phrase.
    pub reason: Span,
    /// Bytes from the start of the buffer that belong to the response head.
    pub head_size: u32,
    /// Header fields.
    pub fields: FieldIndex,
    /// Trailer fields; their positions refer to the bytes that were passed when the body ended.
    pub trailers: FieldIndex,
}

impl Default for ResponseIndex {
    fn default() -> Self {
        Self {
            status: Status::OK,
            version: Version::Http11,
            reason: Span::default(),
            head_size: 0,
            fields: FieldIndex::default(),
            trailers: FieldIndex::default(),
        }
    }
}

impl ResponseIndex {
    /// Clears the index and keeps its memory.
    pub fn clear(&mut self) {
        self.fields.clear();
        self.trailers.clear();
        self.reason = Span::default();
    }

    /// Returns the response as a view of the bytes that the index was made for.
    pub fn view<'a>(&'a self, bytes: &'a [u8]) -> Response<'a> {
        Response {
            status: self.status,
            version: self.version,
            reason: self.reason.of(bytes),
            fields: self.fields.view(bytes),
        }
    }
}

/// A response head as received.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// Status code.
    pub status: Status,
    /// Version in the status line.
    pub version: Version,
    /// Reason phrase; carries no meaning (RFC 9112 §4) and is kept for logs.
    pub reason: &'a [u8],
    /// Header fields.
    pub fields: Fields<'a>,
}
