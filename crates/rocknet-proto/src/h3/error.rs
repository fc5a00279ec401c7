//! Errors that end a stream or a connection. Each error names the broken rule or the attack and has one error code.

use crate::multiplexed::{Flood, Malformed};
use crate::qpack::{QpackError, QpackErrorClass};

/// Error codes of RFC 9114 §8.1 and RFC 9204 §6.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u64)]
pub enum ErrorCode {
    /// Graceful shutdown, not an error.
    NoError = 0x100,
    /// Protocol error without a more specific code.
    GeneralProtocolError = 0x101,
    /// Unexpected internal error.
    InternalError = 0x102,
    /// Stream that may not be opened.
    StreamCreationError = 0x103,
    /// End of a stream that has to stay open.
    ClosedCriticalStream = 0x104,
    /// Frame that is not allowed in this state or on this stream.
    FrameUnexpected = 0x105,
    /// Frame whose layout or size is invalid.
    FrameError = 0x106,
    /// Excessive load by the peer.
    ExcessiveLoad = 0x107,
    /// Invalid use of a stream ID or push ID.
    IdError = 0x108,
    /// Invalid SETTINGS.
    SettingsError = 0x109,
    /// Control stream that does not begin with SETTINGS.
    MissingSettings = 0x10a,
    /// Request rejected before any processing, so it may be retried.
    RequestRejected = 0x10b,
    /// Request or response that is no longer needed.
    RequestCancelled = 0x10c,
    /// Stream that ended before its request was complete.
    RequestIncomplete = 0x10d,
    /// Malformed message.
    MessageError = 0x10e,
    /// Connection of a CONNECT request that was reset or abnormally closed.
    ConnectError = 0x10f,
    /// Request that requires HTTP/1.1.
    VersionFallback = 0x110,
    /// Field section that cannot be decoded.
    QpackDecompressionFailed = 0x200,
    /// Error on the encoder stream.
    QpackEncoderStreamError = 0x201,
    /// Error on the decoder stream.
    QpackDecoderStreamError = 0x202,
}

impl ErrorCode {
    /// Returns the number of the code.
    pub const fn number(self) -> u64 {
        self as u64
    }
}

/// Connection error (RFC 9114 §8). The connection is closed with its code, and nothing further is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ConnectionError {
    /// The control stream does not begin with SETTINGS (RFC 9114 §6.2.1).
    MissingSettings,
    /// A frame is not allowed on its stream or in its state (RFC 9114 §7.2).
    FrameUnexpected,
    /// A frame has a layout or size that its type does not allow, or its stream ends within it (RFC 9114 §7.1).
    FrameError,
    /// A setting of HTTP/2, a repeated setting, or an invalid value (RFC 9114 §7.2.4).
    InvalidSetting,
    /// A frame on the control stream exceeds the size limit, or SETTINGS has too many settings.
    ControlFrameTooLarge,
    /// The client opened a push stream, a second stream of a type that allows only one stream, or too many streams
    /// without sending their types (RFC 9114 §6.2).
    StreamCreation,
    /// The client closed its control stream or a stream of QPACK (RFC 9114 §6.2.1, RFC 9204 §4.2).
    ClosedCriticalStream,
    /// A push ID or stream ID is invalid, is larger than in an earlier GOAWAY, or is smaller than in an earlier
    /// MAX_PUSH_ID (RFC 9114 §5.2, §7.2.3, §7.2.7).
    InvalidId,
    /// An error of header compression.
    Qpack(QpackError),
    /// The client sent more frames of one kind than normal use explains.
    Flood(Flood),
}

impl ConnectionError {
    /// Returns the error code with which the connection is closed (RFC 9114 §8.1).
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::MissingSettings => ErrorCode::MissingSettings,
            Self::FrameUnexpected => ErrorCode::FrameUnexpected,
            Self::FrameError => ErrorCode::FrameError,
            Self::InvalidSetting => ErrorCode::SettingsError,
            Self::ControlFrameTooLarge | Self::Flood(_) => ErrorCode::ExcessiveLoad,
            Self::StreamCreation => ErrorCode::StreamCreationError,
            Self::ClosedCriticalStream => ErrorCode::ClosedCriticalStream,
            Self::InvalidId => ErrorCode::IdError,
            Self::Qpack(error) => match error.class() {
                QpackErrorClass::Decompression => ErrorCode::QpackDecompressionFailed,
                QpackErrorClass::Load => ErrorCode::ExcessiveLoad,
                QpackErrorClass::EncoderStream => ErrorCode::QpackEncoderStreamError,
                QpackErrorClass::DecoderStream => ErrorCode::QpackDecoderStreamError,
            },
        }
    }

    /// Returns a phrase for logs. It contains no bytes from the client.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::MissingSettings => "a control stream that does not begin with SETTINGS",
            Self::FrameUnexpected => "a frame that its stream or state does not allow",
            Self::FrameError => "a frame of invalid layout or size, or cut off by the end of its stream",
            Self::InvalidSetting => "a setting that is repeated or invalid",
            Self::ControlFrameTooLarge => "a control frame above the size limit, or too many settings",
            Self::StreamCreation => "a stream that the client may not open",
            Self::ClosedCriticalStream => "a control stream or QPACK stream that was closed",
            Self::InvalidId => "an invalid push ID or stream ID",
            Self::Qpack(error) => error.reason(),
            Self::Flood(flood) => flood.reason(),
        }
    }
}

impl From<QpackError> for ConnectionError {
    fn from(error: QpackError) -> Self {
        Self::Qpack(error)
    }
}

impl From<Flood> for ConnectionError {
    fn from(flood: Flood) -> Self {
        Self::Flood(flood)
    }
}

/// Stream error (RFC 9114 §8). The stream is reset and the connection continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum StreamError {
    /// A head, trailers or a body break the rules of HTTP (RFC 9114 §4.1.2).
    Malformed(Malformed),
    /// The stream ended before the request was complete (RFC 9114 §4.1.1).
    Incomplete,
    /// A request body is larger than the server permits, and the response to the request has begun.
    BodyTooLarge,
    /// The server no longer accepts requests on this connection. The client may retry the request.
    Rejected,
}

impl StreamError {
    /// Returns the error code with which the stream is reset (RFC 9114 §8.1).
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::Malformed(Malformed::TrailersTooLarge) => ErrorCode::ExcessiveLoad,
            Self::Malformed(_) => ErrorCode::MessageError,
            Self::Incomplete => ErrorCode::RequestIncomplete,
            // The request was processed in part (RFC 9114 §4.1.1).
            Self::BodyTooLarge => ErrorCode::RequestCancelled,
            Self::Rejected => ErrorCode::RequestRejected,
        }
    }

    /// Returns a phrase for logs. It contains no bytes from the client.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Malformed(malformed) => malformed.reason(),
            Self::BodyTooLarge => "a body that is too large, after the response began",
            Self::Incomplete => "a stream that ended before its request was complete",
            Self::Rejected => "a request on a connection that is shutting down",
        }
    }
}

impl std::fmt::Display for StreamError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.reason())
    }
}

impl std::error::Error for StreamError {}

impl From<Malformed> for StreamError {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_qpack_have_the_code_of_their_stream() {
        for (error, code) in [
            (QpackError::BlockedStreams, ErrorCode::QpackDecompressionFailed),
            (QpackError::TooManyFields, ErrorCode::ExcessiveLoad),
            (QpackError::EntryTooLarge, ErrorCode::QpackEncoderStreamError),
            (QpackError::Increment, ErrorCode::QpackDecoderStreamError),
        ] {
            assert_eq!(ConnectionError::from(error).code(), code);
        }
    }
}
