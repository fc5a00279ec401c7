//! Responses out of what the worker remembers of a path: cache entries, and routes that answer on the spot.

use std::rc::Rc;

use rocknet_proto::method::Method;
use rocknet_proto::request::{OwnedRequest, Request};
use rocknet_proto::status::Status;

use super::finish::{finish, respond};
use super::{Begun, Going, Incoming, Reply, RequestContext, Step, admission, coded_form, files, missing, on_the_spot};
use crate::files::answer::{self, Choice};
use crate::files::cache;
use crate::files::cache::front::{BEHIND_RULES, Known, Lead};
use crate::files::entry::{Found, REFRESH_AFTER_MS, STALE_AFTER_MS};
use crate::fixed;
use crate::preload;
use crate::routing::RuleOutcome;
use crate::worker::{Worker, WorkerConfig};
use rocknet_proto::PreparedHeads;

/// Answers from what this worker remembers of the path. `None`: that is nothing, or not enough.
#[inline]
pub(super) fn answer<F, R>(
    worker: &Rc<Worker>,
    view: &Rc<WorkerConfig>,
    site: u32,
    incoming: &Incoming<'_, F>,
    reply: &mut R,
) -> Option<Begun>
where
    F: Fn() -> Rc<OwnedRequest>,
    R: Reply,
{
    if !matches!(incoming.request.method, Method::Get | Method::Head) {
        return None;
    }
    remembered(worker, view, site, incoming, reply).or_else(|| behind_rules(worker, view, site, incoming, reply))
}

/// The same for a path that is not known as it stands: it may be where the rules lead.
#[inline(never)]
fn behind_rules<F, R>(
    worker: &Rc<Worker>,
    view: &Rc<WorkerConfig>,
    site: u32,
    incoming: &Incoming<'_, F>,
    reply: &mut R,
) -> Option<Begun>
where
    F: Fn() -> Rc<OwnedRequest>,
    R: Reply,
{
    let rules = view.snapshot.sites[site as usize].rules.as_ref()?;
    let behind = site | BEHIND_RULES;
    match rules.apply(incoming.request, incoming.is_secure()) {
        RuleOutcome::Untouched => remembered(worker, view, behind, incoming, reply),
        RuleOutcome::Rewritten(target) if view.snapshot.sites[site as usize].is_open() => {
            let rewritten = incoming.request.with_lookup_target(&target);
            let owned = || Rc::new((incoming.owned)().with_lookup_target(&target));
            remembered(worker, view, behind, &incoming.with(&rewritten, owned), reply)
        }
        // Handled by the slow path, like rewritten paths of a site with guards, where two routes are checked.
        RuleOutcome::Rewritten(_) | RuleOutcome::Redirect { .. } | RuleOutcome::Respond { .. } => None,
    }
}

/// Answers from the front. `key`: number of the site, with [`BEHIND_RULES`] where it has rules and the request has met them.
#[inline]
fn remembered<F, R>(
    worker: &Rc<Worker>,
    view: &Rc<WorkerConfig>,
    key: u32,
    incoming: &Incoming<'_, F>,
    reply: &mut R,
) -> Option<Begun>
where
    F: Fn() -> Rc<OwnedRequest>,
    R: Reply,
{
    let request = incoming.request;
    let site = key & !BEHIND_RULES;
    let mut front = worker.files.front();
    let remembered = front.find(key, request.path)?;
    let user = match remembered.is_open() {
        true => None,
        false => {
            let places = view.snapshot.sites[site as usize].routes(incoming.is_secure());
            admission::admit_cached(worker, incoming, places, remembered)?
        }
    };
    let known = match remembered {
        Lead::Entry(known) => known,
        Lead::Place(place) => {
            let place = Rc::clone(place);
            drop(front);
            let response = on_the_spot::ready(worker, &place, incoming, user.as_deref())?;
            let context = RequestContext::new(
                view,
                Some(site),
                Some((&*place).into()),
                incoming.way(),
                &incoming.owned,
            );
            context.set_user(user);
            return Some(Begun::Going(respond(
                worker,
                Rc::new(context),
                Some(incoming.request),
                response,
            )));
        }
    };
    let now = worker.clock.uptime_ms();
    let age = known.entry.age_ms(now);
    if known.entry.is_gone() || age >= STALE_AFTER_MS && !cache::still_holds(&known.entry, &known.tree, &known.path) {
        front.forget(key, request.path);
        return None;
    }
    if (REFRESH_AFTER_MS..STALE_AFTER_MS).contains(&age) {
        worker.files.refresh(known);
    }
    known.entry.touch(now);
    worker.counters.cache_hits.add(1);
    // The access log needs a context for the name of a user.
    if user.is_none()
        && let Found::Asset(asset) = &known.entry.found
        && let Choice::Send(head, variant) = answer::choose(asset, request)
    {
        missing::log_file(known, asset.status);
        lead(known, request, head, reply);
        reply.send(head, variant.map(|variant| (&**known, variant)));
        let status = head.status;
        return Some(Begun::Sent { status, site });
    }
    if let Found::Script(_) = known.entry.found {
        // Its answer is made anew, out of more than is known here.
        return None;
    }
    let known = Rc::clone(known);
    drop(front);
    let owned = (incoming.owned)();
    let mut context = RequestContext::new(view, Some(site), Some((&*known).into()), incoming.way(), || {
        Rc::clone(&owned)
    });
    context.request = Some(owned);
    context.set_user(user);
    Some(Begun::Going(from_known(
        worker,
        Rc::new(context),
        &known,
        request,
        reply,
    )))
}

#[inline]
fn lead(known: &Known, request: &Request<'_>, head: &PreparedHeads, reply: &mut impl Reply) {
    if let Some(preloads) = &known.preloads
        && preload::is_page(head.status)
        && preload::is_first_visit(request)
    {
        reply.lead(request, preloads);
    }
}

/// Answers from an entry of the cache. The context has the request.
pub fn from_known(
    worker: &Rc<Worker>,
    context: Rc<RequestContext>,
    known: &Rc<Known>,
    request: &Request<'_>,
    reply: &mut impl Reply,
) -> Going {
    let step = match &known.entry.found {
        Found::Asset(asset) => match answer::choose(asset, request) {
            Choice::Send(head, variant) => {
                missing::log_file(known, asset.status);
                lead(known, request, head, reply);
                reply.send(head, variant.map(|variant| (&**known, variant)));
                Step::Sent(head.status)
            }
            Choice::Respond(response) => finish(worker, &context, Some(request), *response),
            Choice::Encode(coding) => {
                let coded = coded_form::make(worker, &context, known, asset, coding);
                // A form that is waited for comes back here once it is made.
                if !matches!(coded, Some(Step::Wait(_))) {
                    missing::log_file(known, asset.status);
                }
                coded.unwrap_or_else(|| {
                    reply.send(&asset.plain.full, Some((&**known, &asset.plain)));
                    Step::Sent(asset.plain.full.status)
                })
            }
        },
        Found::WithoutSlash => finish(worker, &context, Some(request), files::with_slash(request)),
        Found::Failed(status) => finish(worker, &context, Some(request), fixed::error(*status)),
        // It has just been found where a file was, and this request was not made ready for it.
        Found::Script(_) => finish(
            worker,
            &context,
            Some(request),
            fixed::error(Status::SERVICE_UNAVAILABLE),
        ),
        Found::Directory { relative } => files::list(worker, &context, known, relative, request),
    };
    Going {
        context,
        step,
        close: false,
    }
}
