//! Ready bytes of a response body: owned, shared with the cache, or in a file.

use std::sync::Arc;

use bytes::Bytes;
use rocknet_io::queue::{SendQueue, SharedBytes};

use crate::response::FilePart;

/// Way of sending pieces of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// No other response shares the connection. A piece is sent from its file once the page cache holds it, and no
    /// frame limits its length.
    Direct,
    /// Frames of several responses share the connection. The payload of a frame must be ready before the frame begins,
    /// because a frame cannot be withdrawn once its header has been sent.
    Framed,
    /// Like `Framed`, but every piece is read into the server's memory, because the transport encrypts the piece there
    /// and keeps it until the client has acknowledged it.
    Copied,
}

/// Ready bytes.
pub enum Piece {
    /// No bytes are ready.
    None,
    /// Bytes that belong to this body alone.
    Owned(Bytes),
    /// Range of an entry of the worker cache.
    Shared {
        bytes: SharedBytes,
        start: usize,
        end: usize,
    },
    /// Range of a file in the page cache, which is sent without a copy in the server's memory.
    File(FilePart),
}

impl Piece {
    /// Returns the number of bytes in the piece.
    pub fn length(&self) -> u64 {
        match self {
            Piece::None => 0,
            Piece::Owned(bytes) => bytes.len() as u64,
            Piece::Shared { start, end, .. } => (end - start) as u64,
            Piece::File(part) => part.length,
        }
    }

    /// Moves the first `length` bytes into the queue. The piece must have at least `length` bytes.
    pub fn put(&mut self, length: u64, out: &mut SendQueue) {
        match self {
            Piece::None => {}
            Piece::Owned(bytes) => out.push_owned(bytes.split_to(length as usize)),
            Piece::Shared { bytes, start, .. } => {
                let end = *start + length as usize;
                out.push_shared(bytes, *start, end);
                *start = end;
            }
            Piece::File(part) => {
                out.push_file(Arc::clone(&part.file.file), part.offset, length);
                part.offset += length;
                part.length -= length;
            }
        }
        if self.length() == 0 {
            *self = Piece::None;
        }
    }
}
