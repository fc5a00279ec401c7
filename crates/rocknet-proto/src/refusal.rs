//! Reasons for refusing a request, with the status of the response. The comment on each reason names the rule that it
//! enforces or the attack that it prevents.

use crate::status::Status;

/// Error in a field line of a head or a trailer section, in requests and responses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum FieldError {
    /// A line that ends with a bare LF. One parser ends the line there and another does not, so they read different
    /// fields. RFC 9112 §2.2 allows, but does not require, a recipient to accept it.
    BareLf,
    /// A CR without LF. Parsers disagree about whether it ends the line, as with a bare LF.
    BareCr,
    /// NUL or another control character except HTAB in a value. NUL truncates strings in back ends written in C, and
    /// other controls split log lines.
    ControlInValue,
    /// A line that begins with whitespace: obs-fold, or a field that is hidden from parsers that do not unfold lines
    /// (RFC 9112 §5.2).
    Folded,
    /// A line without a colon.
    MissingColon,
    /// A line that begins with the colon.
    EmptyName,
    /// Whitespace between name and colon. Some parsers read `Content-Length ` as Content-Length. RFC 9112 §5.1 requires
    /// a 400.
    SpaceBeforeColon,
    /// A name that is not a token.
    NameNotToken,
    /// More lines than [`Limits::fields`](crate::Limits::fields).
    TooMany,
    /// A header or trailer section that does not end within its size limit.
    TooLarge,
}

impl FieldError {
    /// Returns a noun phrase for logs and error pages.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::BareLf => "a line that ends with a bare LF",
            Self::BareCr => "a bare CR in a field line",
            Self::ControlInValue => "a control character in a field value",
            Self::Folded => "a field line that begins with whitespace",
            Self::MissingColon => "a field line without a colon",
            Self::EmptyName => "a field without a name",
            Self::SpaceBeforeColon => "whitespace before the colon of a field",
            Self::NameNotToken => "a field name that is not a token",
            Self::TooMany => "too many fields",
            Self::TooLarge => "fields that are too large",
        }
    }

    const fn status(self) -> Status {
        match self {
            Self::TooMany | Self::TooLarge => Status::REQUEST_HEADER_FIELDS_TOO_LARGE,
            _ => Status::BAD_REQUEST,
        }
    }
}

/// Error in the fields that frame the body of a message, in requests and responses. Such a message is never repaired,
/// because the next parser might repair it differently.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum FramingError {
    /// Content-Length together with Transfer-Encoding: the classic request smuggling pair (RFC 9112 §6.1).
    LengthAndCoding,
    /// More than one Content-Length line, equal or not.
    LengthRepeated,
    /// A Content-Length that is empty, has bytes other than digits, or exceeds 64 bits.
    LengthInvalid,
    /// Transfer-Encoding in HTTP/1.0, which does not define it (RFC 9112 §6.1).
    CodingInHttp10,
    /// A Transfer-Encoding that has an empty member or does not end with exactly one `chunked`, so that the length is
    /// unknown (RFC 9112 §6.3).
    CodingInvalid,
    /// A transfer coding other than `chunked`. The status is 501 (RFC 9112 §6.1).
    CodingUnknown,
}

impl FramingError {
    /// Returns a noun phrase for logs and error pages.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::LengthAndCoding => "both Content-Length and Transfer-Encoding",
            Self::LengthRepeated => "more than one Content-Length",
            Self::LengthInvalid => "a malformed Content-Length",
            Self::CodingInHttp10 => "Transfer-Encoding in HTTP/1.0",
            Self::CodingInvalid => {
                "a Transfer-Encoding that has an empty member, or does not end with exactly one chunked"
            }
            Self::CodingUnknown => "an unknown transfer coding",
        }
    }
}

