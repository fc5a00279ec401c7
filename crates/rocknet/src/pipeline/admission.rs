//! Admission: checks a request against the guards of every route that it leads to, before any other part of these
//! routes acts.
//!
//! A request is checked at the route of its path and, if a rule rewrites it, at the route of the new path. It is also
//! checked at further routes (`path_endpoints.rs`, `further_routes.rs`), because the path does not always name the
//! resource that is served:
//! - an index file, `try`, `fallback` or a script: the route of that file;
//! - that file, and any other file whose path differs from that of the request: the rules with `resolved`
//!   (`file_rules.rs`);
//! - a script or program followed by path info: the routes of all prefixes that can be the script, and of the path
//!   info, because front controllers use it as the path;
//! - a route for the path with its trailing slash added or removed: that route;
//! - an encoded slash, or a backslash in plain or encoded form: the routes of the paths that a back end obtains by
//!   treating it as a slash.
//!
//! All guards must admit the request. A guard that several of these routes share decides once about a request, because
//! some guards count requests. Sites without guards skip these checks (`Route::is_unguarded`).

use std::rc::Rc;
use std::sync::Arc;

use rocknet_handler::guard::{Admission, Admitted, Check, Deferred, Guard, GuardContext, Held, Identity};
use rocknet_proto::request::OwnedRequest;
use rocknet_proto::status::Status;

use super::facts::LookupResult;
use super::file_rules::FileGuard;
use super::further_routes::Entered;
use super::hidden_cookies;
use super::incoming::IncomingRequest;
use super::path_endpoints;
use super::route::{self, Resolved};
use crate::endpoint::Endpoint;
use crate::files::cache::l1::{CachedEntry, GuardList, Hit};
use crate::files::script::Script;
use crate::fixed;
use crate::response::Response;
use crate::route::Route;
use crate::site::SiteRoutes;
use crate::values::RequestValues;
use crate::worker::Worker;

/// Decisions about one request so far. After a reload, decisions of guards of the old configuration are not used.
#[derive(Default)]
pub(super) struct Decisions {
    /// Guards that have decided, each with its decision. A rejection is stored only if the guard decided after a wait.
    made: Vec<(Arc<dyn Guard>, Admission)>,
    /// User whom the guards have authenticated, if any.
    pub user: Option<Arc<str>>,
    /// Identities that guards have established, each by a different guard.
    identities: Vec<Arc<Identity>>,
    /// Values that the guards keep until the request ends.
    pub held: Held,
    /// Paths that were looked up on disk for the rules, in the folders of the configuration `generation`.
    pub paths: Vec<(String, LookupResult)>,
    /// Generation of the configuration by which the last path was looked up.
    generation: u64,
}

/// Reason for not admitting a request now.
pub(super) enum NotAdmitted {
    /// The request is rejected with this response.
    Refused(Response),
    /// The decision of a guard is pending.
    Undecided(Undecided),
}

/// Pending decision of a guard.
pub(super) struct Undecided(Arc<dyn Guard>, Deferred);

impl Decisions {
    /// Checks a request at the routes of a path. `raw`: path of the request, or the path to which a rule has rewritten
    /// it. Returns `None` if the request is admitted.
    pub fn check<F: Fn() -> Rc<OwnedRequest>>(
        &mut self,
        worker: &Worker,
        incoming: &IncomingRequest<'_, F>,
        routes: &SiteRoutes,
        resolved: &Resolved<'_>,
        raw: &[u8],
    ) -> Option<NotAdmitted> {
        if resolved.endpoint.route.is_unguarded {
            return None;
        }
        let Some(endpoints) = path_endpoints::of_path(routes, resolved, raw) else {
            return Some(NotAdmitted::Refused(fixed::error(Status::BAD_REQUEST)));
        };
        let route = &resolved.endpoint.route;
        for guard in endpoints.into_iter().flat_map(|endpoint| &endpoint.guards) {
            let admission = match self.made_by(guard) {
                Some(admission) => admission,
                None => match with_context(worker, incoming, route, self.user.as_deref(), &self.held, |context| {
                    guard.check(context)
                }) {
                    Check::Decided(admission) => {
                        if let Ok(admitted) = &admission {
                            self.made.push((Arc::clone(guard), Ok(admitted.clone())));
                        }
                        admission
                    }
                    Check::Deferred(deferred) => {
                        return Some(NotAdmitted::Undecided(Undecided(Arc::clone(guard), deferred)));
                    }
                },
            };
            match admission {
                Ok(admitted) => self.admit(admitted),
                Err(response) => return Some(NotAdmitted::Refused(*response)),
            }
        }
        None
    }

