//! The parts of a request that controllers can read.

use std::cell::OnceCell;
use std::rc::Rc;

use rocknet_controller::{abi, host};
use rocknet_proto::request::{OwnedRequest, Request};
use rustls::ProtocolVersion;

use crate::exchange::{Client, Exchange, RequestBody, TlsInfo};

/// Client and connection of a request. A value is `None` if the connection or the client has no such value.
#[derive(Clone, Copy)]
pub struct RequestOrigin<'a> {
    pub client: Client,
    /// True if the connection uses TLS.
    pub is_secure: bool,
    tls_version: Option<&'static str>,
    tls_cipher: Option<&'a str>,
    /// Server name that the client sent (SNI).
    server_name: Option<&'a str>,
    /// Subject of the client's certificate.
    certificate: Option<&'a str>,
    /// Authenticated user.
    user: Option<&'a str>,
}

impl<'a> RequestOrigin<'a> {
    /// Returns the origin of the request of an exchange.
    pub fn of(exchange: &'a Exchange) -> RequestOrigin<'a> {
        RequestOrigin::new(exchange.client, exchange.tls.as_deref(), exchange.user.as_deref())
    }

    /// Creates the origin from the client, the TLS parameters and the authenticated user. `secure`: `None` for a
    /// connection without TLS.
    pub fn new(client: Client, secure: Option<&'a TlsInfo>, user: Option<&'a str>) -> RequestOrigin<'a> {
        RequestOrigin {
            client,
            is_secure: secure.is_some(),
            tls_version: secure.and_then(|secure| secure.version).and_then(version),
            tls_cipher: secure.and_then(TlsInfo::cipher),
            server_name: secure.and_then(|secure| secure.server_name.as_deref()),
            certificate: secure
                .and_then(|secure| secure.client.as_ref())
                .map(|client| client.subject.as_str()),
            user,
        }
    }
}

/// Returns the name of a TLS version; `None` for a version that the server does not support.
fn version(version: ProtocolVersion) -> Option<&'static str> {
    match version {
        ProtocolVersion::TLSv1_2 => Some("TLSv1.2"),
        ProtocolVersion::TLSv1_3 => Some("TLSv1.3"),
        _ => None,
    }
}

/// A borrowed request.
pub struct RequestView<'a> {
    pub request: Request<'a>,
    /// Decoded and normalized path.
    pub path: &'a str,
    /// Request body; empty if the controller receives the body in pieces.
    pub content: &'a [u8],
    pub origin: RequestOrigin<'a>,
    /// Address and port of the client as text, once a controller has read them.
    client: OnceCell<Option<(String, String)>>,
}

impl<'a> RequestView<'a> {
    pub fn new(request: Request<'a>, path: &'a str, content: &'a [u8], origin: RequestOrigin<'a>) -> RequestView<'a> {
        RequestView {
            request,
            path,
            content,
            origin,
            client: OnceCell::new(),
        }
    }

    /// Returns the address and port of the client as text; `None` for a client on a Unix socket.
    fn client(&self) -> Option<&(String, String)> {
        let text = || match self.origin.client {
            Client::Ip { address, port } => Some((address.to_canonical().to_string(), port.to_string())),
            Client::Local => None,
        };
        self.client.get_or_init(text).as_ref()
    }
}

impl host::RequestView for RequestView<'_> {
    fn read(&self, what: u32) -> Option<&[u8]> {
        let request = &self.request;
        match what {
            abi::METHOD => Some(request.method_name),
            abi::PATH => Some(request.path),
            abi::DECODED_PATH => Some(self.path.as_bytes()),
            abi::QUERY => request.query,
            abi::TARGET => Some(request.target),
            abi::HOST => Some(request.authority),
            abi::VERSION => Some(request.version.as_str().as_bytes()),
            abi::SCHEME => Some(if self.origin.is_secure { b"https" } else { b"http" }),
            abi::CLIENT_ADDRESS => self.client().map(|(address, _)| address.as_bytes()),
            // Port 0 means that a trusted proxy named the client without its port.
            abi::CLIENT_PORT => self
                .client()
                .map(|(_, port)| port.as_bytes())
                .filter(|port| port != b"0"),
            abi::CLIENT_CERTIFICATE => self.origin.certificate.map(str::as_bytes),
            abi::TLS_VERSION => self.origin.tls_version.map(str::as_bytes),
            abi::TLS_CIPHER => self.origin.tls_cipher.map(str::as_bytes),
            abi::SERVER_NAME => self.origin.server_name.map(str::as_bytes),
            abi::USER => self.origin.user.map(str::as_bytes),
            _ => None,
        }
    }

    fn field(&self, name: &[u8], nth: usize) -> Option<&[u8]> {
        self.request.fields.by_name(name).nth(nth)
    }

    fn field_at(&self, index: usize) -> Option<(&[u8], &[u8])> {
        self.request.fields.iter().nth(index)
    }

    fn content(&self) -> &[u8] {
        self.content
    }
}

/// An owned request, which outlives the receive buffer and can move to another thread. The fields from `client` on
/// have the same meaning as in [`RequestOrigin`].
pub struct SavedRequest {
    request: OwnedRequest,
    path: Box<str>,
    client: Client,
    is_secure: bool,
    tls_version: Option<&'static str>,
    tls_cipher: Option<Box<str>>,
    server_name: Option<Box<str>>,
    certificate: Option<Box<str>>,
    user: Option<Box<str>>,
}

impl SavedRequest {
    /// Takes the request out of an exchange, and returns the request body with it.
    pub fn of(exchange: Exchange) -> (SavedRequest, RequestBody) {
        let Exchange {
            request,
            body,
            path,
            client,
            tls,
            user,
            ..
        } = exchange;
        let origin = RequestOrigin::new(client, tls.as_deref(), user.as_deref());
        (SavedRequest::new(request, path, &origin), body)
    }

    fn new(request: Rc<OwnedRequest>, path: Box<str>, origin: &RequestOrigin<'_>) -> SavedRequest {
        SavedRequest {
            request: Rc::unwrap_or_clone(request),
            path,
            client: origin.client,
            is_secure: origin.is_secure,
            tls_version: origin.tls_version,
            tls_cipher: origin.tls_cipher.map(Into::into),
            server_name: origin.server_name.map(Into::into),
            certificate: origin.certificate.map(Into::into),
            user: origin.user.map(Into::into),
        }
    }

    /// Returns a view of the request with the request body `content`.
    pub fn view<'a>(&'a self, content: &'a [u8]) -> RequestView<'a> {
        let origin = RequestOrigin {
            client: self.client,
            is_secure: self.is_secure,
            tls_version: self.tls_version,
            tls_cipher: self.tls_cipher.as_deref(),
            server_name: self.server_name.as_deref(),
            certificate: self.certificate.as_deref(),
            user: self.user.as_deref(),
        };
        RequestView::new(self.request.view(), &self.path, content, origin)
    }
}
