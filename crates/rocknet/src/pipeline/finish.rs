//! Applies the phases after the handler to responses that are already complete. A response that has to wait for an
//! error page or a filter becomes pending.

use std::rc::Rc;
use std::time::Duration;

use rocknet_proto::refusal::Refusal;
use rocknet_proto::request::Request;
use rocknet_proto::status::Status;

use super::context::RequestContext;
use super::exit::{self, Exit};
use super::handler_timeout::HandlerTimeout;
use super::interface::{ResponseState, StartedExchange};
use super::pending::PendingResponse;
use super::refusals;
use crate::exchange::Client;
use crate::fixed;
use crate::response::Response;
use crate::worker::Worker;

/// Maximum time to read the error page of a route and to apply the filters to it. The plain page is sent after this
/// time. Most pages are in memory, so only a slow disk or filter reaches the limit.
const PAGE_WAIT: Duration = Duration::from_secs(2);
/// Name of this limit in the log.
const PAGE_LIMIT: &str = "the two seconds for an error page";

/// Applies the phases after the handler to a complete response, and returns its exchange.
pub(super) fn respond(
    worker: &Rc<Worker>,
    context: Rc<RequestContext>,
    request: Option<&Request<'_>>,
    response: Response,
) -> StartedExchange {
    let state = finish(worker, &context, request, response);
    StartedExchange {
        context,
        state,
        close: false,
    }
}

/// Applies the phases after the handler to a complete response, and returns its state. `request`: `None` if the context
/// contains the request, or if the request is no longer available.
pub(super) fn finish(
    worker: &Rc<Worker>,
    context: &Rc<RequestContext>,
    request: Option<&Request<'_>>,
    response: Response,
) -> ResponseState {
    let mut response = Box::new(response);
    let in_context = context.request.as_ref().map(|request| request.view());
    let exit = exit::begin(worker, context, request.or(in_context.as_ref()), &mut response);
    if matches!(exit, Exit::Done) {
        return ResponseState::Ready(response);
    }
    let route_ticks = context
        .route
        .as_ref()
        .map(|route| worker.wheel.ticks(route.answer_timeout));
    let (exit_worker, context, status) = (Rc::clone(worker), Rc::clone(context), response.status);
    let work = async move {
        exit::complete(exit_worker, context, exit, &mut response).await;
        response
    };
    let mut pending = PendingResponse::finished(work);
    if status.is_error() {
        pending.plain_fallback = Some(status);
        let ticks = worker.wheel.ticks(PAGE_WAIT);
        pending.timeout = Some(HandlerTimeout {
            ticks,
            body_ticks: route_ticks.unwrap_or(ticks),
            limits: PAGE_LIMIT,
        });
    }
    ResponseState::Pending(pending)
}

/// Responds to a request whose body is rejected. `path`: path of the request, for the log.
#[cold]
pub(super) fn refuse(
    worker: &Rc<Worker>,
    context: Rc<RequestContext>,
    peer: Client,
    path: &[u8],
    refusal: Refusal,
) -> StartedExchange {
    let state = refusal_response(worker, &context, peer, path, refusal);
    StartedExchange {
        context,
        state,
        close: true,
    }
}

/// Logs the rejection of a request, or of bytes that are not a request, and makes the response. `path`: empty if it is
/// unknown or in the context.
#[cold]
pub fn refusal_response(
    worker: &Rc<Worker>,
    context: &Rc<RequestContext>,
    peer: Client,
    path: &[u8],
    refusal: Refusal,
) -> ResponseState {
    refusals::log(&peer, context, path, refusal.status(), refusal.reason());
    finish(worker, context, None, refusals::refusal_page(refusal))
}

/// Creates the response to a request whose handler has panicked or whose deadline has passed.
#[cold]
pub fn error_response(worker: &Rc<Worker>, context: &Rc<RequestContext>, status: Status) -> ResponseState {
    finish(worker, context, None, fixed::error(status))
}

/// Creates an error response with the plain page without waiting, for instance if the error page of the route was not
/// read in time.
#[cold]
pub fn plain_error_response(worker: &Worker, context: &RequestContext, status: Status) -> Box<Response> {
    let mut response = Box::new(fixed::error(status));
    exit::apply_without_page(worker, context, &mut response);
    response
}
