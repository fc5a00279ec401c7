//! Errors that end a stream or a connection. Each error names the broken rule or the attack and has one error code.

use crate::hpack::HpackError;
use crate::multiplexed::{Flood, Malformed};

/// Error codes of RFC 9113 §7.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u32)]
pub enum ErrorCode {
    /// Graceful shutdown, not an error.
    NoError = 0,
    /// Protocol error without a more specific code.
    ProtocolError = 1,
    /// Unexpected internal error.
    InternalError = 2,
    /// Violation of flow control.
    FlowControlError = 3,
    /// SETTINGS was not acknowledged in time.
    SettingsTimeout = 4,
    /// Frame after the end of its stream.
    StreamClosed = 5,
    /// Frame of an invalid size.
    FrameSizeError = 6,
    /// Stream refused before any processing, so the request may be retried.
    RefusedStream = 7,
    /// Stream that is no longer needed.
    Cancel = 8,
    /// Field block that cannot be decoded.
    CompressionError = 9,
    /// Connection of a CONNECT request that was reset or abnormally closed.
    ConnectError = 10,
    /// Excessive load by the peer.
    EnhanceYourCalm = 11,
    /// Transport that does not meet the security requirements.
    InadequateSecurity = 12,
    /// Request that requires HTTP/1.1.
    Http11Required = 13,
}

impl ErrorCode {
    /// Every code, in the order of the numbers.
    pub const ALL: &'static [ErrorCode] = &[
        Self::NoError,
        Self::ProtocolError,
        Self::InternalError,
        Self::FlowControlError,
        Self::SettingsTimeout,
        Self::StreamClosed,
        Self::FrameSizeError,
        Self::RefusedStream,
        Self::Cancel,
        Self::CompressionError,
        Self::ConnectError,
        Self::EnhanceYourCalm,
        Self::InadequateSecurity,
        Self::Http11Required,
    ];

    /// Converts the code of a received frame. Unknown codes are treated as INTERNAL_ERROR (RFC 9113 §7).
    pub fn from_wire(code: u32) -> ErrorCode {
        Self::ALL.get(code as usize).copied().unwrap_or(Self::InternalError)
    }

    /// Returns the name of the code as RFC 9113 §7 writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoError => "NO_ERROR",
            Self::ProtocolError => "PROTOCOL_ERROR",
            Self::InternalError => "INTERNAL_ERROR",
            Self::FlowControlError => "FLOW_CONTROL_ERROR",
            Self::SettingsTimeout => "SETTINGS_TIMEOUT",
            Self::StreamClosed => "STREAM_CLOSED",
            Self::FrameSizeError => "FRAME_SIZE_ERROR",
            Self::RefusedStream => "REFUSED_STREAM",
            Self::Cancel => "CANCEL",
            Self::CompressionError => "COMPRESSION_ERROR",
            Self::ConnectError => "CONNECT_ERROR",
            Self::EnhanceYourCalm => "ENHANCE_YOUR_CALM",
            Self::InadequateSecurity => "INADEQUATE_SECURITY",
            Self::Http11Required => "HTTP_1_1_REQUIRED",
        }
    }
}

/// Connection error (RFC 9113 §5.4.1). GOAWAY is sent and nothing further is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ConnectionError {
    /// The client did not send the connection preface (RFC 9113 §3.4).
    Preface,
    /// The first frame is not SETTINGS, or only acknowledges SETTINGS (RFC 9113 §3.4).
    MissingSettings,
    /// A frame exceeds the announced maximum size (RFC 9113 §4.2).
    FrameTooLarge,
    /// A frame has a size that its type does not allow (RFC 9113 §6).
    FrameSize,
    /// A frame that belongs to a stream is on stream 0, or a frame that belongs to the connection is on any other
    /// stream (RFC 9113 §6). Also PRIORITY_UPDATE for stream 0 (RFC 9218 §7.1).
    WrongStream,
    /// Padding is as long as the frame's payload or longer (RFC 9113 §6.1).
    Padding,
    /// A frame is on an idle stream (RFC 9113 §5.1). Also PRIORITY_UPDATE for a push that was not promised (RFC 9218
    /// §7.1).
    IdleStream,
    /// A frame is on a stream that both sides have ended, or that the client has reset (RFC 9113 §5.1).
    ClosedStream,
    /// The number of a new stream is even, or is not above the highest number that the client has used (RFC 9113
    /// §5.1.1).
    InvalidStreamId,
    /// Another frame interrupts a field block, or CONTINUATION arrives without a field block to continue (RFC 9113
    /// §6.10).
    Continuation,
    /// A field block exceeds the limit of bytes or frames (CVE-2024-27316 and similar attacks).
    BlockTooLarge,
    /// A field block cannot be decoded (RFC 9113 §4.3).
    Compression(HpackError),
    /// A setting has an invalid value (RFC 9113 §6.5.2).
    InvalidSetting,
    /// INITIAL_WINDOW_SIZE is above 2^31-1 (RFC 9113 §6.5.2), or a change of it raises the window of a stream above
    /// 2^31-1 (RFC 9113 §6.9.2).
    InitialWindowTooLarge,
    /// The connection's window exceeds 2^31-1 (RFC 9113 §6.9.1).
    WindowTooLarge,
    /// WINDOW_UPDATE has an increment of zero (RFC 9113 §6.9).
    ZeroWindowIncrement,
    /// The client sent more data than the connection's window allows (RFC 9113 §6.9.1).
    WindowExceeded,
    /// A PRIORITY frame makes a stream depend on itself (RFC 7540 §5.3.1). The stream may be idle, and RST_STREAM is
    /// not allowed on an idle stream, so the error ends the connection.
    SelfDependency,
    /// The client sent PUSH_PROMISE (RFC 9113 §8.4).
    PushFromClient,
    /// The client sent more frames of one kind than normal use explains.
    Flood(Flood),
}

