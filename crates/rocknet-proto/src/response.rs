//! A received response head of any HTTP version: an index of byte positions, and a view that combines the index with
//! the bytes.

use crate::fields::{ByteSpan, FieldIndex, Fields};
use crate::request::Version;
use crate::status::Status;

/// Positions of the parts of one response in its bytes; reused for the next response.
#[derive(Clone, Debug)]
pub struct ResponseIndex {
    /// Status code.
    pub status: Status,
    /// Protocol version; in HTTP/1 the version in the status line.
    pub version: Version,
    /// Reason phrase.
    pub reason: ByteSpan,
    /// Size of the response head in bytes, from the start of the buffer.
    pub head_size: u32,
    /// Header fields.
    pub fields: FieldIndex,
    /// Trailer fields. Their positions refer to the buffer that was passed to the parser when it reported the end of
    /// the body.
    pub trailers: FieldIndex,
}

impl Default for ResponseIndex {
    fn default() -> Self {
        Self {
            status: Status::OK,
            version: Version::Http11,
            reason: ByteSpan::default(),
            head_size: 0,
            fields: FieldIndex::default(),
            trailers: FieldIndex::default(),
        }
    }
}

impl ResponseIndex {
    /// Clears the index and keeps its allocations. The status, version and head size keep their values, because the
    /// parser sets them for every response.
    pub fn clear(&mut self) {
        self.fields.clear();
        self.trailers.clear();
        self.reason = ByteSpan::default();
    }

    /// Returns a view of the response; `bytes` must be the buffer that the index was filled from.
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
    /// Protocol version; in HTTP/1 the version in the status line.
    pub version: Version,
    /// Reason phrase. It carries no meaning (RFC 9112 §4) and is kept for logs.
    pub reason: &'a [u8],
    /// Header fields.
    pub fields: Fields<'a>,
}
