//! Why a client's bytes are refused, and with which status: every reason names the rule or the attack behind it.

use crate::status::Status;

/// What is wrong with a field line of a head or a trailer section; the same for requests and responses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum FieldError {
    /// A line ended by LF alone: one parser sees two lines where another sees one (RFC 9112 §2.2 lets us refuse).
    BareLf,
    /// A CR that is not followed by LF: the same attack from the other side.
    BareCr,
    /// NUL or another control in a value: truncates strings in C behind us, splits lines in logs.
    ControlInValue,
    /// A line that begins with whitespace: obs-fold, or a field hidden from parsers that do not unfold (RFC 9112 §5.2).
    Folded,
    /// A line without a colon.
    MissingColon,
    /// A line that begins with the colon.
    EmptyName,
    /// Whitespace between name and colon: some parsers take `Content-Length ` for a Content-Length (RFC 9112 §5.1: 400).
    SpaceBeforeColon,
    /// A name that is no token.
    NameNotToken,
    /// More lines than the limit.
    TooMany,
    /// The section does not end within its limit.
    TooLarge,
}

impl FieldError {
    pub const fn reason(self) -> &'static str {
        match self {
            Self::BareLf => "a line ends with a bare LF",
            Self::BareCr => "a bare CR in a field line",
            Self::ControlInValue => "a control character in a field value",
            Self::Folded => "a field line begins with whitespace",
            Self::MissingColon => "a field line without a colon",
            Self::EmptyName => "a field without a name",
            Self::SpaceBeforeColon => "whitespace before the colon of a field",
            Self::NameNotToken => "a field name that is no token",
            Self::TooMany => "too many fields",
            Self::TooLarge => "the fields are too large",
        }
    }

    const fn status(self) -> Status {
        match self {
            Self::TooMany | Self::TooLarge => Status::REQUEST_HEADER_FIELDS_TOO_LARGE,
            _ => Status::BAD_REQUEST,
        }
    }
}

/// Fields that disagree about where the content of a message ends, or do not say it clearly; the same for requests and
/// responses. None of them is repaired: the next parser might repair it otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum FramingError {
    /// Content-Length beside Transfer-Encoding: the classic smuggling pair (RFC 9112 §6.1).
    LengthAndCoding,
    /// More than one Content-Length line, equal or not.
    LengthRepeated,
    /// A Content-Length that is not digits alone, or does not fit 64 bits.
    LengthInvalid,
    /// Transfer-Encoding in HTTP/1.0, which does not know it (RFC 9112 §6.1).
    CodingInHttp10,
    /// A Transfer-Encoding that does not end in exactly one `chunked`: the length cannot be known (RFC 9112 §6.3).
    CodingInvalid,
    /// A transfer coding besides `chunked`: 501 (RFC 9112 §6.1).
    CodingUnknown,
}

impl FramingError {
    pub const fn reason(self) -> &'static str {
        match self {
            Self::LengthAndCoding => "Content-Length beside Transfer-Encoding",
            Self::LengthRepeated => "more than one Content-Length",
            Self::LengthInvalid => "a malformed Content-Length",
            Self::CodingInHttp10 => "Transfer-Encoding in HTTP/1.0",
            Self::CodingInvalid => "a Transfer-Encoding that does not end in one chunked",
            Self::CodingUnknown => "an unknown transfer coding",
        }
    }
}

/// What is wrong with chunked content; the same for requests and responses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ChunkError {
    /// No hexadecimal digits where a size should stand.
    Size,
    /// More than 16 digits: a size that wraps around in a parser behind us.
    SizeTooLong,
    /// Something other than `;` or CRLF behind the size; whitespace there is read differently by different parsers.
    AfterSize,
    /// A control or bare CR in an extension.
    Extension,
    /// Extensions of this message are larger than their limit (CVE-2023-39326).
    ExtensionsTooLarge,
    /// A size line that ends with a bare LF.
    BareLf,
    /// Chunk data not followed by CRLF: sender and receiver disagree about the size.
    End,
    /// A bad line in the trailer section.
    Trailer(FieldError),
    /// A trailer that names framing, routing or the sender's rights (RFC 9110 §6.5.1): merged into the head it would
    /// change what the message was.
    ForbiddenTrailer,
}