    /// Stores the user and the identity that a guard has found.
    fn admit(&mut self, admitted: Admitted) {
        self.user = admitted.user.or(self.user.take());
        if let Some(identity) = admitted.identity
            && !self.identities.iter().any(|other| Arc::ptr_eq(other, &identity))
        {
            self.identities.push(identity);
        }
    }

    /// Returns true if a guard has returned an identity, which [`Decisions::identified`] applies to the request.
    pub fn has_identity(&self) -> bool {
        !self.identities.is_empty()
    }

    /// Returns the request with the changes of the identities. A second call changes nothing more.
    pub fn identified(&self, request: Rc<OwnedRequest>) -> Rc<OwnedRequest> {
        let identities = self.identities.iter();
        identities.fold(request, |request, identity| Rc::new(identity.apply(&request)))
    }

    /// Takes the identities.
    pub fn take_identities(&mut self) -> Vec<Arc<Identity>> {
        std::mem::take(&mut self.identities)
    }

    /// Returns the user and the identities of an admitted request.
    pub fn into_entered(self) -> Entered {
        Entered {
            user: self.user,
            identities: self.identities,
        }
    }

    /// Waits for the result of a lookup and stores it. The user is reset as in [`complete`](Self::complete).
    /// `generation`: that of the configuration whose folders are examined.
    pub async fn look_up(&mut self, generation: u64, lookup: impl Future<Output = (String, LookupResult)>) {
        self.user = None;
        self.keep_paths_of(generation);
        self.generation = generation;
        self.paths.push(lookup.await);
    }

    /// Drops lookups of another configuration. After a reload, a path may lead to another folder.
    pub fn keep_paths_of(&mut self, generation: u64) {
        if self.generation != generation {
            self.paths.clear();
        }
    }

    /// Returns the earlier decision of a guard, so that each guard decides only once about a request. A rejection is
    /// moved out, because the request ends with it.
    fn made_by(&mut self, guard: &Arc<dyn Guard>) -> Option<Admission> {
        let at = self.made.iter().position(|(decided, _)| Arc::ptr_eq(decided, guard))?;
        Some(match &self.made[at].1 {
            Ok(admitted) => Ok(admitted.clone()),
            Err(_) => self.made.swap_remove(at).1,
        })
    }

    /// Returns the guards that have admitted the request, and the values that they keep until it ends.
    pub fn into_guards(self) -> (Vec<Arc<dyn Guard>>, Held) {
        (self.made.into_iter().map(|(guard, _)| guard).collect(), self.held)
    }

    /// Waits for a decision and stores it. The user is reset, because the request starts again and is then checked by
    /// the guards of the current configuration.
    pub async fn complete(&mut self, undecided: Undecided) {
        let Undecided(guard, deferred) = undecided;
        self.user = None;
        self.made.push((guard, deferred.await));
    }
}

