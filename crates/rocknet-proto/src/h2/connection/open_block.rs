//! Field block that continues in CONTINUATION frames, and its limits.

use crate::h2::error::ConnectionError;
use crate::h2::frame::Dependency;
use crate::limits::Limits;

/// Size in bytes that one field block may always have: four times the default limit of a head. A head above its own
/// limit gets status 431, but its block must still be received and decoded, so that the HPACK dynamic table stays in
/// sync. A block above [`max_block_size`] is not decoded, so it ends the connection.
const BLOCK_SIZE: usize = 64 * 1024;

/// Divisor that turns the maximum size of a block in bytes into the maximum number of its CONTINUATION frames. It stops
/// a flood of tiny or empty frames (CVE-2024-27316, CVE-2023-45288). A full frame has 16 KiB, four times this number.
const BYTES_PER_CONTINUATION: usize = 4 * 1024;

/// Field block whose last frame has not arrived.
#[derive(Debug)]
pub(super) struct OpenBlock {
    /// Number of the stream.
    pub stream: u32,
    /// True if the block ends the request (END_STREAM).
    pub end_stream: bool,
    /// Stream that HEADERS makes this stream depend on, if any.
    pub dependency: Option<Dependency>,
    /// Part of the block that has arrived.
    bytes: Vec<u8>,
    /// Number of CONTINUATION frames received so far.
    continuations: usize,
}

impl OpenBlock {
    pub fn new(stream: u32, end_stream: bool, dependency: Option<Dependency>, bytes: &[u8]) -> Self {
        Self {
            stream,
            end_stream,
            dependency,
            bytes: bytes.to_vec(),
            continuations: 0,
        }
    }

    /// Appends the payload of a CONTINUATION frame. `limits` apply to the decoded head; [`max_block_size`] derives the
    /// maximum size of the block from them.
    ///
    /// # Errors
    ///
    /// [`ConnectionError::BlockTooLarge`] if the block has too many bytes or frames.
    pub fn extend(&mut self, payload: &[u8], limits: &Limits) -> Result<(), ConnectionError> {
        self.continuations += 1;
        let max_size = max_block_size(limits);
        let max_continuations = max_size / BYTES_PER_CONTINUATION;
        if self.continuations > max_continuations || self.bytes.len() + payload.len() > max_size {
            return Err(ConnectionError::BlockTooLarge);
        }
        self.bytes.extend_from_slice(payload);
        Ok(())
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the memory used, in bytes.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.bytes.capacity()
    }
}

/// Returns the maximum size of a block in bytes, at least twice the limit of a head. The encoded form has a prefix for
/// each field, so it can be larger than the head.
fn max_block_size(limits: &Limits) -> usize {
    let head = limits.max_head_size().max(limits.max_trailer_size());
    BLOCK_SIZE.max(2 * head)
}
