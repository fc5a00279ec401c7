//! The handler of routes that serve nothing: responds to every request with 404.

use std::future::ready;

use rocknet_proto::status::Status;

use crate::exchange::Exchange;
use crate::fixed;
use crate::handler::{ExchangeRef, Handler, HandlerFuture};
use crate::response::Response;

/// Responds to every request with 404.
pub struct NotFound;

impl Handler for NotFound {
    fn handle_now(&self, _: &ExchangeRef<'_>) -> Option<Response> {
        Some(fixed::error(Status::NOT_FOUND))
    }

    fn handle(&self, _: Exchange) -> HandlerFuture {
        Box::pin(ready(fixed::error(Status::NOT_FOUND).into()))
    }
}
