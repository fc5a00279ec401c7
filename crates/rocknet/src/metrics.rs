//! What the server counts. Each worker counts for itself; whoever asks adds the workers up.

mod counter;
mod durations;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rocknet_proto::status::Status;

pub use self::counter::Counter;
pub use self::durations::{Durations, Histogram};

/// What one worker counts.
#[derive(Debug, Default)]
pub struct WorkerCounters {
    pub connections_total: Counter,
    pub connections_closed: Counter,
    pub requests: Counter,
    pub bytes_sent: Counter,
    pub cache_hits: Counter,
    pub panics: Counter,
    pub tunnels_total: Counter,
    pub tunnels_closed: Counter,
    /// By class: 1xx to 5xx.
    pub answers: [Counter; 5],
    /// How long responses took, by site.
    pub durations: Durations,
}

impl WorkerCounters {
    #[inline]
    pub fn answered(&self, status: Status) {
        self.requests.add(1);
        if let Some(counter) = self.answers.get((status.code() / 100).wrapping_sub(1) as usize) {
            counter.add(1);
        }
    }

    /// Adds what a worker counted that has gone.
    fn absorb(&self, gone: &WorkerCounters) {
        // Taken apart, so that a counter that comes later is not forgotten here.
        let WorkerCounters {
            connections_total,
            connections_closed,
            requests,
            bytes_sent,
            cache_hits,
            panics,
            tunnels_total,
            tunnels_closed,
            answers,
            durations,
        } = gone;
        self.connections_total.add(connections_total.get());
        self.connections_closed.add(connections_closed.get());
        self.requests.add(requests.get());
        self.bytes_sent.add(bytes_sent.get());
        self.cache_hits.add(cache_hits.get());
        self.panics.add(panics.get());
        self.tunnels_total.add(tunnels_total.get());
        self.tunnels_closed.add(tunnels_closed.get());
        for (own, more) in self.answers.iter().zip(answers) {
            own.add(more.get());
        }
        self.durations.absorb(durations);
    }
}

/// The counters of all workers that ever ran, so that totals do not fall when a worker is restarted or its listener
/// goes. Those whose worker has gone are kept as one: every reload may bring new workers.
#[derive(Debug, Default)]
pub struct Metrics(Mutex<Workers>);

#[derive(Debug, Default)]
struct Workers {
    here: Vec<Arc<WorkerCounters>>,
    gone: WorkerCounters,
}

impl Metrics {
    pub fn enrol(&self) -> Arc<WorkerCounters> {
        let counters = Arc::new(WorkerCounters::default());
        let mut workers = self.lock();
        let Workers { here, gone } = &mut *workers;
        here.retain(|worker| {
            let is_here = Arc::strong_count(worker) > 1;
            if !is_here {
                gone.absorb(worker);
            }
            is_here
        });
        here.push(Arc::clone(&counters));
        counters
    }

    pub fn sum(&self, which: impl Fn(&WorkerCounters) -> u64) -> u64 {
        let workers = self.lock();
        let here: u64 = workers.here.iter().map(|counters| which(counters)).sum();
        here + which(&workers.gone)
    }

    /// How long responses took since the start, by the name of their site.
    pub fn durations(&self) -> HashMap<Box<str>, Histogram> {
        let mut sums = HashMap::new();
        let workers = self.lock();
        for counters in &workers.here {
            counters.durations.add_to(&mut sums);
        }
        workers.gone.durations.add_to(&mut sums);
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
    fn workers_that_are_gone_count_and_take_no_room() {
        let metrics = Metrics::default();
        let stays = metrics.enrol();
        stays.answered(Status::OK);
        for _ in 0..100 {
            let worker = metrics.enrol();
            worker.connections_total.add(2);
            worker.answered(Status::NOT_FOUND);
        }
        assert_eq!(metrics.sum(|worker| worker.connections_total.get()), 200);
        assert_eq!(metrics.sum(|worker| worker.requests.get()), 101);
        assert_eq!(metrics.sum(|worker| worker.answers[3].get()), 100);
        assert!(metrics.lock().here.len() <= 2);
    }
}
