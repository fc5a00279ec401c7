//! Field block that continues in CONTINUATION frames, and its limits.

use crate::h2::error::ConnectionError;
use crate::h2::frame::Dependency;

/// Maximum size of one field block in bytes: four times the default limit of a head. A head above its own limit gets
/// status 431, but its block must still be received and decoded, so that the HPACK dynamic table stays in sync. A block
/// above this limit is not decoded, so it ends the connection, even if a larger head is configured.
const BLOCK_SIZE: usize = 64 * 1024;

/// Maximum number of CONTINUATION frames of one block (CVE-2024-27316, CVE-2023-45288). The largest block needs four
/// frames of full size.
const CONTINUATIONS: u16 = 16;

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
    continuations: u16,
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

    /// Appends the payload of a CONTINUATION frame.
    ///
    /// # Errors
    ///
    /// [`ConnectionError::BlockTooLarge`] if a limit is exceeded.
    pub fn extend(&mut self, payload: &[u8]) -> Result<(), ConnectionError> {
        self.continuations += 1;
        if self.continuations > CONTINUATIONS || self.bytes.len() + payload.len() > BLOCK_SIZE {
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
