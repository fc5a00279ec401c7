//! Element of a send queue: bytes in memory, a range of a file, or the contents of a pipe.

use std::fs::File;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;

use crate::pipe::Pipe;

/// Bytes shared by several responses of one worker, with a reference count that is not atomic.
pub type SharedBytes = Rc<dyn AsRef<[u8]>>;

/// One element of the queue.
pub enum Segment {
    /// Range of the queue's own buffer.
    Written {
        /// First byte.
        start: usize,
        /// One past the last byte.
        end: usize,
    },
    /// Bytes that the queue owns.
    Owned(Bytes),
    /// Range of shared bytes.
    Shared {
        /// All of the shared bytes.
        bytes: SharedBytes,
        /// First byte of the range.
        start: usize,
        /// One past the last byte.
        end: usize,
    },
    /// Range of a file.
    File {
        /// The open file.
        file: Arc<File>,
        /// Position of the first byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
    },
    /// Bytes held by a pipe.
    Piped {
        /// The pipe.
        pipe: Pipe,
        /// Number of bytes.
        length: u64,
    },
}

impl Segment {
    /// Returns the number of bytes that remain to be sent.
    pub(super) fn len(&self) -> u64 {
        match self {
            Segment::Written { start, end } | Segment::Shared { start, end, .. } => (end - start) as u64,
            Segment::Owned(bytes) => bytes.len() as u64,
            Segment::File { length, .. } | Segment::Piped { length, .. } => *length,
        }
    }

    /// Removes the first `bytes` bytes, fewer than the length, after they were sent. For a pipe, only updates the
    /// length, because sending has already taken the bytes out.
    pub(super) fn skip(&mut self, bytes: u64) {
        match self {
            Segment::Written { start, .. } | Segment::Shared { start, .. } => *start += bytes as usize,
            Segment::Owned(owned) => bytes::Buf::advance(owned, bytes as usize),
            Segment::File { offset, length, .. } => {
                *offset += bytes;
                *length -= bytes;
            }
            Segment::Piped { length, .. } => *length -= bytes,
        }
    }
}
