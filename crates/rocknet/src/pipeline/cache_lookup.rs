//! Responds from the worker cache: sends a cached file, or calls a cached endpoint that responds immediately. A ready
//! response (`ready.rs`), which is sent again as it was sent before, is tried first.

use std::rc::Rc;

use rocknet_proto::method::Method;
use rocknet_proto::request::{OwnedRequest, Request};
use rocknet_proto::status::Status;

use super::facts::Facts;
use super::finish::{finish, respond};
use super::ready::Origin;
use super::{
    IncomingRequest, Outcome, PipelineIo, RequestContext, ResponseState, StartedExchange, admission, encoded_variant,
    files, immediate, not_found_log, ready, stored_script,
};
use crate::files::cache;
use crate::files::cache::l1::{AFTER_RULES, CachedEntry, Hit};
use crate::files::entry::{Content, Found, REFRESH_AFTER_MS, STALE_AFTER_MS};
use crate::files::representation::{self, Choice};
use crate::fixed;
use crate::preload;
use crate::routing::RuleOutcome;
use crate::worker::{Worker, WorkerConfig};
use rocknet_proto::PreparedHeads;

/// Responds to GET and HEAD with a ready response, or from the worker cache. Returns `None` if the slow path has to
/// respond. `site`: number of the requested site. The slow path has to respond in these cases:
/// - the method is another one;
/// - there is no ready response, and the cache has no usable entry, or the entry is a script without a stored response;
/// - a guard or the handler of the entry cannot decide at once.
#[inline]
pub(super) fn lookup<F, R>(
    worker: &Rc<Worker>,
    config: &Rc<WorkerConfig>,
    site: u32,
    incoming: &IncomingRequest<'_, F>,
    io: &mut R,
) -> Option<Outcome>
where
    F: Fn() -> Rc<OwnedRequest>,
    R: PipelineIo,
{
    if !matches!(incoming.request.method, Method::Get | Method::Head) {
        return None;
    }
    ready::respond(worker, site, incoming, io)
        .or_else(|| respond_cached(worker, config, site, incoming, io))
        .or_else(|| lookup_after_rules(worker, config, site, incoming, io))
}

/// Applies the rules of the site to a request without a usable entry, and looks up the result.
#[inline(never)]
fn lookup_after_rules<F, R>(
    worker: &Rc<Worker>,
    config: &Rc<WorkerConfig>,
    site: u32,
    incoming: &IncomingRequest<'_, F>,
    io: &mut R,
) -> Option<Outcome>
where
    F: Fn() -> Rc<OwnedRequest>,
    R: PipelineIo,
{
    let served = &config.snapshot.sites[site as usize];
    let rules = served.rules.as_ref()?;
    let key = site | AFTER_RULES;
    let facts = Facts::of(config, served.routes(incoming.is_secure()), incoming, &[]);
    let values = incoming.values(worker, config, &served.name, None);
    match rules.apply(incoming.request, &facts, &values) {
        RuleOutcome::Untouched => {
            ready::respond(worker, key, incoming, io).or_else(|| respond_cached(worker, config, key, incoming, io))
        }
        RuleOutcome::Rewritten(target) if !served.has_guards => {
            let rewritten = incoming.request.with_lookup_target(&target);
            let owned = || Rc::new((incoming.owned)().with_lookup_target(&target));
            respond_cached(worker, config, key, &incoming.with(&rewritten, owned), io)
        }
        // The slow path handles these outcomes. It also handles rewritten paths of a site with guards, because two
        // routes have to be checked, and it can wait for the disk.
        RuleOutcome::Rewritten(_)
        | RuleOutcome::Redirect { .. }
        | RuleOutcome::Respond { .. }
        | RuleOutcome::NeedsLookup(_)
        | RuleOutcome::NoHost => None,
    }
}

