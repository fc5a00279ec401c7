//! From a request to what answers it: host → site, path → scope, then the cache or a handler.

mod controllers;
mod encoding;
mod programs;
mod proxied;
mod rules;
mod scripts;

use std::rc::Rc;
use std::sync::Arc;

use rocknet_proto::method::Method;
use rocknet_proto::request::{OwnedRequest, Request, TargetForm, split_target};
use rocknet_proto::semantics::safe_path::{PathError, SafePath};
use rocknet_proto::status::Status;

use crate::blocking::JobError;
use crate::cache::entry::{Found, REFRESH_AFTER_MS, STALE_AFTER_MS, Variant};
use crate::cache::front::{BEHIND_RULES, Known};
use crate::exchange::{Client, Exchange, RequestContent, Secure};
use crate::filter;
use crate::handler::files::answer::{self, Choice};
use crate::handler::files::listing;
use crate::handler::{Answering, fixed};
use crate::interim::{Interim, Making};
use crate::preload::{self, Preloads};
use crate::prepared::Prepared;
use crate::response::{Body, Response};
use crate::routing::{Asked, Ruled};
use crate::scope::{Action, Scope};
use crate::site::Places;
use crate::tunnel;
use crate::worker::{View, Worker};

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
    owned: impl FnOnce() -> Rc<OwnedRequest> + Copy,
    reply: &mut impl Reply,
) -> Option<Dispatched> {
    if !matches!(request.method, Method::Get | Method::Head) {
        return None;
    }
    remembered(worker, site, request, owned, reply).or_else(|| rules::ready(worker, site, request, owned, reply))
}

