//! Forwards a request to the handler of the route, and stores its response.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_handler::exchange::Exchange;
use rocknet_handler::response::{Body, Response};
use rocknet_handler::{ExchangeRef, HandlerOutput};
use rocknet_proto::request::{OwnedRequest, Request};
use rocknet_proto::semantics::conditional::Validators;
use rocknet_proto::semantics::date;
use rocknet_proto::status::Status;

use crate::cached_route::CachedRoute;
use crate::counters::Counted;
use crate::fill::{self, FillLimits};
use crate::flight::Leader;
use crate::key::Key;
use crate::litespeed;
use crate::policy::{self, NotStored, RequestFacts, Terms, Times};
use crate::respond;
use crate::status::{CacheStatus, Forwarded, add_status};
use crate::stored::StoredResponse;
use crate::tags;
use crate::vary::Variation;

/// Time in milliseconds for which requests for a key do not wait for each other after a response that is not stored.
const UNCACHEABLE_MS: u64 = 10_000;

/// All bodies in progress together may use this part of the memory of the store in addition to it.
const FILL_SHARE: u64 = 4;

/// Preconditions that the handler must not see, because the whole response is stored. The client's preconditions are
/// evaluated afterwards.
const PRECONDITIONS: [&[u8]; 4] = [
    b"if-none-match",
    b"if-modified-since",
    b"if-match",
    b"if-unmodified-since",
];

/// Calls the handler of the route.
pub(crate) async fn call(cached: &CachedRoute, exchange: Exchange) -> HandlerOutput {
    let response = {
        let request = exchange.request.view();
        cached.inner.handle_now(&ExchangeRef {
            services: &exchange.services,
            request: &request,
            has_body: false,
            path: &exchange.path,
            is_file_path: exchange.is_file_path,
            client: exchange.client,
            peer: exchange.peer,
            tls: exchange.tls.as_deref(),
            user: exchange.user.as_deref(),
        })
    };
    match response {
        Some(response) => response.into(),
        None => cached.inner.handle(exchange).await,
    }
}

/// Forwards a GET request. `leader`: lets other requests wait for its response. `stored`: the stale response, whose
/// validators are sent. `is_late`: the request has waited for another one.
pub(crate) async fn forward(
    cached: Arc<CachedRoute>,
    mut exchange: Exchange,
    key: &Key,
    leader: Option<Leader>,
    stored: Option<Arc<StoredResponse>>,
    reason: Forwarded,
    is_late: bool,
) -> HandlerOutput {
    let original = Rc::clone(&exchange.request);
    let request = original.view();
    let services = Rc::clone(&exchange.services);
    // Without a leader, the resource is known to be uncacheable, so the handler may respond with 304.
    let keeps_preconditions = leader.is_none() && !is_late && stored.is_none();
    let has_preconditions = PRECONDITIONS
        .iter()
        .any(|name| request.fields.by_name(name).next().is_some());
    if !keeps_preconditions {
        exchange.request = validating(&original, has_preconditions, stored.as_deref());
    }
    let requested_ms = services.clock.uptime_ms();
    let changes = cached.responses.changes();
    let ticks = cached.inner.body_timeout_ticks(&services.wheel, &exchange.route);
    let output = call(&cached, exchange).await;
    let HandlerOutput::Response(mut response) = output else {
        // A file of the file cache. It evaluates the preconditions of the original request itself.
        return output;
    };
    cached.responses.counters.count(&services, Counted::Miss);
    let times = Times {
        requested_ms,
        received_ms: services.clock.uptime_ms(),
        received_unix: services.clock.unix_ms() / 1000,
    };
    let facts = RequestFacts::of(&request.fields);
    let code = response.status.code();
    let status = |is_stored, detail| CacheStatus::Forwarded {
        reason,
        status: None,
        is_stored,
        is_collapsed: false,
        detail,
    };
    let replaced = |is_stored, detail| CacheStatus::Forwarded {
        reason,
        status: Some(code),
        is_stored,
        is_collapsed: false,
        detail,
    };
    let stored_form = storable(&cached, &facts, &response, times, &request);
    let tags = tags::of_response(&response.fields);
    cached.finish(&request, &mut response);
    if let Some(stale) = &stored {
        if response.status == Status::NOT_MODIFIED && !keeps_preconditions {
            let fresh = confirm(&cached, &facts, stale, &response, times);
            let is_stored = fresh.is_some();
            let current = fresh.unwrap_or_else(|| Arc::clone(stale));
            if is_stored {
                store(&cached, key, &current, leader, changes);
            }
            let age = Some(current.terms.age_ms(times.received_ms) / 1000);
            return respond::from_stored(&current, &request, &services, age, replaced(is_stored, None)).into();
        }
        if matches!(code, 500 | 502..=504) && stale.terms.serves_errors(times.received_ms) {
            let age = Some(stale.terms.age_ms(times.received_ms) / 1000);
            let status = replaced(false, Some("stale-if-error"));
            return respond::from_stored(stale, &request, &services, age, status).into();
        }
    }
    match stored_form {
        Ok((terms, variation)) => {
            let body = std::mem::take(&mut response.body);
            let body = match body.into_bytes() {
                Ok(bytes) => {
                    let whole = Arc::new(StoredResponse::new(&response, bytes, terms, variation, tags));
                    store(&cached, key, &whole, leader, changes);
                    let age = response
                        .fields
                        .value("Age")
                        .map(|_| whole.terms.age_ms(times.received_ms) / 1000);
                    let mut sent = respond::from_stored(&whole, &request, &services, age, status(true, None));
                    sent.upstream = response.upstream;
                    return sent.into();
                }
                Err(body) => body,
            };
            let Body::Stream(source) = body else {
                // `storable` permits no other body.
                response.body = body;
                return HandlerOutput::Response(response);
            };
            let head = Response {
                fields: response.fields.clone(),
                error_page: response.error_page,
                is_negotiated: response.is_negotiated,
                ..Response::new(response.status)
            };
            let limits = FillLimits {
                budget: Arc::clone(&cached.responses.budget),
                all: cached.responses.memory.capacity() / FILL_SHARE,
                size: cached.settings.max_object,
                deadline: services.wheel.deadline(),
                ticks,
            };
            let key = key.clone();
            let filled = Arc::clone(&cached);
            let reader = fill::start(source, limits, move |whole| match whole {
                Some(whole) => {
                    let whole = Arc::new(StoredResponse::new(&head, whole, terms, variation, tags));
                    store(&filled, &key, &whole, leader, changes);
                }
                None => {
                    let until = services.clock.uptime_ms() + UNCACHEABLE_MS;
                    filled.responses.memory.mark_uncacheable(&key, until);
                }
            });
            response.body = Body::Stream(Box::new(reader));
            add_status(&mut response, status(true, None));
        }
        Err(not_stored) => {
            if leader.as_ref().is_some_and(Leader::has_waiting) || has_preconditions {
                let until = times.received_ms + UNCACHEABLE_MS;
                cached.responses.memory.mark_uncacheable(key, until);
            }
            drop(leader);
            add_status(&mut response, status(false, Some(not_stored.as_str())));
            if not_stored == NotStored::NamesFile {
                return HandlerOutput::Response(response);
            }
        }
    }
    // The handler has not seen the preconditions of the client.
    if !keeps_preconditions && has_preconditions && response.status.is_success() {
        let not_modified = respond::preconditions(&validators(&response), &response.fields, &request);
        if let Some(mut short) = not_modified {
            short.upstream = response.upstream;
            return short.into();
        }
    }
    HandlerOutput::Response(response)
}