impl ChunkError {
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Size => "a chunk without a size",
            Self::SizeTooLong => "a chunk size of more than 16 digits",
            Self::AfterSize => "garbage behind a chunk size",
            Self::Extension => "a control character in a chunk extension",
            Self::ExtensionsTooLarge => "too many bytes of chunk extensions",
            Self::BareLf => "a chunk size line ends with a bare LF",
            Self::End => "a chunk does not end where its size says",
            Self::Trailer(error) => error.reason(),
            Self::ForbiddenTrailer => "a field that may not stand in trailers",
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

/// A request that is not taken. The connection reads no further after one; nothing is repaired.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Refusal {
    /// The request line is not `method SP target SP version CRLF` (RFC 9112 §3).
    RequestLine,
    /// The request line ends with a bare LF, or holds a bare CR: smuggling between lenient and strict parsers.
    RequestLineEnd,
    /// A third empty line before the request line; RFC 9112 §2.2 asks to bear "at least one".
    EmptyLines,
    /// A method that is no token.
    MethodNotToken,
    /// A method longer than any registered one: 501 (RFC 9112 §3).
    MethodTooLong,
    /// `GET /` without a version: HTTP/0.9, whose answers have no head and end with the connection.
    Http09,
    /// The preface of HTTP/2 where HTTP/1 is spoken.
    Http2Preface,
    /// A version that is neither 1.0 nor 1.1. RFC 9110 §2.5 would let 1.2 be read as 1.1; nobody sends it but probes.
    Version,
    /// A version that is not spelt `HTTP/` digit `.` digit.
    VersionSyntax,
    /// Three words, of which the last is no version of HTTP and the second no request target.
    UnknownProtocol,
    /// A byte in the target that is no visible ASCII character.
    TargetByte,
    /// A target in none of the four forms, or in a form its method may not use (RFC 9112 §3.2).
    TargetForm,
    /// A `#` in the target: fragments stay with the client, and filters before us may have cut there.
    TargetFragment,
    /// An absolute form whose scheme is not http or https.
    TargetScheme,
    /// Target above its limit, or a request line that does not end within the head's limit.
    TargetTooLong,
    /// A bad field line.
    Field(FieldError),
    /// HTTP/1.1 without Host (RFC 9112 §3.2).
    HostMissing,
    /// Two Host lines: two servers on the way may pick two sites.
    HostRepeated,
    /// A host that is no `uri-host [":" port]`, an empty one, or one with userinfo.
    HostInvalid,
    /// A Host that names another authority than the absolute target: routed by one, judged by the other.
    HostMismatch,
    /// Fields that disagree about where the content ends.
    Framing(FramingError),
    /// An expectation other than `100-continue` (RFC 9110 §10.1.1).
    Expectation,
    /// Bad chunked content.
    Chunk(ChunkError),
    /// Content above the limit of the site.
    ContentTooLarge,
}

impl Refusal {
    /// The status of the answer.
    pub const fn status(self) -> Status {
        match self {
            Self::MethodTooLong | Self::Framing(FramingError::CodingUnknown) => Status::NOT_IMPLEMENTED,
            Self::Http2Preface | Self::Version => Status::HTTP_VERSION_NOT_SUPPORTED,
            Self::TargetTooLong => Status::URI_TOO_LONG,
            Self::Expectation => Status::EXPECTATION_FAILED,
            Self::ContentTooLarge => Status::CONTENT_TOO_LARGE,
            Self::Field(error) => error.status(),
            Self::Chunk(error) => error.status(),
            _ => Status::BAD_REQUEST,
        }
    }

    /// One sentence part for logs and error pages; it holds nothing the client sent.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::RequestLine => "a malformed request line",
            Self::RequestLineEnd => "the request line does not end with CRLF",
            Self::EmptyLines => "too many empty lines before the request",
            Self::MethodNotToken => "a method that is no token",
            Self::MethodTooLong => "a method of unheard-of length",
            Self::Http09 => "a request without a version",
            Self::Http2Preface => "HTTP/2 where HTTP/1 is spoken",
            Self::Version => "a version that is not spoken here",
            Self::VersionSyntax => "a malformed version",
            Self::UnknownProtocol => "a line of an unknown protocol",
            Self::TargetByte => "a forbidden byte in the request target",
            Self::TargetForm => "a request target of a form that does not suit the method",
            Self::TargetFragment => "a fragment in the request target",
            Self::TargetScheme => "a request target with a foreign scheme",
            Self::TargetTooLong => "the request target is too long",
            Self::Field(error) => error.reason(),
            Self::HostMissing => "no Host",
            Self::HostRepeated => "more than one Host",
            Self::HostInvalid => "a malformed Host",
            Self::HostMismatch => "Host and request target name different hosts",
            Self::Framing(error) => error.reason(),
            Self::Expectation => "an unknown expectation",
            Self::Chunk(error) => error.reason(),
            Self::ContentTooLarge => "the content is too large",
        }
    }

    /// False where an HTTP/1 answer would be read as something else: an HTTP/2 peer takes it for frames.
    pub const fn may_respond(self) -> bool {
        !matches!(self, Self::Http2Preface)
    }

    /// The line may as well be a preface of HTTP/2 that is broken: it names neither a version of HTTP nor a request target.
    /// Where both are spoken, such a client is left without an answer in either (RFC 9113 §3.4).
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
