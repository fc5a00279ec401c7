//! Rates between two states of a server.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use rocknet_control::ban::OffenderSummary;
use rocknet_control::route::RouteTraffic;
use rocknet_control::status::{self, Protocols, ResponseCache};
use rocknet_control::{Status, durations};
use serde::Serialize;

/// Maximum number of samples that are kept for the charts: two minutes at the default interval of one second.
const MAX_SAMPLES: usize = 120;

/// Maximum number of routes of a sample, more than the table has rows on most terminals.
const MAX_ROUTES: usize = 32;

/// State of the server with the time at which it was queried.
pub struct TimedStatus {
    pub status: Status,
    pub routes: Vec<RouteTraffic>,
    pub offenders: Vec<OffenderSummary>,
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
    /// Requests that limits have refused, per second.
    pub refused_per_second: f64,
    /// Requests that used the response cache, per second.
    pub cached_requests_per_second: f64,
    /// Share of these requests that were not forwarded, as `hit_ratio` of the status; `None` without such a request.
    pub cache_hit_ratio: Option<f64>,
    /// Response times during the interval.
    pub latency: Latency,
    /// CPU time in percent of one core.
    pub cpu_percent: f64,
    /// Resident memory in bytes at the end of the interval.
    pub memory_bytes: u64,
    /// Open connections at the end of the interval.
    pub connections_open: u64,
    /// Open connections at the end of the interval by version of HTTP.
    pub protocols: Protocols,
    /// Sites with requests since the start of the server, the busiest of the interval first.
    pub sites: Vec<SiteSample>,
    /// Routes with requests since the start of the server, the busiest of the interval first; at most 32.
    pub routes: Vec<RouteSample>,
    /// Clients with the most offences of the last minutes, the worst first; at most 32.
    pub worst_clients: Vec<OffenderSummary>,
}

/// Response times during an interval.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Latency {
    /// Median in microseconds; `None` without a response.
    pub p50_us: Option<u64>,
    /// 99th percentile in microseconds; `None` without a response.
    pub p99_us: Option<u64>,
}

/// Load of a site.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SiteSample {
    /// Name of the site.
    pub site: String,
    /// Responses per second.
    pub responses_per_second: f64,
    /// Response times during the interval.
    #[serde(flatten)]
    pub latency: Latency,
}

/// Load of a route.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RouteSample {
    /// Name of the site.
    pub site: String,
    /// Pattern as in the configuration; `/*` for paths without a route of their own.
    pub route: String,
    /// Responses per second.
    pub responses_per_second: f64,
    /// Response times during the interval.
    #[serde(flatten)]
    pub latency: Latency,
}

impl Latency {
    /// Returns the percentiles. `counts` has the number of responses of an interval below each bound of
    /// [`durations`].
    fn of(counts: &[u64]) -> Latency {
        Latency {
            p50_us: durations::quantile(counts, 50),
            p99_us: durations::quantile(counts, 99),
        }
    }
}

/// Responses and their times during an interval.
#[derive(Default)]
struct Interval {
    responses: u64,
    /// Number of responses below each bound of [`durations`]. The last number counts all responses.
    counts: Vec<u64>,
}

impl Sample {
    /// Returns the load between two states.
    pub fn between(before: &TimedStatus, now: &TimedStatus) -> Sample {
        Sample::of(before, now, now.at.duration_since(before.at))
    }

