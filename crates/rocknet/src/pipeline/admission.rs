//! Admission: checks a request against the guards of every route that it leads to, before any other part of these
//! routes acts.
//!
//! A request is checked at the route of its path and, if a rule rewrites it, at the route of the new path. It is also
//! checked at further routes, because the path does not always name the resource that is served:
//! - an index file, `try`, `fallback` or a script: the route of that file;
//! - the same file: the rules with `resolved` (`file_rules.rs`);
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
use rocknet_proto::semantics::safe_path::SafePath;
use rocknet_proto::status::Status;

use super::context::RequestContext;
use super::facts::LookupResult;
use super::file_rules::{self, FileGuard};
use super::incoming::IncomingRequest;
use super::route::{self, Resolved};
use crate::endpoint::Endpoint;
use crate::exchange::Exchange;
use crate::files::cache::l1::{CachedEntry as CachedPath, GuardList, Hit};
use crate::files::entry::Entry;
use crate::files::handler;
use crate::files::tree::Tree;
use crate::fixed;
use crate::handler::{Handler, HandlerFuture, HandlerOutput};
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
        let Some(endpoints) = endpoints(routes, resolved, raw) else {
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

    /// Returns true if an authority has established an identity, whose fields [`Decisions::identified`] puts into the
    /// request.
    pub fn has_identity(&self) -> bool {
        !self.identities.is_empty()
    }

    /// Returns the request with the fields of the identities. A second call changes nothing more.
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
/// request is counted, so the caller must serve it.
pub(super) fn admit_cached<F: Fn() -> Rc<OwnedRequest>>(
    worker: &Worker,
    incoming: &IncomingRequest<'_, F>,
    routes: &SiteRoutes,
    hit: &Hit,
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
            (&found, &endpoint.route)
        }
    };
    let held = Held::default();
    let (user, counts) = admit_by_all(worker, incoming, route, guards, &held)?;
    if !counts {
        return Some(user);
    }
    // The handler of an endpoint may not respond at once, and the slow path would then count the request again.
    if let Hit::Endpoint(_) = hit {
        return None;
    }
    let is_admitted = with_context(worker, incoming, route, user.as_deref(), &held, |context| {
        count_in_all(guards, context)
    });
    is_admitted.then_some(user)
}

/// Admits a request for a ready response if all guards can decide without waiting, and none has a user. An admitted
/// request is counted, so the caller must send the response.
pub(super) fn admit_ready<F: Fn() -> Rc<OwnedRequest>>(
    worker: &Worker,
    incoming: &IncomingRequest<'_, F>,
    route: &Route,
    guards: &GuardList,
) -> bool {
    let held = Held::default();
    match admit_by_all(worker, incoming, route, guards, &held) {
        Some((None, true)) => with_context(worker, incoming, route, None, &held, |context| {
            count_in_all(guards, context)
        }),
        Some((None, false)) => true,
        // The response is for clients that are not known.
        Some((Some(_), _)) | None => false,
    }
}

/// Returns the user whom the guards have authenticated, if any, and true if a guard counts the request. Returns `None`
/// if a guard has to wait or does not admit the request.
fn admit_by_all<F: Fn() -> Rc<OwnedRequest>>(
    worker: &Worker,
    incoming: &IncomingRequest<'_, F>,
    route: &Route,
    guards: &GuardList,
    held: &Held,
) -> Option<(Option<Arc<str>>, bool)> {
    let (mut user, mut counts) = (None, false);
    for guard in guards {
        counts |= guard.counts();
        let admitted = with_context(worker, incoming, route, user.as_deref(), held, |context| {
            guard.admit_cached(context)
        });
        user = admitted?.or(user);
    }
    Some((user, counts))
}

/// Counts a request for a path in the worker cache in all guards that count. If one of them refuses it, none has
/// counted it, because the slow path counts it again.
fn count_in_all(guards: &[Arc<dyn Guard>], context: &GuardContext<'_>) -> bool {
    let Some(first) = guards.iter().position(|guard| guard.counts()) else {
        return true;
    };
    let Some(counted) = guards[first].count_cached(context) else {
        return false;
    };
    let is_counted = count_in_all(&guards[first + 1..], context);
    if !is_counted {
        guards[first].uncount_cached(context, counted);
    }
    is_counted
}

