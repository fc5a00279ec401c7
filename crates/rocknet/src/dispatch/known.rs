//! Answers from what the cache holds, or what this worker remembers of it.

use std::rc::Rc;

use rocknet_proto::request::{OwnedRequest, Request};
use rocknet_proto::status::Status;

use super::{Asker, Dispatched, Reply, controllers, encoding, files, respond};
use crate::cache;
use crate::cache::entry::{Found, REFRESH_AFTER_MS, STALE_AFTER_MS};
use crate::cache::front::{Known, Lead};
use crate::handler::files::answer::{self, Choice};
use crate::handler::fixed;
use crate::preload;
use crate::prepared::Prepared;
use crate::worker::Worker;

/// Answers from the front. `site` is the number of the site, with [`crate::cache::front::BEHIND_RULES`] where it has rules and the request has
/// met them.
#[inline]
pub(super) fn remembered(
    worker: &Rc<Worker>,
    site: u32,
    request: &Request<'_>,
    asker: Asker<'_>,
    owned: impl FnOnce() -> Rc<OwnedRequest>,
    reply: &mut impl Reply,
) -> Option<Dispatched> {
    let mut front = worker.front.borrow_mut();
    let known = match front.find(site, request.path)? {
        Lead::Entry(known) => known,
        Lead::Place(place) => {
            let place = Rc::clone(place);
            drop(front);
            return controllers::ready(worker, &place, request, asker);
        }
    };
    let now = worker.clock.uptime_ms();
    let age = known.entry.age_ms(now);
    if known.entry.is_gone() || age >= STALE_AFTER_MS && !cache::still_holds(&known.entry, &known.scope, &known.path) {
        front.forget(site, request.path);
        return None;
    }
    if (REFRESH_AFTER_MS..STALE_AFTER_MS).contains(&age) {
        refresh(worker, known);
    }
    known.entry.touch(now);
    worker.counters.cache_hits.add(1);
    if let Found::Asset(asset) = &known.entry.found
        && let Choice::Send(head, variant) = answer::choose(asset, request)
    {
        lead(known, request, head, reply);
        reply.send(head, variant.map(|variant| (&**known, variant)));
        return Some(Dispatched::Sent(head.status));
    }
    if let Found::Script(_) = known.entry.found {
        // Its answer is made anew, out of more than is known here.
        return None;
    }
    let known = Rc::clone(known);
    drop(front);
    Some(from_known(worker, &known, request, owned, reply))
}

#[inline]
fn lead(known: &Known, request: &Request<'_>, head: &Prepared, reply: &mut impl Reply) {
    if let Some(preloads) = &known.preloads
        && preload::is_page(head.status)
        && preload::is_first_look(request)
    {
        reply.lead(request, preloads);
    }
}

/// Takes a new look: a quick one here, which waits for nothing, and another behind it where that does not say that all is as
/// it was.
#[cold]
pub(super) fn refresh(worker: &Worker, known: &Known) {
    let is_mine = !known.entry.checking.swap(true, std::sync::atomic::Ordering::AcqRel);
    if is_mine && !cache::still_holds(&known.entry, &known.scope, &known.path) {
        worker.shared.cache.refresh(&known.scope, &known.path);
    }
}

/// Answers from an entry of the cache.
pub fn from_known(
    worker: &Rc<Worker>,
    known: &Rc<Known>,
    request: &Request<'_>,
    owned: impl FnOnce() -> Rc<OwnedRequest>,
    reply: &mut impl Reply,
) -> Dispatched {
    let response = match &known.entry.found {
        Found::Asset(asset) => match answer::choose(asset, request) {
            Choice::Send(head, variant) => {
                lead(known, request, head, reply);
                reply.send(head, variant.map(|variant| (&**known, variant)));
                return Dispatched::Sent(head.status);
            }
            Choice::Respond(response) => *response,
            Choice::Encode(coding) => {
                return encoding::encode_form(worker, known, asset, coding, owned).unwrap_or_else(|| {
                    reply.send(&asset.plain.full, Some((&**known, &asset.plain)));
                    Dispatched::Sent(asset.plain.full.status)
                });
            }
        },
        Found::WithoutSlash => files::with_slash(request),
        Found::Failed(status) => fixed::error(*status),
        // It has just been found where a file was, and this request was not made ready for it.
        Found::Script(_) => fixed::error(Status::SERVICE_UNAVAILABLE),
        Found::Directory { relative } => return files::list(worker, known, relative, request),
    };
    respond(worker, Some(&known.scope), response)
}
