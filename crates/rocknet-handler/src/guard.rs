//! Guards: conditions that a request has to meet before its route does anything else.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rocknet_proto::request::Request;

use crate::client::Client;
use crate::response::Response;
use crate::services::Services;

/// The values on which a guard bases its decision.
#[derive(Clone, Copy)]
pub struct GuardContext<'a> {
    /// Services of the worker.
    pub services: &'a Services,
    /// Client: the one that a trusted proxy reports, else the peer.
    pub client: Client,
    /// Method, target and header fields.
    pub request: &'a Request<'a>,
}

/// Decision about a request: the user whose password was verified (`None` if the guard verifies no password), or the
/// response to a request that is not admitted.
pub type Admission = Result<Option<Arc<str>>, Box<Response>>;

/// Future of a decision. Dropping it early has no side effects.
pub type Deferred = Pin<Box<dyn Future<Output = Admission>>>;

/// Result of [`Guard::check`].
#[must_use]
pub enum Check {
    /// The decision.
    Decided(Admission),
    /// The decision has to wait, for example for a password hash.
    Deferred(Deferred),
}

/// Decides whether a request is admitted to a route. One value serves all workers.
///
/// A request is checked at each route that it leads to, because the file that is served may belong to a different route
/// than the path. A guard may therefore be called more than once for one request.
pub trait Guard: Send + Sync {
    /// Decides about a request.
    fn check(&self, context: &GuardContext<'_>) -> Check;

    /// Admits a request for which the worker cache has a response, if that takes no work. Returns the user as in
    /// [`Admission`], or `None` if the caller has to use [`Guard::check`]. Has no side effects.
    fn admit_cached(&self, context: &GuardContext<'_>) -> Option<Option<Arc<str>>>;
}
