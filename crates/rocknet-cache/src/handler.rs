//! The handler of a cached route: responds from the store, or calls the handler of the route.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rocknet_config::model::ResponseCache;
use rocknet_handler::exchange::Exchange;
use rocknet_handler::fixed;
use rocknet_handler::response::Response;
use rocknet_handler::route::Route;
use rocknet_handler::services::Services;
use rocknet_handler::stored::Stored;
use rocknet_handler::{ExchangeRef, Handler, HandlerFuture, HandlerOutput, Reuse};
use rocknet_io::wheel::Wheel;
use rocknet_proto::fields::KnownField;
use rocknet_proto::method::Method;
use rocknet_proto::request::Request;
use rocknet_proto::status::Status;
use rocknet_routing::rules::RequestConditions;

use crate::cached_route::CachedRoute;
use crate::counters::Counted;
use crate::flight::Joined;
use crate::forward::ForwardedRequest;
use crate::key::{Key, KeyTemplate};
use crate::plan::{Found, Freshness, Plan};
use crate::policy::{RequestFacts, Use};
use crate::revalidate::revalidate;
use crate::status::{CacheStatus, Forwarded, Tier, add_status};
use crate::stored::StoredResponse;
use crate::{Responses, disk_lookup, forward, litespeed, respond};

/// Maximum time after a request was forwarded in which other requests for the same key wait for its response. After it,
/// they are forwarded on their own. nginx has the same default (`proxy_cache_lock_timeout`).
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Responds from the store of responses, or by an inner handler.
pub struct CacheHandler(Arc<CachedRoute>);

impl CacheHandler {
    /// Puts the cache in front of a handler. `looks_up_scripts`: the handler serves a directory tree with scripts.
    /// `replaced`: names in lower case of fields that the handler sets in requests. `memory`: capacity in bytes of the
    /// site's own memory store; `None` if the site uses the shared one.
    pub fn new(
        inner: Arc<dyn Handler>,
        settings: ResponseCache,
        route: Arc<Route>,
        responses: Arc<Responses>,
        looks_up_scripts: bool,
        replaced: Vec<String>,
        memory: Option<u64>,
    ) -> CacheHandler {
        // The check of the configuration has refused invalid templates.
        let key = settings.key.as_deref().and_then(KeyTemplate::parse);
        CacheHandler(Arc::new(CachedRoute {
            // The route of a script may have guards of its own, which cannot be known before its lookup.
            answers_now: route.is_unguarded || !looks_up_scripts,
            inner,
            bypass: (!settings.bypass.is_empty()).then(|| RequestConditions::new(&settings.bypass)),
            url_changes: key.is_some().then(|| responses.url_changes_of(&route.label.site)),
            key,
            settings,
            memory: responses.memory_of(&route.label.site, memory),
            counters: responses.counters.of_site(&route.label.site),
            fills: responses.fills_of(&route.label.site),
            route,
            responses,
            replaced,
        }))
    }
}

impl Handler for CacheHandler {
    fn handle_now(&self, request: &ExchangeRef<'_>) -> Option<Response> {
        let cached = &self.0;
        match cached.plan(request) {
            // The path leads to a script whose guards have not checked the request yet. Without a call of
            // `admit_to_script`, the inner handler must not respond.
            Plan::Bypass(_) | Plan::Invalidate if request.admit_to_script.is_some() => None,
            Plan::Bypass(reason) => {
                let mut response = cached.inner.handle_now(request)?;
                cached.counters.count(request.services, Counted::Bypass);
                cached.apply_control_fields(request.request, request.tls.is_some(), &mut response);
                add_status(&mut response, CacheStatus::forwarded(reason));
                Some(response)
            }
            Plan::Invalidate => {
                let mut response = cached.inner.handle_now(request)?;
                cached.invalidate(request, &response);
                cached.counters.count(request.services, Counted::Bypass);
                cached.apply_control_fields(request.request, request.tls.is_some(), &mut response);
                add_status(&mut response, CacheStatus::forwarded(Forwarded::Method));
                Some(response)
            }
            Plan::Lookup(_) if !cached.may_answer(request) => None,
            Plan::Lookup(key) => match cached.look_up(&key, request.request, request.services) {
                // The guards of a script count the request, so they are called only if a response is stored.
                Found::Usable(stored, Freshness::Fresh)
                    if request.admit_to_script.map_or(cached.answers_now, |admit| admit()) =>
                {
                    cached.counters.count(request.services, Counted::Hit);
                    Some(hit(&stored, request.request, request.services, Tier::Memory))
                }
                _ => None,
            },
        }
    }

    fn reuse(&self, request: &ExchangeRef<'_>, stored: &Arc<dyn Stored>) -> Option<Box<dyn Reuse>> {
        self.0.reuse(request, stored)
    }

    fn handle(&self, exchange: Exchange) -> HandlerFuture {
        let cached = Arc::clone(&self.0);
        Box::pin(handle(cached, exchange))
    }

