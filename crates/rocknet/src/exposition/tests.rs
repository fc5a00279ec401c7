//! Tests of the exposition: families, samples, escaping and bounds.

use rocknet_control::Responses;
use rocknet_proto::Status as HttpStatus;

use rocknet_control::status::{ProtocolConnections, Protocols};

use super::*;
use crate::metrics::{AuthCounters, CountedResponse, LocalCounters, Metrics, RouteLabels};

/// Returns the counters of a route after responses with these durations in microseconds.
fn counters(durations_us: &[u64]) -> RouteCounters {
    let (metrics, labels) = (Metrics::default(), Arc::<RouteLabels>::default());
    let worker = LocalCounters::new(metrics.register(), labels);
    for &duration_us in durations_us {
        let response = CountedResponse {
            status: HttpStatus::OK,
            sent_bytes: 10,
            received_bytes: 2,
            duration_us: Some(duration_us),
        };
        worker.count(crate::metrics::OTHER, response);
    }
    metrics.routes().remove(&crate::metrics::OTHER).unwrap()
}

/// Returns a state with every kind of sample.
fn everything() -> Measured {
    let status = Status {
        version: "0.1.0".into(),
        requests: 7,
        cpu_ms: 1500,
        responses: Responses {
            successful: 5,
            client_error: 2,
            ..Default::default()
        },
        ..Status::default()
    };
    let label = RouteLabel {
        site: "a\"\\\n.test".into(),
        route: "/api/*".into(),
    };
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
    let upstream_durations = HashMap::from([("http://u:1".into(), Histogram::default())]);
    upstream_durations["http://u:1"].add(2_000_000);
    let pool = PhpPoolSummary {
        name: "8.2".into(),
        state: PhpState::Ready,
        processes: 3,
        restarts: 1,
        ..PhpPoolSummary::default()
    };
    let connections = |open, total| ProtocolConnections { open, total };
    let status = Status {
        protocols: Protocols {
            http1: connections(1, 3),
            http2: connections(0, 2),
            http3: connections(1, 1),
        },
        ..status
    };
    let limit = LimitSample {
        label: label.clone(),
        amount: "10/s".into(),
        key: "{client.ip}".into(),
        requests: [3, 2, 0],
    };
    let auth_counters = AuthCounters::default();
    let site = Arc::<str>::from("a.test");
    auth_counters.forward.of_site(&site);
    auth_counters.logins.of_site(&site);
    auth_counters.sessions.of_site(&site);
    auth_counters.signed_urls.of_site(&site);
    // The durations are on both sides of the bounds 64 µs and 1,024 µs, and one is above the last bound of 67 s.
    Measured {
        status,
        routes: BTreeMap::from([(label, counters(&[1, 63, 64, 1_000, 1_100, 1 << 40]))]),
        limits: vec![limit.clone(), limit],
        totals: Totals {
            handshakes: [5, 4, 3],
            stored_requests: vec![
                ("a.test".into(), vec![("hit", 7), ("miss", 2)]),
                ("b.test".into(), vec![("hit", 1), ("miss", 0)]),
            ],
            authentication: Authentication::of(&auth_counters),
            stored_disk: Some(DiskUsage::default()),
            bans: BanCounters {
                by_offence: vec![("logins", 2)],
                ..BanCounters::default()
            },
            ..Totals::default()
        },
        upstream_durations,
        upstreams: vec![
            upstream("http://u:1", UpstreamState::Down),
            upstream("http://u:1", UpstreamState::Up),
            upstream("http://u:2", UpstreamState::Drained),
        ],
        certificates: vec![certificate(200), certificate(100), CertificateSummary::default()],
        php: vec![pool],
    }
}

