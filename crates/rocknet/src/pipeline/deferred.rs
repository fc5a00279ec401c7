//! Waits for the decision of a guard or for a lookup on disk, then starts the request again with the result.

use std::cell::OnceCell;
use std::net::IpAddr;
use std::rc::Rc;

use rocknet_handler::guard::Held;
use rocknet_io::queue::SharedBytes;
use rocknet_proto::fields::KnownField;
use rocknet_proto::refusal::Refusal;
use rocknet_proto::request::OwnedRequest;
use rocknet_proto::status::Status;

use super::admission::Decisions;
use super::context::RequestContext;
use super::exit;
use super::handler_timeout::HandlerTimeout;
use super::incoming::IncomingRequest;
use super::interface::{PipelineIo, ResponseState, StartedExchange};
use super::pending::{PendingResponse, RoutingResult};
use crate::exchange::{Client, RequestBody, RequestId};
use crate::files::cache::l1::CachedEntry;
use crate::files::entry::Variant;
use crate::fixed;
use crate::handshake::Handshake;
use crate::worker::Worker;
use rocknet_proto::PreparedHeads;

/// Request that has been copied out of the receive buffer.
pub(super) type OwnedIncoming<'a> = IncomingRequest<'a, &'a dyn Fn() -> Rc<OwnedRequest>>;

/// Function that starts the phases of a request again.
type Begin = fn(&Rc<Worker>, &OwnedIncoming<'_>, Decisions, &mut OpenedBody) -> StartedExchange;

/// Copied request that waits for a decision, with data of its connection.
struct DeferredRequest {
    request: Rc<OwnedRequest>,
    body: RequestBody,
    has_body: bool,
    peer: Client,
    secure: Option<Rc<Handshake>>,
    local: Option<IpAddr>,
    id: RequestId,
}

/// Waits for `decisions`, then calls `begin`. `body`: the request body, whose limit is set.
pub(super) fn wait<F: Fn() -> Rc<OwnedRequest>>(
    worker: &Rc<Worker>,
    mut context: RequestContext,
    incoming: &IncomingRequest<'_, F>,
    body: RequestBody,
    timeout: HandlerTimeout,
    decisions: impl Future<Output = Decisions> + 'static,
    begin: Begin,
) -> StartedExchange {
    let request = (incoming.owned)();
    context.request = Some(Rc::clone(&request));
    let deferred = DeferredRequest {
        request,
        body,
        has_body: incoming.has_body,
        peer: incoming.peer,
        secure: incoming.secure.cloned(),
        local: incoming.local,
        id: incoming.id.clone(),
    };
    let context = Rc::new(context);
    let (worker, request_context) = (Rc::clone(worker), Rc::clone(&context));
    let mut pending = PendingResponse::routing(async move {
        let decisions = decisions.await;
        deferred.resume(&worker, &request_context, decisions, begin)
    });
    pending.timeout = Some(timeout);
    StartedExchange {
        context,
        state: ResponseState::Pending(pending),
        close: false,
    }
}

impl DeferredRequest {
    /// Starts the request again. `context`: context of the first start, which the access log uses.
    fn resume(
        self,
        worker: &Rc<Worker>,
        context: &RequestContext,
        decisions: Decisions,
        begin: Begin,
    ) -> RoutingResult {
        let request = self.request.view();
        // Stays empty: it is for responses from the worker cache, which is not queried again. The guards keep their
        // values in `Decisions::held`.
        let held = Held::default();
        let incoming = IncomingRequest {
            request: &request,
            owned: &(|| Rc::clone(&self.request)) as &dyn Fn() -> Rc<OwnedRequest>,
            has_body: self.has_body,
            peer: self.peer,
            secure: self.secure.as_ref(),
            local: self.local,
            id: &self.id,
            held: &held,
            // The context of the first start has the login.
            login: OnceCell::new(),
        };
        let length = request.fields.get(KnownField::ContentLength);
        let length = length.and_then(|length| std::str::from_utf8(length).ok()?.parse().ok());
        let mut opened = OpenedBody {
            body: self.body,
            length,
        };
        let started = begin(worker, &incoming, decisions, &mut opened);
        if let Some(trace) = started.context.trace.get() {
            // The upstream gets this trace, so the span of the request belongs to it too.
            let _ = context.trace.set(trace.clone());
        }
        // The connection keeps the first context, which refers to the new one from here on. If the path leads to a file
        // of another route, the guards of that route may later set the user there, or remove the signature of the URL.
        let _ = context.resumed.set(Rc::clone(&started.context));
        match started.state {
            ResponseState::Pending(pending) => RoutingResult::Handler(Box::new(pending)),
            ResponseState::Ready(response) => RoutingResult::Response(response),
            // This state cannot occur: `begin` runs no phase that calls `PipelineIo::send`. The cache lookup calls it
            // before a request is deferred, and the connection calls it after a handler has returned a cache entry.
            ResponseState::Sent(_) => {
                let mut response = Box::new(fixed::error(Status::INTERNAL_SERVER_ERROR));
                exit::apply_without_page(worker, context, &mut response);
                RoutingResult::Response(response)
            }
        }
    }
}

/// [`PipelineIo`] for a request that is started again. It replaces the connection, because the request body was opened
/// before the wait, with the highest limit that was possible then.
pub(super) struct OpenedBody {
    body: RequestBody,
    /// Length that the client has announced (`Content-Length`).
    length: Option<u64>,
}

impl PipelineIo for OpenedBody {
    fn send(&mut self, _: &PreparedHeads, _: Option<(&CachedEntry, &Variant)>) {}

    fn send_bytes(&mut self, _: &PreparedHeads, _: &SharedBytes) {}

    fn limit_body(&mut self, limit: u64) -> Result<(), Refusal> {
        if self.length.is_some_and(|length| length > limit) {
            return Err(Refusal::ContentTooLarge);
        }
        self.body.limit(limit);
        Ok(())
    }

    fn open_body(&mut self) -> RequestBody {
        std::mem::replace(&mut self.body, RequestBody::empty())
    }
}