/// Answers from the front. `site` is the number of the site, with [`BEHIND_RULES`] where it has rules and the request has
/// met them.
#[inline]
fn remembered(
    worker: &Rc<Worker>,
    site: u32,
    request: &Request<'_>,
    owned: impl FnOnce() -> Rc<OwnedRequest>,
    reply: &mut impl Reply,
) -> Option<Dispatched> {
    let mut front = worker.front.borrow_mut();
    let known = front.find(site, request.path)?;
    let now = worker.clock.uptime_ms();
    let age = known.entry.age_ms(now);
    if known.entry.is_gone() || age >= STALE_AFTER_MS {
        front.forget(site, request.path);
        return None;
    }
    if age >= REFRESH_AFTER_MS {
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

#[cold]
fn refresh(worker: &Worker, known: &Known) {
    if !known.entry.checking.swap(true, std::sync::atomic::Ordering::AcqRel) {
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
        Found::WithoutSlash => with_slash(request),
        Found::Failed(status) => fixed::error(*status),
        // It has just been found where a file was, and this request was not made ready for it.
        Found::Script(_) => fixed::error(Status::SERVICE_UNAVAILABLE),
        Found::Directory { relative } => return list(worker, known, relative, request),
    };
    respond(worker, Some(&known.scope), response)
}

/// Stands for every path that no file can have: a colon is in no name that is looked up.
const NAMELESS: &str = "/:";

/// Finds out what answers, when the cache does not know.
pub fn slow(
    worker: &Rc<Worker>,
    site: Option<u32>,
    request: &Request<'_>,
    owned: impl FnOnce() -> Rc<OwnedRequest>,
    content: RequestContent,
    client: Client,
    secure: Option<&Rc<Secure>>,
) -> Dispatched {
    let view = worker.view();
    let Some(number) = site else {
        return respond(worker, None, fixed::error(Status::MISDIRECTED_REQUEST));
    };
    let places = view.snapshot.sites[number as usize].places(secure.is_some());
    match (request.form, request.method) {
        (TargetForm::Asterisk, _) => return respond(worker, Some(&places.scope), fixed::options()),
        (TargetForm::Authority, _) => {
            return respond(worker, Some(&places.scope), fixed::method_not_allowed());
        }
        (_, Method::Trace) => return respond(worker, Some(&places.scope), fixed::method_not_allowed()),
        _ => {}
    }
    let Some(rules) = &view.snapshot.sites[number as usize].rules else {
        return find(worker, number, places, request, owned, content, client, secure);
    };
    match rules.lead(request, secure.is_some()) {
        Ruled::Untouched => {
            let number = number | BEHIND_RULES;
            find(worker, number, places, request, owned, content, client, secure)
        }
        Ruled::Rewritten(target) => {
            let (number, request) = (number | BEHIND_RULES, request.looked_up_as(&target));
            let owned = || Rc::new(owned().looked_up_as(&target));
            find(worker, number, places, &request, owned, content, client, secure)
        }
        Ruled::Redirect { status, location } => respond(worker, Some(&places.scope), redirect(status, &location)),
        // Success would tell a client that the tunnel it has asked for stands.
        Ruled::Respond { status: 200..=299, .. } if request.method == Method::Connect => {
            respond(worker, Some(&places.scope), fixed::error(Status::NOT_IMPLEMENTED))
        }
        Ruled::Respond { status, body } => rules::answer(worker, &places.scope, status, body),
    }
}

/// How much content a request may have.
pub fn content_limit(view: &View, site: Option<u32>, request: &Request<'_>, is_secure: bool) -> u64 {
    let Some(number) = site else { return 0 };
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

/// Finds out what answers at a path. `number`: as in [`remembered`].
fn find(
    worker: &Rc<Worker>,
    number: u32,
    places: &Places,
    request: &Request<'_>,
    owned: impl FnOnce() -> Rc<OwnedRequest>,
    content: RequestContent,
    client: Client,
    secure: Option<&Rc<Secure>>,
) -> Dispatched {
    let view = worker.view();
    let (path, is_file_path) = match SafePath::parse(request.path) {
        Ok(path) => (path.as_str().to_owned(), true),
        // No file can have that name, but there may be a rule for it, a fallback, or a page for what is missing.
        Err(PathError::Unmatchable) => (
            SafePath::for_rules(request.path).unwrap_or_else(|_| NAMELESS.into()),
            false,
        ),
        Err(error) => {
            let status = Status::new(error.status()).unwrap_or(Status::BAD_REQUEST);
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
    let patience = Some(worker.wheel.ticks(scope.answer_timeout));
    match &scope.action {
        Action::Files(tree) if tree.is_program(&path) => {
            let exchange = Exchange {
                request: owned(),
                content,
                interim: Interim::default(),
                path: path.into(),
                scope: Arc::clone(scope),
                client,
                secure: secure.map(Rc::clone),
            };
            let answer = programs::answer(Rc::clone(worker), number & !BEHIND_RULES, exchange);
            Dispatched::Later(Later {
                answer: Making::new(answer),
                preloads: None,
                patience,
            })
        }
        Action::Files(tree) if tree.php.is_some() => {
            let path: Box<str> = match is_file_path {
                false if SafePath::from_decoded(&path).is_ok() => NAMELESS.into(),
                _ => path.into(),
            };
            let preloads = scope.preloads(&path).filter(|_| preload::is_first_look(request));
            let preloads = preloads.cloned();
            let interim = Interim::default();
            let door = interim.door();
            let exchange = Exchange {
                request: owned(),
                content,
                interim,
                path,
                scope: Arc::clone(scope),
                client,
                secure: secure.map(Rc::clone),
            };
            let answer = Making::new(scripts::answer(Rc::clone(worker), number, exchange)).telling(door);
            Dispatched::Later(Later {
                answer,
                preloads,
                patience,
            })
        }
        Action::Files(_) => match request.method {
            Method::Get | Method::Head => {
                let path = if is_file_path { path.into() } else { NAMELESS.into() };
                let (worker, scope, request) = (Rc::clone(worker), Arc::clone(scope), owned());
                let generation = view.snapshot.generation;
                later(look_up(worker, number, generation, scope, path, request))
            }
            Method::Options => respond(worker, Some(scope), fixed::options()),
            _ => respond(worker, Some(scope), fixed::method_not_allowed()),
        },
        Action::Proxy(proxy) => {
            let preloads = scope.preloads(&path).filter(|_| preload::is_first_look(request));
            let preloads = preloads.cloned();
            let interim = Interim::default();
            let door = interim.door();
            let exchange = Exchange {
                request: owned(),
                content,
                interim,
                path: path.into(),
                scope: Arc::clone(scope),
                client,
                secure: secure.map(Rc::clone),
            };
            let answer = Making::new(proxied::answer(Rc::clone(worker), number & !BEHIND_RULES, exchange));
            Dispatched::Later(Later {
                answer: answer.telling(door),
                preloads,
                patience: Some(proxy.patience(&worker.wheel)),
            })
        }
        Action::Controller(controller) => {
            controllers::answer(worker, scope, controller, request, owned, content, path, client, secure)
        }
        Action::Welcome => respond(
            worker,
            Some(scope),
            fixed::welcome(&view.snapshot, &worker.address, &path, request.method),
        ),
        Action::Custom(handler) => {
            let preloads = scope
                .preloads(&path)
                .filter(|_| preload::is_first_look(request))
                .cloned();
            let asked = owned();
            let interim = Interim::default();
            let door = interim.door();
            let exchange = Exchange {
                request: Rc::clone(&asked),
                content,
                interim,
                path: path.into(),
                scope: Arc::clone(scope),
                client,
                secure: secure.map(Rc::clone),
            };
            let answering: Answering = handler.answer(exchange);
            let (cache, scope) = (worker.shared.cache.clone(), Arc::clone(scope));
            let answer = Making::new(async move {
                let mut response = answering.await;
                tunnel::settle(&asked.view(), &mut response);
                // What a handler says for itself is not replaced.
                if matches!(response.body, Body::Empty) {
                    filter::errors::page(&cache, &scope, &mut response).await;
                }
                filter::errors::fill(&mut response);
                filter::headers::apply(&scope, &mut response.fields);
                Outcome::Response(Box::new(response))
            });
            Dispatched::Later(Later {
                answer: answer.telling(door),
                preloads,
                patience,
            })
        }
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
            filter::headers::apply(&scope, &mut response.fields);
            Outcome::Response(Box::new(response))
        });
    }
    match scope {
        Some(scope) => filter::headers::apply(scope, &mut response.fields),
        None => filter::headers::apply_server(&mut response.fields),
    }
    Dispatched::Respond(Box::new(response))
}

async fn look_up(
    worker: Rc<Worker>,
    site: u32,
    generation: u64,
    scope: Arc<Scope>,
    path: Box<str>,
    request: Rc<OwnedRequest>,
) -> Outcome {
    worker.counters.cache_misses.add(1);
    let entry = worker.shared.cache.look_up(&scope, &path).await;
    match entry {
        Some(entry) => {
            let known = Rc::new(Known::new(entry, scope, path));
            // The snapshot may have been swapped while the disk was asked: then this answer is nobody's future.
            if !known.entry.is_gone() && worker.view().snapshot.generation == generation {
                worker
                    .front
                    .borrow_mut()
                    .keep(site, request.view().path, Rc::clone(&known));
            }
            Outcome::Known(known, request)
        }
        None => {
            let mut response = fixed::error(Status::SERVICE_UNAVAILABLE);
            filter::headers::apply(&scope, &mut response.fields);
            Outcome::Response(Box::new(response))
        }
    }
}

/// 308 to the same path with a slash. Relative, so that it is right behind any proxy and any name.
fn with_slash(request: &Request<'_>) -> Response {
    let is_as_asked = split_target(request.target).0.ends_with(request.path);
    let last = request.path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let mut location = match is_as_asked {
        // "./" keeps a colon in the name from being taken for a scheme.
        true => format!("./{}/", String::from_utf8_lossy(last)),
        // A rule led here from a place that this one does not lie beside.
        false => format!("{}/", String::from_utf8_lossy(request.path)),
    };
    if let Some(query) = request.query {
        location.push('?');
        location.push_str(&String::from_utf8_lossy(query));
    }
    fixed::redirect(Status::PERMANENT_REDIRECT, location)
}

fn list(worker: &Rc<Worker>, known: &Known, relative: &[u8], request: &Request<'_>) -> Dispatched {
    let (scope, path, relative) = (Arc::clone(&known.scope), known.path.clone(), relative.to_vec());
    let query = request.query.unwrap_or_default().to_vec();
    let accept = request
        .fields
        .get(rocknet_proto::fields::Known::Accept)
        .map(<[u8]>::to_vec);
    let job_scope = Arc::clone(&scope);
    let job = worker.shared.pool.spawn(scope.priority, move || {
        listing::list(&job_scope, &path, &relative, &query, accept.as_deref())
    });
    later(async move {
        let mut response = match job.await {
            Ok(Ok(page)) => page.into_response(),
            Ok(Err(status)) => fixed::error(status),
            Err(error) => fixed::error(status_of(&error)),
        };
        filter::headers::apply(&scope, &mut response.fields);
        Outcome::Response(Box::new(response))
    })
}

/// Too much to do is 503; a job that failed is our fault.
fn status_of(error: &JobError) -> Status {
    match error {
        JobError::Panicked => Status::INTERNAL_SERVER_ERROR,
        JobError::Rejected | JobError::Stopped => Status::SERVICE_UNAVAILABLE,
    }
}
