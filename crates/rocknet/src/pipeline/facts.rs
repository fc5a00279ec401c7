//! Data of a request that its rules need: transport, client, and the existence of files.

use std::cell::OnceCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use rocknet_config::model::Existence;
use rocknet_proto::request::{OwnedRequest, Request};

use super::incoming::IncomingRequest;
use crate::exchange::Client;
use crate::files::disk_lookup::DiskLookup;
use crate::files::existence::existence;
use crate::files::tree::Tree;
use crate::forwarded;
use crate::routing::{LookupError, RequestFacts};
use crate::site::SiteRoutes;
use crate::worker::{Worker, WorkerConfig};

/// Result of looking up a path.
pub(super) type LookupResult = Result<Existence, LookupError>;

/// Data of a request that the rules of its site need.
pub(super) struct Facts<'a> {
    config: &'a WorkerConfig,
    routes: &'a SiteRoutes,
    request: &'a Request<'a>,
    /// Peer of the connection: the client, or a proxy.
    peer: Client,
    is_secure: bool,
    /// Paths that were looked up on disk before.
    known: &'a [(String, LookupResult)],
    /// Client, once a condition has needed it.
    client: OnceCell<Client>,
}

impl<'a> Facts<'a> {
    /// Returns the data of a request. `known`: paths that were looked up on disk before.
    pub fn of<F: Fn() -> Rc<OwnedRequest>>(
        config: &'a WorkerConfig,
        routes: &'a SiteRoutes,
        incoming: &IncomingRequest<'a, F>,
        known: &'a [(String, LookupResult)],
    ) -> Facts<'a> {
        Facts::new(config, routes, incoming.request, incoming.peer, incoming.is_secure()).with_known(known)
    }

    /// Returns the data of a request from `peer`.
    pub fn new(
        config: &'a WorkerConfig,
        routes: &'a SiteRoutes,
        request: &'a Request<'a>,
        peer: Client,
        is_secure: bool,
    ) -> Facts<'a> {
        Facts {
            config,
            routes,
            request,
            peer,
            is_secure,
            known: &[],
            client: OnceCell::new(),
        }
    }

    /// Adds paths that were looked up on disk before.
    pub fn with_known(self, known: &'a [(String, LookupResult)]) -> Facts<'a> {
        Facts { known, ..self }
    }
}

impl RequestFacts for Facts<'_> {
    fn is_secure(&self) -> bool {
        self.is_secure
    }

    fn client(&self) -> Option<IpAddr> {
        let server = &self.config.snapshot.config.server;
        let client = || forwarded::client(server, self.peer, self.request.fields);
        match *self.client.get_or_init(client) {
            Client::Ip { address, .. } => Some(address),
            Client::Local => None,
        }
    }

    fn existence(&self, path: &str) -> LookupResult {
        if let Some((_, result)) = self.known.iter().find(|(known, _)| known == path) {
            return *result;
        }
        let Some(tree) = tree(self.routes, path) else {
            return Ok(Existence::Nothing);
        };
        match DiskLookup::non_blocking(|lookup| existence(lookup, tree, path)) {
            Ok(found) => found.map_err(|_| LookupError::Failed),
            Err(_) => Err(LookupError::WouldBlock),
        }
    }
}

/// Returns the tree in which rules look up a path, which is also the tree of the route's error pages. `None` if the
/// route of the path has no such tree.
pub(super) fn tree<'r>(routes: &'r SiteRoutes, path: &str) -> Option<&'r Arc<Tree>> {
    routes.endpoint(path).pages.as_ref()
}

/// Looks up a path on a thread that may wait for the disk.
pub(super) async fn look_up(worker: &Worker, tree: Option<Arc<Tree>>, path: String) -> (String, LookupResult) {
    let Some(tree) = tree else {
        return (path, Ok(Existence::Nothing));
    };
    let looked_up = path.clone();
    let job = worker.shared.pool.spawn(tree.route.priority, move || {
        existence(&DiskLookup::blocking(), &tree, &looked_up).map_err(|_| LookupError::Failed)
    });
    // The pool rejects jobs of an overloaded server.
    (path, job.await.unwrap_or(Err(LookupError::Failed)))
}
