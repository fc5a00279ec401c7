//! Rules before all else: what they have to do with answers that are known, and the answers that they give.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use rocknet_proto::request::{OwnedRequest, Request};
use rocknet_proto::status::Status;

use super::known::remembered;
use super::{Asker, Dispatched, Reply, respond};
use crate::cache::front::BEHIND_RULES;
use crate::filter;
use crate::handler::fixed;
use crate::response::Response;
use crate::routing::Ruled;
use crate::scope::Scope;
use crate::worker::Worker;

/// As [`super::ready`], for a path that is not known as it stands: it may be where the rules lead.
#[inline(never)]
pub(super) fn ready(
    worker: &Rc<Worker>,
    site: u32,
    request: &Request<'_>,
    asker: Asker<'_>,
    owned: impl FnOnce() -> Rc<OwnedRequest> + Copy,
    reply: &mut impl Reply,
) -> Option<Dispatched> {
    let view = worker.view();
    let rules = view.snapshot.sites[site as usize].rules.as_ref()?;
    let behind = site | BEHIND_RULES;
    match rules.lead(request, view.is_secure) {
        Ruled::Untouched => remembered(worker, behind, request, asker, owned, reply),
        Ruled::Rewritten(target) => {
            let owned = || Rc::new(owned().looked_up_as(&target));
            remembered(worker, behind, &request.looked_up_as(&target), asker, owned, reply)
        }
        // Answered by whoever answers what is not known.
        Ruled::Redirect { .. } | Ruled::Respond { .. } => None,
    }
}

/// The answer of a rule.
pub(super) fn answer(worker: &Rc<Worker>, scope: &Arc<Scope>, status: u16, body: Option<Box<str>>) -> Dispatched {
    let status = Status::new(status).unwrap_or(Status::INTERNAL_SERVER_ERROR);
    match body {
        Some(text) => {
            let mut response = Response::new(status)
                .with("Content-Type", "text/plain; charset=utf-8")
                .with("X-Content-Type-Options", "nosniff")
                .body(Bytes::from(text.into_string()));
            filter::headers::apply(scope, response.status, &mut response.fields);
            Dispatched::Respond(Box::new(response))
        }
        None if status.is_error() => respond(worker, Some(scope), fixed::error(status)),
        None => respond(worker, Some(scope), Response::new(status)),
    }
}
