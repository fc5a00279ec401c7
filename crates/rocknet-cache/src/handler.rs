//! The handler of a cached route: responds from the store, or calls the handler of the route.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rocknet_config::model::ResponseCache;
use rocknet_handler::client::Client;
use rocknet_handler::exchange::{Exchange, RequestBody};
use rocknet_handler::fixed;
use rocknet_handler::interim::InterimSender;
use rocknet_handler::response::Response;
use rocknet_handler::route::Route;
use rocknet_handler::services::Services;
use rocknet_handler::tls_info::TlsInfo;
use rocknet_handler::{ExchangeRef, Handler, HandlerFuture, HandlerOutput};
use rocknet_io::runtime;
use rocknet_io::wheel::Wheel;
use rocknet_proto::fields::KnownField;
use rocknet_proto::method::Method;
use rocknet_proto::request::Request;
use rocknet_proto::status::Status;

use crate::cache_control::Directives;
use crate::cached_route::CachedRoute;
use crate::counters::Counted;
use crate::flight::Joined;
use crate::key::{self, Key};
use crate::policy::{RequestFacts, Use};
use crate::status::{CacheStatus, Forwarded, add_status};
use crate::stored::StoredResponse;
use crate::{Responses, cookies, forward, litespeed, respond};

/// Maximum time that a request waits for the response to another request for the same key. After it, the request is
/// forwarded on its own.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Responds from the store of responses, or by an inner handler.
pub struct CacheHandler(Arc<CachedRoute>);

/// Use of the cache for one request. The key is not boxed, because a box would be an allocation for each request.
#[allow(clippy::large_enum_variant)]
enum Plan {
    /// The request is forwarded.
    Bypass(Forwarded),
    /// The request is forwarded, and invalidates what is stored for its URI.
    Invalidate,
    /// A response is looked up under this key.
    Lookup(Key),
}

/// Result of a lookup.
enum Found {
    /// The response may be sent. True: it is stale, and is validated in the background.
    Usable(Arc<StoredResponse>, bool),
    /// The request is forwarded for this reason, with the validators of the stale response if there is one.
    Missing(Forwarded, Option<Arc<StoredResponse>>),
}

impl CacheHandler {
    /// Puts the cache in front of a handler. `looks_up_scripts`: the handler serves a directory tree with scripts.
    /// `replaced`: names in lower case of fields that the handler sets in requests.
    pub fn new(
        inner: Arc<dyn Handler>,
        settings: ResponseCache,
        route: Arc<Route>,
        responses: Arc<Responses>,
        looks_up_scripts: bool,
        replaced: Vec<String>,
    ) -> CacheHandler {
        CacheHandler(Arc::new(CachedRoute {
            answers_now: route.is_unguarded || !looks_up_scripts,
            inner,
            settings,
            route,
            responses,
            replaced,
        }))
    }
}

