//! What the server counts. Each worker counts for itself; whoever asks adds the workers up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rocknet_proto::status::Status;

/// A number that one thread changes and any thread may read.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Only ever called by the thread that owns the counter: a plain load and store, no locked instruction.
    #[inline]
    pub fn add(&self, more: u64) {
        self.0
            .store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    /// Less than was counted before, by the same thread.
    pub fn take_back(&self, less: u64) {
        self.0
            .store(self.0.load(Ordering::Relaxed).wrapping_sub(less), Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

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
