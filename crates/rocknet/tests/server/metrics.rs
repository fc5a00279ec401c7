//! Metrics of a running server: requests and bytes by route, protocols, upstreams, restarted workers and reloads.

use std::time::Instant;

use rocknet::inventory;

use super::support::handlers::Echo;
use super::support::http2::Http2;
use super::support::running::mount;
use super::support::upstream::{Upstream, ok};
use super::support::{DEADLINE, Folder, Running};

const SERVER: &str = "[server]\nworkers = 1\nh2c = true\nevents = { wait = \"20ms\" }\n";

fn folder() -> Folder {
    Folder::with(&[
        ("www/index.html", "hello"),
        ("www/api/one.txt", "1"),
        ("www/api/two.txt", "22"),
    ])
}

fn text(keys: &str) -> String {
    format!("{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n{keys}\n")
}

/// Returns the value of a sample.
pub fn value(server: &Running, sample: &str) -> Option<f64> {
    let text = inventory::metrics(server.server());
    let start = format!("{sample} ");
    let line = text.lines().find(|line| line.starts_with(&start))?;
    line[start.len()..].parse().ok()
}

/// Waits until a sample has a value.
#[track_caller]
pub fn wait(server: &Running, sample: &str, expected: f64) {
    let until = Instant::now() + DEADLINE;
    while value(server, sample) != Some(expected) {
        assert!(
            Instant::now() < until,
            "{sample} is {:?}, not {expected}",
            value(server, sample)
        );
        std::thread::yield_now();
    }
}

#[test]
fn requests_are_counted_by_route() {
    let upstream = Upstream::responding_with(ok("from the upstream"));
    let keys = format!(
        "[site.default.route.\"/api/*\"]\nheaders = {{ X-Api = \"1\" }}\n\
         [site.default.route.\"/proxied\"]\nproxy = \"{}\"",
        upstream.url()
    );
    let server = Running::start_with(folder(), &text(&keys), vec![mount("/echo/", Echo)]);
    let mut client = server.connect();
    // The first response comes from the disk, the others from the cache of the worker.
    for _ in 0..3 {
        client.get("/");
        client.get("/api/two.txt");
    }
    client.get("/api/missing");
    client.get("/proxied");
    client.send("POST /echo/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 7\r\n\r\ncontent");
    client.response();
    client.send("GET / HTTP/1.1\r\nHost: b.test\r\n\r\n");
    client.response();
    let count = |sample: &str| value(&server, sample).unwrap_or_default();
    let responses = |route: &str, class: &str| {
        let labels = format!("site=\"default\",route=\"{route}\",class=\"{class}\"");
        count(&format!("rocknet_route_responses_total{{{labels}}}"))
    };
    // The only site of a port serves every host.
    wait(
        &server,
        "rocknet_route_responses_total{site=\"default\",route=\"/*\",class=\"2xx\"}",
        4.0,
    );
    assert_eq!(responses("/api/*", "2xx"), 3.0);
    assert_eq!(responses("/api/*", "4xx"), 1.0);
    assert_eq!(responses("/proxied", "2xx"), 1.0);
    // Each of the four responses has the five bytes `hello`.
    let labels = "{site=\"default\",route=\"/*\"}";
    assert_eq!(count(&format!("rocknet_route_sent_bytes_total{labels}")), 20.0);
    assert_eq!(count(&format!("rocknet_response_duration_seconds_count{labels}")), 4.0);
    assert!(count(&format!("rocknet_response_duration_seconds_sum{labels}")) < DEADLINE.as_secs_f64());
    let echo = "{site=\"default\",route=\"/echo/*\"}";
    assert_eq!(count(&format!("rocknet_route_received_bytes_total{echo}")), 7.0);
    let upstream = format!(
        "rocknet_upstream_response_duration_seconds_count{{upstream=\"{}\"}}",
        upstream.url()
    );
    assert_eq!(count(&upstream), 1.0);

    // A reload keeps all counters, even those of a route that it removes.
    server.reload(&text("")).expect("a valid configuration");
    server.get("/api/one.txt");
    wait(
        &server,
        "rocknet_route_responses_total{site=\"default\",route=\"/*\",class=\"2xx\"}",
        5.0,
    );
    assert_eq!(responses("/api/*", "2xx"), 3.0);
    assert_eq!(count("rocknet_reloads_total"), 1.0);
    assert_eq!(count("rocknet_failed_reloads_total"), 0.0);
    server
        .reload(&text("tls = { cert = \"none.pem\", key = \"none.key\" }"))
        .unwrap_err();
    assert_eq!(count("rocknet_last_reload_failed"), 1.0);
}

#[test]
fn connections_are_counted_by_protocol() {
    let server = Running::start(folder(), &text(""));
    let mut first = server.connect();
    first.get("/");
    let mut second = Http2::to(server.address());
    second.get("/");
    wait(&server, "rocknet_protocol_connections_open{version=\"1\"}", 1.0);
    wait(&server, "rocknet_protocol_connections_open{version=\"2\"}", 1.0);
    drop((first, second));
    wait(&server, "rocknet_protocol_connections_open{version=\"1\"}", 0.0);
    wait(&server, "rocknet_protocol_connections_open{version=\"2\"}", 0.0);
    assert_eq!(
        value(&server, "rocknet_protocol_connections_total{version=\"2\"}"),
        Some(1.0)
    );
    assert_eq!(
        value(&server, "rocknet_protocol_connections_total{version=\"3\"}"),
        Some(0.0)
    );
}

#[test]
fn restarts_of_workers_are_counted() {
    let server = Running::start(folder(), &text(""));
    server.server().kill_worker();
    wait(&server, "rocknet_worker_restarts_total", 1.0);
    assert_eq!(server.get("/").text(), "hello");
}
