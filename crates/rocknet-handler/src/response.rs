//! Responses as handlers return them, independent of the HTTP version.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rocknet_proto::status::Status;

use crate::open_file::OpenFile;
use crate::stored::Stored;
use crate::tunnel::Tunnel;

pub use rocknet_proto::fields::FieldList;

/// Text that is mostly a constant.
pub type Text = Cow<'static, str>;

/// A response.
///
/// The protocol sets the fields of the connection and of the framing, such as `Connection` and `Content-Length`, and
/// the field `Date`.
#[derive(Debug)]
pub struct Response {
    /// Status.
    pub status: Status,
    /// Header fields.
    pub fields: FieldList,
    /// Body.
    pub body: Body,
    /// Condition under which the route's error page replaces the body.
    pub error_page: ErrorPage,
    /// True if content negotiation is complete, so that no content coding is applied.
    pub is_negotiated: bool,
    /// Upstream that produced the response, for the access log.
    pub upstream: Option<UpstreamTiming>,
    /// Outcome of the request in the response cache in the words of nginx, such as `HIT`, for the access log; empty
    /// without a cache.
    pub cache_status: &'static str,
    /// Stored response whose whole body is the body of this response; `None` for any other body.
    pub stored: Option<Arc<dyn Stored>>,
    /// True if an error status is no sign of misbehaviour of the client, so that it does not count for bans.
    pub is_no_offence: bool,
    /// Time in seconds since 1970 at which the origin made the response, by its field `Date`; `None` if it is not
    /// known. The lifetime of a response with `Expires` begins then.
    pub date: Option<u64>,
}

/// An upstream and its response time.
#[derive(Debug, Clone)]
pub struct UpstreamTiming {
    /// Configured address; for a PHP that the server runs, `php:` and the pool name.
    pub address: Arc<str>,
    /// Time from sending the request until the head of the response. `None` if no head was received.
    pub head: Option<Duration>,
    /// Status of that head. The client can get another one, such as 200 if this is the 304 of a validation.
    pub status: Option<Status>,
}

/// Condition under which a route's error page replaces the body of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ErrorPage {
    /// If the response has no body.
    #[default]
    IfEmpty,
    /// Always: the body is only a default for the route's error page.
    Always,
    /// Never: an error of an upstream is passed on unchanged, even without a body.
    Never,
}

impl Response {
    /// Creates a response without fields and body.
    pub fn new(status: Status) -> Response {
        Response {
            status,
            fields: FieldList::default(),
            body: Body::Empty,
            error_page: ErrorPage::default(),
            is_negotiated: false,
            upstream: None,
            cache_status: "",
            stored: None,
            is_no_offence: false,
            date: None,
        }
    }

    /// Accepts a request to switch to `protocol`: 101 in HTTP/1.1 (RFC 9110 §7.8), 200 in HTTP/2 (RFC 8441) and HTTP/3
    /// (RFC 9220). The server sets `Upgrade` and `Connection`.
    pub fn tunnel(protocol: impl Into<Text>, tunnel: impl Tunnel + 'static) -> Response {
        Response {
            status: Status::SWITCHING_PROTOCOLS,
            fields: FieldList::default(),
            body: Body::Tunnel(Upgrade {
                protocol: protocol.into(),
                tunnel: Box::new(tunnel),
            }),
            error_page: ErrorPage::default(),
            is_negotiated: false,
            upstream: None,
            cache_status: "",
            stored: None,
            is_no_offence: false,
            date: None,
        }
    }

    /// Adds a header field.
    pub fn with(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Response {
        self.fields.add(name, value);
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Body>) -> Response {
        self.body = body.into();
        self
    }
}

/// A range of an open file.
#[derive(Debug, Clone)]
pub struct FilePart {
    /// The file.
    pub file: Arc<OpenFile>,
    /// Offset of the first byte in the file.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
}

/// Body of a response.
#[derive(Default)]
pub enum Body {
    /// No body.
    #[default]
    Empty,
    /// Bytes in memory.
    Bytes(Bytes),
    /// A range of a file.
    File(FilePart),
    /// Several parts in sequence: `multipart/byteranges` (RFC 9110 §14.6).
    Parts(Vec<Part>),
    /// Bytes that are produced while the body is sent.
    Stream(Box<dyn Stream>),
    /// No body: the handler takes over the connection (HTTP/1.1) or the stream (HTTP/2, HTTP/3).
    Tunnel(Upgrade),
    /// No response at all: the connection is closed (HTTP/1.1), or the stream is reset (HTTP/2, HTTP/3). The status is
    /// for the access log and the metrics.
    Abort,
}

/// The tunnel that follows a response which switches protocols.
pub struct Upgrade {
    /// Name of the new protocol.
    pub protocol: Text,
    /// Moves the bytes of both directions.
    pub tunnel: Box<dyn Tunnel>,
}

/// One part of [`Body::Parts`].
#[derive(Debug, Clone)]
pub enum Part {
    /// Bytes in memory.
    Bytes(Bytes),
    /// A range of a file.
    File(FilePart),
}

/// A body that is produced while it is sent. Each piece is requested only when there is room for it, which limits the
/// stream to the speed of the client.
pub trait Stream {
    /// Returns the next piece; `None` at the end of the body. An error aborts the response so that the client notices.
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<std::io::Result<Bytes>>> + '_>>;

    /// Returns the length of the whole body in bytes, if it is known in advance. The stream then yields exactly this
    /// number of bytes, or an error.
    fn length(&self) -> Option<u64> {
        None
    }

    /// Returns the trailer fields (RFC 9110 §6.5). Called once, at the end of the body. Trailers are dropped where the
    /// framing has no place for them, such as after a body with `Content-Length` in HTTP/1.1.
    fn trailers(&mut self) -> Option<FieldList> {
        None
    }
}

impl Body {
    /// Returns the length in bytes, if it is known in advance.
    pub fn length(&self) -> Option<u64> {
        match self {
            Body::Empty => Some(0),
            Body::Bytes(bytes) => Some(bytes.len() as u64),
            Body::File(part) => Some(part.length),
            Body::Parts(parts) => Some(parts.iter().map(Part::length).sum()),
            Body::Stream(stream) => stream.length(),
            Body::Tunnel(_) | Body::Abort => None,
        }
    }

    /// Returns the bytes of a body that is in memory as a whole.
    ///
    /// # Errors
    ///
    /// Returns any other body unchanged.
    #[inline]
    pub fn into_bytes(self) -> Result<Bytes, Body> {
        match self {
            Body::Empty => Ok(Bytes::new()),
            Body::Bytes(bytes) => Ok(bytes),
            body => Err(body),
        }
    }
}

impl Part {
    /// Returns the length in bytes.
    pub fn length(&self) -> u64 {
        match self {
            Part::Bytes(bytes) => bytes.len() as u64,
            Part::File(part) => part.length,
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.length() {
            Some(length) => write!(f, "Body({length} bytes)"),
            None => f.write_str("Body(stream)"),
        }
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Body {
        Body::Bytes(bytes.into())
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Body {
        Body::Bytes(Bytes::from_static(text.as_bytes()))
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Body {
        Body::Bytes(bytes)
    }
}