/// Calls a guard with the data of a request. `route`: route of the request, or another one of its site. `user`: user
/// whom earlier guards have authenticated.
#[inline]
fn with_context<F, T>(
    worker: &Worker,
    incoming: &IncomingRequest<'_, F>,
    route: &Route,
    user: Option<&str>,
    held: &Held,
    call: impl FnOnce(&GuardContext<'_>) -> T,
) -> T
where
    F: Fn() -> Rc<OwnedRequest>,
{
    let client = incoming.client(worker);
    let tls = incoming.secure.map(|secure| secure.tls_info());
    let values = RequestValues {
        services: worker,
        server: &route.server.server,
        request: incoming.request,
        client: Some(client),
        peer: incoming.peer,
        tls: tls.map(|tls| &**tls),
        user,
        site: &route.label.site,
        id: incoming.id,
        status: None,
        upstream: None,
    };
    call(&GuardContext {
        services: worker.services(),
        client,
        peer: incoming.peer,
        tls,
        request: incoming.request,
        values: &values,
        held,
    })
}

/// Admits a request for a path in the worker cache if all guards can decide without waiting, and returns the
/// authenticated user, if any. Returns the outer `None` if the slow path, which can wait, has to decide. An admitted
/// request is counted, so the caller must serve it. `ends_at_once`: true if one write usually sends the whole response
/// (`PipelineIo::ends_at_once`), so that limits on concurrent requests need not count it. It has no effect if a user is
/// authenticated.
pub(super) fn admit_cached<F: Fn() -> Rc<OwnedRequest>>(
    worker: &Worker,
    incoming: &IncomingRequest<'_, F>,
    routes: &SiteRoutes,
    hit: &Hit,
    ends_at_once: bool,
) -> Option<Option<Arc<str>>> {
    let find = || guards_of_hit(routes, incoming.request.path, hit, incoming.is_secure());
    let found;
    let (guards, route) = match hit {
        Hit::Entry(cached) => {
            let cell = &cached.guards[usize::from(incoming.is_secure())];
            (cell.get_or_init(find).as_ref()?, &cached.tree.route)
        }
        Hit::Endpoint(endpoint) => {
            found = find()?;
            // The slow path removes these cookies from the request before its handler gets it.
            if hidden_cookies::are_in(incoming.request.fields, &found) {
                return None;
            }
            // The handler usually responds without waiting, but may have to wait this time. The slow path then takes
            // over, and would count the request again.
            if found.iter().any(|guard| guard.counts()) {
                return None;
            }
            (&found, &endpoint.route)
        }
    };
    admit_by_all(worker, incoming, route, guards, PermittedUser::Any, ends_at_once)
}

/// Admits a request for a ready response if all guards can decide without waiting, and none has a user. An admitted
/// request is counted, so the caller must send the response. `ends_at_once`: as in [`admit_cached`].
pub(super) fn admit_ready<F: Fn() -> Rc<OwnedRequest>>(
    worker: &Worker,
    incoming: &IncomingRequest<'_, F>,
    route: &Route,
    guards: &GuardList,
    ends_at_once: bool,
) -> bool {
    // Handlers get requests without these cookies, and so must the cache of responses.
    if hidden_cookies::are_in(incoming.request.fields, guards) {
        return false;
    }
    admit_by_all(worker, incoming, route, guards, PermittedUser::None, ends_at_once).is_some()
}

/// Users to whom a response may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PermittedUser {
    /// Every user, and requests without a user.
    Any,
    /// Only requests without a user.
    None,
}

/// Counts a request that all guards admit, and returns the user whom they have authenticated, if any. Returns the outer
/// `None` if a guard has to wait or does not admit the request, or if there is a user who is not permitted. The request
/// is then counted nowhere. `ends_at_once`: as in [`admit_cached`].
fn admit_by_all<F: Fn() -> Rc<OwnedRequest>>(
    worker: &Worker,
    incoming: &IncomingRequest<'_, F>,
    route: &Route,
    guards: &GuardList,
    permitted: PermittedUser,
    ends_at_once: bool,
) -> Option<Option<Arc<str>>> {
    let mut user: Option<Arc<str>> = None;
    let mut remaining = guards.iter();
    loop {
        // All guards up to the next one that finds a user share a context, because building a context costs as much as
        // the check of a limit (`guard/limit.rs`).
        let found = with_context(worker, incoming, route, user.as_deref(), incoming.held, |context| {
            for guard in remaining.by_ref() {
                if let Some(found) = guard.admit_cached(context)? {
                    return Some(Some(found));
                }
            }
            let ends_at_once = ends_at_once && user.is_none();
            count_in_all(guards, context, ends_at_once).then_some(None)
        });
        match found {
            Some(Some(found)) if permitted == PermittedUser::Any => user = Some(found),
            Some(None) => return Some(user),
            Some(Some(_)) | None => {
                // `count_in_all` has taken back its counts, but not the permits that guards have put into `held`.
                drop(incoming.held.take());
                return None;
            }
        }
    }
}

