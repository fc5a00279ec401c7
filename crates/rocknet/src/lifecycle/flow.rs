//! Moves an exchange from stage to stage: waiting for the handler, sending, tunnel.

use std::cell::OnceCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Instant;

use rocknet_handler::guard::Held;
use rocknet_proto::request::{OwnedRequest, Request};
use rocknet_proto::status::Status;

use super::connection_info::ConnectionInfo;
use super::deadlines::Wait;
use super::exchange::{ActiveExchange, Stage};
use super::offences;
use super::responder::{HeadResult, Responder};
use super::tunnel::ActiveTunnel;
use crate::exchange::RequestId;
use crate::pipeline::{self, IncomingRequest, Refusal, RequestContext, ResponseState, StartedExchange, refusals};
use crate::response::{Body, Response, Upgrade};
use crate::worker::{Worker, WorkerConfig};

/// Result of starting or advancing an exchange.
pub enum Flow {
    /// The exchange is over: its response is queued and recorded, or nothing can be sent.
    Done,
    /// The exchange continues. The connection stores and polls it.
    Active(ActiveExchange),
}

/// Starts an exchange: runs the pipeline and returns the first stage. `owned` returns a copy of the request that
/// outlives the receive buffer. `has_body`: true if the request has a body, or tunnel data follows it.
#[inline]
pub fn begin<F, R>(
    worker: &Rc<Worker>,
    config: &Rc<WorkerConfig>,
    info: &mut ConnectionInfo,
    request: &Request<'_>,
    owned: F,
    has_body: bool,
    responder: &mut R,
) -> Flow
where
    F: Fn() -> Rc<OwnedRequest>,
    R: Responder,
{
    let (id, held) = (RequestId::default(), Held::default());
    let incoming = IncomingRequest {
        request,
        owned,
        has_body,
        peer: info.client,
        secure: info.secure.as_ref(),
        local: info.local(),
        id: &id,
        held: &held,
        login: OnceCell::new(),
    };
    // Only a sample of the immediate responses is timed, because reading the clock twice for each would cost too much.
    let timed = worker.ready_time.begin();
    let begun = catch_unwind(AssertUnwindSafe(|| {
        pipeline::begin(worker, config, &incoming, responder)
    }));
    match begun {
        Ok(pipeline::Outcome::Sent {
            status,
            site,
            route,
            cache_status,
        }) => {
            let sent = responder.prepared_result();
            let Some(body) = sent.body.take() else {
                if !held.is_empty() {
                    responder.keep_until_sent(&Rc::new(held.take()));
                }
                let sent = responder.prepared_result();
                let (sent, duration_us) = (sent.bytes, worker.ready_time.end(timed));
                info.record_ready(
                    worker,
                    config,
                    (site, route),
                    request,
                    (status, cache_status),
                    sent,
                    duration_us,
                );
                return Flow::Done;
            };
            // The context gets the number of the route, for the metrics. It does not get the route itself, because no
            // later phase of a prepared response needs the route.
            let mut context =
                RequestContext::without_route(config, Some(site), incoming.local_and_tls(), &incoming.owned);
            context.route_number = route;
            context.held = Rc::new(held.take());
            context.cache_status.set(cache_status);
            if status.is_error() && info.is_validated {
                offences::note(worker, info.client, None, Some(request), None, status);
            }
            context.is_status_noted.set(true);
            Flow::Active(ActiveExchange::new(
                Stage::Sending { body, status },
                Rc::new(context),
                false,
            ))
        }
        Ok(pipeline::Outcome::Started(started)) => advance(worker, info, started, responder),
        Err(_) => {
            let context = pipeline::context_for_panic(worker, config, &incoming);
            respond_panicked(worker, info, context, responder)
        }
    }
}

/// Continues with a response that was sent, is complete, or is pending.
#[inline(never)]
pub fn advance<R: Responder>(
    worker: &Rc<Worker>,
    info: &mut ConnectionInfo,
    started: StartedExchange,
    responder: &mut R,
) -> Flow {
    let StartedExchange { context, state, close } = started;
    let next = match state {
        ResponseState::Sent(status) => {
            let sent = responder.prepared_result();
            match sent.body.take() {
                Some(body) => Next::Stage(Stage::Sending { body, status }),
                None => Next::Complete(status, sent.bytes),
            }
        }
        ResponseState::Ready(response) => respond(worker, &context, *response, close, responder),
        ResponseState::Pending(pending) => Next::Stage(Stage::Waiting(pending)),
    };
    match next {
        Next::Stage(stage) => {
            match &stage {
                Stage::Waiting(_) => {}
                Stage::Sending { status, .. } => info.note_offence(worker, &context, *status),
                Stage::Tunnel(tunnel) => info.note_offence(worker, &context, tunnel.status()),
            }
            Flow::Active(ActiveExchange::new(stage, context, close))
        }
        Next::Complete(status, sent) => {
            context.for_each_held(|held| responder.keep_until_sent(held));
            info.record(worker, &context, status, sent, false);
            Flow::Done
        }
        Next::Gone => Flow::Done,
    }
}

