//! What the server counts. Each worker counts for itself; whoever asks adds the workers up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

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
    pub cache_misses: Counter,
    pub panics: Counter,
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
}

/// The counters of all workers that ever ran, so that totals do not fall when a worker is restarted.
#[derive(Debug, Default)]
pub struct Metrics(Mutex<Vec<Arc<WorkerCounters>>>);

impl Metrics {
    pub fn enrol(&self) -> Arc<WorkerCounters> {
        let counters = Arc::new(WorkerCounters::default());
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::clone(&counters));
        counters
    }

    pub fn sum(&self, which: impl Fn(&WorkerCounters) -> u64) -> u64 {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .map(|counters| which(counters))
            .sum()
    }
}