/// Responds from the worker cache, or returns `None` like [`lookup`]. `key`: number of the site, with [`AFTER_RULES`]
/// if the rules of the site were applied to the request.
#[inline]
fn respond_cached<F, R>(
    worker: &Rc<Worker>,
    config: &Rc<WorkerConfig>,
    key: u32,
    incoming: &IncomingRequest<'_, F>,
    io: &mut R,
) -> Option<Outcome>
where
    F: Fn() -> Rc<OwnedRequest>,
    R: PipelineIo,
{
    let request = incoming.request;
    let site = key & !AFTER_RULES;
    let mut l1 = worker.files.l1();
    let hit = l1.get(key, request.path)?;
    // An open hit belongs to a route without guards.
    let is_open = hit.is_open();
    // `ends_at_once`: true if one write usually sends the whole response. The exchange then ends before the worker
    // continues, so limits on concurrent requests need not count it.
    let admit = |hit: &Hit, ends_at_once: bool| {
        let routes = config.snapshot.sites[site as usize].routes(incoming.is_secure());
        admission::admit_cached(worker, incoming, routes, hit, ends_at_once)
    };
    let cached = match hit {
        Hit::Entry(cached) => cached,
        Hit::Endpoint(cached_endpoint) => {
            // `ends_at_once` is false, because the response does not exist yet.
            let user = if is_open { None } else { admit(hit, false)? };
            let cached_endpoint = Rc::clone(cached_endpoint);
            drop(l1);
            let response = immediate::from_cached_endpoint(worker, &cached_endpoint, incoming, user.as_deref())?;
            let applied = Some((&*cached_endpoint).into());
            let context = RequestContext::new(worker, config, incoming, Some(site), applied);
            context.set_user(user);
            let started = respond(worker, Rc::new(context), Some(incoming.request), response);
            let routes = config.snapshot.sites[site as usize].routes(incoming.is_secure());
            // A response of the response cache that is requested often becomes a ready response.
            ready::keep(worker, key, incoming, &started, || {
                Origin::of_path(cached_endpoint, routes, incoming.request.path)
            });
            return Some(Outcome::Started(started));
        }
    };
    let now = worker.clock.uptime_ms();
    let age = cached.entry.age_ms(now);
    if cached.entry.is_retired()
        || age >= STALE_AFTER_MS && !cache::is_unchanged(&cached.entry, &cached.tree, &cached.path)
    {
        l1.remove(key, request.path);
        return None;
    }
    if (REFRESH_AFTER_MS..STALE_AFTER_MS).contains(&age) {
        worker.files.revalidate(cached);
    }
    cached.entry.touch(now);
    if let Found::Script(_) = cached.entry.found {
        let cached = Rc::clone(cached);
        drop(l1);
        return stored_script::respond(worker, config, key, incoming, &cached);
    }
    // A request whose values are put into the header fields needs a context.
    let prepared = match &cached.entry.found {
        Found::Asset(asset) if !cached.tree.route.has_placeholders => match representation::choose(asset, request) {
            Choice::Send(head, variant) => Some((head, variant, asset.status)),
            Choice::Respond(_) | Choice::Encode(_) => None,
        },
        _ => None,
    };
    // Guards such as limits count a request when they admit it. From here on, the request no longer goes to the slow
    // path, which would count it a second time.
    let user = match is_open {
        true => None,
        false => {
            let ends_at_once =
                prepared.is_some_and(|(head, variant, _)| match variant.map(|variant| &variant.content) {
                    None => io.ends_at_once(0),
                    Some(Content::Memory(_)) => io.ends_at_once(head.length),
                    // The content of an open file is sent by further calls.
                    Some(Content::File(_)) => false,
                });
            admit(hit, ends_at_once)?
        }
    };
    worker.counters.cache_hits.add(1);
    // A request with a user needs a context, from which the access log reads the name of the user.
    if user.is_none()
        && let Some((head, variant, asset_status)) = prepared
    {
        not_found_log::log_file(cached, asset_status);
        announce_preloads(cached, request, head, io);
        io.send(head, variant.map(|variant| (&**cached, variant)));
        let status = head.status;
        let route = cached.tree.route.number;
        return Some(Outcome::Sent {
            status,
            site,
            route,
            cache_status: "",
        });
    }
    let cached = Rc::clone(cached);
    drop(l1);
    let mut context = RequestContext::new(worker, config, incoming, Some(site), Some((&*cached).into()));
    context.request.get_or_insert_with(&incoming.owned);
    context.client = Some(incoming.client(worker));
    context.set_user(user);
    Some(Outcome::Started(respond_from_entry(
        worker,
        Rc::new(context),
        &cached,
        request,
        io,
    )))
}

/// Announces the files that a page needs, if this is the first visit of the client.
#[inline]
fn announce_preloads(cached: &CachedEntry, request: &Request<'_>, head: &PreparedHeads, io: &mut impl PipelineIo) {
    if let Some(preloads) = &cached.preloads
        && preload::is_page(head.status)
        && preload::is_first_visit(request)
    {
        io.announce_preloads(request, preloads);
    }
}

/// Responds from a cache entry. The context must contain the request.
pub fn respond_from_entry(
    worker: &Rc<Worker>,
    context: Rc<RequestContext>,
    cached: &Rc<CachedEntry>,
    request: &Request<'_>,
    io: &mut impl PipelineIo,
) -> StartedExchange {
    let state = match &cached.entry.found {
        Found::Asset(asset) => match representation::choose(asset, request) {
            Choice::Send(head, variant) if context.has_own_fields(&cached.tree) => {
                not_found_log::log_file(cached, asset.status);
                announce_preloads(cached, request, head, io);
                let response = match variant {
                    Some(variant) => representation::response_of(asset, variant),
                    None => representation::not_modified_response(asset, request),
                };
                finish(worker, &context, Some(request), response)
            }
            Choice::Send(head, variant) => {
                not_found_log::log_file(cached, asset.status);
                announce_preloads(cached, request, head, io);
                io.send(head, variant.map(|variant| (&**cached, variant)));
                ResponseState::Sent(head.status)
            }
            Choice::Respond(response) => finish(worker, &context, Some(request), *response),
            Choice::Encode(coding) => {
                let coded = encoded_variant::create(worker, &context, cached, asset, coding);
                // If the coded form is still being created, this function is called again once it is complete.
                if !matches!(coded, Some(ResponseState::Pending(_))) {
                    not_found_log::log_file(cached, asset.status);
                }
                coded.unwrap_or_else(|| {
                    if context.has_own_fields(&cached.tree) {
                        let response = representation::plain_response(asset);
                        return finish(worker, &context, Some(request), response);
                    }
                    io.send(&asset.plain.full, Some((&**cached, &asset.plain)));
                    ResponseState::Sent(asset.plain.full.status)
                })
            }
        },
        Found::WithoutSlash => finish(worker, &context, Some(request), files::redirect_with_slash(request)),
        Found::Failed(status) => finish(worker, &context, Some(request), fixed::error(*status)),
        // The script has just replaced a file, and this request was not prepared for running a script.
        Found::Script(_) => finish(
            worker,
            &context,
            Some(request),
            fixed::error(Status::SERVICE_UNAVAILABLE),
        ),
        Found::Directory { relative } => files::list_directory(worker, &context, cached, relative, request),
    };
    StartedExchange {
        context,
        state,
        close: false,
    }
}