/// State of the exchange after a response was started.
enum Next {
    /// The exchange continues at this stage.
    Stage(Stage),
    /// The whole response is queued, with this many bytes of its body.
    Complete(Status, u64),
    /// The exchange is gone, so there is nothing to record.
    Gone,
}

/// Writes a response whose head is not rendered yet.
fn respond<R: Responder>(
    worker: &Rc<Worker>,
    context: &RequestContext,
    response: Response,
    close: bool,
    responder: &mut R,
) -> Next {
    let Response {
        status,
        fields,
        body,
        upstream,
        cache_status,
        is_no_offence,
        ..
    } = response;
    context.cache_status.set(cache_status);
    if is_no_offence {
        context.is_status_noted.set(true);
    }
    if let Some(upstream) = upstream {
        let _ = context.upstream.set(upstream);
        if context.trace.get().is_some() {
            context.upstream_responded.set(Some(Instant::now()));
        }
    }
    let begun = match body {
        Body::Tunnel(_) if !responder.may_switch_protocol() => {
            tracing::error!("a handler switched protocols on a request that cannot be upgraded");
            let response = pipeline::plain_error_response(worker, context, Status::INTERNAL_SERVER_ERROR);
            return respond(worker, context, *response, close, responder);
        }
        Body::Tunnel(Upgrade { protocol, tunnel }) => match responder.switch_protocol(fields, protocol) {
            Ok(Some(status)) => {
                let tunnel = ActiveTunnel::new(worker, tunnel, status);
                return Next::Stage(Stage::Tunnel(Box::new(tunnel)));
            }
            Ok(None) => Ok(HeadResult::Gone),
            Err(error) => Err(error),
        },
        Body::Abort => {
            responder.cancel_pushes();
            responder.abort();
            return Next::Complete(status, 0);
        }
        body => responder.respond(status, &fields, body, close),
    };
    match begun {
        Ok(HeadResult::Complete(sent)) => Next::Complete(status, sent),
        Ok(HeadResult::Body(body)) => Next::Stage(Stage::Sending { body, status }),
        Ok(HeadResult::Gone) => {
            // If only the head was written, the abort shows the client that no body follows.
            responder.abort();
            Next::Gone
        }
        Err(error) => {
            tracing::error!("a response could not be written: {error}");
            responder.respond_broken();
            Next::Complete(Status::INTERNAL_SERVER_ERROR, 0)
        }
    }
}

/// Counts and logs the panic of a handler, and responds with 500. Aborts the exchange if no response may be started.
#[cold]
pub fn respond_panicked<R: Responder>(
    worker: &Rc<Worker>,
    info: &mut ConnectionInfo,
    context: Rc<RequestContext>,
    responder: &mut R,
) -> Flow {
    worker.counters.panics.add(1);
    refusals::log_panic(&context);
    responder.cancel_pushes();
    if !responder.may_respond() {
        responder.abort();
        return Flow::Done;
    }
    let state = pipeline::error_response(worker, &context, Status::INTERNAL_SERVER_ERROR);
    respond_and_close(worker, info, context, state, responder)
}

/// Responds to a rejected request, or to a request with a rejected body.
#[cold]
pub fn refuse<R: Responder>(
    worker: &Rc<Worker>,
    info: &mut ConnectionInfo,
    context: Rc<RequestContext>,
    refusal: Refusal,
    responder: &mut R,
) -> Flow {
    // The path for the log is empty, because it is in the context, or unknown.
    let state = pipeline::refusal_response(worker, &context, info.client, b"", refusal);
    respond_and_close(worker, info, context, state, responder)
}

/// Responds to a request whose deadline has passed before its response began. The status is 408 if `wait` was for the
/// client, otherwise 503. A complete error response that waited for its error page keeps its own status. `stage`:
/// `None` if the request is incomplete.
#[cold]
pub fn respond_timeout<R: Responder>(
    worker: &Rc<Worker>,
    info: &mut ConnectionInfo,
    context: Rc<RequestContext>,
    stage: Option<&Stage>,
    wait: Wait,
    responder: &mut R,
) -> Flow {
    let status = match wait {
        Wait::Header | Wait::RequestBody => Status::REQUEST_TIMEOUT,
        _ => Status::SERVICE_UNAVAILABLE,
    };
    let plain_fallback = match stage {
        Some(Stage::Waiting(pending)) => pending.plain_fallback,
        _ => None,
    };
    let state = match plain_fallback {
        Some(status) => ResponseState::Ready(pipeline::plain_error_response(worker, &context, status)),
        None => pipeline::error_response(worker, &context, status),
    };
    respond_and_close(worker, info, context, state, responder)
}

/// Continues with a response that ends the connection, unless the connection can carry several exchanges at a time.
fn respond_and_close<R: Responder>(
    worker: &Rc<Worker>,
    info: &mut ConnectionInfo,
    context: Rc<RequestContext>,
    state: ResponseState,
    responder: &mut R,
) -> Flow {
    let started = StartedExchange {
        context,
        state,
        close: true,
    };
    advance(worker, info, started, responder)
}
