//! Reading from and writing to streams.

use bytes::Bytes;
use quinn_proto::{Connection, ReadError, StreamId, WriteError};

/// Maximum size of one read in bytes. Most reads return the data of one datagram, which is smaller.
const READ_MAX: usize = 64 * 1024;

/// Result of reading from a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// The next bytes.
    Bytes {
        /// Never empty.
        bytes: Bytes,
        /// True if the client has ended the stream after these bytes. The stream is then gone.
        is_last: bool,
    },
    /// The client has ended the stream, and everything was read before.
    End,
    /// The client has abandoned the stream with this code.
    Reset(u64),
    /// Nothing more has arrived.
    Blocked,
    /// The stream is gone: its end or its reset was reported before, or it was stopped.
    Gone,
}

/// Reads the next bytes of a stream in order.
pub(crate) fn read(connection: &mut Connection, stream: StreamId) -> ReadOutcome {
    let mut receiver = connection.recv_stream(stream);
    // `true` requests the bytes in order.
    let Ok(mut chunks) = receiver.read(true) else {
        return ReadOutcome::Gone;
    };
    let outcome = match chunks.next(READ_MAX) {
        Ok(Some(chunk)) => ReadOutcome::Bytes {
            bytes: chunk.bytes,
            // A read of length 0 reports the end of the stream without another lookup.
            is_last: matches!(chunks.next(0), Ok(None)),
        },
        Ok(None) => ReadOutcome::End,
        Err(ReadError::Blocked) => ReadOutcome::Blocked,
        Err(ReadError::Reset(code)) => ReadOutcome::Reset(code.into_inner()),
    };
    // The caller flushes the connection after all reads, so the hint about window updates is not needed.
    let _ = chunks.finalize();
    outcome
}

/// Writes bytes to a stream, and removes the written bytes from `chunks`. Returns the number of written bytes, or
/// `None` if the client has stopped the stream or the stream is gone.
pub(crate) fn write(connection: &mut Connection, stream: StreamId, chunks: &mut [Bytes]) -> Option<usize> {
    match connection.send_stream(stream).write_chunks(chunks) {
        Ok(written) => Some(written.bytes),
        Err(WriteError::Blocked) => Some(0),
        Err(WriteError::Stopped(_) | WriteError::ClosedStream) => None,
    }
}

/// Returns the ID of the stream with this number (RFC 9000 §2.1). Numbers above 2^62-1 become 2^62-1.
pub fn stream_id(number: u64) -> StreamId {
    quinn_proto::VarInt::from_u64(number)
        .unwrap_or(quinn_proto::VarInt::MAX)
        .into()
}