/// Returns the request without the preconditions of the client, and with the validators of a stale response.
fn validating(
    original: &Rc<OwnedRequest>,
    has_preconditions: bool,
    stored: Option<&StoredResponse>,
) -> Rc<OwnedRequest> {
    let etag = stored.and_then(|stored| stored.fields.value("ETag"));
    let modified = stored.and_then(|stored| stored.fields.value("Last-Modified"));
    if !has_preconditions && etag.is_none() && modified.is_none() {
        return Rc::clone(original);
    }
    let mut added: Vec<(&[u8], &[u8])> = Vec::new();
    added.extend(etag.map(|etag| (&b"If-None-Match"[..], etag.as_bytes())));
    added.extend(modified.map(|date| (&b"If-Modified-Since"[..], date.as_bytes())));
    Rc::new(original.with_replaced_fields(&PRECONDITIONS, &added))
}

/// Returns the terms and the variation of a response that may be stored.
fn storable(
    cached: &CachedRoute,
    facts: &RequestFacts,
    response: &Response,
    times: Times,
    request: &Request<'_>,
) -> Result<(Terms, Variation), NotStored> {
    let terms = policy::terms(facts, response.status, &response.fields, times, &cached.settings)?;
    if cached.responses.memory.capacity() == 0 {
        return Err(NotStored::NoMemory);
    }
    let max = cached.settings.max_object;
    // A stream of events has no end.
    let is_endless = |value: &str| value.trim_start().to_ascii_lowercase().starts_with("text/event-stream");
    if response.fields.value("Content-Type").is_some_and(is_endless) {
        return Err(NotStored::Body);
    }
    let has_storable_body = match &response.body {
        Body::Empty => true,
        Body::Bytes(bytes) => bytes.len() as u64 <= max,
        Body::Stream(stream) => stream.length().is_none_or(|length| length <= max),
        Body::File(_) | Body::Parts(_) | Body::Tunnel(_) | Body::Abort => false,
    };
    if !has_storable_body {
        return Err(NotStored::Body);
    }
    let cookies = match cached.settings.litespeed {
        true => litespeed::vary_cookies(&response.fields),
        false => Vec::new(),
    };
    let variation =
        Variation::of(&response.fields, &request.fields, &cookies, &cached.replaced).ok_or(NotStored::Vary)?;
    Ok((terms, variation))
}

/// Returns a stale response with the fields and the new terms of a 304 that has confirmed it (RFC 9111 §4.3.4); `None`
/// if it must not be stored any longer.
fn confirm(
    cached: &CachedRoute,
    facts: &RequestFacts,
    stale: &StoredResponse,
    confirmed: &Response,
    times: Times,
) -> Option<Arc<StoredResponse>> {
    let fields = stale.updated_fields(&confirmed.fields);
    let terms = policy::terms(facts, stale.status, &fields, times, &cached.settings).ok()?;
    Some(Arc::new(stale.validated(fields, terms)))
}

/// Stores a response, unless its resource was changed meanwhile, and sends it to the requests that wait for it.
/// `changes`: number of changes when the request was forwarded. It decides for a request without a leader, which is not
/// among those that a change of one resource finds.
fn store(cached: &CachedRoute, key: &Key, response: &Arc<StoredResponse>, leader: Option<Leader>, changes: u64) {
    let is_outdated = match &leader {
        Some(leader) => leader.is_invalidated(),
        None => cached.responses.changes() != changes,
    };
    if is_outdated {
        return;
    }
    cached.responses.memory.put(key, response);
    if let Some(leader) = leader {
        leader.land(Arc::clone(response));
    }
}

fn validators(response: &Response) -> Validators<'_> {
    Validators {
        etag: response.fields.value("ETag").unwrap_or_default().as_bytes(),
        last_modified: response
            .fields
            .value("Last-Modified")
            .and_then(|date| date::parse(date.as_bytes())),
    }
}
