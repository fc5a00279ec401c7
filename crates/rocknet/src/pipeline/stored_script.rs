//! Sends the stored response of a script without repeating the lookup of the script.
//!
//! On a site with guards, the response cache responds after the lookup, because the route of the script may have guards
//! of its own (`further_routes.rs`). While the worker cache has the script, all guards are known without a lookup on
//! disk.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_proto::request::OwnedRequest;

use super::context::RequestContext;
use super::finish::respond as finish;
use super::incoming::IncomingRequest;
use super::interface::Outcome;
use super::ready::{self, Origin};
use super::{admission, immediate, route};
use crate::files::cache::l1::{AFTER_RULES, CachedEntry};
use crate::files::entry::Found;
use crate::files::handler;
use crate::handler::ExchangeRef;
use crate::worker::{Worker, WorkerConfig};

/// Responds to GET or HEAD for a path that leads to a script, if the response is stored and all guards admit the
/// request at once. Otherwise returns `None`, and no guard has counted the request. `key`: number of the site, with
/// [`AFTER_RULES`] if its rules were applied. `cached`: entry of the path, which is not stale.
#[inline(never)]
pub(super) fn respond<F>(
    worker: &Rc<Worker>,
    config: &Rc<WorkerConfig>,
    key: u32,
    incoming: &IncomingRequest<'_, F>,
    cached: &Rc<CachedEntry>,
) -> Option<Outcome>
where
    F: Fn() -> Rc<OwnedRequest>,
{
    let Found::Script(script) = &cached.entry.found else {
        return None;
    };
    // Without guards, the response cache was queried before the lookup.
    if cached.tree.route.is_unguarded || !cached.tree.route.is_cached {
        return None;
    }
    let (request, site, is_secure) = (incoming.request, key & !AFTER_RULES, incoming.is_secure());
    let routes = config.snapshot.sites[site as usize].routes(is_secure);
    let resolved = route::resolve(routes, request.path).ok()?;
    let (endpoint, is_file_path) = (resolved.endpoint, resolved.is_file_path);
    let path = handler::script_path(&resolved.path, is_file_path);
    let is_own = endpoint
        .tree
        .as_ref()
        .is_some_and(|tree| Arc::ptr_eq(tree, &cached.tree));
    // Paths of CGI programs are left out, because their requests pass additional checks
    // (`file_rules::enter_programs`).
    if !is_own || path != &*cached.path || cached.tree.is_program(&resolved.path) {
        return None;
    }
    let values = incoming.values(worker, config, &endpoint.route.label.site, None);
    if immediate::route_response(endpoint, request, &resolved.path, &values).is_some() {
        return None;
    }
    let guards = cached.guards[usize::from(is_secure)]
        .get_or_init(|| admission::guards_of_script(routes, request.path, cached, script, is_secure))
        .as_ref()?;
    // The response may have to wait for its content coding. Limits on concurrent requests then count the request.
    let ends_at_once = false;
    let admit = || admission::admit_ready(worker, incoming, &endpoint.route, guards, ends_at_once);
    let response = endpoint.handler(&resolved.path).handle_now(&ExchangeRef {
        services: worker,
        request,
        has_body: incoming.has_body,
        path,
        is_file_path,
        client: incoming.client(worker),
        peer: incoming.peer,
        tls: incoming.secure.map(|secure| &**secure.tls_info()),
        // `admit` rejects a request with a user, because stored responses are for requests without one.
        user: None,
        is_identified: false,
        admit_to_script: Some(&admit),
    })?;
    let context = RequestContext::new(worker, config, incoming, Some(site), Some(endpoint.into()));
    let started = finish(worker, Rc::new(context), Some(request), response);
    ready::keep(worker, key, incoming, &started, || {
        let endpoint = Rc::new(immediate::cached_endpoint(endpoint, (path, is_file_path)));
        Some(Origin::of_script(endpoint, guards, &cached.entry))
    });
    Some(Outcome::Started(started))
}
