//! Filters, which change the responses of all handlers before they are sent.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rocknet_config::template::Values;
use rocknet_proto::request::Request;
use rocknet_proto::status::Status;

use crate::client::Client;
use crate::response::{FieldList, Response};
use crate::route::Route;
use crate::services::Services;

/// Phases in which filters run, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Applies content codings.
    Encode,
    /// Adds the fields that permit pages of other origins to read responses.
    Cors,
    /// Adds the fields of `harden`.
    Harden,
    /// Adds the fields of the route.
    Headers,
    /// Limits the bandwidth of the body.
    Bandwidth,
}

/// The request whose response is filtered.
#[derive(Clone, Copy)]
pub struct FilterContext<'a> {
    /// Services of the worker.
    pub services: &'a Services,
    /// Route of the request.
    pub route: &'a Arc<Route>,
    /// Route whose bandwidth limits apply: `route`, or the route of a file that an application has named by
    /// `X-Accel-Redirect` if that route limits the bandwidth.
    pub bandwidth_route: &'a Arc<Route>,
    /// Client; `None` if it is not known.
    pub client: Option<Client>,
    /// `None` if the request is no longer available. Filters that depend on it leave the response unchanged.
    pub request: Option<&'a Request<'a>>,
    /// Values for placeholders; `None` if the route has no placeholders, or if the request is not known.
    pub values: Option<&'a dyn Values>,
}

/// Filters of a server, in the order of their phases.
pub type Filters = Arc<[Box<dyn Filter>]>;

/// Changes responses. One value serves all workers.
///
/// Each response whose route is known passes each filter once: by either `apply_to_head` or `apply`.
pub trait Filter: Send + Sync {
    /// Returns the phase in which the filter runs.
    fn phase(&self) -> Phase;

    /// Changes the header fields of a response whose body is fixed: one of the file cache, whose head is rendered once,
    /// or a plain error page. `values`: values for placeholders; `None` if no request is known.
    fn apply_to_head(&self, _route: &Route, _values: Option<&dyn Values>, _status: Status, _fields: &mut FieldList) {}

    /// Changes any other response without blocking. Returns the part of the work that has to wait, if any.
    fn apply(&self, context: &FilterContext<'_>, response: &mut Response) -> Option<Box<dyn DeferredFilter>>;
}

/// Applies all filters to the head of a response whose body is fixed. `values`: values for placeholders; `None` if no
/// request is known.
pub fn apply_to_head(
    filters: &Filters,
    route: &Route,
    values: Option<&dyn Values>,
    status: Status,
    fields: &mut FieldList,
) {
    for filter in filters.iter() {
        filter.apply_to_head(route, values, status, fields);
    }
}

/// The part of a filter's work that has to wait, such as a job in the pool.
#[must_use = "the response is incomplete until the work has ended"]
pub trait DeferredFilter {
    /// Completes the response.
    fn complete<'a>(self: Box<Self>, response: &'a mut Response) -> Pin<Box<dyn Future<Output = ()> + 'a>>;
}
