//! Handler of a proxied route: forwards its requests to the upstreams.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_config::model::RequestBuffering;
use rocknet_io::wheel::Wheel;
use rocknet_proto::method::Method;
use rocknet_proto::status::Status;

use crate::{ForwardResult, Proxy, UpgradeRequest, forward, hides_dots};
use rocknet_handler::exchange::Exchange;
use rocknet_handler::fixed;
use rocknet_handler::response::{ErrorPage, Response};
use rocknet_handler::route::Route;
use rocknet_handler::{ExchangeRef, Handler, HandlerFuture};

/// Forwards requests to the upstreams of a [`Proxy`].
pub struct ProxyHandler(Arc<Proxy>);

impl ProxyHandler {
    /// Returns a handler for a route with this proxy.
    pub fn new(proxy: Proxy) -> ProxyHandler {
        ProxyHandler(Arc::new(proxy))
    }
}

impl Handler for ProxyHandler {
    fn handle_now(&self, request: &ExchangeRef<'_>) -> Option<Response> {
        // Backslashes may hide dot segments. An upstream that resolves them would leave this route. A path that a
        // file can have contains no backslash, so it is not searched.
        let is_refused = !request.is_file_path && hides_dots(request.path);
        is_refused.then(|| fixed::error(Status::BAD_REQUEST))
    }

    fn handle(&self, mut exchange: Exchange) -> HandlerFuture {
        let proxy = Arc::clone(&self.0);
        Box::pin(async move {
            // The functions called here borrow the exchange, because moving it into another future would copy it.
            let request = Rc::clone(&exchange.request);
            let request_view = request.view();
            if request_view.method == Method::Connect && UpgradeRequest::from_request(&request_view).is_none() {
                // A CONNECT request without a protocol cannot be converted into a request to an upstream.
                return fixed::error(Status::NOT_IMPLEMENTED).into();
            }
            let route = Arc::clone(&exchange.route);
            let services = Rc::clone(&exchange.services);
            let result = match forward(&services, &proxy, &request_view, &mut exchange, &route).await {
                Ok(response) => ForwardResult::Forwarded(response),
                Err(failed) => failed.respond(&request_view, &route),
            };
            match result {
                ForwardResult::Forwarded(mut response) => {
                    if proxy.intercepts {
                        response.error_page = ErrorPage::Always;
                    }
                    response.into()
                }
                ForwardResult::Error(response) => response.into(),
            }
        })
    }

    fn timeout_ticks(&self, wheel: &Wheel, _: &Route) -> u32 {
        self.0.response_ticks(wheel)
    }

    fn body_timeout_ticks(&self, wheel: &Wheel, _: &Route) -> u32 {
        self.0.body_ticks(wheel)
    }

    fn timeout_limits(&self) -> &'static str {
        "`queue`, `connect`, `first_byte` and `idle` of the proxy"
    }

    fn accepts_tunnels(&self) -> bool {
        true
    }

    fn buffers_request_body(&self) -> bool {
        self.0.request_buffering == RequestBuffering::Whole
    }

    fn supports_accel_redirect(&self) -> bool {
        self.0.sends_files
    }
}
