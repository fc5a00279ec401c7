//! Ready responses: sends a response of the response cache again as it was sent before, and keeps responses for that.
//!
//! A ready response skips the phases from the route to the filters. Their result would be the same, because they depend
//! only on the parts of the request that select the response. Guards are the exception, so they are called.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use rocknet_handler::ExchangeRef;
use rocknet_proto::PreparedHeads;
use rocknet_proto::fields::{KnownField, is_framing};
use rocknet_proto::method::Method;
use rocknet_proto::request::OwnedRequest;
use rocknet_proto::status::Status;

use super::interface::{Outcome, PipelineIo, ResponseState, StartedExchange};
use super::{IncomingRequest, admission};
use crate::files::cache::l1::{AFTER_RULES, CachedEndpoint, GuardList};
use crate::files::entry::Entry;
use crate::ready_responses::{ReadyResponse, RequestKey};
use crate::response::{Body, FieldList, Response};
use crate::site::SiteRoutes;
use crate::worker::Worker;

/// Sends a ready response to GET or HEAD. Returns `None` if the other phases have to make the response. `key`: number
/// of the site, with [`AFTER_RULES`] if its rules were applied.
#[inline]
pub(super) fn respond<F, R>(
    worker: &Rc<Worker>,
    key: u32,
    incoming: &IncomingRequest<'_, F>,
    io: &mut R,
) -> Option<Outcome>
where
    F: Fn() -> Rc<OwnedRequest>,
    R: PipelineIo,
{
    if worker.ready_responses.is_empty() {
        return None;
    }
    let request_key = RequestKey::of(incoming.request, key, incoming.is_secure())?;
    let ready = worker.ready_responses.get(request_key, worker.clock.uptime_ms())?;
    if !ready.reuse.applies_to(&exchange(worker, &ready.endpoint, incoming)) {
        return None;
    }
    let route = &ready.endpoint.route;
    // True if the body is so short that one write usually sends the whole response. The exchange then ends before the
    // worker continues, so limits on concurrent requests need not count it.
    let ends_at_once = io.ends_at_once(ready.heads.length);
    if !ready.guards.is_empty() && !admission::admit_ready(worker, incoming, route, &ready.guards, ends_at_once) {
        return None;
    }
    ready.reuse.count(worker);
    worker.counters.ready_hits.add(1);
    io.send_bytes(&ready.heads, &ready.body);
    Some(Outcome::Sent {
        status: ready.heads.status,
        site: key & !AFTER_RULES,
        route: route.number,
        cache_status: ready.cache_status,
    })
}

/// Returns the view of a request that the handler of a ready response gets.
fn exchange<'a, F: Fn() -> Rc<OwnedRequest>>(
    worker: &'a Worker,
    endpoint: &'a CachedEndpoint,
    incoming: &IncomingRequest<'a, F>,
) -> ExchangeRef<'a> {
    ExchangeRef {
        services: worker,
        request: incoming.request,
        has_body: incoming.has_body,
        path: &endpoint.path,
        is_file_path: endpoint.is_file_path,
        client: incoming.client(worker),
        peer: incoming.peer,
        tls: incoming.secure.map(|secure| &**secure.tls_info()),
        // Requests with an authenticated user get no ready response.
        user: None,
        is_identified: false,
        admit_to_script: None,
    }
}

/// Origin of a response that a handler has just made without waiting.
pub(super) struct Origin {
    /// Route and handler.
    endpoint: Rc<CachedEndpoint>,
    /// Guards that have to admit a request for this response, without duplicates. Empty if no route of the site has a
    /// guard (`Route::is_unguarded`).
    guards: GuardList,
    /// Entry of the script in whose place the handler has responded. `None` if no script was looked up.
    script: Option<Arc<Entry>>,
}

impl Origin {
    /// Returns the origin of a response to a raw path for which no script was looked up. Returns `None` if its guards
    /// cannot be listed.
    pub fn of_path(endpoint: Rc<CachedEndpoint>, routes: &SiteRoutes, raw: &[u8]) -> Option<Origin> {
        let guards = match endpoint.route.is_unguarded {
            true => GuardList::default(),
            false => admission::guards_of_path(routes, raw)?,
        };
        Some(Origin {
            endpoint,
            guards,
            script: None,
        })
    }

