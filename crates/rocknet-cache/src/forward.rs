//! Forwards a request to the handler of the route, and stores its response.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_handler::exchange::{Exchange, RequestBody};
use rocknet_handler::interim::InterimSender;
use rocknet_handler::response::{Body, Response};
use rocknet_handler::{ExchangeRef, HandlerOutput};
use rocknet_proto::request::{OwnedRequest, Request};
use rocknet_proto::semantics::conditional::Validators;
use rocknet_proto::semantics::date;
use rocknet_proto::status::Status;

use crate::cached_route::CachedRoute;
use crate::counters::Counted;
use crate::fill::{self, FILL_SHARE, FillLimits};
use crate::flight::Leader;
use crate::key::Key;
use crate::policy::{Moment, NotStored, RequestFacts, Times};
use crate::status::{CacheStatus, Forwarded, STALE_IF_ERROR, add_status};
use crate::storable;
use crate::stored::StoredResponse;
use crate::{disk, respond};

/// Time in milliseconds for which requests for a key do not wait for each other after a response that is not stored.
const UNCACHEABLE_MS: u64 = 10_000;

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
        // `false`: a request with a body bypasses the cache.
        cached.inner.handle_now(&by_reference(&exchange, &request, false))
    };
    match response {
        Some(response) => response.into(),
        None => cached.inner.handle(exchange).await,
    }
}

/// Returns an exchange in the form that `Handler::handle_now` takes. `request`: view of its request.
pub(crate) fn by_reference<'a>(exchange: &'a Exchange, request: &'a Request<'a>, has_body: bool) -> ExchangeRef<'a> {
    ExchangeRef {
        services: &exchange.services,
        request,
        has_body,
        path: &exchange.path,
        is_file_path: exchange.is_file_path,
        client: exchange.client,
        peer: exchange.peer,
        tls: exchange.tls.as_deref(),
        user: exchange.user.as_deref(),
        is_identified: exchange.is_identified,
        admit_to_script: None,
    }
}

/// Returns a copy of an exchange without a request body, for a request that is forwarded again. It has no user, because
/// requests of authenticated users bypass the cache.
pub(crate) fn copy(exchange: &Exchange) -> Exchange {
    Exchange {
        services: Rc::clone(&exchange.services),
        request: Rc::clone(&exchange.request),
        body: RequestBody::empty(),
        interim: InterimSender::default(),
        path: exchange.path.clone(),
        is_file_path: exchange.is_file_path,
        route: Arc::clone(&exchange.route),
        cache_key: exchange.cache_key,
        client: exchange.client,
        peer: exchange.peer,
        tls: exchange.tls.clone(),
        user: None,
        is_identified: false,
        id: exchange.id.clone(),
    }
}

/// A GET request that is forwarded.
pub(crate) struct ForwardedRequest<'k> {
    pub exchange: Exchange,
    pub key: &'k Key,
    /// Lets other requests wait for the response.
    pub leader: Option<Leader>,
    /// Stale response, whose validators are sent.
    pub stored: Option<Arc<StoredResponse>>,
    pub reason: Forwarded,
    /// True if the handler must return the whole response even without a leader: the request has waited in vain for
    /// another one, came too late to wait, or is repeated because a 304 named another entity tag.
    pub is_late: bool,
}

impl ForwardedRequest<'_> {
    /// Returns a request for which no other request waits.
    pub fn new(
        exchange: Exchange,
        key: &Key,
        stored: Option<Arc<StoredResponse>>,
        reason: Forwarded,
    ) -> ForwardedRequest<'_> {
        ForwardedRequest {
            exchange,
            key,
            leader: None,
            stored,
            reason,
            is_late: false,
        }
    }
}

/// Forwards a GET request of a client, and counts it.
pub(crate) async fn forward(cached: Arc<CachedRoute>, forwarded: ForwardedRequest<'_>) -> HandlerOutput {
    let (counters, services) = (Arc::clone(&cached.counters), Rc::clone(&forwarded.exchange.services));
    let output = forward_uncounted(cached, forwarded).await;
    if matches!(output, HandlerOutput::Response(_)) {
        counters.count(&services, Counted::Miss);
    }
    output
}

