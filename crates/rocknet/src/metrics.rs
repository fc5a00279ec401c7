//! Counters of the server. Each worker has its own counters, and a reader adds them up.

mod auth_counters;
mod counter;
mod histogram;
mod labels;
mod load_history;
mod local;
mod route_counters;
#[cfg(test)]
mod tests;
mod worker_counters;

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rocknet_control::status::IntervalLoad;

pub use self::auth_counters::{AuthCounters, ForwardOutcome, LoginOutcome, RejectedSession, SignedUrlOutcome};
pub use self::counter::{Counter, CounterMap, Merge};
pub use self::histogram::{BucketCounts, Histogram};
pub use self::labels::{OTHER, RouteLabel, RouteLabels};
use self::load_history::LoadHistory;
pub use self::load_history::{LoadSample, SAMPLE_INTERVAL};
pub use self::local::LocalCounters;
pub use self::route_counters::{CountedResponse, RouteCounters};
pub use self::worker_counters::{HandshakeCounters, WorkerCounters};

/// The counters of all workers since the start of the server, including ended workers, so that totals never decrease.
/// Counters of ended workers are merged into one set, because every reload may start new workers.
#[derive(Debug, Default)]
pub struct Metrics {
    workers: Mutex<Workers>,
    load: LoadHistory,
}

#[derive(Debug, Default)]
struct Workers {
    /// Counters of workers that were still running when the last worker was registered, and of that worker.
    live: Vec<Arc<WorkerCounters>>,
    /// Merged counters of workers that have ended.
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

    /// Records the counters, so that [`Metrics::recent_load`] reports intervals. The server calls this at intervals of
    /// [`SAMPLE_INTERVAL`]. Without these calls, the only interval is the time since the start.
    pub fn sample_load(&self) {
        self.load.push(self.load_sample());
    }

    /// Returns the load of the last 10 seconds and of the last minute. An interval that is longer than the running time
    /// begins with the start of the server. If both intervals begin with the start, only one is returned.
    pub fn recent_load(&self) -> Vec<IntervalLoad> {
        let now = self.load_sample();
        let beginnings = self.load.beginnings(now.at);
        beginnings.iter().map(|before| interval_load(before, &now)).collect()
    }

    fn load_sample(&self) -> LoadSample {
        let mut durations = BucketCounts::default();
        let workers = self.lock();
        for counters in workers.live.iter().map(|worker| &**worker).chain([&workers.ended]) {
            counters.routes.for_each(|route| durations.add(&route.durations));
        }
        drop(workers);
        LoadSample {
            at: Instant::now(),
            requests: self.sum(|worker| worker.requests.get()),
            bytes_sent: self.sum(|worker| worker.bytes_sent.get()),
            // Index 4 is the class 5xx.
            server_errors: self.sum(|worker| worker.responses[4].get()),
            durations,
        }
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
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the load between two samples. Rates are rounded to tenths.
fn interval_load(before: &LoadSample, now: &LoadSample) -> IntervalLoad {
    let interval = now.at.saturating_duration_since(before.at);
    let seconds = interval.as_secs_f64();
    let rate = |before: u64, now: u64| match seconds {
        0.0 => 0.0,
        seconds => (now.saturating_sub(before) as f64 / seconds * 10.0).round() / 10.0,
    };
    let mut durations = now.durations.clone();
    durations.subtract(&before.durations);
    IntervalLoad {
        interval_ms: u64::try_from(interval.as_millis()).unwrap_or(u64::MAX),
        requests_per_second: rate(before.requests, now.requests),
        bytes_per_second: rate(before.bytes_sent, now.bytes_sent),
        server_errors_per_second: rate(before.server_errors, now.server_errors),
        p50_us: durations.quantile(50),
        p90_us: durations.quantile(90),
        p99_us: durations.quantile(99),
    }
}
