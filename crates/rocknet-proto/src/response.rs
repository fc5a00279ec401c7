//! A response whatever wire it came on, as a client sees it: an index of places, and the view that joins it with the bytes.

use crate::fields::{FieldIndex, Fields, Span};
use crate::request::Version;
use crate::status::Status;

/// Where the parts of one response stand in its bytes; used again for the next one.
#[derive(Clone, Debug)]
pub struct ResponseIndex {
    pub status: Status,
    pub version: Version,
    pub reason: Span,
    /// Bytes from the start of the buffer that belong to the response head.
    pub head_size: u32,
    pub fields: FieldIndex,
    /// Fields behind chunked content; their places are in the bytes that were given when content ended.
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
    /// Forgets the response and keeps the memory.
    pub fn clear(&mut self) {
        self.fields.clear();
        self.trailers.clear();
        self.reason = Span::default();
    }

    /// The response, read from the bytes the index was made for.
    pub fn view<'a>(&'a self, bytes: &'a [u8]) -> Response<'a> {
        Response {
            status: self.status,
            version: self.version,
            reason: self.reason.of(bytes),
            fields: self.fields.view(bytes),
        }
    }
}

/// A response as received; the reason phrase means nothing and is kept for logs only.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    pub status: Status,
    pub version: Version,
    pub reason: &'a [u8],
    pub fields: Fields<'a>,
}
