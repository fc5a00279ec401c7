//! From a request to what answers it: host → site, path → scope, then the cache or a handler.

mod arrival;
mod controllers;
mod encoding;
mod files;
mod gateways;
mod known;
mod proxied;
mod rules;
mod scripts;

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use rocknet_proto::method::Method;
use rocknet_proto::request::{OwnedRequest, Request, TargetForm, split_target};
use rocknet_proto::semantics::safe_path::{PathError, SafePath};
use rocknet_proto::status::Status;
use tracing::Level;

use crate::cache::entry::Variant;
use crate::cache::front::{BEHIND_RULES, Known};
use crate::exchange::Client;
use crate::filter;
use crate::handler::{fixed, proxy};
use crate::interim::Making;
use crate::log::throttle::Cause;
use crate::preload::Preloads;
use crate::prepared::Prepared;
use crate::response::Response;
use crate::routing::{Asked, Ruled};
use crate::scope::{Action, Scope};
use crate::site::Places;
use crate::tunnel;
use crate::worker::{View, Worker};

pub use self::arrival::{Arrival, Asker};
pub use self::known::from_known;

/// How a protocol sends what was prepared beforehand.
pub trait Reply {
    /// A whole answer; `None`: its head is all of it.
    fn send(&mut self, head: &Prepared, content: Option<(&Known, &Variant)>);

