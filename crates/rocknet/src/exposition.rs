//! Metrics in the text format of OpenMetrics 1.0, which Prometheus reads.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{Display, Write as _};

use rocknet_control::{CertificateSummary, Status, UpstreamState, UpstreamSummary};

use crate::metrics::Histogram;

/// Maximum number of sites with a histogram of their own: those with the most responses. Each has a line for every
/// bound, and a scrape of a server with ten thousand sites would be several megabytes.
const MAX_SITES: usize = 1000;

/// Binary logarithms of the bounds of the histograms in microseconds: from 64 µs to 67 s, each four times the last.
const BOUND_BITS: [u32; 11] = [6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26];

/// Maximum number of upstreams, and of certificates, that have samples.
const MAX_LISTED: usize = 1000;

/// State of a server that the metrics show.
pub struct Measured<'m> {
    /// State and counters.
    pub status: &'m Status,
    /// Response durations by site.
    pub durations: &'m HashMap<Box<str>, Histogram>,
    /// Upstreams of the proxy.
    pub upstreams: &'m [UpstreamSummary],
    /// Certificates of the sites.
    pub certificates: &'m [CertificateSummary],
}

/// Writes the metrics.
pub fn render(measured: &Measured<'_>) -> String {
    let &Measured { status, durations, .. } = measured;
    let mut page = Page(String::with_capacity(4096));
    page.family("rocknet_build", "info", "", "Version of the server.");
    page.sample("rocknet_build_info", &[("version", &status.version)], 1);
    page.gauge(
        "rocknet_uptime_seconds",
        "seconds",
        "Time since the start.",
        status.uptime_s,
    );
    page.gauge(
        "rocknet_workers",
        "",
        "Workers of all listeners.",
        status.workers as u64,
    );
    page.gauge(
        "rocknet_connections_open",
        "",
        "Open connections.",
        status.connections_open,
    );
    page.counter(
        "rocknet_connections",
        "",
        "Accepted connections.",
        status.connections_total,
    );
    page.gauge(
        "rocknet_http3_connections_open",
        "",
        "Open connections of HTTP/3.",
        status.http3_open,
    );
    page.gauge(
        "rocknet_tunnels_open",
        "",
        "Open tunnels, such as WebSocket.",
        status.tunnels_open,
    );
    page.counter("rocknet_requests", "", "Received requests.", status.requests);
    page.family(
        "rocknet_responses",
        "counter",
        "",
        "Responses by the first digit of their status.",
    );
    for (class, count) in [
        ("2xx", status.responses.successful),
        ("3xx", status.responses.redirection),
        ("4xx", status.responses.client_error),
        ("5xx", status.responses.server_error),
    ] {
        page.sample("rocknet_responses_total", &[("class", class)], count);
    }
    page.counter(
        "rocknet_sent_bytes",
        "bytes",
        "Bytes sent to clients.",
        status.bytes_sent,
    );
    page.durations(durations);
    page.upstreams(measured.upstreams);
    page.certificates(measured.certificates);
    page.gauge(
        "rocknet_cache_files",
        "",
        "Files in the file cache.",
        status.cache.entries,
    );
    page.gauge(
        "rocknet_cache_bytes",
        "bytes",
        "Size of the file cache.",
        status.cache.bytes,
    );
    page.counter(
        "rocknet_cache_hits",
        "",
        "Lookups found in the file cache.",
        status.cache.hits,
    );
    page.counter(
        "rocknet_cache_misses",
        "",
        "Lookups not found in the file cache.",
        status.cache.misses,
    );
    page.counter("rocknet_log_dropped_records", "", "Lost log records.", status.log_drops);
    page.counter(
        "rocknet_reloads",
        "",
        "Successful reloads of the configuration.",
        status.reloads,
    );
    page.gauge(
        "rocknet_last_reload_failed",
        "",
        "1 if the last reload was refused.",
        u64::from(status.last_reload_error.is_some()),
    );
    page.0.push_str("# EOF\n");
    page.0
}

struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, unit: &str, help: &str) {
        let _ = writeln!(self.0, "# TYPE {name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(self.0, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.0, "# HELP {name} {help}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (number, (label, text)) in labels.iter().enumerate() {
            let before = if number == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{before}{label}=\"{}\"", escaped(text));
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    fn gauge(&mut self, name: &str, unit: &str, help: &str, value: u64) {
        self.family(name, "gauge", unit, help);
        self.sample(name, &[], value);
    }

    fn counter(&mut self, name: &str, unit: &str, help: &str, value: u64) {
        self.family(name, "counter", unit, help);
        self.sample(&format!("{name}_total"), &[], value);
    }

    /// Writes the states of upstreams. Upstreams that several routes use with different settings have the same address;
    /// their requests are added up, and the address is up if one of them is.
    fn upstreams(&mut self, upstreams: &[UpstreamSummary]) {
        let mut by_address: BTreeMap<&str, (bool, u64)> = BTreeMap::new();
        for upstream in upstreams.iter().take(MAX_LISTED) {
            let (is_up, in_flight) = by_address.entry(&upstream.address).or_default();
            *is_up |= upstream.state == UpstreamState::Up;
            *in_flight += upstream.in_flight;
        }
        let help = "1 if the upstream gets new requests; 0 if it is down, paused or drained.";
        self.family("rocknet_upstream_up", "gauge", "", help);
        for (address, (is_up, _)) in &by_address {
            self.sample("rocknet_upstream_up", &[("upstream", address)], u64::from(*is_up));
        }
        let help = "Requests and tunnels in progress at the upstream.";
        self.family("rocknet_upstream_requests", "gauge", "", help);
        for (address, (_, in_flight)) in &by_address {
            self.sample("rocknet_upstream_requests", &[("upstream", address)], in_flight);
        }
    }

    /// Writes when the certificates of the sites end. A site with several certificates has the earliest time.
    fn certificates(&mut self, certificates: &[CertificateSummary]) {
        let mut by_site: BTreeMap<&str, u64> = BTreeMap::new();
        let issued = certificates.iter().filter(|certificate| !certificate.names.is_empty());
        for certificate in issued.take(MAX_LISTED) {
            let end = by_site.entry(&certificate.site).or_insert(certificate.not_after);
            *end = certificate.not_after.min(*end);
        }
        let name = "rocknet_certificate_expiry_timestamp_seconds";
        self.family(
            name,
            "gauge",
            "seconds",
            "End of the validity of the site's certificate.",
        );
        for (site, end) in by_site {
            self.sample(name, &[("site", site)], end);
        }
    }

    /// Writes a histogram for each of the busiest sites. The histograms have no sum, because workers do not count one.
    fn durations(&mut self, durations: &HashMap<Box<str>, Histogram>) {
        let mut sites: Vec<_> = durations
            .iter()
            .map(|(name, histogram)| (std::cmp::Reverse(histogram.count()), name, histogram))
            .collect();
        sites.sort_unstable_by_key(|&(count, name, _)| (count, name));
        sites.truncate(MAX_SITES);
        let name = "rocknet_response_duration_seconds";
        self.family(
            name,
            "histogram",
            "seconds",
            "Time from a request until its response was queued.",
        );
        let bucket = "rocknet_response_duration_seconds_bucket";
        for (count, site, histogram) in sites {
            for bits in BOUND_BITS {
                let bound = (1_u64 << bits) as f64 / 1e6;
                let within = histogram.count_below_power(bits);
                self.sample(bucket, &[("site", site), ("le", &bound.to_string())], within);
            }
            self.sample(bucket, &[("site", site), ("le", "+Inf")], count.0);
        }
    }
}

/// Escapes the value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_written_in_families() {
        let status = Status {
            version: "0.1.0".into(),
            requests: 7,
            responses: rocknet_control::Responses {
                successful: 5,
                client_error: 2,
                ..Default::default()
            },
            ..Status::default()
        };
        let histogram = Histogram::default();
        for duration in [1, 63, 64, 1_000, 1_100, u64::MAX] {
            histogram.add(duration);
        }
        let durations = HashMap::from([("a\"\\\n.test".into(), histogram)]);
        let upstream = |address: &str, state| UpstreamSummary {
            address: address.into(),
            state,
            in_flight: 2,
        };
        let certificate = |not_after| CertificateSummary {
            site: "a.test".into(),
            names: vec!["a.test".into()],
            not_after,
            ..CertificateSummary::default()
        };
        let text = render(&Measured {
            status: &status,
            durations: &durations,
            upstreams: &[
                upstream("http://u:1", UpstreamState::Down),
                upstream("http://u:1", UpstreamState::Up),
                upstream("http://u:2", UpstreamState::Drained),
            ],
            certificates: &[certificate(200), certificate(100), CertificateSummary::default()],
        });
        for line in [
            "# TYPE rocknet_build info\n# HELP rocknet_build Version of the server.\nrocknet_build_info{version=\"0.1.0\"} 1\n",
            "# TYPE rocknet_requests counter\n# HELP rocknet_requests Received requests.\nrocknet_requests_total 7\n",
            "rocknet_responses_total{class=\"4xx\"} 2\n",
            "rocknet_upstream_up{upstream=\"http://u:1\"} 1\nrocknet_upstream_up{upstream=\"http://u:2\"} 0\n",
            "rocknet_upstream_requests{upstream=\"http://u:1\"} 4\n",
            "rocknet_certificate_expiry_timestamp_seconds{site=\"a.test\"} 100\n",
            "# UNIT rocknet_response_duration_seconds seconds\n",
            "rocknet_response_duration_seconds_bucket{site=\"a\\\"\\\\\\n.test\",le=\"0.000064\"} 2\n",
            "rocknet_response_duration_seconds_bucket{site=\"a\\\"\\\\\\n.test\",le=\"0.001024\"} 4\n",
            "rocknet_response_duration_seconds_bucket{site=\"a\\\"\\\\\\n.test\",le=\"67.108864\"} 5\n",
            "rocknet_response_duration_seconds_bucket{site=\"a\\\"\\\\\\n.test\",le=\"+Inf\"} 6\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(text.ends_with("# EOF\n"));
        // Each family is declared once, before its samples.
        let mut families: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        let declared = families.len();
        families.sort_unstable();
        families.dedup();
        assert_eq!(families.len(), declared);
    }

    #[test]
    fn the_number_of_sites_is_bounded() {
        let mut durations = HashMap::new();
        for number in 0..MAX_SITES + 10 {
            let histogram = Histogram::default();
            histogram.add(1);
            if number == 1005 {
                histogram.add(1);
            }
            durations.insert(format!("s{number}").into_boxed_str(), histogram);
        }
        let text = render(&Measured {
            status: &Status::default(),
            durations: &durations,
            upstreams: &[],
            certificates: &[],
        });
        assert_eq!(text.matches("le=\"+Inf\"").count(), MAX_SITES);
        assert!(
            text.contains("{site=\"s1005\",le=\"+Inf\"} 2\n"),
            "the busiest site is listed"
        );
    }
}
