//! Guards: conditions that a request has to meet before its route does anything else.

use std::any::Any;
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rocknet_config::template::Values;
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
    /// Values of the request for placeholders. The user is the one that earlier guards have authenticated.
    pub values: &'a dyn Values,
    /// Values that the request keeps until it ends, such as permits.
    pub held: &'a Held,
}

/// Values that a request keeps until its response is sent, its tunnel is closed, or it fails.
#[derive(Default)]
pub struct Held(RefCell<Vec<Box<dyn Any>>>);

impl Held {
    /// Keeps a value until the request ends.
    pub fn keep(&self, value: impl Any) {
        self.0.borrow_mut().push(Box::new(value));
    }
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
/// than the path. A guard that several of these routes share admits a request once.
pub trait Guard: Send + Sync {
    /// Decides about a request.
    fn check(&self, context: &GuardContext<'_>) -> Check;

    /// Admits a request for which the worker cache has a response, if that takes no work. Returns the user as in
    /// [`Admission`], or `None` if the caller has to use [`Guard::check`]. Has no side effects.
    fn admit_cached(&self, context: &GuardContext<'_>) -> Option<Option<Arc<str>>>;

    /// Returns true if the guard counts the requests that it admits, so that [`Guard::count_cached`] has to be called.
    fn counts(&self) -> bool {
        false
    }

    /// Counts a request that is about to be served from the worker cache. Called once, after all guards have admitted
    /// the request. Returns a value for [`Guard::uncount_cached`]. If the result is `None`, nothing was counted, and
    /// the caller has to use [`Guard::check`].
    fn count_cached(&self, _context: &GuardContext<'_>) -> Option<u32> {
        Some(0)
    }

    /// Takes back that a request was counted, because a further guard has not counted it. `counted`: the result of
    /// [`Guard::count_cached`].
    fn uncount_cached(&self, _context: &GuardContext<'_>, _counted: u32) {}
}
