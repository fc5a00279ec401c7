//! Handlers: everything that answers requests implements [`Handler`].

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use rocknet_io::wheel::Wheel;
use rocknet_proto::request::Request;

use crate::client::Client;
use crate::exchange::Exchange;
use crate::response::Response;
use crate::route::Route;
use crate::services::Services;
use crate::tls_info::TlsInfo;

/// The result of a handler.
pub enum HandlerOutput {
    Response(Box<Response>),
    /// An entry of the file cache: the server sends it as it was prepared.
    Cached(Rc<dyn Any>),
}

impl From<Response> for HandlerOutput {
    fn from(response: Response) -> HandlerOutput {
        HandlerOutput::Response(Box::new(response))
    }
}

/// An answer that is being produced on the thread of its connection.
pub type HandlerFuture = Pin<Box<dyn Future<Output = HandlerOutput>>>;

/// Boxes work that ends with a response: the whole of [`Handler::handle`] for most handlers.
pub fn respond_with(work: impl Future<Output = Response> + 'static) -> HandlerFuture {
    Box::pin(async { work.await.into() })
}

/// A request that a handler may answer without a wait.
#[derive(Clone, Copy)]
pub struct ExchangeRef<'a> {
    pub services: &'a Services,
    pub request: &'a Request<'a>,
    /// The request has a body, or is an extended CONNECT, whose data follows.
    pub has_body: bool,
    /// Decoded and normalised.
    pub path: &'a str,
    /// True if a file can have this path.
    pub is_file_path: bool,
    pub client: Client,
    /// `None` for a connection in the clear.
    pub tls: Option<&'a TlsInfo>,
    /// The user whose password the server has verified (`auth`).
    pub user: Option<&'a str>,
}

/// Answers requests. One value serves all workers.
pub trait Handler: Send + Sync {
    /// Answers where that needs neither a wait nor a copy of the request. Called before [`Handler::handle`], on the thread of
    /// the connection: it must not block. The response is no tunnel and names no file.
    fn handle_now(&self, _request: &ExchangeRef<'_>) -> Option<Response> {
        None
    }

    /// Begins to answer. The future is dropped if the client goes away or the time is over.
    fn handle(&self, exchange: Exchange) -> HandlerFuture;

    /// Longest time that an answer may take, in ticks of the wheel.
    fn timeout_ticks(&self, wheel: &Wheel, route: &Route) -> u32 {
        wheel.ticks(route.answer_timeout)
    }

    /// Returns whether an answer may take long enough that the client is told of resources of the page meanwhile.
    fn may_take_long(&self) -> bool {
        true
    }

    /// Returns whether a response may be a tunnel (`Upgrade`, extended CONNECT).
    fn accepts_tunnels(&self) -> bool {
        false
    }

    /// Returns whether request bodies are received whole before the handler passes them on.
    fn buffers_request_body(&self) -> bool {
        false
    }

    /// Returns whether responses may name a file of the site in place of their content (`X-Accel-Redirect`, `X-Sendfile`).
    fn supports_accel_redirect(&self) -> bool {
        false
    }
}