/// Returns the guards that have to admit a request for a raw path in the worker cache, each once. Returns `None` if the
/// slow path has to find them.
fn guards_of_hit(routes: &SiteRoutes, raw: &[u8], hit: &Hit, is_secure: bool) -> Option<GuardList> {
    let (of_file, file) = match hit {
        Hit::Entry(cached) => (
            endpoint_of_entry(routes, &cached.tree, &cached.entry),
            cached.entry.file.as_deref(),
        ),
        Hit::Endpoint(_) => (None, None),
    };
    let of_rules = file.and_then(|file| FileGuard::of(routes.file_rules.as_ref(), file, is_secure));
    guards_of(routes, raw, of_file, of_rules)
}

/// Returns the guards that have to admit a request for a raw path whose handler responds at once, each once. Returns
/// `None` if the slow path has to find them.
pub(super) fn guards_of_path(routes: &SiteRoutes, raw: &[u8]) -> Option<GuardList> {
    guards_of(routes, raw, None, None)
}

/// Returns the guards of a raw path, of the endpoint of the file that it leads to, and of the rules for that file.
fn guards_of(
    routes: &SiteRoutes,
    raw: &[u8],
    of_file: Option<&Arc<Endpoint>>,
    of_rules: Option<Arc<dyn Guard>>,
) -> Option<GuardList> {
    let resolved = route::resolve(routes, raw).ok()?;
    let mut guards: Vec<Arc<dyn Guard>> = Vec::new();
    for endpoint in endpoints(routes, &resolved, raw)?.into_iter().chain(of_file) {
        for guard in &endpoint.guards {
            if !guards.iter().any(|other| Arc::ptr_eq(other, guard)) {
                guards.push(Arc::clone(guard));
            }
        }
    }
    guards.extend(of_rules);
    Some(guards.into())
}

/// Returns true if a request that has reached the endpoint is checked at no further route.
pub(super) fn is_final(endpoint: &Endpoint) -> bool {
    endpoint.route.is_unguarded || endpoint.tree.is_none()
}

/// Calls the handler, then checks the request at the route of the file that the handler returns, if that is another
/// route. For a script, the request is checked at the route of the script before the handler is called.
pub(super) fn handle(
    worker: &Rc<Worker>,
    context: &Rc<RequestContext>,
    endpoint: &Arc<Endpoint>,
    handler: &Arc<dyn Handler>,
    exchange: Exchange,
) -> HandlerFuture {
    if endpoint.route.is_unguarded {
        return handler.handle(exchange);
    }
    let (worker, context) = (Rc::clone(worker), Rc::clone(context));
    let (endpoint, handler) = (Arc::clone(endpoint), Arc::clone(handler));
    Box::pin(async move {
        match handle_guarded(&worker, &context, &endpoint, &handler, exchange).await {
            Ok(output) => output,
            Err(response) => HandlerOutput::Response(response),
        }
    })
}

/// Does the work of [`handle`] for a site with guards. The error is the response of a guard that rejects the request.
async fn handle_guarded(
    worker: &Worker,
    context: &RequestContext,
    endpoint: &Endpoint,
    handler: &Arc<dyn Handler>,
    mut exchange: Exchange,
) -> Result<HandlerOutput, Box<Response>> {
    let tree = endpoint.tree.as_ref();
    // For programs, the routes of all prefixes of the path were already checked.
    if tree.is_some_and(|tree| tree.is_program(&exchange.path)) {
        file_rules::enter_programs(worker, context, &exchange.path).await?;
    }
    let scripts = tree.filter(|tree| tree.runs_scripts && !tree.is_program(&exchange.path));
    let output = match scripts {
        Some(tree) => {
            // No file has a path such as `/a%2Fb`, and its decoded form must not lead to the script `/a/b`.
            handler::clear_unnameable_path(&mut exchange);
            match handler::find_script(tree, &exchange).await {
                Ok(script) => {
                    // A path that a rule has rewritten has met the rules after the rewrite only.
                    if *script.name != *exchange.path {
                        file_rules::enter(worker, context, &script.name).await?;
                    }
                    let admitted = enter_script(worker, tree, (&script.name, &script.path_info), context).await?;
                    exchange.user = admitted.user.or(exchange.user);
                    for identity in admitted.identities {
                        exchange.request = Rc::new(identity.apply(&exchange.request));
                        exchange.is_personal |= identity.is_personal;
                        if identity.has_names() {
                            exchange.body.discard_trailers();
                        }
                    }
                    // The handler finds the same script in the worker cache.
                    handler.handle(exchange).await
                }
                // There is no script, or the server is overloaded. The handler is not called, because its own lookup
                // could find a script that was created in the meantime, and for which no guard has checked the request.
                Err(output) => output,
            }
        }
        None => handler.handle(exchange).await,
    };
    if let HandlerOutput::Cached(entry) = &output
        && let Some(cached) = entry.downcast_ref::<CachedPath>()
    {
        context.set_user(enter_file(worker, &cached.tree, &cached.entry, context).await?.user);
    }
    Ok(output)
}