#[test]
fn metrics_are_written_in_families() {
    let text = render(&everything());
    let route = r#"site="a\"\\\n.test",route="/api/*""#;
    for line in [
        "# TYPE rocknet_build info\n# HELP rocknet_build Version of the server.\nrocknet_build_info{version=\"0.1.0\"} 1\n",
        "# TYPE rocknet_requests counter\n# HELP rocknet_requests Received requests.\nrocknet_requests_total 7\n",
        "rocknet_cpu_seconds_total 1.5\n",
        "rocknet_responses_total{class=\"4xx\"} 2\n",
        "rocknet_protocol_connections_total{version=\"2\"} 2\n",
        "rocknet_protocol_connections_open{version=\"3\"} 1\n",
        "rocknet_tls_handshakes_total{result=\"resumed\"} 4\n",
        "rocknet_stored_requests_total{site=\"a.test\",outcome=\"hit\"} 7\n",
        "rocknet_stored_requests_total{site=\"b.test\",outcome=\"miss\"} 0\n",
        "# TYPE rocknet_forward_auth_queries counter\n",
        "rocknet_forward_auth_queries_total{site=\"a.test\",outcome=\"timeout\"} 0\n",
        "rocknet_oidc_logins_total{site=\"a.test\",outcome=\"begun\"} 0\n",
        "rocknet_oidc_rejected_sessions_total{site=\"a.test\",reason=\"expired\"} 0\n",
        "rocknet_signed_urls_total{site=\"a.test\",outcome=\"admitted\"} 0\n",
        "rocknet_upstream_up{upstream=\"http://u:1\"} 1\nrocknet_upstream_up{upstream=\"http://u:2\"} 0\n",
        "rocknet_upstream_requests{upstream=\"http://u:1\"} 4\n",
        "rocknet_upstream_response_duration_seconds_bucket{upstream=\"http://u:1\",le=\"4.194304\"} 1\n",
        "rocknet_upstream_response_duration_seconds_sum{upstream=\"http://u:1\"} 2\n",
        "rocknet_certificate_expiry_timestamp_seconds{site=\"a.test\"} 100\n",
        "rocknet_php_up{pool=\"8.2\"} 1\n",
        "rocknet_php_processes{pool=\"8.2\"} 3\n",
        "rocknet_php_restarts_total{pool=\"8.2\"} 1\n",
        "# UNIT rocknet_response_duration_seconds seconds\n",
        &format!("rocknet_route_responses_total{{{route},class=\"2xx\"}} 6\n"),
        &format!(
            "rocknet_limited_requests_total{{{route},limit=\"10/s\",key=\"{{client.ip}}\",effect=\"refused\"}} 6\n"
        ),
        &format!("rocknet_route_sent_bytes_total{{{route}}} 60\n"),
        &format!("rocknet_route_received_bytes_total{{{route}}} 12\n"),
        &format!("rocknet_response_duration_seconds_bucket{{{route},le=\"0.000064\"}} 2\n"),
        &format!("rocknet_response_duration_seconds_bucket{{{route},le=\"0.001024\"}} 4\n"),
        &format!("rocknet_response_duration_seconds_bucket{{{route},le=\"67.108864\"}} 5\n"),
        &format!("rocknet_response_duration_seconds_bucket{{{route},le=\"+Inf\"}} 6\n"),
        &format!("rocknet_response_duration_seconds_sum{{{route}}} 1099511.630004\n"),
        &format!("rocknet_response_duration_seconds_count{{{route}}} 6\n"),
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert!(
        !text.contains("class=\"1xx\""),
        "classes without responses have no sample"
    );
    assert!(text.ends_with("# EOF\n"));
    // Each family is declared once, and its unit is the end of its name.
    let mut families: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let declared = families.len();
    families.sort_unstable();
    families.dedup();
    assert_eq!(families.len(), declared);
    for unit in text.lines().filter_map(|line| line.strip_prefix("# UNIT ")) {
        let (name, unit) = unit.split_once(' ').unwrap();
        assert!(name.ends_with(&format!("_{unit}")), "{name}");
    }
}

/// Returns the words of a query that are names of metrics.
fn metric_names(query: &str) -> impl Iterator<Item = &str> {
    let words = query.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("rocknet_"))
}

#[test]
fn every_metric_of_the_grafana_dashboard_exists() {
    let text = render(&everything());
    let samples: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    let dashboard = include_str!("../../../../packaging/grafana/rocknet.json");
    let dashboard: serde_json::Value = serde_json::from_str(dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
    let queries: Vec<&str> = targets
        .map(|target| target["expr"].as_str().unwrap())
        .chain(variables.filter_map(|variable| variable["definition"].as_str()))
        .collect();
    // Guards against a search that misses the queries. The dashboard has more than 30.
    assert!(queries.len() > 30, "{queries:?}");
    for query in queries {
        assert!(metric_names(query).next().is_some(), "{query}");
        for name in metric_names(query) {
            assert!(samples.contains(&name), "{name} in {query}");
        }
    }
}
