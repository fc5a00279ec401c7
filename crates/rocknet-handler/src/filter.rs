//! Filters: what the responses of all handlers pass before they are sent.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rocknet_proto::request::Request;
use rocknet_proto::status::Status;

use crate::response::{FieldList, Response};
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
pub struct FilterContext<'a> {
    pub services: &'a Services,
    pub route: &'a Arc<Route>,
    /// `None` if it is not known any more: the response is sent as it is.
    pub request: Option<&'a Request<'a>>,
}

/// The filters of a server, in the order of their phases.
pub type Filters = Arc<[Box<dyn Filter>]>;

/// Changes responses. One value serves all workers. Every response whose route is known passes each filter, by one of two ways.
pub trait Filter: Send + Sync {
    fn phase(&self) -> Phase;

    /// Changes the fields of a response whose content is settled: one of the file cache, whose head is rendered once, or a plain
    /// error page.
    fn apply_to_head(&self, _route: &Route, _status: Status, _fields: &mut FieldList) {}

    /// Changes any other response as far as nothing has to be waited for. Returns the part of the work that has to wait.
    fn apply(&self, context: &FilterContext<'_>, response: &mut Response) -> Option<Box<dyn DeferredFilter>>;
}

/// Applies all filters to the head of a response whose content is settled.
pub fn apply_to_head(filters: &Filters, route: &Route, status: Status, fields: &mut FieldList) {
    for filter in filters.iter() {
        filter.apply_to_head(route, status, fields);
    }
}

/// The rest of a filter's work, which has to be waited for.
#[must_use = "the response is incomplete until the work has ended"]
pub trait DeferredFilter {
    /// Completes the response.
    fn complete<'a>(self: Box<Self>, response: &'a mut Response) -> Pin<Box<dyn Future<Output = ()> + 'a>>;
}