/// Checks a request at one more route, and waits for the decisions of its guards. Guards need the client and the
/// request, so a context without these is rejected with 403.
pub(super) async fn enter(
    worker: &Worker,
    endpoint: &Endpoint,
    context: &RequestContext,
) -> Result<Entered, Box<Response>> {
    let mut entered = Entered::default();
    for guard in &endpoint.guards {
        let has_admitted = |guards: &Vec<Arc<dyn Guard>>| guards.iter().any(|other| Arc::ptr_eq(other, guard));
        if has_admitted(&context.guards.borrow()) {
            continue;
        }
        let (Some(client), Some(request)) = (context.client, &context.request) else {
            return Err(Box::new(fixed::error(Status::FORBIDDEN)));
        };
        let check = {
            let request = request.view();
            let (peer, secure) = context.peer_and_handshake(client);
            guard.check(&GuardContext {
                services: worker.services(),
                client,
                peer,
                tls: secure.map(|secure| secure.tls_info()),
                request: &request,
                values: &context.guard_values(worker, client, &request),
                held: &context.held,
            })
        };
        let admission = match check {
            Check::Decided(admission) => admission,
            Check::Deferred(deferred) => deferred.await,
        };
        let admitted = admission?;
        // The access log and the keys of later limits have the user.
        context.set_user(admitted.user.clone());
        context.guards.borrow_mut().push(Arc::clone(guard));
        if let Some(identity) = &admitted.identity {
            if identity.signature.is_some()
                && let Some(request) = context.logged_request()
            {
                let without_signature = Rc::new(identity.apply(request));
                let _ = context.admitted_request.set(without_signature);
            }
            let mut identities = context.identities.borrow_mut();
            if !identities.iter().any(|other| Arc::ptr_eq(other, identity)) {
                identities.push(Arc::clone(identity));
            }
        }
        entered.add(admitted);
    }
    Ok(entered)
}

/// Results of the guards of further routes.
#[derive(Default)]
pub(super) struct Entered {
    /// User whom the guards have authenticated, if any.
    pub user: Option<Arc<str>>,
    /// Identities that authorities have established.
    pub identities: Vec<Arc<Identity>>,
}

impl Entered {
    fn add(&mut self, admitted: Admitted) {
        self.user = admitted.user.or(self.user.take());
        self.identities.extend(admitted.identity);
    }
}

/// Checks a request at the route of the file that an entry of `tree` names, if it is another route.
pub(super) async fn enter_file(
    worker: &Worker,
    tree: &Arc<Tree>,
    entry: &Entry,
    context: &RequestContext,
) -> Result<Entered, Box<Response>> {
    if let Some(file) = &entry.file {
        file_rules::enter(worker, context, file).await?;
    }
    let own = site_routes(context).and_then(|routes| endpoint_of_entry(routes, tree, entry));
    match own {
        Some(endpoint) => enter(worker, endpoint, context).await,
        None => Ok(Entered::default()),
    }
}

/// Checks a request at the route of the script that handles it, and at the route of its path info.
async fn enter_script(
    worker: &Worker,
    tree: &Arc<Tree>,
    (script, path_info): (&str, &str),
    context: &RequestContext,
) -> Result<Entered, Box<Response>> {
    let Some(routes) = site_routes(context) else {
        return Ok(Entered::default());
    };
    let of_script = routes.endpoint_of_file(tree, script);
    let mut entered = Entered::default();
    for endpoint in of_script.into_iter().chain(endpoints_of_path_info(routes, path_info)) {
        let Entered { user, identities } = enter(worker, endpoint, context).await?;
        entered.user = user.or(entered.user);
        entered.identities.extend(identities);
    }
    Ok(entered)
}

