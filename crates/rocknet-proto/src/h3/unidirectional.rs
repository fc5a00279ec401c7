//! State of the client's unidirectional streams (RFC 9114 §6.2).

use super::error::ErrorCode;
use super::frame::FrameHeaderReader;
use super::varint;

// Stream types of RFC 9114 §6.2 and RFC 9204 §4.2.
pub(crate) const CONTROL: u64 = 0x0;
pub(crate) const PUSH: u64 = 0x1;
pub(crate) const ENCODER: u64 = 0x2;
pub(crate) const DECODER: u64 = 0x3;

/// A stream without which the connection cannot continue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Critical {
    /// Control stream: SETTINGS, GOAWAY and priorities.
    Control,
    /// Encoder stream of QPACK: insertions into the dynamic table.
    Encoder,
    /// Decoder stream of QPACK: acknowledgements.
    Decoder,
}

/// Action that the caller has to take on a unidirectional stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnidirectionalAction {
    /// Read on.
    Continue,
    /// Stop reading with this code: the type of the stream is unknown (RFC 9114 §6.2).
    StopReading(ErrorCode),
}

/// Type of a unidirectional stream of the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StreamType {
    /// The type has not arrived completely.
    Partial {
        /// Bytes of the type that have arrived.
        bytes: [u8; varint::LENGTH_MAX],
        /// Number of these bytes.
        length: u8,
    },
    /// A stream without which the connection cannot continue.
    Critical(Critical),
    /// A type that the server does not know.
    Ignored,
}

/// Unidirectional streams of a client, and the state of its control stream.
#[derive(Debug, Default)]
pub(crate) struct Unidirectional {
    /// Open streams by their IDs, oldest first.
    pub streams: Vec<(u64, StreamType)>,
    pub header: FrameHeaderReader,
    /// Frame whose payload is being received: its type, and the number of missing bytes.
    pub frame: Option<(u64, u64)>,
    /// Part of that frame's payload that has arrived; empty if the frame is skipped.
    pub payload: Vec<u8>,
    /// True once the header of SETTINGS has arrived.
    pub has_settings: bool,
    /// Push ID of the last MAX_PUSH_ID.
    pub max_push_id: Option<u64>,
    /// Push ID of the last GOAWAY.
    pub goaway: Option<u64>,
}

impl Unidirectional {
    /// Returns the memory used, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.streams.capacity() * size_of::<(u64, StreamType)>() + self.payload.capacity()
    }
}
