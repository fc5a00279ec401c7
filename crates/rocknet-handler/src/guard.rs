//! Guards: conditions of a route that a request has to meet before anything else of the route acts.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rocknet_proto::request::Request;

use crate::client::Client;
use crate::response::Response;
use crate::services::Services;

/// The facts that a guard decides by.
#[derive(Clone, Copy)]
pub struct GuardContext<'a> {
    pub services: &'a Services,
    /// The sender of the request, which a trusted proxy may have named.
    pub client: Client,
    pub request: &'a Request<'a>,
}

/// The decision about a request: the user whose password was verified, if the guard verifies any; otherwise the response to a
/// request that is not admitted.
pub type Admission = Result<Option<Arc<str>>, Box<Response>>;

/// A decision that has to be waited for. Dropped before it is ready, it leaves nothing behind.
pub type Deferred = Pin<Box<dyn Future<Output = Admission>>>;

/// First result of a guard.
#[must_use]
pub enum Check {
    Decided(Admission),
    Deferred(Deferred),
}

/// Decides whether requests may enter a route. One value serves all workers.
///
/// A request is checked at every route that it leads to, because the path is not always what is served in the end. A guard may
/// therefore be asked about one request more than once.
pub trait Guard: Send + Sync {
    /// Decides about a request.
    fn check(&self, context: &GuardContext<'_>) -> Check;

    /// Admits a request for which the worker cache has a response, if that takes no work, and returns its user. `None`: the
    /// caller uses [`Guard::check`]. Changes nothing.
    fn admit_cached(&self, context: &GuardContext<'_>) -> Option<Option<Arc<str>>>;
}