    /// The answer that is sent next is a page that needs these: they are sent along with it, or told of ahead, where the
    /// protocol has a way to.
    fn lead(&mut self, _request: &Request<'_>, _preloads: &Preloads) {}
}

/// What became of a request.
pub enum Dispatched {
    /// It is answered.
    Sent(Status),
    /// Answered without waiting, but not prepared.
    Respond(Box<Response>),
    /// Something has to be waited for.
    Later(Later),
}

/// An answer that takes its time.
pub struct Later {
    pub answer: Making,
    /// What the page needs that it most likely is: known already, and clients can be told.
    pub preloads: Option<Arc<Preloads>>,
    /// Ticks that it may take; `None`: as long as all others.
    pub patience: Option<u32>,
}

/// What the waiting was for.
pub enum Outcome {
    Response(Box<Response>),
    /// The cache knows the answer now.
    Known(Rc<Known>, Rc<OwnedRequest>),
}

/// Answers from what this worker remembers of the path. `None`: it does not know, or not well enough.
#[inline]
pub fn ready(
    worker: &Rc<Worker>,
    site: u32,
    request: &Request<'_>,
    asker: Asker<'_>,
    owned: impl FnOnce() -> Rc<OwnedRequest> + Copy,
    reply: &mut impl Reply,
) -> Option<Dispatched> {
    if !matches!(request.method, Method::Get | Method::Head) {
        return None;
    }
    known::remembered(worker, site, request, asker, owned, reply)
        .or_else(|| rules::ready(worker, site, request, asker, owned, reply))
}

/// Stands for every path that no file can have: a colon is in no name that is looked up.
const NAMELESS: &str = "/:";

/// Finds out what answers, when the cache does not know.
pub fn slow<F: FnOnce() -> Rc<OwnedRequest>>(
    worker: &Rc<Worker>,
    site: Option<u32>,
    arrival: Arrival<'_, F>,
) -> Dispatched {
    let view = worker.view();
    let Some(number) = site else {
        // Under TLS the guard has answered such a request by 421 already.
        let authority = arrival.request.authority;
        let response = fixed::unknown_site(&view.snapshot, &worker.address, authority);
        return respond(worker, None, response);
    };
    let (request, is_secure) = (arrival.request, arrival.secure.is_some());
    let places = view.snapshot.sites[number as usize].places(is_secure);
    match (request.form, request.method) {
        (TargetForm::Asterisk, _) => return respond(worker, Some(&places.scope), fixed::options()),
        (TargetForm::Authority, _) => {
            return respond(worker, Some(&places.scope), fixed::method_not_allowed());
        }
        (_, Method::Trace) => return respond(worker, Some(&places.scope), fixed::method_not_allowed()),
        _ => {}
    }
    let Some(rules) = &view.snapshot.sites[number as usize].rules else {
        return find(worker, number, places, arrival);
    };
    let behind = number | BEHIND_RULES;
    match rules.lead(request, is_secure) {
        Ruled::Untouched => find(worker, behind, places, arrival),
        Ruled::Rewritten(target) => {
            let Arrival {
                owned,
                content,
                peer,
                secure,
                ..
            } = arrival;
            let arrival = Arrival {
                request: &request.looked_up_as(&target),
                owned: || Rc::new(owned().looked_up_as(&target)),
                content,
                peer,
                secure,
            };
            find(worker, behind, places, arrival)
        }
        Ruled::Redirect { status, location } => respond(worker, Some(&places.scope), redirect(status, &location)),
        // Success would tell a client that the tunnel it has asked for stands.
        Ruled::Respond { status: 200..=299, .. } if request.method == Method::Connect => {
            respond(worker, Some(&places.scope), fixed::error(Status::NOT_IMPLEMENTED))
        }
        Ruled::Respond { status, body } => rules::answer(worker, &places.scope, status, body),
    }
}

/// How much content a request may have. One for no site is told so, and not that its content is too large.
pub fn content_limit(view: &View, site: Option<u32>, request: &Request<'_>, is_secure: bool) -> u64 {
    let Some(number) = site else {
        return view.snapshot.config.limits.body_size;
    };
    let site = &view.snapshot.sites[number as usize];
    let places = site.places(is_secure);
    let at = |raw: &[u8]| match SafePath::parse(raw) {
        Ok(path) => places.scope(path.as_str()).body_size,
        Err(_) => match SafePath::for_rules(raw) {
            Ok(path) => places.scope(&path).body_size,
            Err(_) => places.scope.body_size,
        },
    };
    match site.rules.as_ref().map(|rules| rules.lead(request, is_secure)) {
        Some(Ruled::Rewritten(target)) => at(split_target(&target).0),
        _ => at(request.path),
    }
}

/// Finds out what answers at a path. `number`: as in [`known::remembered`].
fn find<F: FnOnce() -> Rc<OwnedRequest>>(
    worker: &Rc<Worker>,
    number: u32,
    places: &Places,
    arrival: Arrival<'_, F>,
) -> Dispatched {
    let view = worker.view();
    let request = arrival.request;
    let (path, is_file_path) = match SafePath::parse(request.path) {
        Ok(path) => (path.into_str(), true),
        // No file can have that name, but there may be a rule for it, a fallback, or a page for what is missing.
        Err(PathError::Unmatchable) => (
            SafePath::for_rules(request.path).map_or(Cow::Borrowed(NAMELESS), Cow::Owned),
            false,
        ),
        Err(error) => {
            let status = Status::new(error.status()).unwrap_or(Status::BAD_REQUEST);
            log_bad_path(&view, number, &arrival.peer, request.path, status, &error);
            return respond(worker, Some(&places.scope), fixed::error(status));
        }
    };
    let scope = places.scope(&path);
    if scope.internal {
        return respond(worker, Some(scope), fixed::error(Status::NOT_FOUND));
    }
    let mut location = Vec::new();
    let asked = Asked {
        path: &path,
        raw_path: request.path,
        query: request.query,
    };
    if let Some(status) = scope.redirects.find(&asked, &mut location) {
        return respond(worker, Some(scope), redirect(status, &location));
    }
    if request.method == Method::Connect && !scope.takes_tunnels() {
        // Another protocol is asked for, and nothing here speaks any (RFC 9220 §3).
        return respond(worker, Some(scope), fixed::error(Status::NOT_IMPLEMENTED));
    }
    let site = number & !BEHIND_RULES;
    match &scope.action {
        Action::Files(tree) if tree.is_program(&path) => {
            Dispatched::Later(arrival.later(worker, scope, path, |exchange| {
                gateways::answer(Rc::clone(worker), site, exchange)
            }))
        }
        Action::Files(tree) if tree.php.is_some() => {
            let path = match is_file_path {
                false if SafePath::from_decoded(&path).is_ok() => NAMELESS.into(),
                _ => path,
            };
            Dispatched::Later(arrival.later(worker, scope, path, |exchange| {
                scripts::answer(Rc::clone(worker), number, exchange)
            }))
        }
        Action::Files(_) => match request.method {
            Method::Get | Method::Head => {
                let path = if is_file_path { path.into() } else { NAMELESS.into() };
                let (worker, scope, request) = (Rc::clone(worker), Arc::clone(scope), (arrival.owned)());
                let generation = view.snapshot.generation;
                later(files::look_up(worker, number, generation, scope, path, request))
            }
            Method::Options => respond(worker, Some(scope), fixed::options()),
            _ => respond(worker, Some(scope), fixed::method_not_allowed()),
        },
        Action::Proxy(_) if !is_file_path && proxy::hides_dots(&path) => {
            respond(worker, Some(scope), fixed::error(Status::BAD_REQUEST))
        }
        Action::Proxy(proxy) => Dispatched::Later(Later {
            patience: Some(proxy.patience(&worker.wheel)),
            ..arrival.later(worker, scope, path, |exchange| {
                proxied::answer(Rc::clone(worker), site, exchange)
            })
        }),
        Action::Application(application) => Dispatched::Later(Later {
            patience: Some(application.patience(&worker.wheel, scope.answer_timeout)),
            ..arrival.later(worker, scope, path, |exchange| {
                gateways::answer(Rc::clone(worker), site, exchange)
            })
        }),
        Action::Controller(controller) => {
            let is_named = places.names(&path);
            controllers::answer(worker, number, scope, controller, path, is_named, arrival)
        }
        Action::Welcome => respond(
            worker,
            Some(scope),
            fixed::welcome(&view.snapshot, &worker.address, &path, request.method),
        ),
        Action::Nothing => respond(worker, Some(scope), fixed::error(Status::NOT_FOUND)),
        Action::Custom(handler) => Dispatched::Later(arrival.later(worker, scope, path, |exchange| {
            let (cache, scope) = (worker.shared.cache.clone(), Arc::clone(scope));
            let asked = Rc::clone(&exchange.request);
            let answering = handler.answer(exchange);
            async move {
                let mut response = answering.await;
                tunnel::settle(&asked.view(), &mut response);
                filter::finish(&cache, &scope, &mut response).await;
                Outcome::Response(Box::new(response))
            }
        })),
    }
}

/// Logs a path that no request may have, once a second and site.
#[cold]
fn log_bad_path(view: &View, number: u32, client: &Client, path: &[u8], status: Status, error: &PathError) {
    let site = view.snapshot.sites.get((number & !BEHIND_RULES) as usize);
    let site = site.map_or("", |site| site.name.as_str());
    let cause = Cause {
        level: Level::INFO,
        what: status.reason(),
        site,
        subject: "path",
    };
    if cause.may_be_logged() {
        let path = String::from_utf8_lossy(path);
        tracing::info!(site, %path, %client, "{} {}: {error}", status.code(), status.reason());
    }
}

fn redirect(status: u16, location: &[u8]) -> Response {
    let status = Status::new(status).unwrap_or(Status::PERMANENT_REDIRECT);
    fixed::redirect(status, String::from_utf8_lossy(location).into_owned())
}

fn later(answer: impl Future<Output = Outcome> + 'static) -> Dispatched {
    Dispatched::Later(Later {
        answer: Making::new(answer),
        preloads: None,
        patience: None,
    })
}

/// A response made on the spot, with the filters of its scope applied.
fn respond(worker: &Rc<Worker>, scope: Option<&Arc<Scope>>, mut response: Response) -> Dispatched {
    if let Some(scope) = scope.filter(|scope| filter::errors::has_page(scope, &response)) {
        let (cache, scope) = (worker.shared.cache.clone(), Arc::clone(scope));
        return later(async move {
            filter::errors::page(&cache, &scope, &mut response).await;
            filter::headers::apply(&scope, response.status, &mut response.fields);
            Outcome::Response(Box::new(response))
        });
    }
    match scope {
        Some(scope) => filter::headers::apply(scope, response.status, &mut response.fields),
        None => filter::headers::apply_server(&mut response.fields),
    }
    Dispatched::Respond(Box::new(response))
}
