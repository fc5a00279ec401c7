//! The handler of the welcome page, which a server without a configuration serves.

use std::future::ready;
use std::path::Path;

use rocknet_proto::method::Method;
use rocknet_proto::status::Status;

use crate::exchange::Exchange;
use crate::fixed;
use crate::handler::{ExchangeRef, Handler, HandlerFuture};
use crate::pages;
use crate::response::Response;

/// Serves the welcome page at `/`.
pub struct Welcome {
    /// Path at which the page asks the operator to create a configuration file; `None` to name no path.
    config_file: Option<String>,
}

impl Welcome {
    /// Creates the handler. `config_file`: where the page asks the operator to create a configuration file.
    pub fn new(config_file: Option<&Path>) -> Welcome {
        Welcome {
            config_file: config_file.map(|path| path.display().to_string()),
        }
    }
}

impl Handler for Welcome {
    fn handle_now(&self, exchange: &ExchangeRef<'_>) -> Option<Response> {
        match exchange.request.method {
            Method::Get | Method::Head if exchange.path == "/" => {}
            Method::Get | Method::Head => return Some(fixed::error(Status::NOT_FOUND)),
            Method::Options => return Some(fixed::options()),
            _ => return Some(fixed::method_not_allowed()),
        }
        let listen = exchange.services.address.to_string();
        let page = pages::welcome::html(&pages::welcome::Welcome {
            listen: &listen,
            config_path: self.config_file.as_deref(),
            root: None,
            version: env!("CARGO_PKG_VERSION"),
        });
        Some(
            Response::new(Status::OK)
                .with("Content-Type", pages::CONTENT_TYPE)
                .with("Content-Security-Policy", pages::CONTENT_SECURITY_POLICY)
                .with("X-Content-Type-Options", "nosniff")
                .with("Cache-Control", "no-cache")
                .body(page),
        )
    }

    /// Not called, because [`Handler::handle_now`] responds to every request.
    fn handle(&self, _: Exchange) -> HandlerFuture {
        Box::pin(ready(fixed::error(Status::NOT_FOUND).into()))
    }
}