impl Handler for CacheHandler {
    fn handle_now(&self, request: &ExchangeRef<'_>) -> Option<Response> {
        let cached = &self.0;
        let plan = cached.plan(
            request.request,
            request.has_body,
            request.user,
            request.tls,
            request.peer,
        );
        match plan {
            Plan::Bypass(reason) => {
                let mut response = cached.inner.handle_now(request)?;
                cached.responses.counters.count(request.services, Counted::Bypass);
                cached.finish(request.request, &mut response);
                add_status(&mut response, CacheStatus::forwarded(reason));
                Some(response)
            }
            Plan::Invalidate => {
                let mut response = cached.inner.handle_now(request)?;
                cached.invalidate(request.request, request.tls.is_some(), request.peer, &response);
                cached.responses.counters.count(request.services, Counted::Bypass);
                cached.finish(request.request, &mut response);
                add_status(&mut response, CacheStatus::forwarded(Forwarded::Method));
                Some(response)
            }
            Plan::Lookup(_) if !cached.answers_now => None,
            Plan::Lookup(key) => match cached.look_up(&key, request.request, request.services) {
                Found::Usable(stored, false) => {
                    cached.responses.counters.count(request.services, Counted::Hit);
                    Some(hit(&stored, request.request, request.services))
                }
                _ => None,
            },
        }
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

/// Handles a request for which there was no fresh response at once.
async fn handle(cached: Arc<CachedRoute>, mut exchange: Exchange) -> HandlerOutput {
    if cached.settings.litespeed {
        let (name, value) = litespeed::ENABLED;
        exchange.request = Rc::new(exchange.request.with_replaced_fields(&[name], &[(name, value)]));
    }
    let owned = Rc::clone(&exchange.request);
    let request = owned.view();
    let is_secure = exchange.tls.is_some();
    let services = Rc::clone(&exchange.services);
    // Over HTTP/2 and HTTP/3, a body needs no field that announces it.
    let has_body = has_body(&request) || !exchange.body.is_empty();
    let plan = cached.plan(
        &request,
        has_body,
        exchange.user.as_deref(),
        exchange.tls.as_deref(),
        exchange.peer,
    );
    let key = match plan {
        Plan::Bypass(reason) => {
            let output = cached.inner.handle(exchange).await;
            return finished(&cached, &services, &request, output, CacheStatus::forwarded(reason));
        }
        Plan::Invalidate => {
            let peer = exchange.peer;
            let output = cached.inner.handle(exchange).await;
            if let HandlerOutput::Response(response) = &output {
                cached.invalidate(&request, is_secure, peer, response);
            }
            return finished(
                &cached,
                &services,
                &request,
                output,
                CacheStatus::forwarded(Forwarded::Method),
            );
        }
        Plan::Lookup(key) => key,
    };
    let (reason, stored) = match cached.look_up(&key, &request, &services) {
        Found::Usable(stored, is_stale) => {
            let outcome = if is_stale { Counted::Stale } else { Counted::Hit };
            cached.responses.counters.count(&services, outcome);
            let response = hit(&stored, &request, &services);
            // The response to HEAD, or to a request for a part, must not take the place of the whole one.
            if is_stale && request.method == Method::Get && !request.fields.contains(KnownField::Range) {
                revalidate(&cached, &exchange, key, stored);
            }
            return response.into();
        }
        Found::Missing(reason, stored) => (reason, stored),
    };
    let facts = RequestFacts::of(&request.fields);
    if facts.directives.only_if_cached {
        return fixed::error(Status::GATEWAY_TIMEOUT).into();
    }
    // A part, or a head alone, is not stored. Of a stale response the part would be wrong if it has changed.
    if request.method == Method::Head || request.fields.contains(KnownField::Range) {
        let reason = if stored.is_some() { reason } else { Forwarded::Miss };
        let output = forward::call(&cached, exchange).await;
        return finished(&cached, &services, &request, output, CacheStatus::forwarded(reason));
    }
    let now_ms = services.clock.uptime_ms();
    let resource = cached.responses.memory.get(&key);
    if resource.is_some_and(|resource| now_ms < resource.uncacheable_until_ms) {
        return forward::forward(cached, exchange, &key, None, stored, reason, false).await;
    }
    match cached.responses.flights.join(&key) {
        Joined::Leads(leader) => forward::forward(cached, exchange, &key, Some(leader), stored, reason, false).await,
        Joined::Waits(flight) => {
            let deadline = services.wheel.deadline();
            deadline.set(services.wheel.ticks(MAX_WAIT));
            let response = flight.landed(&deadline).await;
            let now_ms = services.clock.uptime_ms();
            let usable = response.filter(|response| {
                response.variation.matches(&request.fields)
                    && response.terms.permitted(now_ms, cached.obeyed(&facts.directives)) == Use::Fresh
                    && (!facts.has_authorization || response.is_for_authorization())
            });
            match usable {
                Some(stored) => {
                    cached.responses.counters.count(&services, Counted::Collapsed);
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
                None => forward::forward(cached, exchange, &key, None, stored, reason, true).await,
            }
        }
    }
}

impl CachedRoute {
    /// Decides on the use of the cache.
    fn plan(
        &self,
        request: &Request<'_>,
        has_body: bool,
        user: Option<&str>,
        tls: Option<&TlsInfo>,
        peer: Client,
    ) -> Plan {
        match request.method {
            Method::Get | Method::Head => {}
            Method::Options | Method::Trace | Method::Connect => return Plan::Bypass(Forwarded::Method),
            _ => return Plan::Invalidate,
        }
        let is_bypassed = has_body
            || request.upgrade.is_some()
            || user.is_some()
            // The application may know the user by the certificate.
            || tls.is_some_and(|tls| tls.client.is_some())
            || cookies::has_any(&self.settings.bypass_cookies, &request.fields);
        if is_bypassed {
            return Plan::Bypass(Forwarded::Bypass);
        }
        match key::of_request(request, &self.route, tls.is_some(), peer) {
            Some(key) => Plan::Lookup(key),
            None => Plan::Bypass(Forwarded::Bypass),
        }
    }

    /// Returns the directives of a request if they are obeyed.
    fn obeyed<'d>(&self, directives: &'d Directives) -> Option<&'d Directives> {
        self.settings.obey_clients.then_some(directives)
    }

    fn look_up(&self, key: &[u8], request: &Request<'_>, services: &Services) -> Found {
        let Some(resource) = self.responses.memory.get(key) else {
            return Found::Missing(Forwarded::UriMiss, None);
        };
        let Some(stored) = resource.select(&request.fields) else {
            let reason = if resource.variants.is_empty() {
                Forwarded::UriMiss
            } else {
                Forwarded::VaryMiss
            };
            return Found::Missing(reason, None);
        };
        let stored = Arc::clone(stored);
        if request.fields.contains(KnownField::Authorization) && !stored.is_for_authorization() {
            return Found::Missing(Forwarded::Request, None);
        }
        let now_ms = services.clock.uptime_ms();
        let directives = self
            .settings
            .obey_clients
            .then(|| RequestFacts::of(&request.fields).directives);
        match stored.terms.permitted(now_ms, directives.as_ref()) {
            Use::Fresh => Found::Usable(stored, false),
            Use::StaleWhileRevalidate => Found::Usable(stored, true),
            Use::AfterValidation => {
                let is_fresh = stored.terms.is_fresh(now_ms);
                let reason = if is_fresh { Forwarded::Request } else { Forwarded::Stale };
                Found::Missing(reason, Some(stored))
            }
        }
    }

    /// Drops what is stored for the URI of a request that may have changed its resource (RFC 9111 §4.4).
    fn invalidate(&self, request: &Request<'_>, is_secure: bool, peer: Client, response: &Response) {
        if !matches!(response.status.code(), 200..400) {
            return;
        }
        let drop_target = |target: &[u8]| {
            let mut prefix = Key::new();
            key::of_uri(&mut prefix, &self.route, is_secure, request.authority, target);
            self.responses.invalidate(&prefix);
        };
        drop_target(request.target);
        // The key of a request that the rules have rewritten has more parts.
        if let Some(key) = key::of_request(request, &self.route, is_secure, peer) {
            self.responses.invalidate(&key);
        }
        for name in ["Location", "Content-Location"] {
            if let Some(target) = response
                .fields
                .value(name)
                .and_then(|uri| same_origin(uri, request.authority))
            {
                drop_target(target.as_bytes());
            }
        }
    }
}

/// Returns path and query of a URI reference with this authority; `None` for another one.
fn same_origin<'u>(uri: &'u str, authority: &[u8]) -> Option<&'u str> {
    let uri = uri.split('#').next().unwrap_or_default();
    if uri.starts_with('/') && !uri.starts_with("//") {
        return Some(uri);
    }
    let (_, rest) = uri.split_once("://")?;
    let path = rest.find('/')?;
    let (host, target) = rest.split_at(path);
    host.as_bytes().eq_ignore_ascii_case(authority).then_some(target)
}

