//! Load over the last 10 seconds and over the last minute, computed from samples of the counters.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::histogram::BucketCounts;

/// Time between two samples.
pub const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);

/// Lengths of the reported intervals. An interval is longer by up to [`SAMPLE_INTERVAL`], because it begins with a
/// sample.
const WINDOWS: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(60)];

/// Maximum number of samples: one for every 5 seconds of the longest interval (60 s), one for the other end of the
/// interval, and one in reserve. The reserve is needed because a sample may be taken a little early.
const MAX_SAMPLES: usize = 60 / 5 + 2;

/// Counters at one moment.
#[derive(Debug, Clone)]
pub struct LoadSample {
    /// Time of the sample.
    pub at: Instant,
    /// Received requests.
    pub requests: u64,
    /// Bytes sent to clients.
    pub bytes_sent: u64,
    /// Responses with a status of 500 or above.
    pub server_errors: u64,
    /// Response times of all routes.
    pub durations: BucketCounts,
}

/// Samples of the last minute, oldest first. Until the maximum number is exceeded, the first sample is the start of
/// the server.
#[derive(Debug)]
pub struct LoadHistory(Mutex<VecDeque<LoadSample>>);

impl Default for LoadHistory {
    fn default() -> LoadHistory {
        let start = LoadSample {
            at: Instant::now(),
            requests: 0,
            bytes_sent: 0,
            server_errors: 0,
            durations: BucketCounts::default(),
        };
        LoadHistory(Mutex::new(VecDeque::from([start])))
    }
}

impl LoadHistory {
    /// Adds a sample, and drops the oldest one above the maximum.
    pub fn push(&self, sample: LoadSample) {
        let mut samples = self.lock();
        samples.push_back(sample);
        if samples.len() > MAX_SAMPLES {
            samples.pop_front();
        }
    }

    /// Returns the samples with which the reported intervals begin, the shortest interval first. Intervals longer than
    /// the time since the first sample begin with the first sample, and are reported once.
    pub fn beginnings(&self, now: Instant) -> Vec<LoadSample> {
        let samples = self.lock();
        let mut beginnings: Vec<LoadSample> = Vec::new();
        for window in WINDOWS {
            let is_old = |sample: &&LoadSample| now.saturating_duration_since(sample.at) >= window;
            let found = samples.iter().rev().find(is_old).or_else(|| samples.front());
            let Some(sample) = found else { continue };
            if beginnings.last().is_none_or(|last| last.at != sample.at) {
                beginnings.push(sample.clone());
            }
        }
        beginnings
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<LoadSample>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_begin_with_the_latest_sample_that_is_old_enough() {
        let history = LoadHistory::default();
        let start = history.lock()[0].clone();
        let at = |seconds: u64| start.at + Duration::from_secs(seconds);
        // Returns the seconds from the start to each beginning. Each sample has as many requests as seconds have
        // passed.
        let beginnings = |seconds| -> Vec<u64> {
            let found = history.beginnings(at(seconds));
            found.iter().map(|sample| sample.requests).collect()
        };
        assert_eq!(beginnings(0), [0]);
        assert_eq!(beginnings(9), [0]);
        for second in (5..=200).step_by(5) {
            history.push(LoadSample {
                at: at(second),
                requests: second,
                ..start.clone()
            });
            match second {
                5 | 10 => assert_eq!(beginnings(second), [0]),
                15 => assert_eq!(beginnings(second), [5, 0]),
                60 => assert_eq!(beginnings(second + 4), [50, 0]),
                65 => assert_eq!(beginnings(second), [55, 5]),
                _ => {}
            }
        }
        assert_eq!(beginnings(204), [190, 140]);
        assert_eq!(history.lock().len(), MAX_SAMPLES);
    }
}
