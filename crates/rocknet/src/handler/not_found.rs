//! The handler of routes that serve nothing.

use std::future::ready;

use rocknet_proto::status::Status;

use crate::exchange::Exchange;
use crate::fixed;
use crate::handler::{Answering, Handler, OnTheSpot};
use crate::response::Response;

/// Answers every request with 404.
pub struct NotFound;

impl Handler for NotFound {
    fn answer_now(&self, _: &OnTheSpot<'_>) -> Option<Response> {
        Some(fixed::error(Status::NOT_FOUND))
    }

    fn answer(&self, _: Exchange) -> Answering {
        Box::pin(ready(fixed::error(Status::NOT_FOUND).into()))
    }
}