/// Error in a chunked body, in requests and responses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ChunkError {
    /// A chunk whose size line does not begin with a hexadecimal digit.
    Size,
    /// A size of more than 16 digits, which overflows 64-bit parsers. In a response, sizes whose sum exceeds 64 bits
    /// are refused too.
    SizeTooLong,
    /// A byte other than `;` or CRLF after the size. Parsers disagree about whitespace at this position.
    AfterSize,
    /// A control character other than HTAB in an extension, such as a bare CR.
    Extension,
    /// Extensions whose total size in one message exceeds the limit (CVE-2023-39326).
    ExtensionsTooLarge,
    /// A size line that ends with a bare LF.
    BareLf,
    /// Chunk data that is not followed by CRLF: sender and receiver disagree about the size.
    End,
    /// An invalid line in the trailer section, or a section with too many lines or bytes.
    Trailer(FieldError),
    /// A trailer field that belongs in the head, such as one for framing, routing or authorization (RFC 9110 §6.5.1).
    /// Merged into the head, it would change the meaning of the message. Only requests are refused for it; the receiver
    /// of a response must drop the field.
    ForbiddenTrailer,
}

impl ChunkError {
    /// Returns a noun phrase for logs and error pages.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Size => "a chunk without a size",
            Self::SizeTooLong => "a chunk size of more than 16 digits, or chunk sizes whose sum exceeds 64 bits",
            Self::AfterSize => "unexpected bytes after a chunk size",
            Self::Extension => "a control character in a chunk extension",
            Self::ExtensionsTooLarge => "too many bytes of chunk extensions",
            Self::BareLf => "a chunk size line that ends with a bare LF",
            Self::End => "chunk data that does not match its size",
            Self::Trailer(error) => error.reason(),
            Self::ForbiddenTrailer => "a field that is forbidden in trailers",
        }
    }

    const fn status(self) -> Status {
        match self {
            Self::ExtensionsTooLarge => Status::CONTENT_TOO_LARGE,
            Self::Trailer(error) => error.status(),
            _ => Status::BAD_REQUEST,
        }
    }
}

/// Reason for refusing a request. A refused request is never repaired, and in HTTP/1 no request is read after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Refusal {
    /// The request line is not `method SP target SP version CRLF` (RFC 9112 §3).
    RequestLine,
    /// The request line ends with a bare LF or contains a bare CR, which allows request smuggling between lenient and
    /// strict parsers.
    RequestLineEnd,
    /// A third empty line before the request line. RFC 9112 §2.2 asks servers to ignore "at least one".
    EmptyLines,
    /// A method that is not a token.
    MethodNotToken,
    /// A method much longer than any registered method. The status is 501 (RFC 9112 §3).
    MethodTooLong,
    /// `GET /` without a version: HTTP/0.9, whose responses have no head and end with the connection.
    Http09,
    /// The connection preface of HTTP/2 on an HTTP/1 connection.
    Http2Preface,
    /// A version other than 1.0 and 1.1. RFC 9110 §2.5 would allow reading 1.2 as 1.1, but only probes send 1.2.
    Version,
    /// A version that is not `HTTP/` digit `.` digit.
    VersionSyntax,
    /// A line of three words whose third word is not an HTTP version. In addition, either the second word is not a
    /// request target, or the first word is `PRI`, as in the preface of HTTP/2.
    UnknownProtocol,
    /// A byte in the target that is not a visible ASCII character.
    TargetByte,
    /// A target in none of the four forms, or in a form that its method must not use (RFC 9112 §3.2).
    TargetForm,
    /// A `#` in the target. Clients do not send fragments, and a filter in front of the server may have ignored all
    /// bytes after the `#`.
    TargetFragment,
    /// An absolute form whose scheme is neither http nor https.
    TargetScheme,
    /// A target longer than its limit, or a request line that does not end within the size limit of the head.
    TargetTooLong,
    /// An invalid field line, or a head with too many lines or bytes.
    Field(FieldError),
    /// HTTP/1.1 without Host (RFC 9112 §3.2), or HTTP/2 or HTTP/3 without a host in `:authority` or Host.
    HostMissing,
    /// More than one Host line: two servers on the path may choose different sites.
    HostRepeated,
    /// A host in Host, `:authority` or an absolute target that is not `uri-host [":" port]`. That includes an empty
    /// Host and a host with userinfo.
    HostInvalid,
    /// A Host that differs from `:authority` or from the authority of an absolute or CONNECT target: one server may
    /// route by Host while another authorizes by the target.
    HostMismatch,
    /// Ambiguous or invalid framing of the body.
    Framing(FramingError),
    /// An expectation other than `100-continue` (RFC 9110 §10.1.1).
    Expectation,
    /// An invalid chunked body.
    Chunk(ChunkError),
    /// A request body above the limit of its site, or above [`Limits::body_size`](crate::Limits::body_size).
    ContentTooLarge,
    /// A request in early data that is not safe to repeat, or whose client has not proven its address (RFC 8470 §5.2).
    /// An attacker may replay early data.
    TooEarly,
}

