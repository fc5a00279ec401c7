//! Pipeline: the ordered phases of every request, the same for every protocol version and handler.
//!
//! ```text
//!  1 preflight     preflight.rs    redirect to HTTPS, misdirected request, targets and methods that no route handles
//!  2 route         route.rs        path → route, with its limits and flags
//!  3 access        admission.rs    the guards of the route, such as `limit` and `auth` (each a `Guard`, in guard/)
//!  4 rules         rocknet-routing rewrite (once, back to 2), redirect, respond
//!  5 limits        handle.rs       size of the request body
//!  6 cache lookup  cache_lookup.rs worker cache: path → entry or route
//!  7 handler       handle.rs       files | proxy | gateway | controller | embedded → a response, now or later
//!  8 error page    error_page.rs   the page of the route for an error of any origin
//!  9 encode        filter/encode   content coding for every handler, never twice (a `Filter`)
//! 10 headers       rocknet-handler `headers` of the route, Server (a `Filter`, in headers.rs)
//! 11 log           lifecycle/      counters, durations and the access log, once the response has been sent
//! ```
//! Before phase 1, `banned.rs` refuses requests of banned clients, and logins of clients with too many logins in
//! progress. Responses of phases 1 to 4 need no handler, but the size of the request body is checked for them, too.
//!
//! For GET and HEAD requests without a body, the worker cache is queried as soon as scheme and site are checked, in the
//! middle of phase 1. This is possible because each entry carries its route, and a flag that is set if no guard
//! applies. If the flag is not set, `admission.rs` has to admit the request before the entry is used.
//!
//! Phases 1 to 7 are [`begin`]; phases 8 to 10 are `exit.rs`, which every response passes. A request that waits for the
//! decision of a guard, or for a lookup on disk that a rule needs, starts again with the result (`deferred.rs`).

mod accel_redirect;
mod admission;
mod banned;
mod cache_lookup;
mod context;
mod deferred;
mod encoded_variant;
mod error_page;
mod exit;
mod facts;
mod file_rules;
mod files;
mod finish;
mod further_routes;
mod handle;
mod handler_timeout;
mod hidden_cookies;
mod immediate;
mod incoming;
mod interface;
mod not_found_log;
mod path_endpoints;
mod pending;
mod preflight;
mod reachable;
mod ready;
pub mod refusals;
mod route;
mod rules;
mod stored_script;
mod unknown_site;

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use rocknet_proto::method::Method;
use rocknet_proto::request::OwnedRequest;
use rocknet_proto::status::Status;

use self::admission::{Decisions, NotAdmitted};
use self::deferred::{OpenedBody, OwnedIncoming};
use self::facts::Facts;
use self::finish::{refuse, respond};
use self::further_routes::Entered;
use self::handle::handle;
use crate::endpoint::Endpoint;
use crate::exchange::RequestBody;
use crate::files::cache::l1::AFTER_RULES;
use crate::fixed;
use crate::response::Response;
use crate::routing::RuleOutcome;
use crate::worker::{Worker, WorkerConfig};

pub use rocknet_proto::refusal::Refusal;

pub use self::cache_lookup::respond_from_entry;
pub use self::context::{RequestContext, access_log};
pub use self::finish::{error_response, plain_error_response, refusal_response};
pub use self::handler_timeout::HandlerTimeout;
pub use self::incoming::IncomingRequest;
pub use self::interface::{Outcome, PipelineIo, ResponseState, StartedExchange};
pub use self::pending::{CompletedResponse, PendingResponse};
pub use self::route::body_limit;

/// Runs the phases of a request up to its handler, unless the client is banned.
#[inline]
pub fn begin<F, R>(
    worker: &Rc<Worker>,
    config: &Rc<WorkerConfig>,
    incoming: &IncomingRequest<'_, F>,
    io: &mut R,
) -> Outcome
where
    F: Fn() -> Rc<OwnedRequest>,
    R: PipelineIo,
{
    let site = config.site(incoming.local, incoming.request.authority);
    if worker.shared.registries.bans.has_bans()
        && let Some(started) = banned::refuse(worker, config, incoming, site)
    {
        return Outcome::Started(started);
    }
    if incoming.request.method == Method::Post
        && worker.shared.registries.bans.has_login_paths()
        && let Some(started) = banned::refuse_login(worker, config, incoming, site)
    {
        return Outcome::Started(started);
    }
    if config.needs_preflight
        && let Some(started) = preflight(worker, config, incoming, site, io)
    {
        return Outcome::Started(started);
    }
    if let (false, Some(number)) = (incoming.has_body, site)
        && let Some(outcome) = cache_lookup::lookup(worker, config, number, incoming, io)
    {
        return outcome;
    }
    let decisions = Decisions::default();
    Outcome::Started(route_and_handle(worker, config, incoming, site, decisions, io))
}

