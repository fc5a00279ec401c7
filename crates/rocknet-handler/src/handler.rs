//! The trait [`Handler`], which everything that responds to requests implements.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use rocknet_io::wheel::Wheel;
use rocknet_proto::request::Request;

use crate::client::Client;
use crate::exchange::Exchange;
use crate::response::Response;
use crate::route::Route;
use crate::services::Services;
use crate::stored::Stored;
use crate::tls_info::TlsInfo;

/// Result of a handler.
pub enum HandlerOutput {
    /// A response.
    Response(Box<Response>),
    /// An entry of the file cache, whose prepared response the server sends. Its type is `CachedEntry` of
    /// `rocknet-files`; for any other type the server responds with 500.
    Cached(Rc<dyn Any>),
}

impl From<Response> for HandlerOutput {
    fn from(response: Response) -> HandlerOutput {
        HandlerOutput::Response(Box::new(response))
    }
}

/// Future of a handler's result. It runs on the thread of the connection.
pub type HandlerFuture = Pin<Box<dyn Future<Output = HandlerOutput>>>;

/// Converts a future of a response to a [`HandlerFuture`], for implementations of [`Handler::handle`].
pub fn respond_with(work: impl Future<Output = Response> + 'static) -> HandlerFuture {
    Box::pin(async { work.await.into() })
}

/// Borrowed view of an exchange, for [`Handler::handle_now`].
#[derive(Clone, Copy)]
pub struct ExchangeRef<'a> {
    /// Services that the worker lends to handlers.
    pub services: &'a Services,
    /// Method, target and header fields.
    pub request: &'a Request<'a>,
    /// True if the request has a body, or is an extended CONNECT, which is followed by data.
    pub has_body: bool,
    /// Path of the request, decoded and normalized.
    pub path: &'a str,
    /// True if a file can have this path.
    pub is_file_path: bool,
    /// Client: the one that a trusted proxy reports, else the peer.
    pub client: Client,
    /// Other end of the connection.
    pub peer: Client,
    /// Parameters of the TLS handshake. `None` for a connection without TLS.
    pub tls: Option<&'a TlsInfo>,
    /// User whom `auth` of the route has authenticated: by password, client certificate, authorization service or login
    /// provider. `None` without an authenticated user.
    pub user: Option<&'a str>,
    /// True if a client certificate, an authorization service or a login provider identifies the client. A login by
    /// password sets only `user`. The response is for this client alone if either is set.
    pub is_identified: bool,
    /// Checks the restrictions of the script that the path leads to, such as `allow` and `limit` of the script's route.
    /// Counts the request in the limits, and returns true if it is admitted. `None` if the script has not been looked
    /// up. A handler that responds without the script, such as the response cache, calls the function once, just before
    /// it responds. If the result is false, [`Handler::handle_now`] returns `None`.
    pub admit_to_script: Option<&'a dyn Fn() -> bool>,
}

/// Condition under which a response of [`Handler::handle_now`] is sent again without a call of its handler.
///
/// The server keeps the response as it was sent: with its filters applied, and with its head encoded. It calls these
/// methods for each further request with the same scheme, authority, target and `Accept-Encoding`.
pub trait Reuse {
    /// Returns true until the handler has another response, for instance because the response was purged.
    fn is_current(&self) -> bool;

    /// Returns the uptime in milliseconds from which the handler has other header fields, such as another `Age`.
    fn valid_until_ms(&self) -> u64;

    /// Returns true if the handler would send this response, whole, to `request`. The server has checked that the
    /// method is GET or HEAD.
    fn applies_to(&self, request: &ExchangeRef<'_>) -> bool;

    /// Returns true if the response is made from this stored one.
    fn is_of(&self, stored: &Arc<dyn Stored>) -> bool;

    /// Returns the memory in use besides that of the stored response, in bytes.
    fn memory_size(&self) -> usize;

    /// Counts a request to which the response was sent.
    fn count(&self, services: &Services);
}

/// Name of the response timeout of a route, as [`Handler::timeout_limits`] returns it.
pub const ANSWER_TIMEOUT: &str = "limits.answer_timeout";

/// Responds to requests. One value serves all workers.
///
/// The server calls [`Handler::handle_now`] first, and [`Handler::handle`] if that returns `None`. The crate's
/// documentation has an example.
pub trait Handler: Send + Sync {
    /// Responds if this needs neither waiting nor a copy of the request; otherwise returns `None`. Called on the thread
    /// of the connection, so it must not block. The response must be neither a tunnel nor an accel redirect
    /// (`X-Accel-Redirect`).
    fn handle_now(&self, _request: &ExchangeRef<'_>) -> Option<Response> {
        None
    }

    /// Returns the condition under which the response of [`Handler::handle_now`] to this request is sent again; `None`
    /// if the handler has to be called for each request. Called for requests that repeat an earlier one. `stored`:
    /// [`Response::stored`] of the response.
    fn reuse(&self, _request: &ExchangeRef<'_>, _stored: &Arc<dyn Stored>) -> Option<Box<dyn Reuse>> {
        None
    }

    /// Starts to handle a request. The future is dropped if the client disconnects or the response timeout expires.
    fn handle(&self, exchange: Exchange) -> HandlerFuture;

    /// Returns the response timeout in ticks of the wheel; by default `answer_timeout` of the route.
    fn timeout_ticks(&self, wheel: &Wheel, route: &Route) -> u32 {
        wheel.ticks(route.answer_timeout)
    }

    /// Returns the timeout of each further piece of a response, in ticks of the wheel; by default `answer_timeout` of
    /// the route.
    fn body_timeout_ticks(&self, wheel: &Wheel, route: &Route) -> u32 {
        wheel.ticks(route.answer_timeout)
    }

    /// Returns the names of the limits that the response timeout consists of, for the log.
    fn timeout_limits(&self) -> &'static str {
        ANSWER_TIMEOUT
    }

    /// Returns true if responses may take long enough that early hints (RFC 8297) are worth sending before them.
    fn may_take_long(&self) -> bool {
        true
    }

    /// Returns true if a response may be a tunnel (`Upgrade`, or extended CONNECT by RFC 8441 and RFC 9220).
    fn accepts_tunnels(&self) -> bool {
        false
    }

    /// Returns true if the handler spools request bodies before it passes them on. The server then checks the folder of
    /// the spool when it starts.
    fn buffers_request_body(&self) -> bool {
        false
    }

    /// Returns true if responses may redirect to a file of the site by `X-Accel-Redirect` or `X-Sendfile`.
    fn supports_accel_redirect(&self) -> bool {
        false
    }
}