/// Counts a request in all guards that count. If one of them refuses the request, the guards before it take back their
/// counts, because the slow path counts the request again, and the result is false. The caller then drops the permits
/// that these guards have put into `held`. `ends_at_once`: as in [`admit_cached`].
fn count_in_all(guards: &[Arc<dyn Guard>], context: &GuardContext<'_>, ends_at_once: bool) -> bool {
    let Some(first) = guards.iter().position(|guard| guard.counts()) else {
        return true;
    };
    let Some(counted) = guards[first].count_cached(context, ends_at_once) else {
        return false;
    };
    let is_counted = count_in_all(&guards[first + 1..], context, ends_at_once);
    if !is_counted {
        guards[first].uncount_cached(context, counted);
    }
    is_counted
}

/// Returns the guards that have to admit a request for a raw path in the worker cache, each once. Returns `None` if the
/// slow path has to find them.
fn guards_of_hit(routes: &SiteRoutes, raw: &[u8], hit: &Hit, is_secure: bool) -> Option<GuardList> {
    match hit {
        Hit::Entry(cached) => {
            let of_file = path_endpoints::of_entry(routes, &cached.tree, &cached.entry);
            // `None` if the path of the request names the file: the rules were already applied to that path.
            let of_rules = cached.entry.file.as_deref();
            let of_rules = of_rules.and_then(|file| FileGuard::of(routes.file_rules.as_ref(), file, is_secure));
            guards_of(routes, raw, of_file, of_rules)
        }
        Hit::Endpoint(_) => guards_of_path(routes, raw),
    }
}

/// Returns the guards that have to admit a request for a raw path, each once, if its handler responds without a file or
/// script. Returns `None` if the slow path has to find them.
pub(super) fn guards_of_path(routes: &SiteRoutes, raw: &[u8]) -> Option<GuardList> {
    guards_of(routes, raw, None, None)
}

/// Returns the guards that have to admit a request for a raw path that leads to `script`, each once. They include those
/// that [`further_routes`](super::further_routes) finds after the lookup. Returns `None` if the slow path has to find
/// the guards.
pub(super) fn guards_of_script(
    routes: &SiteRoutes,
    raw: &[u8],
    cached: &CachedEntry,
    script: &Script,
    is_secure: bool,
) -> Option<GuardList> {
    let of_script = routes.endpoint_of_file(&cached.tree, &script.name);
    let of_path_info = path_endpoints::of_path_info(routes, &script.path_info);
    // `None` if the path of the request names the script: the rules were already applied to that path.
    let of_rules = (*script.name != *cached.path)
        .then(|| FileGuard::of(routes.file_rules.as_ref(), &script.name, is_secure))
        .flatten();
    guards_of(routes, raw, of_script.into_iter().chain(of_path_info), of_rules)
}

/// Returns the guards of a raw path, of further endpoints that it leads to, and of the rules for its file.
fn guards_of<'p>(
    routes: &'p SiteRoutes,
    raw: &[u8],
    further: impl IntoIterator<Item = &'p Arc<Endpoint>>,
    of_rules: Option<Arc<dyn Guard>>,
) -> Option<GuardList> {
    let resolved = route::resolve(routes, raw).ok()?;
    let mut endpoints = path_endpoints::of_path(routes, &resolved, raw)?;
    for endpoint in further {
        endpoints.push(endpoint);
    }
    let mut guards: Vec<Arc<dyn Guard>> = Vec::new();
    for guard in endpoints.into_iter().flat_map(|endpoint| &endpoint.guards) {
        if !guards.iter().any(|other| Arc::ptr_eq(other, guard)) {
            guards.push(Arc::clone(guard));
        }
    }
    guards.extend(of_rules);
    Some(guards.into())
}
