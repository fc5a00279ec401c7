//! Paths below a listed folder that lead to the same tree as the folder itself.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use rocknet_config::model::Existence;
use rocknet_config::template::{Placeholder, Values};
use rocknet_proto::request::{OwnedRequest, Request, split_target};

use super::context::RequestContext;
use super::{facts, immediate, route};
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
/// paths of the same route need no further check. Paths of other routes are left out, even if their guards would admit
/// the client.
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
    /// Path of the folder as the client sent it, before rules were applied.
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
        let sent = split_target(request.target).0;
        // A target in absolute form ends with the path. A rule may also rewrite a path without a final slash.
        let is_rewritten = !sent.ends_with(request.path) && sent.starts_with(b"/") && sent.ends_with(b"/");
        Some(ReachablePaths {
            snapshot: Arc::clone(&context.config.snapshot),
            site: context.site?,
            is_secure: context.is_secure,
            client: context.client?,
            request: OwnedRequest::clone(context.request.as_ref()?),
            tree: Arc::clone(tree),
            folder: Arc::clone(folder),
            raw_folder: if is_rewritten { sent } else { request.path }.to_vec(),
        })
    }
}

impl PathAccess for ReachablePaths {
    fn reaches_tree(&self, path: &str) -> bool {
        let (Some(site), Some(rest)) = (
            self.snapshot.sites.get(self.site as usize),
            path.strip_prefix(&*self.folder),
        ) else {
            return false;
        };
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
            Some(_) => return false,
        }
        let Ok(resolved) = route::resolve(routes, request.path) else {
            return false;
        };
        let endpoint = resolved.endpoint;
        resolved.is_file_path
            && resolved.path == path
            && endpoint.tree.as_ref().is_some_and(|tree| Arc::ptr_eq(tree, &self.tree))
            && immediate::route_response(endpoint, &request, path, &values).is_none()
            && routes
                .endpoint_with_toggled_trailing_slash(path)
                .is_none_or(|other| Arc::ptr_eq(other, endpoint))
    }
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

/// Value of the only placeholder that commonly selects a folder: the host. The others are empty, so that paths that
/// depend on them are left out.
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