    fn timeout_ticks(&self, wheel: &Wheel, route: &Route) -> u32 {
        self.0
            .inner
            .timeout_ticks(wheel, route)
            .saturating_add(wheel.ticks(MAX_WAIT))
    }

    fn body_timeout_ticks(&self, wheel: &Wheel, route: &Route) -> u32 {
        self.0.inner.body_timeout_ticks(wheel, route)
    }

    fn timeout_limits(&self) -> &'static str {
        self.0.inner.timeout_limits()
    }

    fn may_take_long(&self) -> bool {
        self.0.inner.may_take_long()
    }

    fn accepts_tunnels(&self) -> bool {
        self.0.inner.accepts_tunnels()
    }

    fn buffers_request_body(&self) -> bool {
        self.0.inner.buffers_request_body()
    }

    fn supports_accel_redirect(&self) -> bool {
        self.0.inner.supports_accel_redirect()
    }
}

/// Handles a request for which [`Handler::handle_now`] returned no response.
async fn handle(cached: Arc<CachedRoute>, mut exchange: Exchange) -> HandlerOutput {
    if cached.settings.litespeed {
        let (name, value) = litespeed::ENABLED;
        exchange.request = Rc::new(exchange.request.with_replaced_fields(&[name], &[(name, value)]));
    }
    let owned = Rc::clone(&exchange.request);
    let request = owned.view();
    let services = Rc::clone(&exchange.services);
    // Over HTTP/2 and HTTP/3, a body needs no field that announces it.
    let has_body = has_body(&request) || !exchange.body.is_empty();
    let plan = cached.plan(&forward::by_reference(&exchange, &request, has_body));
    let key = match plan {
        Plan::Bypass(reason) => {
            let origin = (&request, exchange.tls.is_some());
            let output = cached.inner.handle(exchange).await;
            return finished(&cached, &services, origin, output, CacheStatus::forwarded(reason));
        }
        Plan::Invalidate => {
            let (client, peer, path) = (exchange.client, exchange.peer, exchange.path.clone());
            let tls = exchange.tls.clone();
            let output = cached.inner.handle(exchange).await;
            if let HandlerOutput::Response(response) = &output {
                // Keys depend on none of `is_file_path`, `user`, `is_identified` and `admit_to_script`.
                let changed = ExchangeRef {
                    services: &services,
                    request: &request,
                    has_body,
                    path: &path,
                    is_file_path: false,
                    client,
                    peer,
                    tls: tls.as_deref(),
                    user: None,
                    is_identified: false,
                    admit_to_script: None,
                };
                cached.invalidate(&changed, response);
            }
            return finished(
                &cached,
                &services,
                (&request, tls.is_some()),
                output,
                CacheStatus::forwarded(Forwarded::Method),
            );
        }
        Plan::Lookup(key) => key,
    };
    let (mut reason, mut stored) = match cached.look_up(&key, &request, &services) {
        Found::Usable(stored, freshness) => return usable(&cached, &exchange, key, stored, freshness, Tier::Memory),
        Found::Missing(reason, stored) => (reason, stored),
    };
    let facts = RequestFacts::of(&request.fields);
    let may_be_on_disk = stored.is_none() && matches!(reason, Forwarded::UriMiss | Forwarded::VaryMiss);
    // These requests neither wait for others nor let others wait.
    let is_alone =
        request.method == Method::Head || request.fields.contains(KnownField::Range) || facts.directives.only_if_cached;
    if may_be_on_disk && is_alone {
        let changes = cached.responses.changes();
        let is_current = || cached.responses.changes() == changes;
        match disk_lookup::look_up(&cached, &key, &request, &services, is_current).await {
            Some(Found::Usable(stored, freshness)) => {
                return usable(&cached, &exchange, key, stored, freshness, Tier::Disk);
            }
            Some(Found::Missing(why, stale)) => (reason, stored) = (why, stale),
            None => {}
        }
    }
    if facts.directives.only_if_cached {
        return fixed::error(Status::GATEWAY_TIMEOUT).into();
    }
    // A part, or a head alone, is not stored, and the validators of a stale response are not sent with such a request.
    if request.method == Method::Head || request.fields.contains(KnownField::Range) {
        let origin = (&request, exchange.tls.is_some());
        let output = forward::call(&cached, exchange).await;
        return finished(&cached, &services, origin, output, CacheStatus::forwarded(reason));
    }
    let now_ms = services.clock.uptime_ms();
    let resource = cached.memory.get(&key);
    if resource.is_some_and(|resource| now_ms < resource.uncacheable_until_ms) {
        let forwarded = ForwardedRequest::new(exchange, &key, stored, reason);
        return forward::forward(cached, forwarded).await;
    }
    let flight = match cached.responses.flights.join(&key, now_ms) {
        Joined::Leads(leader) => {
            // Another request for the key may have ended between the lookup above and `join`. Its response is in memory
            // now.
            match cached.look_up(&key, &request, &services) {
                Found::Usable(stored, freshness) => {
                    leader.land(Arc::clone(&stored));
                    return usable(&cached, &exchange, key, stored, freshness, Tier::Memory);
                }
                Found::Missing(why, stale) => (reason, stored) = (why, stale),
            }
            if stored.is_none() && may_be_on_disk {
                let is_current = || !leader.is_invalidated();
                match disk_lookup::look_up(&cached, &key, &request, &services, is_current).await {
                    Some(Found::Usable(stored, freshness)) => {
                        leader.land(Arc::clone(&stored));
                        return usable(&cached, &exchange, key, stored, freshness, Tier::Disk);
                    }
                    Some(Found::Missing(why, stale)) => (reason, stored) = (why, stale),
                    None => {}
                }
            }
            let forwarded = ForwardedRequest {
                leader: Some(leader),
                ..ForwardedRequest::new(exchange, &key, stored, reason)
            };
            return forward::forward(cached, forwarded).await;
        }
        Joined::Waits(flight) => flight,
    };
    let wait = MAX_WAIT.saturating_sub(Duration::from_millis(flight.age_ms(now_ms)));
    let mut response = None;
    if !wait.is_zero() {
        let deadline = services.wheel.deadline();
        deadline.set(services.wheel.ticks(wait));
        response = flight.landed(&deadline).await;
    }
    let now_ms = services.clock.uptime_ms();
    let shared = response.filter(|response| {
        response.variation.matches(&request.fields)
            && response.terms.permitted(now_ms, cached.obeyed(&facts.directives)) == Use::Fresh
            && (!facts.has_authorization || response.is_for_authorization())
            && !cached.is_changed(response)
    });
    let Some(stored) = shared else {
        // The other request may have read a stale response from disk, which is in memory now.
        if let Found::Usable(stored, freshness) = cached.look_up(&key, &request, &services) {
            return usable(&cached, &exchange, key, stored, freshness, Tier::Memory);
        }
        let forwarded = ForwardedRequest {
            is_late: true,
            ..ForwardedRequest::new(exchange, &key, stored, reason)
        };
        return forward::forward(cached, forwarded).await;
    };
    cached.counters.count(&services, Counted::Collapsed);
    let status = CacheStatus::Forwarded {
        reason,
        status: None,
        is_stored: false,
        is_collapsed: true,
        detail: None,
    };
    let age = Some(stored.terms.age_ms(now_ms) / 1000);
    respond::from_stored(&stored, &request, &services, age, status).into()
}