impl Refusal {
    /// Returns the status of the response.
    pub const fn status(self) -> Status {
        match self {
            Self::MethodTooLong | Self::Framing(FramingError::CodingUnknown) => Status::NOT_IMPLEMENTED,
            Self::Http2Preface | Self::Version => Status::HTTP_VERSION_NOT_SUPPORTED,
            Self::TargetTooLong => Status::URI_TOO_LONG,
            Self::Expectation => Status::EXPECTATION_FAILED,
            Self::ContentTooLarge => Status::CONTENT_TOO_LARGE,
            Self::TooEarly => Status::TOO_EARLY,
            Self::Field(error) => error.status(),
            Self::Chunk(error) => error.status(),
            _ => Status::BAD_REQUEST,
        }
    }

    /// Returns a noun phrase for logs and error pages, without any bytes of the client.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::RequestLine => "a malformed request line",
            Self::RequestLineEnd => "a bare CR or LF in the request line",
            Self::EmptyLines => "too many empty lines before the request",
            Self::MethodNotToken => "a method that is not a token",
            Self::MethodTooLong => "a method that is too long",
            Self::Http09 => "a request without a version",
            Self::Http2Preface => "the preface of HTTP/2 on an HTTP/1 connection",
            Self::Version => "an unsupported version",
            Self::VersionSyntax => "a malformed version",
            Self::UnknownProtocol => "a line of an unknown protocol",
            Self::TargetByte => "a forbidden byte in the request target",
            Self::TargetForm => "a request target of an unknown form, or of a form that its method does not allow",
            Self::TargetFragment => "a fragment in the request target",
            Self::TargetScheme => "a request target with a scheme other than http and https",
            Self::TargetTooLong => "a request target or request line that is too long",
            Self::Field(error) => error.reason(),
            Self::HostMissing => "a request without a host",
            Self::HostRepeated => "more than one Host field",
            Self::HostInvalid => "a malformed host",
            Self::HostMismatch => "a Host field that differs from the request target",
            Self::Framing(error) => error.reason(),
            Self::Expectation => "an unknown expectation",
            Self::Chunk(error) => error.reason(),
            Self::ContentTooLarge => "a request body that is too large",
            Self::TooEarly => "a request that has to wait for the end of the handshake",
        }
    }

    /// Returns false if an HTTP/1 response must not be sent, because the client speaks HTTP/2 and would read it as
    /// frames.
    pub const fn may_respond(self) -> bool {
        !matches!(self, Self::Http2Preface)
    }

    /// Returns true for the preface of HTTP/2, and for a line of an [unknown protocol](Self::UnknownProtocol), which
    /// may be a damaged preface. A connection that accepts HTTP/1 and HTTP/2 sends no response to such a line (RFC
    /// 9113 §3.4).
    pub const fn may_be_preface(self) -> bool {
        matches!(self, Self::Http2Preface | Self::UnknownProtocol)
    }
}

impl From<FieldError> for Refusal {
    fn from(error: FieldError) -> Self {
        Self::Field(error)
    }
}

impl From<ChunkError> for Refusal {
    fn from(error: ChunkError) -> Self {
        Self::Chunk(error)
    }
}

impl From<FramingError> for Refusal {
    fn from(error: FramingError) -> Self {
        Self::Framing(error)
    }
}
