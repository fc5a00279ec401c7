//! Filters: what the responses of all handlers pass before they are sent.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rocknet_proto::request::Request;

use crate::response::Response;
use crate::route::Route;
use crate::services::Services;

/// The phases in which filters run, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Content codings.
    Encode,
    /// Fields that the route adds.
    Headers,
}

/// The request whose response passes the filters.
#[derive(Clone, Copy)]
pub struct Passing<'a> {
    pub services: &'a Services,
    pub route: &'a Arc<Route>,
    /// `None` if it is not known any more: the response is sent as it is.
    pub request: Option<&'a Request<'a>>,
}

/// Changes responses. One value serves all workers, and every response whose route is known passes it, whichever handler made
/// it. Responses of the file cache pass it when their head is rendered.
pub trait Filter: Send + Sync {
    fn phase(&self) -> Phase;

    /// Changes a response as far as nothing has to be waited for. What it gives back does the rest.
    fn apply(&self, passing: &Passing<'_>, response: &mut Response) -> Option<Box<dyn Later>>;
}

/// The rest of a filter's work, which has to be waited for.
#[must_use = "the response is incomplete until the work has ended"]
pub trait Later {
    /// Completes the response.
    fn complete<'a>(self: Box<Self>, response: &'a mut Response) -> Pin<Box<dyn Future<Output = ()> + 'a>>;
}
