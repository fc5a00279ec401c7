//! Constants and header of FastCGI records (FastCGI 1.0 §3.3). Each field of the header has one byte, except for two
//! fields of two bytes:
//!
//! ```text
//! version | type | request id (2) | content length (2) | padding length | reserved
//! ```
//!
//! The content and the padding follow the header.

/// Size of a record header in bytes.
pub(super) const HEADER_SIZE: usize = 8;
/// Maximum size of a record's content in bytes, because the length field has 16 bits.
pub(super) const MAX_CONTENT: usize = u16::MAX as usize;
/// The only version of the protocol.
pub(super) const VERSION: u8 = 1;
/// ID of every request. One ID suffices, because a connection carries one request at a time.
pub(super) const REQUEST_ID: u16 = 1;
/// ID of management records, which belong to the connection instead of a request.
pub(super) const MANAGEMENT_ID: u16 = 0;

/// Types of the records that the server sends or interprets.
pub(super) mod kind {
    pub const BEGIN_REQUEST: u8 = 1;
    pub const END_REQUEST: u8 = 3;
    pub const PARAMS: u8 = 4;
    pub const STDIN: u8 = 5;
    pub const STDOUT: u8 = 6;
    pub const STDERR: u8 = 7;
}

/// Returns the header of a record without padding. `content_size` is in bytes, at most [`MAX_CONTENT`].
pub(super) fn header(kind: u8, content_size: usize) -> [u8; HEADER_SIZE] {
    let [high, low] = u16::try_from(content_size).unwrap_or(u16::MAX).to_be_bytes();
    let [id_high, id_low] = REQUEST_ID.to_be_bytes();
    [VERSION, kind, id_high, id_low, high, low, 0, 0]
}
