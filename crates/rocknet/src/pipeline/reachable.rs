//! Decides which files a listing or an archive of a folder contains: those that each client of the folder may request.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use rocknet_config::model::Existence;
use rocknet_config::template::{Placeholder, Values};
use rocknet_proto::request::{OwnedRequest, Request, split_target};

use super::context::RequestContext;
use super::{facts, immediate, route};
use crate::endpoint::Endpoint;
use crate::exchange::Client;
use crate::files::disk_lookup::DiskLookup;
use crate::files::existence::existence;
use crate::files::path_access::PathAccess;
use crate::files::tree::Tree;
use crate::routing::{LookupError, RequestFacts, RuleOutcome};
use crate::site::SiteRoutes;
use crate::snapshot::Snapshot;
use crate::values;

/// The files below a folder whose listing or archive was requested.
///
/// A guard decides about the client, and not about the path. The client was admitted to the route of the folder, so
/// paths of this route need no further check. Neither do paths of a route with the same restrictions (`auth`, `limit`),
/// or with none. Paths of routes with other restrictions are left out, even if their guards would admit the client.
pub(super) struct ReachablePaths {
    snapshot: Arc<Snapshot>,
    /// Number of the site.
    site: u32,
    is_secure: bool,
    client: Client,
    request: OwnedRequest,
    tree: Arc<Tree>,
    /// Decoded path of the folder.
    folder: Arc<str>,
    /// Path of the folder as the client sent it, before rules were applied. If that path has no final slash, the
    /// rewritten path.
    raw_folder: Vec<u8>,
}

impl ReachablePaths {
    /// Creates the paths below the folder of a request; `None` if the context lacks its site, client or request.
    /// `request`: the request with the path that rules have rewritten. `folder`: that path, decoded.
    pub fn below(
        context: &RequestContext,
        request: &Request<'_>,
        tree: &Arc<Tree>,
        folder: &Arc<str>,
    ) -> Option<ReachablePaths> {
        let sent = path_of_target(request.target);
        // A rule may rewrite a path without a final slash, such as `/docs` to `/files/`. It does not rewrite `/docs/a`,
        // so the paths below the folder begin with the rewritten path.
        let raw_folder = if sent.ends_with(b"/") { sent } else { request.path };
        Some(ReachablePaths {
            snapshot: Arc::clone(&context.config.snapshot),
            site: context.site?,
            is_secure: context.is_secure,
            client: context.client?,
            request: OwnedRequest::clone(context.request.as_ref()?),
            tree: Arc::clone(tree),
            folder: Arc::clone(folder),
            raw_folder: raw_folder.to_vec(),
        })
    }

    /// Returns true if a client that was admitted to the folder is admitted to the endpoint.
    fn is_admitted(&self, routes: &SiteRoutes, endpoint: &Endpoint) -> bool {
        let is_own = |endpoint: &Endpoint| {
            let tree = endpoint.tree.as_ref();
            tree.is_some_and(|tree| Arc::ptr_eq(tree, &self.tree))
        };
        let own = routes.endpoint(&self.folder);
        is_own(endpoint)
            || endpoint.restrictions.is_none()
            // Clients cannot request paths of an internal route, so its guards count as not passed.
            || is_own(own) && !own.route.internal && endpoint.restrictions == own.restrictions
    }
}

impl PathAccess for ReachablePaths {
    fn tree_at(&self, path: &str) -> Option<Arc<Tree>> {
        let site = self.snapshot.sites.get(self.site as usize)?;
        let rest = path.strip_prefix(&*self.folder)?;
        let mut raw = self.raw_folder.clone();
        push_encoded(&mut raw, rest);
        let view = self.request.view();
        let mut request = view.with_lookup_target(&raw);
        let routes = site.routes(self.is_secure);
        let facts = FolderFacts {
            routes,
            client: self.client,
            is_secure: self.is_secure,
        };
        let values = FolderValues(view.authority);
        let rewritten;
        match site.rules.as_ref().map(|rules| rules.apply(&request, &facts, &values)) {
            None | Some(RuleOutcome::Untouched) => {}
            Some(RuleOutcome::Rewritten(target)) => {
                rewritten = target;
                request = view.with_lookup_target(&rewritten);
            }
            Some(_) => return None,
        }
        let resolved = route::resolve(routes, request.path).ok()?;
        let endpoint = resolved.endpoint;
        // A request for `/a` also has to pass the guards of a route for `/a/`, and the reverse.
        let toggled = routes.endpoint_with_toggled_trailing_slash(path);
        let is_sent = resolved.is_file_path
            && resolved.path == path
            && self.is_admitted(routes, endpoint)
            && toggled.is_none_or(|other| self.is_admitted(routes, other))
            && immediate::route_response(endpoint, &request, path, &values).is_none();
        endpoint.tree.clone().filter(|_| is_sent)
    }
}

/// Returns the path of a request target in origin form or absolute form, without its query.
fn path_of_target(target: &[u8]) -> &[u8] {
    let sent = split_target(target).0;
    if sent.starts_with(b"/") {
        return sent;
    }
    let authority = sent
        .windows(3)
        .position(|window| window == b"://")
        .map_or(0, |at| at + 3);
    let path = sent[authority..].iter().position(|&byte| byte == b'/');
    path.map_or(b"/", |at| &sent[authority + at..])
}

/// Data of a request for a file of the folder. Its lookups wait for the disk, because a job of the blocking pool makes
/// them.
struct FolderFacts<'a> {
    routes: &'a SiteRoutes,
    client: Client,
    is_secure: bool,
}

impl RequestFacts for FolderFacts<'_> {
    fn is_secure(&self) -> bool {
        self.is_secure
    }

    fn client(&self) -> Option<IpAddr> {
        match self.client {
            Client::Ip { address, .. } => Some(address),
            Client::Local => None,
        }
    }

    fn existence(&self, path: &str) -> Result<Existence, LookupError> {
        match facts::tree(self.routes, path) {
            Some(tree) => existence(&DiskLookup::blocking(), tree, path).map_err(|_| LookupError::Failed),
            None => Ok(Existence::Nothing),
        }
    }
}

/// Values for the placeholders of rules. Only `{host}` has a value, because no other placeholder commonly selects a
/// folder. The others are empty, so that paths that depend on them are left out.
struct FolderValues<'a>(&'a [u8]);

impl Values for FolderValues<'_> {
    fn value(&self, placeholder: &Placeholder) -> Cow<'_, [u8]> {
        match placeholder {
            Placeholder::Host => values::host(self.0),
            _ => Cow::Borrowed(b""),
        }
    }
}

/// Appends a decoded path in the form of a request target.
fn push_encoded(raw: &mut Vec<u8>, path: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in path.as_bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => raw.push(byte),
            byte if byte.is_ascii_alphanumeric() => raw.push(byte),
            byte => raw.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_target_is_found_in_both_forms() {
        for (target, expected) in [
            ("/a/b/?zip", "/a/b/"),
            ("/", "/"),
            ("http://example.com/a/b/?u=http://x/y", "/a/b/"),
            ("http://example.com", "/"),
            ("http://example.com?x/y", "/"),
            ("https://[::1]:8443/a//b", "/a//b"),
        ] {
            assert_eq!(path_of_target(target.as_bytes()), expected.as_bytes(), "{target}");
        }
    }
}
