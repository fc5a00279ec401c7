//! What ends a stream or a connection: every fault names the rule or the attack behind it, and has one code.

use super::budget::Flood;
use super::hpack::HpackError;

/// The error codes of RFC 9113 §7.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u32)]
pub enum ErrorCode {
    NoError = 0,
    ProtocolError = 1,
    InternalError = 2,
    FlowControlError = 3,
    SettingsTimeout = 4,
    StreamClosed = 5,
    FrameSizeError = 6,
    RefusedStream = 7,
    Cancel = 8,
    CompressionError = 9,
    ConnectError = 10,
    EnhanceYourCalm = 11,
    InadequateSecurity = 12,
    Http11Required = 13,
}

impl ErrorCode {
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

    /// The code a peer sent; one that is not defined is like INTERNAL_ERROR (RFC 9113 §7).
    pub fn from_wire(code: u32) -> ErrorCode {
        Self::ALL.get(code as usize).copied().unwrap_or(Self::InternalError)
    }

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

/// Why a connection ends. The client is told by GOAWAY and nothing further is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ConnectionError {
    /// Not the client connection preface (RFC 9113 §3.4).
    Preface,
    /// The first frame is not SETTINGS (RFC 9113 §3.4).
    MissingSettings,
    /// A frame above the size we allow (RFC 9113 §4.2).
    FrameTooLarge,
    /// A frame of a size its type cannot have (RFC 9113 §6).
    FrameSize,
    /// A frame of a stream on stream 0, or one of the connection on a stream (RFC 9113 §6).
    WrongStream,
    /// Padding that is as long as its frame or longer (RFC 9113 §6.1).
    Padding,
    /// A frame on a stream that nobody opened (RFC 9113 §5.1).
    IdleStream,
    /// A frame on a stream that was ended (RFC 9113 §5.1).
    ClosedStream,
    /// A stream number that is even, or not above the last one (RFC 9113 §5.1.1).
    InvalidStreamId,
    /// A field block interrupted by another frame, or CONTINUATION without one (RFC 9113 §6.10).
    Continuation,
    /// More bytes or frames of one field block than any head has (CVE-2024-27316 and its kin).
    BlockTooLarge,
    /// A field block that cannot be read (RFC 9113 §4.3).
    Compression(HpackError),
    /// A setting of a value it cannot have (RFC 9113 §6.5.2).
    InvalidSetting,
    /// INITIAL_WINDOW_SIZE above 2^31-1 (RFC 9113 §6.5.2), or a change of it that lifts a window above that.
    InitialWindowTooLarge,
    /// A window of the connection above 2^31-1 (RFC 9113 §6.9.1).
    WindowTooLarge,
    /// A window that grows by nothing (RFC 9113 §6.9).
    ZeroWindowIncrement,
    /// More data than the connection's window allows (RFC 9113 §6.9.1).
    WindowExceeded,
    /// A stream that depends on itself (RFC 7540 §5.3.1).
    SelfDependency,
    /// PUSH_PROMISE from a client (RFC 9113 §8.4).
    PushFromClient,
    /// More frames of one kind than use of the connection explains.
    Flood(Flood),
}

impl ConnectionError {
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

    /// One sentence part for logs; it holds nothing the client sent.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Preface => "not the preface of HTTP/2",
            Self::MissingSettings => "the first frame is not SETTINGS",
            Self::FrameTooLarge => "a frame above the agreed size",
            Self::FrameSize => "a frame of a size that its type cannot have",
            Self::WrongStream => "a frame on a stream that its type cannot have",
            Self::Padding => "padding as long as its frame",
            Self::IdleStream => "a frame on a stream that nobody opened",
            Self::ClosedStream => "a frame on a stream that was ended",
            Self::InvalidStreamId => "a stream number out of order",
            Self::Continuation => "a field block that is interrupted, or a CONTINUATION without one",
            Self::BlockTooLarge => "a field block of unheard-of size",
            Self::Compression(error) => error.reason(),
            Self::InvalidSetting => "a setting of a value that it cannot have",
            Self::InitialWindowTooLarge => "an initial window above 2^31-1",
            Self::WindowTooLarge => "a window above 2^31-1",
            Self::ZeroWindowIncrement => "a window that grows by nothing",
            Self::WindowExceeded => "more data than the connection's window allows",
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

/// Why one stream is reset; the connection goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum StreamError {
    /// A head, trailers or content against the rules of HTTP (RFC 9113 §8.1.1).
    Malformed(Malformed),
    /// More streams at once than we allow (RFC 9113 §5.1.2); the request may be sent again.
    Refused,
    /// Data or fields behind END_STREAM (RFC 9113 §5.1).
    Closed,
    /// More data than the stream's window allows.
    WindowExceeded,
    /// A window above 2^31-1.
    WindowTooLarge,
    /// A window that grows by nothing.
    ZeroWindowIncrement,
    /// A stream that depends on itself (RFC 7540 §5.3.1).
    SelfDependency,
}

