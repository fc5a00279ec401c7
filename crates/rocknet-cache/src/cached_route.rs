//! A cached route: its handler, its settings and the store.

use std::sync::Arc;

use rocknet_config::model::ResponseCache;
use rocknet_handler::Handler;
use rocknet_handler::route::Route;

use crate::Responses;

/// A cached route.
pub(crate) struct CachedRoute {
    /// The handler of the route.
    pub inner: Arc<dyn Handler>,
    /// Settings of the cache.
    pub settings: ResponseCache,
    /// The route.
    pub route: Arc<Route>,
    /// The store.
    pub responses: Arc<Responses>,
    /// True if a stored response may be sent before [`Handler::handle`] is called. It is false if guards check a
    /// request only after the lookup of a script.
    pub answers_now: bool,
}