    /// Returns the load between two states that are `interval` apart.
    fn of(before: &TimedStatus, now: &TimedStatus, interval: Duration) -> Sample {
        let seconds = interval.as_secs_f64();
        let per_second = |count: u64| match seconds {
            0.0 => 0.0,
            seconds => count as f64 / seconds,
        };
        // A server that was started again has smaller counters. The rates of that interval are zero.
        let rate = |before: u64, now: u64| per_second(now.saturating_sub(before));
        let earlier: HashMap<(&str, &str), &RouteTraffic> = (before.routes.iter())
            .map(|route| ((route.site.as_str(), route.route.as_str()), route))
            .collect();
        let mut by_site: BTreeMap<&str, Interval> = BTreeMap::new();
        let mut routes = Vec::new();
        for route in &now.routes {
            let known = earlier.get(&(route.site.as_str(), route.route.as_str()));
            let counts_before = known.map_or(&[][..], |known| &known.duration_counts);
            let counts = durations::between(counts_before, &route.duration_counts);
            let responses = route.responses.saturating_sub(known.map_or(0, |known| known.responses));
            routes.push(RouteSample {
                site: route.site.clone(),
                route: route.route.clone(),
                responses_per_second: per_second(responses),
                latency: Latency::of(&counts),
            });
            let site = by_site.entry(&route.site).or_default();
            site.responses += responses;
            durations::add(&mut site.counts, &counts);
        }
        let mut sites: Vec<SiteSample> = by_site
            .into_iter()
            .map(|(site, interval)| SiteSample {
                site: site.to_owned(),
                responses_per_second: per_second(interval.responses),
                latency: Latency::of(&interval.counts),
            })
            .collect();
        sites.sort_by(|one, other| other.responses_per_second.total_cmp(&one.responses_per_second));
        routes.sort_by(|one, other| other.responses_per_second.total_cmp(&one.responses_per_second));
        routes.truncate(MAX_ROUTES);
        let worst_clients = now.offenders.clone();
        let (before, now) = (&before.status, &now.status);
        let cached = |count: fn(&ResponseCache) -> u64| {
            let (before, now) = (&before.response_cache, &now.response_cache);
            count(now).saturating_sub(count(before))
        };
        let (cache_served, cache_requests) = (cached(ResponseCache::served), cached(ResponseCache::requests));
        Sample {
            requests_per_second: rate(before.requests, now.requests),
            bytes_per_second: rate(before.bytes_sent, now.bytes_sent),
            server_errors_per_second: rate(before.responses.server_error, now.responses.server_error),
            refused_per_second: rate(before.limited.refused, now.limited.refused),
            cached_requests_per_second: per_second(cache_requests),
            cache_hit_ratio: status::ratio(cache_served, cache_requests),
            latency: Latency::of(&durations::between(&before.duration_counts, &now.duration_counts)),
            // 10 ms of CPU time per second are 1 % of a core.
            cpu_percent: rate(before.cpu_ms, now.cpu_ms) / 10.0,
            memory_bytes: now.memory_bytes,
            connections_open: now.connections_open,
            protocols: now.protocols,
            sites,
            routes,
            worst_clients,
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

    /// Returns a value of each of the last `count` samples, rounded to an integer, the oldest first.
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
    use rocknet_control::Responses;
    use rocknet_control::status::LimitedRequests;

    use super::*;

    /// Returns a state with routes: site, pattern and number of responses of 8 to 15 µs.
    fn state(requests: u64, routes: &[(&str, &str, u64)]) -> TimedStatus {
        TimedStatus {
            status: Status {
                requests,
                bytes_sent: requests * 10,
                cpu_ms: requests,
                memory_bytes: 5,
                responses: Responses {
                    server_error: requests / 100,
                    ..Responses::default()
                },
                duration_counts: vec![0, requests],
                limited: LimitedRequests {
                    refused: requests / 10,
                    ..LimitedRequests::default()
                },
                response_cache: ResponseCache {
                    hits: requests / 4,
                    stale: requests / 20,
                    misses: requests / 10,
                    bypassed: requests,
                    ..ResponseCache::default()
                },
                ..Status::default()
            },
            offenders: Vec::new(),
            routes: routes
                .iter()
                .map(|(site, route, responses)| RouteTraffic {
                    site: (*site).to_owned(),
                    route: (*route).to_owned(),
                    responses: *responses,
                    duration_counts: vec![0, *responses],
                    ..RouteTraffic::default()
                })
                .collect(),
            at: Instant::now(),
        }
    }

    #[test]
    fn rates_are_differences_per_second() {
        let before = state(1_000, &[("a", "/*", 900), ("a", "/x", 100)]);
        let now = state(2_000, &[("a", "/*", 950), ("a", "/x", 150), ("b", "/*", 400)]);
        let sample = Sample::of(&before, &now, Duration::from_secs(2));
        assert_eq!((sample.requests_per_second, sample.bytes_per_second), (500.0, 5_000.0));
        assert_eq!((sample.cpu_percent, sample.server_errors_per_second), (50.0, 5.0));
        // The percentiles are interpolated between the bounds 8 and 16 µs, and rounded down.
        let latency = Latency {
            p50_us: Some(12),
            p99_us: Some(15),
        };
        assert_eq!(sample.latency, latency);
        assert_eq!(sample.refused_per_second, 50.0);
        assert_eq!(
            (sample.cached_requests_per_second, sample.cache_hit_ratio),
            (200.0, Some(0.75))
        );
        let sites: Vec<_> = (sample.sites.iter())
            .map(|site| (site.site.as_str(), site.responses_per_second))
            .collect();
        assert_eq!(sites, [("b", 200.0), ("a", 50.0)]);
        let routes: Vec<_> = (sample.routes.iter())
            .map(|route| (route.site.as_str(), route.route.as_str(), route.responses_per_second))
            .collect();
        assert_eq!(routes, [("b", "/*", 200.0), ("a", "/*", 25.0), ("a", "/x", 25.0)]);
        assert_eq!(sample.sites[0].latency.p50_us, Some(12));
        // An interval without responses has no latency, even if there were responses before it.
        let idle = Sample::of(&now, &now, Duration::from_secs(1));
        assert_eq!(
            (idle.latency, idle.routes[0].latency),
            (Latency::default(), Latency::default())
        );
        assert_eq!(idle.cache_hit_ratio, None);
        // After a restart, the counters are smaller.
        assert_eq!(
            Sample::of(&now, &before, Duration::from_secs(1)).requests_per_second,
            0.0
        );
        assert_eq!(Sample::of(&before, &now, Duration::ZERO).requests_per_second, 0.0);
        let json = serde_json::to_value(&sample).unwrap();
        assert_eq!(
            (&json["routes"][0]["p50_us"], &json["latency"]["p99_us"]),
            (&12.into(), &15.into())
        );
    }

    #[test]
    fn the_number_of_routes_is_bounded() {
        let names: Vec<String> = (0..MAX_ROUTES + 5).map(|number| format!("/{number}")).collect();
        let routes: Vec<(&str, &str, u64)> = names.iter().map(|name| ("a", name.as_str(), 1)).collect();
        let sample = Sample::of(&state(0, &[]), &state(0, &routes), Duration::from_secs(1));
        assert_eq!((sample.routes.len(), sample.sites.len()), (MAX_ROUTES, 1));
    }

    #[test]
    fn the_history_is_bounded() {
        let mut history = SampleHistory::default();
        for number in 0..MAX_SAMPLES as u64 + 5 {
            history.push(Sample::of(&state(0, &[]), &state(number, &[]), Duration::from_secs(1)));
        }
        let values = history.values(usize::MAX, |sample| sample.requests_per_second);
        assert_eq!((values.len(), values[0]), (MAX_SAMPLES, 5));
        // The last sample has 124 requests: the loop ends at `MAX_SAMPLES` + 4.
        assert_eq!(history.values(1, |sample| sample.requests_per_second), [124]);
    }
}
