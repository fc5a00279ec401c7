//! The way of an exchange from stage to stage.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use rocknet_proto::request::{OwnedRequest, Request};
use rocknet_proto::status::Status;

use super::deadlines::Wait;
use super::exchange::{ActiveExchange, Stage};
use super::peer::Peer;
use super::responder::{Begun, Responder};
use super::tunnel::Tunnelling;
use crate::pipeline::{self, Going, Incoming, Refusal, RequestContext, Step, refusals};
use crate::response::{Body, Response, Upgrade};
use crate::worker::{Worker, WorkerConfig};

/// State of an exchange.
pub enum Flow {
    /// Nothing is left to do: the response is queued and recorded, or nothing can be sent.
    Done,
    Active(ActiveExchange),
}

/// Takes a request to its response or its first stage.
#[inline]
pub fn begin<F, R>(
    worker: &Rc<Worker>,
    view: &Rc<WorkerConfig>,
    peer: &mut Peer,
    request: &Request<'_>,
    owned: F,
    has_body: bool,
    responder: &mut R,
) -> Flow
where
    F: Fn() -> Rc<OwnedRequest>,
    R: Responder,
{
    let incoming = Incoming {
        request,
        owned,
        has_body,
        peer: peer.client,
        secure: peer.secure.as_ref(),
        local: peer.local(),
    };
    let timed = worker.ready_time.begin();
    let begun = catch_unwind(AssertUnwindSafe(|| pipeline::begin(worker, view, &incoming, responder)));
    match begun {
        Ok(pipeline::Begun::Sent { status, site }) => {
            let sent = responder.sent();
            let Some(body) = sent.body.take() else {
                let (sent, duration_us) = (sent.bytes, worker.ready_time.end(timed));
                peer.answered(worker, view, site, request, status, sent, duration_us);
                return Flow::Done;
            };
            let context = RequestContext::new(view, Some(site), None, incoming.way(), incoming.owned);
            Flow::Active(ActiveExchange::new(
                Stage::Sending { body, status },
                Rc::new(context),
                false,
            ))
        }
        Ok(pipeline::Begun::Going(going)) => go_on(worker, peer, going, responder),
        Err(_) => {
            let context = pipeline::context_of(view, &incoming);
            panicked(worker, peer, context, responder)
        }
    }
}

/// Goes on with a response that was sent, is here, or is waited for.
#[inline(never)]
pub fn go_on<R: Responder>(worker: &Rc<Worker>, peer: &mut Peer, going: Going, responder: &mut R) -> Flow {
    let Going { context, step, close } = going;
    let next = match step {
        Step::Sent(status) => {
            let sent = responder.sent();
            match sent.body.take() {
                Some(body) => Next::Stage(Stage::Sending { body, status }),
                None => Next::Complete(status, sent.bytes),
            }
        }
        Step::Respond(response) => respond(worker, &context, *response, close, responder),
        Step::Wait(pending) => Next::Stage(Stage::Waiting(pending)),
    };
    match next {
        Next::Stage(stage) => Flow::Active(ActiveExchange::new(stage, context, close)),
        Next::Complete(status, sent) => {
            peer.record(worker, &context, status, sent, false);
            Flow::Done
        }
        Next::Gone => Flow::Done,
    }
}

/// The continuation after a step.
enum Next {
    Stage(Stage),
    /// The response is queued whole, with so many bytes of its body.
    Complete(Status, u64),
    Gone,
}

/// Writes a response that was not prepared.
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
        ..
    } = response;
    if let Some(upstream) = upstream {
        let _ = context.upstream.set(upstream);
    }
    let begun = match body {
        Body::Tunnel(_) if !responder.may_switch() => {
            tracing::error!("a handler has switched protocols where that cannot be done");
            let response = pipeline::plain_error(worker, context, Status::INTERNAL_SERVER_ERROR);
            return respond(worker, context, *response, close, responder);
        }
        Body::Tunnel(Upgrade { protocol, tunnel }) => match responder.switch(fields, protocol) {
            Ok(Some(status)) => {
                let tunnelling = Tunnelling::new(worker, tunnel, status);
                return Next::Stage(Stage::Tunnelling(Box::new(tunnelling)));
            }
            Ok(None) => Ok(Begun::Gone),
            Err(error) => Err(error),
        },
        body => responder.respond(status, &fields, body, close),
    };
    match begun {
        Ok(Begun::Complete(sent)) => Next::Complete(status, sent),
        Ok(Begun::Body(body)) => Next::Stage(Stage::Sending { body, status }),
        Ok(Begun::Gone) => {
            // Where only the head had been written, the client learns that nothing follows.
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

/// Responds in place of code that has panicked.
#[cold]
pub fn panicked<R: Responder>(
    worker: &Rc<Worker>,
    peer: &mut Peer,
    context: Rc<RequestContext>,
    responder: &mut R,
) -> Flow {
    worker.counters.panics.add(1);
    refusals::log_panic(&context);
    responder.withdraw();
    if !responder.may_respond() {
        responder.abort();
        return Flow::Done;
    }
    let step = pipeline::error(worker, &context, Status::INTERNAL_SERVER_ERROR);
    end_with(worker, peer, context, step, responder)
}

/// Responds to what is no acceptable request, or has no acceptable body.
#[cold]
pub fn refuse<R: Responder>(
    worker: &Rc<Worker>,
    peer: &mut Peer,
    context: Rc<RequestContext>,
    refusal: Refusal,
    responder: &mut R,
) -> Flow {
    let step = pipeline::refused(worker, &context, peer.client, b"", refusal);
    end_with(worker, peer, context, step, responder)
}

/// Responds to a request of which a deadline has passed before its response was begun. `stage`: `None` if the request is not
/// complete.
#[cold]
pub fn overdue<R: Responder>(
    worker: &Rc<Worker>,
    peer: &mut Peer,
    context: Rc<RequestContext>,
    stage: Option<&Stage>,
    wait: Wait,
    responder: &mut R,
) -> Flow {
    let status = match wait {
        Wait::Header | Wait::RequestBody => Status::REQUEST_TIMEOUT,
        _ => Status::SERVICE_UNAVAILABLE,
    };
    let instead = match stage {
        Some(Stage::Waiting(pending)) => pending.instead,
        _ => None,
    };
    let step = match instead {
        Some(status) => Step::Respond(pipeline::plain_error(worker, &context, status)),
        None => pipeline::error(worker, &context, status),
    };
    end_with(worker, peer, context, step, responder)
}

/// Goes on with a step after which the connection ends, if it carries nothing else.
fn end_with<R: Responder>(
    worker: &Rc<Worker>,
    peer: &mut Peer,
    context: Rc<RequestContext>,
    step: Step,
    responder: &mut R,
) -> Flow {
    let going = Going {
        context,
        step,
        close: true,
    };
    go_on(worker, peer, going, responder)
}