/// Checks scheme and site, the first part of phase 1. Returns `None` if the request continues. Runs only for listeners
/// with TLS, or if any site has TLS. Target and method are checked by [`route_and_handle`].
fn preflight<F, R>(
    worker: &Rc<Worker>,
    config: &Rc<WorkerConfig>,
    incoming: &IncomingRequest<'_, F>,
    site: Option<u32>,
    io: &mut R,
) -> Option<StartedExchange>
where
    F: Fn() -> Rc<OwnedRequest>,
    R: PipelineIo,
{
    let secure = incoming.secure.map(|secure| &**secure);
    let response = preflight::check(worker, config, secure, site, incoming.request)?;
    let route = site.map(|number| {
        let routes = config.snapshot.sites[number as usize].routes(incoming.is_secure());
        route::resolve_or_root(routes, incoming.request.path)
    });
    let admitted = Entered::default();
    Some(respond_without_handler(
        worker, config, incoming, site, route, admitted, response, io,
    ))
}

/// Runs the rest of phase 1 and phases 2 to 7 for a request that was not served from the worker cache.
#[inline(never)]
fn route_and_handle<F, R>(
    worker: &Rc<Worker>,
    config: &Rc<WorkerConfig>,
    incoming: &IncomingRequest<'_, F>,
    site: Option<u32>,
    mut decisions: Decisions,
    io: &mut R,
) -> StartedExchange
where
    F: Fn() -> Rc<OwnedRequest>,
    R: PipelineIo,
{
    // The request is copied at most once, although several phases can need the copy.
    let copy = OnceCell::new();
    let request = incoming.request;
    let incoming = &incoming.with(request, || Rc::clone(copy.get_or_init(&incoming.owned)));
    let Some(number) = site else {
        // The request is in clear text: under TLS, the preflight has rejected an unknown site with 421.
        let response = unknown_site::respond(&config.snapshot, &worker.address, request.authority);
        let admitted = Entered::default();
        return respond_without_handler(worker, config, incoming, None, None, admitted, response, io);
    };
    let site = &config.snapshot.sites[number as usize];
    let routes = site.routes(incoming.is_secure());
    if let Some(response) = preflight::target(request) {
        return respond_without_handler(
            worker,
            config,
            incoming,
            Some(number),
            Some(&routes.root),
            Entered::default(),
            response,
            io,
        );
    }
    let resolved = match route::resolve(routes, request.path) {
        Ok(resolved) => resolved,
        Err(error) => {
            let status = Status::new(error.status()).unwrap_or(Status::BAD_REQUEST);
            let root = Some(&routes.root);
            let started = respond_without_handler(
                worker,
                config,
                incoming,
                Some(number),
                root,
                Entered::default(),
                fixed::error(status),
                io,
            );
            route::log_bad_path(&started.context, &incoming.peer, request.path, status, &error);
            return started;
        }
    };
    if let Some(not_admitted) = decisions.check(worker, incoming, routes, &resolved, request.path) {
        return reject_or_defer(worker, config, incoming, number, &resolved, not_admitted, decisions, io);
    }
    if site.rules.is_none() {
        return handle(worker, config, incoming, number, routes, resolved, decisions, io);
    }
    if !decisions.has_identity() {
        return apply_rules(worker, config, incoming, number, resolved, decisions, io);
    }
    // A guard has changed the request: it has set header fields such as `Remote-User` in place of the client's, or
    // removed the signature of the URL. Rules match the changed request.
    let identified = decisions.identified((incoming.owned)());
    let view = identified.view();
    let owned: &dyn Fn() -> Rc<OwnedRequest> = &|| Rc::clone(&identified);
    let incoming = &incoming.with(&view, owned);
    apply_rules(worker, config, incoming, number, resolved, decisions, io)
}

