//! Limits and handler of a request: phases 5 and 7 of the pipeline (`pipeline.rs`).

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use rocknet_handler::guard::Identity;
use rocknet_proto::request::OwnedRequest;
use rocknet_proto::status::Status;

use super::admission::Decisions;
use super::context::RequestContext;
use super::finish::{refuse, respond};
use super::further_routes;
use super::handler_timeout::HandlerTimeout;
use super::hidden_cookies;
use super::immediate;
use super::incoming::IncomingRequest;
use super::interface::{PipelineIo, ResponseState, StartedExchange};
use super::not_found_log;
use super::pending::PendingResponse;
use super::ready::{self, Origin};
use super::route;
use crate::exchange::{CacheKey, Exchange, RequestBody};
use crate::files::cache::l1::AFTER_RULES;
use crate::handler::ExchangeRef;
use crate::interim::InterimSender;
use crate::preload;
use crate::site::SiteRoutes;
use crate::traces;
use crate::upgrade;
use crate::worker::{Worker, WorkerConfig};

/// Runs phases 5 and 7 for the route that the rules have selected. The handler of files also looks up the path in the
/// worker cache (phase 6). `key`: number of the site, with [`AFTER_RULES`] if its rules were applied. `decisions`:
/// those of the guards, which have admitted the request.
pub(super) fn handle<F, R>(
    worker: &Rc<Worker>,
    config: &Rc<WorkerConfig>,
    incoming: &IncomingRequest<'_, F>,
    key: u32,
    routes: &SiteRoutes,
    resolved: route::Resolved<'_>,
    decisions: Decisions,
    io: &mut R,
) -> StartedExchange
where
    F: Fn() -> Rc<OwnedRequest>,
    R: PipelineIo,
{
    if decisions.has_identity() {
        return handle_identified(worker, config, incoming, key, routes, resolved, decisions, io);
    }
    handle_as(
        worker,
        config,
        incoming,
        key,
        routes,
        resolved,
        decisions,
        Vec::new(),
        io,
    )
}

/// Does the work of [`handle`] for a request with identities, whose fields replace those of the client.
#[inline(never)]
fn handle_identified<F, R>(
    worker: &Rc<Worker>,
    config: &Rc<WorkerConfig>,
    incoming: &IncomingRequest<'_, F>,
    key: u32,
    routes: &SiteRoutes,
    resolved: route::Resolved<'_>,
    mut decisions: Decisions,
    io: &mut R,
) -> StartedExchange
where
    F: Fn() -> Rc<OwnedRequest>,
    R: PipelineIo,
{
    let request = decisions.identified((incoming.owned)());
    let identities = decisions.take_identities();
    let view = request.view();
    let owned: &dyn Fn() -> Rc<OwnedRequest> = &|| Rc::clone(&request);
    let incoming = incoming.with(&view, owned);
    handle_as(
        worker, config, &incoming, key, routes, resolved, decisions, identities, io,
    )
}