impl ConnectionError {
    /// Returns the error code sent in GOAWAY (RFC 9113 §7).
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::Preface
            | Self::MissingSettings
            | Self::WrongStream
            | Self::Padding
            | Self::IdleStream
            | Self::InvalidStreamId
            | Self::Continuation
            | Self::InvalidSetting
            | Self::ZeroWindowIncrement
            | Self::SelfDependency
            | Self::PushFromClient => ErrorCode::ProtocolError,
            Self::FrameTooLarge | Self::FrameSize => ErrorCode::FrameSizeError,
            Self::ClosedStream => ErrorCode::StreamClosed,
            Self::Compression(HpackError::TooManyFields) => ErrorCode::EnhanceYourCalm,
            Self::Compression(_) => ErrorCode::CompressionError,
            Self::InitialWindowTooLarge | Self::WindowTooLarge | Self::WindowExceeded => ErrorCode::FlowControlError,
            Self::BlockTooLarge | Self::Flood(_) => ErrorCode::EnhanceYourCalm,
        }
    }

    /// Returns a phrase for logs. It contains no bytes from the client.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Preface => "not the HTTP/2 connection preface",
            Self::MissingSettings => "the first frame is not SETTINGS, or only acknowledges SETTINGS",
            Self::FrameTooLarge => "a frame above the announced maximum size",
            Self::FrameSize => "a frame of a size that its type does not allow",
            Self::WrongStream => "a frame on or for a stream that its type does not allow",
            Self::Padding => "padding as long as the payload of its frame, or longer",
            Self::IdleStream => "a frame on or for an idle stream",
            Self::ClosedStream => "a frame on a closed stream",
            Self::InvalidStreamId => "an even or non-increasing stream number",
            Self::Continuation => "an interrupted field block, or CONTINUATION without one",
            Self::BlockTooLarge => "a field block above the limit of bytes or frames",
            Self::Compression(error) => error.reason(),
            Self::InvalidSetting => "a setting with an invalid value",
            Self::InitialWindowTooLarge => "an initial window that is above 2^31-1, or raises a stream window above it",
            Self::WindowTooLarge => "a connection window above 2^31-1",
            Self::ZeroWindowIncrement => "a WINDOW_UPDATE of zero on the connection",
            Self::WindowExceeded => "more data than the connection window allows",
            Self::SelfDependency => "a stream that depends on itself",
            Self::PushFromClient => "PUSH_PROMISE from a client",
            Self::Flood(flood) => flood.reason(),
        }
    }
}

impl From<HpackError> for ConnectionError {
    fn from(error: HpackError) -> Self {
        Self::Compression(error)
    }
}

impl From<Flood> for ConnectionError {
    fn from(flood: Flood) -> Self {
        Self::Flood(flood)
    }
}

/// Stream error (RFC 9113 §5.4.2). The stream is reset and the connection continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum StreamError {
    /// A head, trailers or a body break the rules of HTTP (RFC 9113 §8.1.1).
    Malformed(Malformed),
    /// The client exceeded the limit of concurrent streams (RFC 9113 §5.1.2). The client may retry the request.
    Refused,
    /// DATA or HEADERS arrived after END_STREAM, while the stream is half-closed (remote) (RFC 9113 §5.1).
    HalfClosed,
    /// The client sent more data than the stream's window allows (RFC 9113 §6.9.1).
    WindowExceeded,
    /// The stream's window exceeds 2^31-1 (RFC 9113 §6.9.1).
    WindowTooLarge,
    /// WINDOW_UPDATE has an increment of zero (RFC 9113 §6.9).
    ZeroWindowIncrement,
    /// HEADERS make the stream depend on itself (RFC 7540 §5.3.1).
    SelfDependency,
}

impl StreamError {
    /// Returns the error code sent in RST_STREAM (RFC 9113 §7).
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::Malformed(Malformed::TrailersTooLarge) => ErrorCode::EnhanceYourCalm,
            Self::Malformed(_) | Self::ZeroWindowIncrement | Self::SelfDependency => ErrorCode::ProtocolError,
            Self::Refused => ErrorCode::RefusedStream,
            Self::HalfClosed => ErrorCode::StreamClosed,
            Self::WindowExceeded | Self::WindowTooLarge => ErrorCode::FlowControlError,
        }
    }

    /// Returns a phrase for logs. It contains no bytes from the client.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Malformed(malformed) => malformed.reason(),
            Self::Refused => "more concurrent streams than allowed",
            Self::HalfClosed => "a frame after the end of its stream",
            Self::WindowExceeded => "more data than the stream window allows",
            Self::WindowTooLarge => "a stream window above 2^31-1",
            Self::ZeroWindowIncrement => "a WINDOW_UPDATE of zero on a stream",
            Self::SelfDependency => "a stream that depends on itself",
        }
    }
}

impl From<Malformed> for StreamError {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_match_their_numbers() {
        for (number, &code) in ErrorCode::ALL.iter().enumerate() {
            assert_eq!(code as usize, number);
            assert_eq!(ErrorCode::from_wire(number as u32), code);
        }
        assert_eq!(ErrorCode::from_wire(14), ErrorCode::InternalError);
        assert_eq!(ErrorCode::from_wire(u32::MAX), ErrorCode::InternalError);
    }
}