/// Returns the routes of the requested site; `None` if the request has no site.
fn site_routes(context: &RequestContext) -> Option<&SiteRoutes> {
    let site = context.config.snapshot.sites.get(context.site? as usize)?;
    Some(site.routes(context.is_secure))
}

/// Returns the endpoint of another route that applies to the file of a cache entry of `tree`, if there is one.
fn endpoint_of_entry<'p>(routes: &'p SiteRoutes, tree: &Arc<Tree>, entry: &Entry) -> Option<&'p Arc<Endpoint>> {
    routes.endpoint_of_file(tree, entry.file.as_ref()?)
}

/// Returns the endpoints of the routes that a path leads to; `None` if a back end could resolve the path to a path
/// above the root.
fn endpoints<'p>(routes: &'p SiteRoutes, resolved: &Resolved<'p>, raw: &[u8]) -> Option<Vec<&'p Arc<Endpoint>>> {
    let mut found = vec![resolved.endpoint];
    found.extend(routes.endpoint_with_toggled_trailing_slash(&resolved.path));
    let tree = resolved.endpoint.tree.as_ref();
    if tree.is_some_and(|tree| tree.is_program(&resolved.path)) {
        // The first slash begins the path, so no program ends there.
        for (end, _) in resolved.path.match_indices('/').skip(1) {
            let (program, path_info) = resolved.path.split_at(end);
            found.push(routes.endpoint(program));
            found.extend(endpoints_of_path_info(routes, path_info));
        }
    }
    // A path with an encoded slash or a backslash cannot be the path of a file.
    if !resolved.is_file_path {
        for slashes in OTHER_SLASHES {
            found.push(routes.endpoint(&route::resolve(routes, &decode_slashes(raw, slashes)).ok()?.path));
        }
    }
    Some(found)
}

/// Returns the endpoints of a path info: as written, and normalized with each backslash replaced by a slash.
fn endpoints_of_path_info<'p>(
    routes: &'p SiteRoutes,
    path_info: &str,
) -> impl Iterator<Item = &'p Arc<Endpoint>> + use<'p> {
    let decoded = path_info.replace('\\', "/");
    let decoded = SafePath::from_decoded(&decoded).map(SafePath::into_str);
    let of_decoded = decoded.ok().map(|path| routes.endpoint(&path));
    let is_empty = path_info.is_empty();
    std::iter::once(routes.endpoint(path_info))
        .chain(of_decoded)
        .filter(move |_| !is_empty)
}

/// Byte strings that back ends can treat as a slash: most back ends decode the whole path, and on Windows a backslash
/// is a separator too. Each set is tried separately. If strings of another set were decoded at the same time, dot
/// segments after them could hide the route that the first set leads to.
const OTHER_SLASHES: [&[&[u8]]; 3] = [
    &[b"%2F", b"%2f"],
    &[b"\\", b"%5C", b"%5c"],
    &[b"%2F", b"%2f", b"\\", b"%5C", b"%5c"],
];

/// Replaces each occurrence of a string in `slashes` by a slash.
fn decode_slashes(raw: &[u8], slashes: &[&[u8]]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(first) = rest.first() {
        let slash = slashes.iter().find(|slash| rest.starts_with(slash));
        decoded.push(slash.map_or(*first, |_| b'/'));
        rest = &rest[slash.map_or(1, |slash| slash.len())..];
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_are_decoded_one_set_at_a_time() {
        // Raw path, and the path decoded by each set of `OTHER_SLASHES`.
        for (raw, expected) in [
            ("/a/b", ["/a/b"; 3]),
            ("/a%2Fb%2fc", ["/a/b/c", "/a%2Fb%2fc", "/a/b/c"]),
            ("/a\\b%5Cc%5c", ["/a\\b%5Cc%5c", "/a/b/c/", "/a/b/c/"]),
            ("/a%2fx%5c..", ["/a/x%5c..", "/a%2fx/..", "/a/x/.."]),
            ("/%252f%2", ["/%252f%2"; 3]),
        ] {
            for (slashes, expected) in OTHER_SLASHES.into_iter().zip(expected) {
                let decoded = decode_slashes(raw.as_bytes(), slashes);
                assert_eq!(String::from_utf8_lossy(&decoded), expected, "{raw}");
            }
        }
    }
}
