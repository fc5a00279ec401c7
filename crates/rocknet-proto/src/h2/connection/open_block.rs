//! A field block that goes on in CONTINUATION frames, and its bounds.

use crate::h2::error::ConnectionError;
use crate::h2::frame::Dependency;

/// Bytes of one field block beyond which the connection ends: four heads of the largest size we take. A block has to be read
/// to its end for the table's sake, whatever becomes of its request, so it is the block that is bounded.
const BLOCK_SIZE: usize = 64 * 1024;

/// CONTINUATION frames of one block (CVE-2024-27316, CVE-2023-45288): the largest block takes four of full size.
const CONTINUATIONS: u16 = 16;

/// A field block whose end has not come.
#[derive(Debug)]
pub(super) struct OpenBlock {
    pub stream: u32,
    pub end_stream: bool,
    pub dependency: Option<Dependency>,
    bytes: Vec<u8>,
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

    /// Takes the payload of a CONTINUATION frame.
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

    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.bytes.capacity()
    }
}