/// Forwards a GET request, and stores its response.
pub(crate) async fn forward_uncounted(cached: Arc<CachedRoute>, forwarded: ForwardedRequest<'_>) -> HandlerOutput {
    let ForwardedRequest {
        mut exchange,
        key,
        leader,
        stored,
        reason,
        is_late,
    } = forwarded;
    let original = Rc::clone(&exchange.request);
    let request = original.view();
    let services = Rc::clone(&exchange.services);
    // True only for a resource that is known to be uncacheable, so the handler may respond with 304.
    let keeps_preconditions = leader.is_none() && !is_late && stored.is_none();
    let has_preconditions = PRECONDITIONS
        .iter()
        .any(|name| request.fields.by_name(name).next().is_some());
    // Needed if a 304 names another entity tag than the stored response has.
    let repeated = stored.is_some().then(|| copy(&exchange));
    if !keeps_preconditions {
        exchange.request = validating(&original, has_preconditions, stored.as_deref());
    }
    let is_secure = exchange.tls.is_some();
    let requested_ms = services.clock.uptime_ms();
    let changes = cached.responses.changes();
    let ticks = cached.inner.body_timeout_ticks(&services.wheel, &exchange.route);
    let output = call(&cached, exchange).await;
    let HandlerOutput::Response(mut response) = output else {
        // An entry of the file cache. The server sends it, and evaluates the preconditions of the original request.
        return output;
    };
    if let (Some(repeated), Some(stale)) = (repeated, &stored)
        && response.status == Status::NOT_MODIFIED
        && stale.is_other_than(&response.fields)
    {
        // Such a 304 must not update the stored response. The request is repeated once, without validators. The purges
        // that the 304 demands are carried out all the same.
        cached.apply_control_fields(&request, is_secure, &mut response);
        let again = ForwardedRequest {
            leader,
            is_late: true,
            ..ForwardedRequest::new(repeated, key, None, reason)
        };
        return Box::pin(forward_uncounted(cached, again)).await;
    }
    let times = Times {
        requested_ms,
        received_ms: services.clock.uptime_ms(),
        made_unix: response.date.unwrap_or(services.clock.unix_ms() / 1000),
    };
    let facts = RequestFacts::of(&request.fields);
    let code = response.status.code();
    // `storage`: error with the value of `detail` if the response is not stored.
    let status = |storage: Result<(), &'static str>| CacheStatus::Forwarded {
        reason,
        status: None,
        is_stored: storage.is_ok(),
        is_collapsed: false,
        detail: storage.err(),
    };
    // For a response that takes the place of that of the handler.
    let replaced = |storage: Result<(), &'static str>| CacheStatus::Forwarded {
        reason,
        status: Some(code),
        is_stored: storage.is_ok(),
        is_collapsed: false,
        detail: storage.err(),
    };
    let properties = storable::properties(&cached, &facts, &response, times, &request, is_secure, changes);
    let is_confirmed = response.status == Status::NOT_MODIFIED && !keeps_preconditions;
    let confirmed = stored.as_ref().filter(|_| is_confirmed).map(|stale| {
        (
            stale,
            storable::confirm(&cached, &facts, stale, &response, times, changes),
        )
    });
    cached.apply_control_fields(&request, is_secure, &mut response);
    if let Some((stale, fresh)) = confirmed {
        let result = fresh
            .and_then(|fresh| store(&cached, key, &fresh, leader, changes, disk::moment(&services)).map(|()| fresh));
        let status = replaced(result.as_ref().map(|_| ()).map_err(|not_stored| not_stored.as_str()));
        let current = result.unwrap_or_else(|_| Arc::clone(stale));
        let age = Some(current.terms.age_ms(times.received_ms) / 1000);
        let mut sent = respond::from_stored(&current, &request, &services, age, status);
        // A cookie is for this client. The stored response has none.
        let cookies = response
            .fields
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("Set-Cookie"));
        cookies.for_each(|(name, value)| sent.fields.add(name, value));
        sent.upstream = response.upstream;
        return sent.into();
    }
    if let Some(stale) = &stored
        && matches!(code, 500 | 502..=504)
        && stale.terms.serves_errors(times.received_ms)
    {
        let age = Some(stale.terms.age_ms(times.received_ms) / 1000);
        let status = replaced(Err(STALE_IF_ERROR));
        return respond::from_stored(stale, &request, &services, age, status).into();
    }
    match properties {
        Ok(storable) => {
            let body = std::mem::take(&mut response.body);
            let body = match body.into_bytes() {
                Ok(bytes) => {
                    let whole = Arc::new(StoredResponse::new(&response, bytes, storable));
                    let result = store(&cached, key, &whole, leader, changes, disk::moment(&services));
                    let age = response
                        .fields
                        .value("Age")
                        .map(|_| whole.terms.age_ms(times.received_ms) / 1000);
                    let status = status(result.map_err(NotStored::as_str));
                    let mut sent = respond::from_stored(&whole, &request, &services, age, status);
                    sent.upstream = response.upstream;
                    return sent.into();
                }
                Err(body) => body,
            };
            let Body::Stream(source) = body else {
                // `storable::properties` permits no other body.
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
                budget: Arc::clone(&cached.fills),
                // The budget is that of all sites, so a small store of one site does not lower its limit.
                all: cached.memory.capacity().max(cached.responses.memory.capacity()) / FILL_SHARE,
                size: cached.settings.max_object,
                deadline: services.wheel.deadline(),
                abandonment: services.wheel.deadline(),
                ticks,
            };
            let key = key.clone();
            let filled = Arc::clone(&cached);
            let reader = fill::start(source, limits, move |whole| match whole {
                Some(whole) => {
                    let whole = Arc::new(StoredResponse::new(&head, whole, storable));
                    // The client has got the head with `Cache-Status` already.
                    let _ = store(&filled, &key, &whole, leader, changes, disk::moment(&services));
                }
                None => {
                    let until = services.clock.uptime_ms() + UNCACHEABLE_MS;
                    filled.memory.mark_uncacheable(&key, until);
                }
            });
            response.body = Body::Stream(Box::new(reader));
            add_status(&mut response, status(Ok(())));
        }
        Err(not_stored) => {
            // The mark lets later requests proceed at the same time, and lets the handler see their preconditions.
            if leader.as_ref().is_some_and(Leader::has_waiting) || has_preconditions {
                let until = times.received_ms + UNCACHEABLE_MS;
                cached.memory.mark_uncacheable(key, until);
            }
            drop(leader);
            add_status(&mut response, status(Err(not_stored.as_str())));
            // The server sends the named file instead, and evaluates the preconditions for it.
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
            short.cache_status = response.cache_status;
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

/// Stores a response and passes it to the requests that wait for it. `changes`: number of changes when the request was
/// forwarded. Without a leader, any later change prevents storing, because an invalidation finds only leaders.
///
/// # Errors
///
/// Returns the reason why the response was not stored, such as a change of its resource meanwhile.
fn store(
    cached: &CachedRoute,
    key: &Key,
    response: &Arc<StoredResponse>,
    leader: Option<Leader>,
    changes: u64,
    moment: Moment,
) -> Result<(), NotStored> {
    let is_current = || match &leader {
        Some(leader) => !leader.is_invalidated(),
        None => cached.responses.changes() == changes,
    };
    cached.memory.put(key, response, is_current)?;
    if let Some(disk) = cached.disk() {
        // Checked again, because the resource may have been changed after the response was put into memory.
        disk.put(key, response, moment, || is_current() && !cached.is_changed(response));
    }
    if let Some(leader) = leader {
        leader.land(Arc::clone(response));
    }
    Ok(())
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
