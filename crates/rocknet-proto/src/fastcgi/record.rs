//! The header that begins every record (FastCGI 1.0 §3.3).
//!
//! ```text
//! version | type | request id (2) | content length (2) | padding length | reserved      then content, then padding
//! ```

/// Bytes of a header.
pub(super) const HEADER_SIZE: usize = 8;
/// Most bytes of content in one record: its length has 16 bits.
pub(super) const MAX_CONTENT: usize = u16::MAX as usize;
/// The only version there is.
pub(super) const VERSION: u8 = 1;
/// The number of every request: there is one at a time.
pub(super) const REQUEST_ID: u16 = 1;
/// Records with this number speak of the connection, not of a request.
pub(super) const MANAGEMENT_ID: u16 = 0;

/// Types of records that a web server sends or takes.
pub(super) mod kind {
    pub const BEGIN_REQUEST: u8 = 1;
    pub const END_REQUEST: u8 = 3;
    pub const PARAMS: u8 = 4;
    pub const STDIN: u8 = 5;
    pub const STDOUT: u8 = 6;
    pub const STDERR: u8 = 7;
}

/// The header of a record of the request, without padding. `content` is at most [`MAX_CONTENT`].
pub(super) fn header(kind: u8, content: usize) -> [u8; HEADER_SIZE] {
    let [high, low] = u16::try_from(content).unwrap_or(u16::MAX).to_be_bytes();
    let [id_high, id_low] = REQUEST_ID.to_be_bytes();
    [VERSION, kind, id_high, id_low, high, low, 0, 0]
}
