//! Counters of a worker as its event loop uses them: routes are found by number, without a lock or a hash.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::histogram::Histogram;
use super::labels::RouteLabels;
use super::route_counters::{CountedResponse, RouteCounters};
use super::worker_counters::WorkerCounters;
use crate::clock::microseconds;

/// Maximum number of upstreams with a histogram of their own on a worker. Each histogram needs 1.6 KB.
pub const MAX_UPSTREAMS: usize = 1000;
/// Name under which the durations of all further upstreams are counted.
pub const OTHER_UPSTREAMS: &str = "(other)";

/// The counters of one worker, with references to the counters of routes and the histograms of upstreams.
pub struct LocalCounters {
    counters: Arc<WorkerCounters>,
    labels: Arc<RouteLabels>,
    /// Counters by number of the route, each set at the first response of its route.
    routes: RefCell<Vec<Option<Arc<RouteCounters>>>>,
    upstreams: RefCell<HashMap<Arc<str>, Arc<Histogram>>>,
}

impl LocalCounters {
    /// Creates the references of a worker that has just started.
    pub fn new(counters: Arc<WorkerCounters>, labels: Arc<RouteLabels>) -> LocalCounters {
        LocalCounters {
            counters,
            labels,
            routes: RefCell::default(),
            upstreams: RefCell::default(),
        }
    }

    /// Counts a response, in total and for its route. `route`: number of the route.
    #[inline]
    pub fn count(&self, route: u32, response: CountedResponse) {
        self.counters.count_response(response.status);
        if let Some(Some(counters)) = self.routes.borrow().get(route as usize) {
            return counters.count(response);
        }
        self.open(route).count(response);
    }

    /// Returns the counters of a route that has had no response on this worker, and stores a reference to them.
    #[cold]
    fn open(&self, route: u32) -> Arc<RouteCounters> {
        let counters = self.counters.routes.of(&self.labels.admit(route));
        let mut routes = self.routes.borrow_mut();
        // Numbers come from the labels, which are bounded, so the table is bounded too.
        if routes.len() <= route as usize {
            routes.resize(route as usize + 1, None);
        }
        routes[route as usize] = Some(Arc::clone(&counters));
        counters
    }

    /// Counts a response of an upstream or application. `duration`: time from sending the request to the head of the
    /// response.
    pub fn count_upstream(&self, address: &Arc<str>, duration: Duration) {
        let mut upstreams = self.upstreams.borrow_mut();
        let histogram = match upstreams.get(address) {
            Some(histogram) => histogram,
            None => {
                let is_full = upstreams.len() >= MAX_UPSTREAMS;
                let name = if is_full {
                    OTHER_UPSTREAMS.into()
                } else {
                    Arc::clone(address)
                };
                let histogram = self.counters.upstreams.of(&name);
                upstreams.entry(name).or_insert(histogram)
            }
        };
        histogram.add(microseconds(duration));
    }
}