/// Returns true if the fields of a request announce a body.
fn has_body(request: &Request<'_>) -> bool {
    let length = request.fields.get(KnownField::ContentLength);
    length.is_some_and(|length| length != b"0") || request.fields.contains(KnownField::TransferEncoding)
}

/// Returns the response for a stored one that may be sent.
fn hit(stored: &StoredResponse, request: &Request<'_>, services: &Services) -> Response {
    let now_ms = services.clock.uptime_ms();
    let age = Some(stored.terms.age_ms(now_ms) / 1000);
    respond::from_stored(
        stored,
        request,
        services,
        age,
        CacheStatus::Hit(stored.terms.ttl(now_ms)),
    )
}

/// Validates a stale response in the background, unless another request does so.
fn revalidate(cached: &Arc<CachedRoute>, exchange: &Exchange, key: Key, stored: Arc<StoredResponse>) {
    let Joined::Leads(leader) = cached.responses.flights.join(&key) else {
        return;
    };
    let copy = Exchange {
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
        id: exchange.id.clone(),
    };
    let cached = Arc::clone(cached);
    runtime::spawn(async move {
        let (services, inner, route) = (
            Rc::clone(&copy.services),
            Arc::clone(&cached.inner),
            Arc::clone(&copy.route),
        );
        let deadline = services.wheel.deadline();
        deadline.set(inner.timeout_ticks(&services.wheel, &route));
        let mut work = std::pin::pin!(forward::forward(
            cached,
            copy,
            &key,
            Some(leader),
            Some(stored),
            Forwarded::Stale,
            false
        ));
        // The response is stored by then, or its body is being received by a task of its own.
        std::future::poll_fn(|context| match work.as_mut().poll(context) {
            std::task::Poll::Pending if !deadline.poll_past(context.waker()) => std::task::Poll::Pending,
            _ => std::task::Poll::Ready(()),
        })
        .await;
    });
}

/// Completes the output of a handler that is not stored. Files of the file cache have no status.
fn finished(
    cached: &CachedRoute,
    services: &Services,
    request: &Request<'_>,
    mut output: HandlerOutput,
    status: CacheStatus,
) -> HandlerOutput {
    if let HandlerOutput::Response(response) = &mut output {
        cached.responses.counters.count(services, Counted::Bypass);
        cached.finish(request, response);
        add_status(response, status);
    }
    output
}