    /// Returns the origin of a response in place of a script. `guards`: those of the path and of the script.
    pub fn of_script(endpoint: Rc<CachedEndpoint>, guards: &GuardList, script: &Arc<Entry>) -> Origin {
        Origin {
            endpoint,
            guards: guards.clone(),
            script: Some(Arc::clone(script)),
        }
    }
}

/// Keeps a response that a handler has just made without waiting, if it is one of the response cache and the request is
/// frequent. `key`: as in [`respond`]. `origin` returns `None` if the response must not be kept.
#[inline]
pub(super) fn keep<F>(
    worker: &Rc<Worker>,
    key: u32,
    incoming: &IncomingRequest<'_, F>,
    started: &StartedExchange,
    origin: impl FnOnce() -> Option<Origin>,
) where
    F: Fn() -> Rc<OwnedRequest>,
{
    if let ResponseState::Ready(response) = &started.state
        && response.cache_status == HIT
        && matches!(incoming.request.method, Method::Get | Method::Head)
        // Neither the fields of the route nor its bandwidth depend on the request.
        && started.context.route.as_ref().is_some_and(|route| !route.has_placeholders)
        && started.context.user().is_none()
        && started.context.identities.borrow().is_empty()
    {
        keep_hit(worker, key, incoming, origin, response);
    }
}

/// Value of `Response::cache_status` for a response of the response cache.
const HIT: &str = "HIT";

#[inline(never)]
fn keep_hit<F>(
    worker: &Rc<Worker>,
    key: u32,
    incoming: &IncomingRequest<'_, F>,
    origin: impl FnOnce() -> Option<Origin>,
    response: &Response,
) where
    F: Fn() -> Rc<OwnedRequest>,
{
    let now_ms = worker.clock.uptime_ms();
    let Some(stored) = &response.stored else { return };
    let body = match &response.body {
        Body::Bytes(bytes) => bytes,
        Body::Empty => &Bytes::new(),
        _ => return,
    };
    // An error is never kept, nor is a part, or a 304, which lacks fields of the stored response.
    let is_whole = !matches!(response.status, Status::PARTIAL_CONTENT | Status::NOT_MODIFIED);
    if response.status.is_error() || !is_whole {
        return;
    }
    let Some(request_key) = RequestKey::of(incoming.request, key, incoming.is_secure()) else {
        return;
    };
    // `note` returns true if the request is frequent and its response is not kept yet.
    if !worker.ready_responses.note(request_key, stored, now_ms) {
        return;
    }
    let Some(Origin {
        endpoint,
        guards,
        script,
    }) = origin()
    else {
        return;
    };
    let exchange = ExchangeRef {
        // The guards of the script have just admitted this request.
        admit_to_script: script.is_some().then_some(&|| true),
        ..exchange(worker, &endpoint, incoming)
    };
    let Some(reuse) = endpoint.handler.reuse(&exchange, stored) else {
        return;
    };
    if !is_preparable(&response.fields) {
        return;
    }
    let heads = PreparedHeads::new(response.status, &response.fields, body.len() as u64);
    // A body that the response cache keeps is not counted twice.
    let own_body = if stored.keeps(body) { 0 } else { body.len() };
    let ready = ReadyResponse::new(
        reuse,
        heads,
        Rc::new(body.clone()),
        response.cache_status,
        endpoint,
        guards,
        script,
        own_body,
        now_ms,
    );
    worker.ready_responses.keep(request_key, ready, now_ms);
}

/// Returns true if a head with these fields can be sent to all clients and encoded in advance: none of them is for one
/// client, or set by the encoder.
fn is_preparable(fields: &FieldList) -> bool {
    let is_plain = |name: &[u8]| !is_framing(name) && !name.eq_ignore_ascii_case(b"date");
    !fields.contains(KnownField::SetCookie) && fields.bytes().all(|(name, _)| is_plain(name))
}
