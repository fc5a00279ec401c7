//! Immediate responses, which the route itself or its handler makes without waiting.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_config::template::Values;
use rocknet_proto::method::Method;
use rocknet_proto::request::{OwnedRequest, Request};
use rocknet_proto::status::Status;

use super::IncomingRequest;
use crate::endpoint::Endpoint;
use crate::files::cache::l1::{CachedEndpoint, Hit};
use crate::fixed;
use crate::handler::ExchangeRef;
use crate::response::Response;
use crate::routing::{NoHost, RequestTarget};
use crate::site::SiteRoutes;
use crate::upgrade;
use crate::worker::Worker;

/// Returns the response of the route itself; `None` if the handler has to respond. `values`: values of the request for
/// placeholders. The response is one of these:
/// - 404 for an `internal` route;
/// - a redirect of the route (`redirects`), or 400 if its target needs a host and the request has none;
/// - 501 for a tunnel, if the handler accepts no tunnels.
pub(super) fn route_response(
    endpoint: &Endpoint,
    request: &Request<'_>,
    path: &str,
    values: &dyn Values,
) -> Option<Response> {
    if endpoint.route.internal {
        return Some(fixed::error(Status::NOT_FOUND));
    }
    let mut location = Vec::new();
    let target = RequestTarget {
        path,
        raw_path: request.path,
        query: request.query,
        values,
    };
    match endpoint.route.redirects.find(&target, &mut location) {
        Ok(Some(status)) => return Some(redirect(status, &location)),
        Err(NoHost) => return Some(fixed::error(Status::BAD_REQUEST)),
        Ok(None) => {}
    }
    // The request is for a tunnel, and no handler of this route accepts tunnels (RFC 9220 §3).
    let is_refused = request.method == Method::Connect && !endpoint.accepts_tunnels;
    is_refused.then(|| fixed::error(Status::NOT_IMPLEMENTED))
}

/// Creates a redirect to `location`. 308 replaces a number that is not a valid status.
pub(super) fn redirect(status: u16, location: &[u8]) -> Response {
    let status = Status::new(status).unwrap_or(Status::PERMANENT_REDIRECT);
    fixed::redirect(status, String::from_utf8_lossy(location).into_owned())
}

/// Adds the endpoint of a path to the worker cache after its handler has responded immediately to GET or HEAD. A path
/// is added only if a route names it exactly and the request contains it in the same form. The configuration bounds the
/// number of such paths, so clients cannot fill the cache. `key`: number of the site, with `AFTER_RULES` if its rules
/// were applied. `is_file_path`: false for a path that no file can have, such as one with `%2f`.
pub(super) fn cache_endpoint(
    worker: &Worker,
    key: u32,
    request: &Request<'_>,
    endpoint: &Endpoint,
    routes: &SiteRoutes,
    (path, is_file_path): (&str, bool),
) {
    // A route that serves nothing is not cached. `not_found_log::log_route` logs the reason of its 404 responses, in
    // addition to the access log. It is not called for the responses of cached endpoints.
    if endpoint.entry.is_not_found() {
        return;
    }
    let is_plain = path.as_bytes() == request.path && matches!(request.method, Method::Get | Method::Head);
    if is_plain && routes.has_exact_route(path) {
        let cached = cached_endpoint(endpoint, (path, is_file_path));
        let hit = Hit::Endpoint(Rc::new(cached));
        worker.files.l1().insert(key, request.path, hit);
    }
}

/// Returns the endpoint of a path for the worker cache.
pub(super) fn cached_endpoint(endpoint: &Endpoint, (path, is_file_path): (&str, bool)) -> CachedEndpoint {
    CachedEndpoint {
        route: Arc::clone(&endpoint.route),
        handler: Arc::clone(endpoint.handler(path)),
        pages: endpoint.pages.clone(),
        path: path.into(),
        is_file_path,
    }
}

/// Responds with a cached endpoint. Returns `None` if its handler does not respond immediately this time. `user`: user
/// that the server has authenticated.
pub(super) fn from_cached_endpoint<F: Fn() -> Rc<OwnedRequest>>(
    worker: &Worker,
    cached: &CachedEndpoint,
    incoming: &IncomingRequest<'_, F>,
    user: Option<&str>,
) -> Option<Response> {
    let mut response = cached.handler.handle_now(&ExchangeRef {
        services: worker,
        request: incoming.request,
        has_body: incoming.has_body,
        path: &cached.path,
        is_file_path: cached.is_file_path,
        client: incoming.client(worker),
        peer: incoming.peer,
        tls: incoming.secure.map(|secure| &**secure.tls_info()),
        user,
        // Identities of an authorization service or a login provider never get here, because requests that they admit
        // take the slow path. Handlers recognize a client certificate by `tls`.
        is_identified: false,
        // No script was looked up for a cached endpoint.
        admit_to_script: None,
    })?;
    // Replaces a response that does not fit the request, such as a tunnel without a request for one.
    upgrade::enforce(incoming.request, &mut response);
    Some(response)
}