/// Runs the phases from the rules on, for an admitted request. `number`: number of its site. `resolved`: route of its
/// path.
fn apply_rules<F, R>(
    worker: &Rc<Worker>,
    config: &Rc<WorkerConfig>,
    incoming: &IncomingRequest<'_, F>,
    number: u32,
    resolved: route::Resolved<'_>,
    mut decisions: Decisions,
    io: &mut R,
) -> StartedExchange
where
    F: Fn() -> Rc<OwnedRequest>,
    R: PipelineIo,
{
    let (request, site) = (incoming.request, &config.snapshot.sites[number as usize]);
    let routes = site.routes(incoming.is_secure());
    let Some(rules) = &site.rules else {
        return handle(worker, config, incoming, number, routes, resolved, decisions, io);
    };
    // The flag separates paths that the worker cache looks up after the rules from paths that it looks up before them.
    let key = number | AFTER_RULES;
    let facts = Facts::of(config, routes, incoming, &decisions.paths);
    let user = decisions.user.clone();
    let values = incoming.values(worker, config, &site.name, user.as_deref());
    let response = match rules.apply(request, &facts, &values) {
        RuleOutcome::Untouched => {
            return handle(worker, config, incoming, key, routes, resolved, decisions, io);
        }
        RuleOutcome::Rewritten(target) => {
            let rewritten = request.with_lookup_target(&target);
            let original = incoming;
            let incoming = incoming.with(&rewritten, || Rc::new((incoming.owned)().with_lookup_target(&target)));
            return match route::resolve(routes, rewritten.path) {
                Ok(resolved) => match decisions.check(worker, &incoming, routes, &resolved, rewritten.path) {
                    // If the decision of a guard is pending, the request later starts again with its original target.
                    Some(not_admitted) => {
                        reject_or_defer(worker, config, original, number, &resolved, not_admitted, decisions, io)
                    }
                    None => handle(worker, config, &incoming, key, routes, resolved, decisions, io),
                },
                Err(error) => {
                    let status = Status::new(error.status()).unwrap_or(Status::BAD_REQUEST);
                    let route = Some(resolved.endpoint);
                    let (admitted, response) = (decisions.into_entered(), fixed::error(status));
                    respond_without_handler(worker, config, &incoming, Some(number), route, admitted, response, io)
                }
            };
        }
        RuleOutcome::NeedsLookup(path) => {
            let tree = facts::tree(routes, &path).cloned();
            let (own_worker, mut decisions) = (Rc::clone(worker), decisions);
            let generation = config.snapshot.generation;
            let lookup = async move {
                let lookup = facts::look_up(&own_worker, tree, path);
                decisions.look_up(generation, lookup).await;
                decisions
            };
            return defer(worker, config, incoming, number, &resolved, lookup, io);
        }
        RuleOutcome::Redirect { status, location } => immediate::redirect(status, &location),
        // A success status would mean to the client that the requested tunnel is open.
        RuleOutcome::Respond { status: 200..=299, .. } if request.method == Method::Connect => {
            fixed::error(Status::NOT_IMPLEMENTED)
        }
        RuleOutcome::Respond { status, body } => {
            rules::response(status, body.as_ref(), &values, &resolved.endpoint.route)
        }
        RuleOutcome::NoHost => fixed::error(Status::BAD_REQUEST),
    };
    let route = Some(resolved.endpoint);
    respond_without_handler(
        worker,
        config,
        incoming,
        Some(number),
        route,
        decisions.into_entered(),
        response,
        io,
    )
}

/// Rejects a request, or waits for the decision of a guard.
#[inline(never)]
fn reject_or_defer<F, R>(
    worker: &Rc<Worker>,
    config: &Rc<WorkerConfig>,
    incoming: &IncomingRequest<'_, F>,
    site: u32,
    resolved: &route::Resolved<'_>,
    not_admitted: NotAdmitted,
    mut decisions: Decisions,
    io: &mut R,
) -> StartedExchange
where
    F: Fn() -> Rc<OwnedRequest>,
    R: PipelineIo,
{
    let endpoint = resolved.endpoint;
    let undecided = match not_admitted {
        NotAdmitted::Refused(response) => {
            let (endpoint, admitted) = (Some(endpoint), Entered::default());
            return respond_without_handler(worker, config, incoming, Some(site), endpoint, admitted, response, io);
        }
        NotAdmitted::Undecided(undecided) => undecided,
    };
    let completed = async move {
        decisions.complete(undecided).await;
        decisions
    };
    defer(worker, config, incoming, site, resolved, completed, io)
}

