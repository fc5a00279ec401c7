//! An answer as handlers give it: free of any HTTP version.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rocknet_proto::status::Status;

use crate::open_file::OpenFile;
use crate::tunnel::Tunnel;

pub use rocknet_proto::fields::FieldList;

/// A name that is mostly known beforehand.
pub type Text = Cow<'static, str>;

#[derive(Debug)]
pub struct Response {
    pub status: Status,
    pub fields: FieldList,
    pub body: Body,
    pub error_page: ErrorPage,
    /// The form was chosen by what the client accepts: no coding is applied to it any more.
    pub is_negotiated: bool,
    /// The server that it is from, for the access log.
    pub upstream: Option<UpstreamTiming>,
}

/// A server that was asked for a response.
#[derive(Debug, Clone)]
pub struct UpstreamTiming {
    /// As it is configured.
    pub address: Arc<str>,
    /// From the request to it until the head of its response; `None` if there was none.
    pub head: Option<Duration>,
}

/// Whether the page that a route has for an error takes the place of a response's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ErrorPage {
    /// If the response has no content.
    #[default]
    IfEmpty,
    /// Whatever the content is: it only stands in for such a page.
    Always,
    /// Never: an error of another server is passed on as it is, also without content.
    Never,
}

impl Response {
    pub fn new(status: Status) -> Response {
        Response {
            status,
            fields: FieldList::default(),
            body: Body::Empty,
            error_page: ErrorPage::default(),
            is_negotiated: false,
            upstream: None,
        }
    }

    /// Agrees to speak `protocol` with a client that has asked for it: 101, or what stands for it in HTTP/2. `Upgrade` and
    /// `Connection` are the protocol's, as with every answer.
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
        }
    }

    pub fn with(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Response {
        self.fields.add(name, value);
        self
    }

    pub fn body(mut self, body: impl Into<Body>) -> Response {
        self.body = body.into();
        self
    }
}

/// A stretch of an open file.
#[derive(Debug, Clone)]
pub struct FilePart {
    pub file: Arc<OpenFile>,
    pub offset: u64,
    pub length: u64,
}

#[derive(Default)]
pub enum Body {
    #[default]
    Empty,
    Bytes(Bytes),
    File(FilePart),
    /// Several stretches one after the other: multipart/byteranges.
    Parts(Vec<Part>),
    Stream(Box<dyn Stream>),
    /// No content: the connection, or the stream, is the handler's from now on.
    Tunnel(Upgrade),
}

/// What comes behind the answer that agrees to another protocol.
pub struct Upgrade {
    /// The one that was agreed on.
    pub protocol: Text,
    pub tunnel: Box<dyn Tunnel>,
}

#[derive(Debug, Clone)]
pub enum Part {
    Bytes(Bytes),
    File(FilePart),
}

/// Content made bit by bit. Each piece is asked for when there is room for it: that is the back-pressure.
pub trait Stream {
    /// The next piece; `None` at the end; an error cuts the answer off so that the client notices.
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<std::io::Result<Bytes>>> + '_>>;

    /// How long all of it is, where that is known before it is sent: it gives so many bytes, or an error.
    fn length(&self) -> Option<u64> {
        None
    }

    /// Fields behind the content (RFC 9110 §6.5), asked for once at its end. Where there is no place for them, as behind
    /// content whose length was told in HTTP/1.1, they are left out.
    fn trailers(&mut self) -> Option<FieldList> {
        None
    }
}

impl Body {
    /// How long it is, if that is known before it is sent.
    pub fn length(&self) -> Option<u64> {
        match self {
            Body::Empty => Some(0),
            Body::Bytes(bytes) => Some(bytes.len() as u64),
            Body::File(part) => Some(part.length),
            Body::Parts(parts) => Some(parts.iter().map(Part::length).sum()),
            Body::Stream(stream) => stream.length(),
            Body::Tunnel(_) => None,
        }
    }

    /// What is in memory in one piece; anything else comes back as it is.
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