/// Does the work of [`handle`]. `identities`: those whose fields the request has.
fn handle_as<F, R>(
    worker: &Rc<Worker>,
    config: &Rc<WorkerConfig>,
    incoming: &IncomingRequest<'_, F>,
    key: u32,
    routes: &SiteRoutes,
    resolved: route::Resolved<'_>,
    decisions: Decisions,
    identities: Vec<Arc<Identity>>,
    io: &mut R,
) -> StartedExchange
where
    F: Fn() -> Rc<OwnedRequest>,
    R: PipelineIo,
{
    let route::Resolved {
        endpoint,
        path,
        is_file_path,
    } = resolved;
    let (request, site, route) = (incoming.request, key & !AFTER_RULES, &endpoint.route);
    let mut context = RequestContext::new(worker, config, incoming, Some(site), Some(endpoint.into()));
    let user = decisions.user.clone();
    context.set_user(user.clone());
    // `held`: values that guards keep until the request ends, such as the permit of a limit on concurrent requests.
    let (guards, held) = decisions.into_guards();
    context.guards = RefCell::new(guards);
    context.held = Rc::new(held);
    let is_identified = identities.iter().any(|identity| identity.identifies_client);
    let has_names = identities.iter().any(|identity| identity.has_names());
    context.identities = RefCell::new(identities);
    if incoming.has_body
        && let Err(refusal) = io.limit_body(route.body_size)
    {
        return refuse(worker, Rc::new(context), incoming.peer, incoming.request.path, refusal);
    }
    let (handler, client) = (endpoint.handler(&path), incoming.client(worker));
    let secure = incoming.secure.map(|handshake| handshake.tls_info());
    let values = incoming.values(worker, config, &route.label.site, user.as_deref());
    let route_response = immediate::route_response(endpoint, request, &path, &values);
    let is_from_handler = route_response.is_none();
    let has_hidden = hidden_cookies::are_in(request.fields, &endpoint.guards);
    let mut stripped = has_hidden.then(|| Rc::new(hidden_cookies::removed(&(incoming.owned)(), &endpoint.guards)));
    let view = stripped.as_ref().map(|stripped| stripped.view());
    let response = route_response.or_else(|| {
        handler.handle_now(&ExchangeRef {
            services: worker,
            request: view.as_ref().unwrap_or(request),
            has_body: incoming.has_body,
            path: &path,
            is_file_path,
            client,
            peer: incoming.peer,
            tls: secure.map(|secure| &**secure),
            user: user.as_deref(),
            is_identified,
            admit_to_script: None,
        })
    });
    if let Some(mut response) = response {
        if response.status == Status::NOT_FOUND {
            not_found_log::log_route(&context, endpoint, &path);
        }
        if is_from_handler {
            upgrade::enforce(request, &mut response);
            immediate::cache_endpoint(worker, key, request, endpoint, routes, (&path, is_file_path));
        }
        let started = respond(worker, Rc::new(context), Some(request), response);
        if is_from_handler {
            // If the handler has responded from the response cache, the response may be kept as it was sent. The worker
            // then sends it again without calling the handler.
            ready::keep(worker, key, incoming, &started, || {
                let cached = Rc::new(immediate::cached_endpoint(endpoint, (&path, is_file_path)));
                Origin::of_path(cached, routes, incoming.request.path)
            });
        }
        return started;
    }
    let body = match incoming.has_body {
        true => io.open_body(),
        false => RequestBody::empty(),
    };
    // Applications may treat a trailer field of the client as a header field.
    if has_names || endpoint.guards.iter().any(|guard| guard.removes_fields()) {
        body.discard_trailers();
    }
    let mut owned = (incoming.owned)();
    if let Some(tracer) = &config.tracer {
        let trace = tracer.begin(request);
        owned = traces::with_context(&owned, &trace);
        stripped = stripped.map(|stripped| traces::with_context(&stripped, &trace));
        let _ = context.trace.set(Box::new(trace));
    }
    // Guards of further routes need the hidden cookies.
    context.request = Some(Rc::clone(&owned));
    context.client = Some(client);
    let context = Rc::new(context);
    // Preloads are announced before the handler responds. This helps only if the handler may be slow and the client
    // may be on its first visit. The announcement is permitted only if no further guard can reject the request.
    let preloads = route
        .preloads(&path)
        .filter(|_| handler.may_take_long() && preload::is_first_visit(request) && further_routes::is_final(endpoint))
        .cloned();
    let interim = InterimSender::default();
    let interim_channel = interim.channel();
    let exchange = Exchange {
        services: Rc::clone(worker.services()),
        client,
        peer: incoming.peer,
        request: stripped.unwrap_or(owned),
        body,
        interim,
        path: path.into(),
        is_file_path,
        route: Arc::clone(route),
        cache_key: CacheKey {
            site: key,
            generation: config.snapshot.generation,
        },
        tls: secure.cloned(),
        user,
        is_identified,
        id: context.id.clone(),
    };
    let work = further_routes::handle(worker, &context, endpoint, handler, exchange);
    let mut pending = PendingResponse::handler(worker, &context, work).with_interim(interim_channel);
    pending.preloads = preloads;
    pending.timeout = Some(HandlerTimeout::of(&**handler, &worker.wheel, route));
    pending.allows_accel_redirect = handler.supports_accel_redirect();
    StartedExchange {
        context,
        state: ResponseState::Pending(pending),
        close: false,
    }
}