/// Starts the phases again once `decisions` is ready. Until then, the request is kept with its original target.
#[inline(never)]
fn defer<F, R>(
    worker: &Rc<Worker>,
    config: &Rc<WorkerConfig>,
    incoming: &IncomingRequest<'_, F>,
    site: u32,
    resolved: &route::Resolved<'_>,
    decisions: impl Future<Output = Decisions> + 'static,
    io: &mut R,
) -> StartedExchange
where
    F: Fn() -> Rc<OwnedRequest>,
    R: PipelineIo,
{
    let endpoint = resolved.endpoint;
    let applied = Some(endpoint.into());
    let context = RequestContext::new(worker, config, incoming, Some(site), applied);
    let mut body = RequestBody::empty();
    if incoming.has_body {
        let limit = body_limit(
            config,
            Some(site),
            incoming.request,
            incoming.peer,
            incoming.is_secure(),
        );
        if let Err(refusal) = io.limit_body(limit) {
            return refuse(worker, Rc::new(context), incoming.peer, incoming.request.path, refusal);
        }
        body = io.open_body();
    }
    let handler = endpoint.handler(&resolved.path);
    let timeout = HandlerTimeout::of(&**handler, &worker.wheel, &endpoint.route);
    deferred::wait(worker, context, incoming, body, timeout, decisions, restart)
}

/// Runs the phases again once a guard or a lookup has decided. The configuration may have changed meanwhile; lookups
/// under the old one are dropped.
fn restart(
    worker: &Rc<Worker>,
    incoming: &OwnedIncoming<'_>,
    mut decisions: Decisions,
    io: &mut OpenedBody,
) -> StartedExchange {
    let config = worker.config();
    decisions.keep_paths_of(config.snapshot.generation);
    let site = config.site(incoming.local, incoming.request.authority);
    if config.needs_preflight
        && let Some(started) = preflight(worker, &config, incoming, site, io)
    {
        return started;
    }
    route_and_handle(worker, &config, incoming, site, decisions, io)
}

/// Responds without a handler. The request body is not read, but its announced length is checked. `admitted`: results
/// of the guards that have admitted the request; empty before access control, or if a guard has refused it.
#[inline(never)]
fn respond_without_handler<F, R>(
    worker: &Rc<Worker>,
    config: &Rc<WorkerConfig>,
    incoming: &IncomingRequest<'_, F>,
    site: Option<u32>,
    route: Option<&Arc<Endpoint>>,
    admitted: Entered,
    response: Response,
    io: &mut R,
) -> StartedExchange
where
    F: Fn() -> Rc<OwnedRequest>,
    R: PipelineIo,
{
    let context = RequestContext::new(worker, config, incoming, site, route.map(Into::into));
    context.set_user(admitted.user);
    context.identities.replace(admitted.identities);
    if incoming.has_body {
        let limit = body_limit(config, site, incoming.request, incoming.peer, incoming.is_secure());
        if let Err(refusal) = io.limit_body(limit) {
            return refuse(worker, Rc::new(context), incoming.peer, incoming.request.path, refusal);
        }
    }
    respond(worker, Rc::new(context), Some(incoming.request), response)
}

/// Returns the context of a request whose handling panicked before it had a context.
#[cold]
pub fn context_for_panic<F: Fn() -> Rc<OwnedRequest>>(
    worker: &Worker,
    config: &Rc<WorkerConfig>,
    incoming: &IncomingRequest<'_, F>,
) -> Rc<RequestContext> {
    let site = config.site(incoming.local, incoming.request.authority);
    let route = site.map(|number| {
        let routes = config.snapshot.sites[number as usize].routes(incoming.is_secure());
        route::resolve_or_root(routes, incoming.request.path)
    });
    Rc::new(RequestContext::new(
        worker,
        config,
        incoming,
        site,
        route.map(Into::into),
    ))
}
