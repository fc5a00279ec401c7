//! Resolves the path of a request to the route that applies to it.

use std::borrow::Cow;
use std::sync::Arc;

use rocknet_config::template::NoValues;
use rocknet_proto::request::{Request, split_target};
use rocknet_proto::semantics::safe_path::{PathError, SafePath};
use tracing::Level;

use super::context::RequestContext;
use super::facts::Facts;
use crate::endpoint::Endpoint;
use crate::exchange::Client;
use crate::files::handler::NO_FILE_PATH;
use crate::log::throttle::Cause;
use crate::routing::{RuleOutcome, Rules};
use crate::site::SiteRoutes;
use crate::worker::WorkerConfig;
use rocknet_proto::status::Status;

/// Decoded path with its endpoint.
pub(super) struct Resolved<'a> {
    pub endpoint: &'a Arc<Endpoint>,
    /// Decoded and normalized path.
    pub path: Cow<'a, str>,
    /// False for a path that no file can have, such as one with `%2f`.
    pub is_file_path: bool,
}

/// Finds the route of a raw path.
///
/// # Errors
///
/// Fails if the path is malformed or leads out of the root.
pub(super) fn resolve<'a>(routes: &'a SiteRoutes, raw: &'a [u8]) -> Result<Resolved<'a>, PathError> {
    let (path, is_file_path) = match SafePath::parse(raw) {
        Ok(path) => (path.into_str(), true),
        // No file can have this path, but a rule, a fallback or an error page may apply to it. `NO_FILE_PATH` replaces
        // a path that cannot be decoded.
        Err(PathError::Unmatchable) => {
            let path = SafePath::for_rules(raw);
            (path.map_or(Cow::Borrowed(NO_FILE_PATH), Cow::Owned), false)
        }
        Err(error) => return Err(error),
    };
    Ok(Resolved {
        endpoint: routes.endpoint(&path),
        path,
        is_file_path,
    })
}

/// Returns the endpoint of a path; for a malformed path, the root endpoint of the site.
pub(super) fn resolve_or_root<'a>(routes: &'a SiteRoutes, raw: &[u8]) -> &'a Arc<Endpoint> {
    match SafePath::parse(raw) {
        Ok(path) => routes.endpoint(path.as_str()),
        Err(_) => match SafePath::for_rules(raw) {
            Ok(path) => routes.endpoint(&path),
            Err(_) => &routes.root,
        },
    }
}

/// Returns the maximum size of a request body in bytes: the limit of the route that the rules select. `site`: number of
/// the site. `peer`: peer of the connection. `is_secure`: true if the connection uses TLS.
///
/// The rules may depend on files whose existence is not known yet, or on placeholders, whose values are not known here.
/// The result is then the largest limit of all routes of the site, and the limit of the route itself applies once the
/// route is known. An unknown site has no routes, so the result is the limit of the server.
pub fn body_limit(
    config: &WorkerConfig,
    site: Option<u32>,
    request: &Request<'_>,
    peer: Client,
    is_secure: bool,
) -> u64 {
    let Some(number) = site else {
        return config.snapshot.config.limits.body_size;
    };
    let site = &config.snapshot.sites[number as usize];
    let routes = site.routes(is_secure);
    let largest = || {
        let limits = routes.endpoints().map(|endpoint| endpoint.route.body_size);
        limits.fold(0, u64::max)
    };
    let facts = Facts::new(config, routes, request, peer, is_secure);
    match site.rules.as_ref().map(|rules| rules.apply(request, &facts, &NoValues)) {
        None | Some(RuleOutcome::Untouched) => resolve_or_root(routes, request.path).route.body_size,
        Some(RuleOutcome::NeedsLookup(_)) => largest(),
        Some(_) if site.rules.as_ref().is_some_and(Rules::has_values) => largest(),
        Some(RuleOutcome::Rewritten(target)) => resolve_or_root(routes, split_target(&target).0).route.body_size,
        _ => resolve_or_root(routes, request.path).route.body_size,
    }
}

/// Logs an invalid path, at most once a second for each site.
#[cold]
pub(super) fn log_bad_path(context: &RequestContext, client: &Client, path: &[u8], status: Status, error: &PathError) {
    let site = context.site_name();
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
