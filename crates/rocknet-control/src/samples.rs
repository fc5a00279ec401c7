//! Load of the server per second, computed from successive states, for the charts.

use std::collections::VecDeque;
use std::time::Duration;

use serde::Serialize;

use crate::{Status, durations};

/// Maximum interval between the two states of a sample. The average of a longer interval would hide its peaks.
const MAX_INTERVAL: Duration = Duration::from_secs(10);

/// Load of the server during an interval of about a second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadSample {
    /// End of the interval, in milliseconds since the server began to collect samples.
    pub at_ms: u64,
    /// Requests per second.
    pub requests: f64,
    /// Responses with a status of 500 or above, per second.
    pub errors: f64,
    /// Bytes sent to clients per second.
    pub bytes: f64,
    /// CPU time in percent of one core.
    pub cpu: f64,
    /// Resident memory in bytes at the end of the interval.
    pub memory: u64,
    /// Open connections at the end of the interval.
    pub connections: u64,
    /// Median of the response times in microseconds; `None` without a response.
    pub p50_us: Option<u64>,
    /// 99th percentile of the response times in microseconds; `None` without a response.
    pub p99_us: Option<u64>,
}

/// The latest samples, and the state at which the interval of the next sample begins.
#[derive(Debug)]
pub struct SampleHistory {
    /// The latest state with its time; `None` before the first state.
    last: Option<(Duration, Status)>,
    samples: VecDeque<LoadSample>,
    /// Maximum number of samples that are kept.
    max_samples: usize,
}

impl SampleHistory {
    /// Creates a history that keeps the latest `max_samples` samples.
    pub fn new(max_samples: usize) -> SampleHistory {
        SampleHistory {
            last: None,
            samples: VecDeque::new(),
            max_samples,
        }
    }

    /// Adds a state, and returns the sample since the previous state. Returns `None` for the first state, and if the
    /// interval is empty or longer than ten seconds. `at`: time of the state, measured from the same start in all
    /// calls.
    pub fn push(&mut self, at: Duration, status: Status) -> Option<LoadSample> {
        let before = self.last.replace((at, status));
        let (Some((began, before)), Some((_, now))) = (before, &self.last) else {
            return None;
        };
        let interval = at.saturating_sub(began);
        if interval.is_zero() || interval > MAX_INTERVAL {
            return None;
        }
        let sample = sample(at, interval, &before, now);
        self.samples.push_back(sample.clone());
        if self.samples.len() > self.max_samples {
            self.samples.pop_front();
        }
        Some(sample)
    }

    /// Returns the kept samples, the oldest first.
    pub fn all(&self) -> Vec<LoadSample> {
        self.iter().cloned().collect()
    }

    /// Iterates over the kept samples, the oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &LoadSample> {
        self.samples.iter()
    }
}

fn sample(at: Duration, interval: Duration, before: &Status, now: &Status) -> LoadSample {
    let seconds = interval.as_secs_f64();
    // Tenths are more than a chart shows, and keep the messages short.
    let rate = |before: u64, now: u64| (now.saturating_sub(before) as f64 / seconds * 10.0).round() / 10.0;
    let counts = durations::between(&before.duration_counts, &now.duration_counts);
    LoadSample {
        at_ms: u64::try_from(at.as_millis()).unwrap_or(u64::MAX),
        requests: rate(before.requests, now.requests),
        errors: rate(before.responses.server_error, now.responses.server_error),
        bytes: rate(before.bytes_sent, now.bytes_sent),
        // 10 ms of CPU time per second are 1 %.
        cpu: rate(before.cpu_ms, now.cpu_ms) / 10.0,
        memory: now.memory_bytes,
        connections: now.connections_open,
        p50_us: durations::quantile(&counts, 50),
        p99_us: durations::quantile(&counts, 99),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a state after this number of requests, each with 100 bytes and 1 ms of CPU time.
    fn status(requests: u64, duration_counts: &[u64]) -> Status {
        Status {
            requests,
            bytes_sent: requests * 100,
            cpu_ms: requests,
            connections_open: 3,
            memory_bytes: 7,
            duration_counts: duration_counts.to_vec(),
            ..Status::default()
        }
    }

    #[test]
    fn rates_are_differences_per_second() {
        let (mut history, second) = (SampleHistory::new(9), Duration::from_secs(1));
        assert_eq!(history.push(second, status(100, &[100, 100])), None);
        let sample = history.push(second * 3, status(300, &[100, 300])).unwrap();
        assert_eq!((sample.at_ms, sample.requests, sample.bytes), (3_000, 100.0, 10_000.0));
        assert_eq!((sample.cpu, sample.memory, sample.connections), (10.0, 7, 3));
        // All 200 responses took 8 to 16 µs.
        assert_eq!((sample.p50_us, sample.p99_us), (Some(12), Some(15)));
        // A server that was started again has smaller counters.
        let sample = history.push(second * 4, status(0, &[])).unwrap();
        assert_eq!((sample.requests, sample.p50_us), (0.0, None));
        // An empty interval, and one that is too long.
        assert_eq!(history.push(second * 4, status(0, &[])), None);
        assert_eq!(history.push(second * 60, status(0, &[])), None);
        assert_eq!(history.all().len(), 2);
    }

    #[test]
    fn the_history_is_bounded() {
        let mut history = SampleHistory::new(120);
        for second in 0..129 {
            history.push(Duration::from_secs(second), status(second, &[]));
        }
        let all = history.all();
        assert_eq!((all.len(), all[0].at_ms), (120, 9_000));
    }
}