impl StreamError {
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::Malformed(Malformed::TrailersTooLarge) => ErrorCode::EnhanceYourCalm,
            Self::Malformed(_) | Self::ZeroWindowIncrement | Self::SelfDependency => ErrorCode::ProtocolError,
            Self::Refused => ErrorCode::RefusedStream,
            Self::Closed => ErrorCode::StreamClosed,
            Self::WindowExceeded | Self::WindowTooLarge => ErrorCode::FlowControlError,
        }
    }

    pub const fn reason(self) -> &'static str {
        match self {
            Self::Malformed(malformed) => malformed.reason(),
            Self::Refused => "more streams at once than allowed",
            Self::Closed => "a frame behind the end of its stream",
            Self::WindowExceeded => "more data than the stream's window allows",
            Self::WindowTooLarge => "a stream's window above 2^31-1",
            Self::ZeroWindowIncrement => "a stream's window that grows by nothing",
            Self::SelfDependency => "a stream that depends on itself",
        }
    }
}

impl From<Malformed> for StreamError {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

/// What is wrong with a request as HTTP. None of it is repaired: what is passed on must mean the same to everybody.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Malformed {
    /// A name that is no token in lower case (RFC 9113 §8.2.1).
    FieldName,
    /// A value with a control character, or with space around it (RFC 9113 §8.2.1).
    FieldValue,
    /// A field of HTTP/1 connections: framing that the next hop might believe (RFC 9113 §8.2.2).
    ConnectionField,
    /// TE with anything but `trailers` (RFC 9113 §8.2.2).
    Te,
    /// A pseudo field behind another field (RFC 9113 §8.3).
    PseudoAfterFields,
    /// The same pseudo field twice.
    PseudoRepeated,
    /// A pseudo field of responses.
    PseudoOfResponse,
    /// A pseudo field in trailers (RFC 9113 §8.1).
    PseudoInTrailers,
    /// `:method`, `:scheme` or `:path` is not there (RFC 9113 §8.3.1).
    PseudoMissing,
    /// An empty `:path`.
    PathEmpty,
    /// A method that is no token.
    Method,
    /// CONNECT with more or less than its authority (RFC 9113 §8.5).
    Connect,
    /// `:protocol` without CONNECT, or where it is not offered (RFC 8441 §4).
    Protocol,
    /// A Content-Length that is repeated, no number, or not the length of the content (RFC 9113 §8.1.1).
    ContentLength,
    /// A second head, or trailers that do not end the stream (RFC 9113 §8.1).
    TrailersWithoutEnd,
    /// A trailer that names framing, routing or the sender's rights (RFC 9110 §6.5.1).
    ForbiddenTrailer,
    /// Trailers above their limit.
    TrailersTooLarge,
}

impl Malformed {
    pub const fn reason(self) -> &'static str {
        match self {
            Self::FieldName => "a field name that is no token in lower case",
            Self::FieldValue => "a forbidden byte in a field value",
            Self::ConnectionField => "a field of HTTP/1 connections",
            Self::Te => "TE with more than trailers",
            Self::PseudoAfterFields => "a pseudo field behind other fields",
            Self::PseudoRepeated => "a pseudo field twice",
            Self::PseudoOfResponse => "a pseudo field of responses",
            Self::PseudoInTrailers => "a pseudo field in trailers",
            Self::PseudoMissing => "a pseudo field is missing",
            Self::PathEmpty => "an empty path",
            Self::Method => "a method that is no token",
            Self::Connect => "CONNECT with more or less than an authority",
            Self::Protocol => "a protocol that is not offered",
            Self::ContentLength => "content of another length than announced",
            Self::TrailersWithoutEnd => "a second head",
            Self::ForbiddenTrailer => "a field that may not stand in trailers",
            Self::TrailersTooLarge => "the trailers are too large",
        }
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
