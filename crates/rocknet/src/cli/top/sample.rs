//! Rates between two states of a server.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rocknet_control::Status;
use serde::Serialize;

/// Number of samples that a chart shows: two minutes of seconds.
const MAX_SAMPLES: usize = 120;

/// State of the server with the time at which it was queried.
pub struct TimedStatus {
    pub status: Status,
    pub at: Instant,
}

/// Load of a server during an interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sample {
    /// Requests per second.
    pub requests_per_second: f64,
    /// Bytes sent to clients per second.
    pub bytes_per_second: f64,
    /// Responses with a status of 500 or above, per second.
    pub server_errors_per_second: f64,
    /// CPU time in percent of one core.
    pub cpu_percent: f64,
    /// Resident memory in bytes at the end of the interval.
    pub memory_bytes: u64,
    /// Open connections at the end of the interval.
    pub connections_open: u64,
    /// Sites by responses per second, the busiest first.
    pub sites: Vec<SiteSample>,
}

/// Load of a site.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SiteSample {
    /// Name of the site.
    pub site: String,
    /// Responses per second.
    pub responses_per_second: f64,
    /// Median of the response time since the start of the server, in microseconds.
    pub p50_us: u64,
    /// 99th percentile of the response time since the start of the server, in microseconds.
    pub p99_us: u64,
}

impl Sample {
    /// Returns the load between two states.
    pub fn between(before: &TimedStatus, now: &TimedStatus) -> Sample {
        Sample::of(&before.status, &now.status, now.at.duration_since(before.at))
    }

    fn of(before: &Status, now: &Status, interval: Duration) -> Sample {
        let seconds = interval.as_secs_f64();
        // A server that was started again has smaller counters. The rates of that interval are zero.
        let rate = |before: u64, now: u64| match seconds {
            0.0 => 0.0,
            seconds => now.saturating_sub(before) as f64 / seconds,
        };
        let responses_before = |site: &str| {
            let known = before.durations.iter().find(|durations| durations.site == site);
            known.map_or(0, |durations| durations.responses)
        };
        let mut sites: Vec<SiteSample> = now
            .durations
            .iter()
            .map(|durations| SiteSample {
                site: durations.site.clone(),
                responses_per_second: rate(responses_before(&durations.site), durations.responses),
                p50_us: durations.p50_us,
                p99_us: durations.p99_us,
            })
            .collect();
        sites.sort_by(|one, other| other.responses_per_second.total_cmp(&one.responses_per_second));
        // 10 ms of CPU time per second are 1 % of a core.
        Sample {
            requests_per_second: rate(before.requests, now.requests),
            bytes_per_second: rate(before.bytes_sent, now.bytes_sent),
            server_errors_per_second: rate(before.responses.server_error, now.responses.server_error),
            cpu_percent: rate(before.cpu_ms, now.cpu_ms) / 10.0,
            memory_bytes: now.memory_bytes,
            connections_open: now.connections_open,
            sites,
        }
    }
}

/// The last samples, the oldest first.
#[derive(Debug, Default)]
pub struct SampleHistory(VecDeque<Sample>);

impl SampleHistory {
    /// Adds a sample, and drops the oldest one above the maximum.
    pub fn push(&mut self, sample: Sample) {
        self.0.push_back(sample);
        if self.0.len() > MAX_SAMPLES {
            self.0.pop_front();
        }
    }

    /// Returns the latest sample.
    pub fn last(&self) -> Option<&Sample> {
        self.0.back()
    }

    /// Returns one value of the last `count` samples, the oldest first.
    pub fn values(&self, count: usize, value: impl Fn(&Sample) -> f64) -> Vec<u64> {
        let first = self.0.len().saturating_sub(count);
        self.0
            .iter()
            .skip(first)
            .map(|sample| value(sample).round() as u64)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use rocknet_control::{Responses, SiteDurations};

    use super::*;

    fn status(requests: u64, sites: &[(&str, u64)]) -> Status {
        Status {
            requests,
            bytes_sent: requests * 10,
            cpu_ms: requests,
            memory_bytes: 5,
            responses: Responses {
                server_error: requests / 100,
                ..Responses::default()
            },
            durations: sites
                .iter()
                .map(|(site, responses)| SiteDurations {
                    site: (*site).to_owned(),
                    responses: *responses,
                    ..SiteDurations::default()
                })
                .collect(),
            ..Status::default()
        }
    }

    #[test]
    fn rates_are_differences_per_second() {
        let before = status(1_000, &[("a", 900)]);
        let now = status(2_000, &[("a", 1_000), ("b", 400)]);
        let sample = Sample::of(&before, &now, Duration::from_secs(2));
        assert_eq!((sample.requests_per_second, sample.bytes_per_second), (500.0, 5_000.0));
        assert_eq!((sample.cpu_percent, sample.server_errors_per_second), (50.0, 5.0));
        let sites: Vec<_> = sample
            .sites
            .iter()
            .map(|site| (site.site.as_str(), site.responses_per_second))
            .collect();
        assert_eq!(sites, [("b", 200.0), ("a", 50.0)]);
        // After a restart, the counters are smaller.
        assert_eq!(
            Sample::of(&now, &before, Duration::from_secs(1)).requests_per_second,
            0.0
        );
        assert_eq!(Sample::of(&before, &now, Duration::ZERO).requests_per_second, 0.0);
    }

    #[test]
    fn the_history_is_bounded() {
        let mut history = SampleHistory::default();
        for number in 0..MAX_SAMPLES as u64 + 5 {
            history.push(Sample::of(
                &status(0, &[]),
                &status(number, &[]),
                Duration::from_secs(1),
            ));
        }
        let values = history.values(usize::MAX, |sample| sample.requests_per_second);
        assert_eq!((values.len(), values[0]), (MAX_SAMPLES, 5));
        assert_eq!(history.values(1, |sample| sample.requests_per_second), [124]);
    }
}
