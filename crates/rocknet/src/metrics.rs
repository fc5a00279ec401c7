//! Counters of the server. Each worker has its own counters, and a reader adds them up.

mod counter;
mod histogram;
mod labels;
mod local;
mod route_counters;
#[cfg(test)]
mod tests;
mod worker_counters;

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use self::counter::{Counter, CounterMap, Merge};
pub use self::histogram::Histogram;
pub use self::labels::{OTHER, RouteLabel, RouteLabels};
pub use self::local::LocalCounters;
pub use self::route_counters::{CountedResponse, RouteCounters};
pub use self::worker_counters::{HandshakeCounters, WorkerCounters};

/// The counters of all workers since the start, including those that have ended, so that totals never decrease.
/// Counters of ended workers are merged into one set, because every reload may start new workers.
#[derive(Debug, Default)]
pub struct Metrics(Mutex<Workers>);

#[derive(Debug, Default)]
struct Workers {
    live: Vec<Arc<WorkerCounters>>,
    ended: WorkerCounters,
}

impl Metrics {
    /// Returns the counters of a new worker.
    pub fn register(&self) -> Arc<WorkerCounters> {
        let counters = Arc::new(WorkerCounters::default());
        let mut workers = self.lock();
        let Workers { live, ended } = &mut *workers;
        live.retain(|worker| {
            // A worker holds the second reference to its counters until it ends.
            let is_live = Arc::strong_count(worker) > 1;
            if !is_live {
                ended.merge(worker);
            }
            is_live
        });
        live.push(Arc::clone(&counters));
        counters
    }

    /// Returns the sum of a counter over all workers.
    pub fn sum(&self, which: impl Fn(&WorkerCounters) -> u64) -> u64 {
        let workers = self.lock();
        let live: u64 = workers.live.iter().map(|counters| which(counters)).sum();
        live + which(&workers.ended)
    }

    /// Returns the counters of routes since the start, by number.
    pub fn routes(&self) -> HashMap<u32, RouteCounters> {
        self.add_up(|worker| &worker.routes)
    }

    /// Returns the response times of upstreams and applications since the start, by address.
    pub fn upstreams(&self) -> HashMap<Arc<str>, Histogram> {
        self.add_up(|worker| &worker.upstreams)
    }

    /// Returns the counters that `which` selects, added up over all workers by key.
    fn add_up<K, V>(&self, which: fn(&WorkerCounters) -> &CounterMap<K, V>) -> HashMap<K, V>
    where
        K: Eq + Hash + Clone,
        V: Default + Merge,
    {
        let mut sums = HashMap::new();
        let workers = self.lock();
        for counters in &workers.live {
            which(counters).add_to(&mut sums);
        }
        which(&workers.ended).add_to(&mut sums);
        sums
    }

    fn lock(&self) -> MutexGuard<'_, Workers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