/// Returns true if the fields of a request announce a body.
fn has_body(request: &Request<'_>) -> bool {
    let length = request.fields.get(KnownField::ContentLength);
    length.is_some_and(|length| length != b"0") || request.fields.contains(KnownField::TransferEncoding)
}

/// Sends a stored response that may be sent, and validates it in the background if it is stale.
fn usable(
    cached: &Arc<CachedRoute>,
    exchange: &Exchange,
    key: Key,
    stored: Arc<StoredResponse>,
    freshness: Freshness,
    tier: Tier,
) -> HandlerOutput {
    let (request, services) = (exchange.request.view(), &exchange.services);
    let outcome = match freshness {
        Freshness::Fresh => Counted::Hit,
        Freshness::Stale => Counted::Stale,
    };
    cached.counters.count(services, outcome);
    let response = hit(&stored, &request, services, tier);
    // The response to HEAD, or to a request for a part, must not take the place of the whole one.
    if freshness == Freshness::Stale && request.method == Method::Get && !request.fields.contains(KnownField::Range) {
        revalidate(cached, exchange, key, stored);
    }
    response.into()
}

/// Returns the response for a stored one that may be sent.
fn hit(stored: &Arc<StoredResponse>, request: &Request<'_>, services: &Services, tier: Tier) -> Response {
    let now_ms = services.clock.uptime_ms();
    let age = Some(stored.terms.age_ms(now_ms) / 1000);
    let status = CacheStatus::Hit(stored.terms.ttl(now_ms), tier);
    let mut response = respond::from_stored(stored, request, services, age, status);
    if tier == Tier::Disk {
        // A worker must not send this response again, because the next hit comes from memory and has another status.
        response.stored = None;
    }
    response
}

/// Completes the output of a handler that is not stored. A file of the file cache is returned unchanged, without
/// `Cache-Status`. `is_secure`: true if the request came over TLS.
fn finished(
    cached: &CachedRoute,
    services: &Services,
    (request, is_secure): (&Request<'_>, bool),
    mut output: HandlerOutput,
    status: CacheStatus,
) -> HandlerOutput {
    if let HandlerOutput::Response(response) = &mut output {
        cached.counters.count(services, Counted::Bypass);
        cached.apply_control_fields(request, is_secure, response);
        add_status(response, status);
    }
    output
}
