//! Counters of the server. Each worker has its own counters, and a reader adds them up.

mod counter;
mod durations;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rocknet_proto::status::Status;

pub use self::counter::Counter;
pub use self::durations::{Durations, Histogram};

/// Counters of one worker.
#[derive(Debug, Default)]
pub struct WorkerCounters {
    pub connections_total: Counter,
    pub connections_closed: Counter,
    /// Accepted connections that use QUIC. They are also in `connections_total`.
    pub quic_total: Counter,
    pub quic_closed: Counter,
    pub requests: Counter,
    pub bytes_sent: Counter,
    pub cache_hits: Counter,
    pub panics: Counter,
    /// Restarts of the worker after it failed.
    pub restarts: Counter,
    pub tunnels_total: Counter,
    pub tunnels_closed: Counter,
    /// Responses by class: 1xx to 5xx.
    pub responses: [Counter; 5],
    /// Response durations by site.
    pub durations: Durations,
}

impl WorkerCounters {
    /// Counts a final response and the request that it belongs to.
    #[inline]
    pub fn count_response(&self, status: Status) {
        self.requests.add(1);
        if let Some(counter) = self.responses.get((status.code() / 100).wrapping_sub(1) as usize) {
            counter.add(1);
        }
    }

    /// Adds the counters of a worker that has ended.
    fn merge(&self, ended: &WorkerCounters) {
        // Destructured, so that the compiler reports a new counter that is missing here.
        let WorkerCounters {
            connections_total,
            connections_closed,
            quic_total,
            quic_closed,
            requests,
            bytes_sent,
            cache_hits,
            panics,
            restarts,
            tunnels_total,
            tunnels_closed,
            responses,
            durations,
        } = ended;
        self.connections_total.add(connections_total.get());
        self.connections_closed.add(connections_closed.get());
        self.quic_total.add(quic_total.get());
        self.quic_closed.add(quic_closed.get());
        self.requests.add(requests.get());
        self.bytes_sent.add(bytes_sent.get());
        self.cache_hits.add(cache_hits.get());
        self.panics.add(panics.get());
        self.restarts.add(restarts.get());
        self.tunnels_total.add(tunnels_total.get());
        self.tunnels_closed.add(tunnels_closed.get());
        for (own, more) in self.responses.iter().zip(responses) {
            own.add(more.get());
        }
        self.durations.merge(durations);
    }
}

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

    /// Returns the response durations since the start, by name of the site.
    pub fn durations(&self) -> HashMap<Box<str>, Histogram> {
        let mut sums = HashMap::new();
        let workers = self.lock();
        for counters in &workers.live {
            counters.durations.add_to(&mut sums);
        }
        workers.ended.durations.add_to(&mut sums);
        sums
    }

    fn lock(&self) -> MutexGuard<'_, Workers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_workers_are_counted_and_merged() {
        let metrics = Metrics::default();
        let live_worker = metrics.register();
        live_worker.count_response(Status::OK);
        for _ in 0..100 {
            let worker = metrics.register();
            worker.connections_total.add(2);
            worker.count_response(Status::NOT_FOUND);
        }
        assert_eq!(metrics.sum(|worker| worker.connections_total.get()), 200);
        assert_eq!(metrics.sum(|worker| worker.requests.get()), 101);
        assert_eq!(metrics.sum(|worker| worker.responses[3].get()), 100);
        assert!(metrics.lock().live.len() <= 2);
    }
}
