//! Traces of requests: spans at a collector, the context that upstreams and applications get, sampling, and collectors
//! that do not respond.

use std::net::TcpListener;
use std::time::Instant;

use rocknet::inventory;
use serde_json::Value;

use super::support::fastcgi::{self, Peer, SOCKET};
use super::support::refusing_port::RefusingPort;
use super::support::running::site;
use super::support::upstream::{Upstream, ok};
use super::support::{DEADLINE, Folder, Running};

const SERVER: &str = "[server]\nworkers = 1\nevents = { wait = \"20ms\" }\n";
/// Trace ID of the context that clients send.
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
/// Parent ID of the context that clients send.
const PARENT: &str = "b7ad6b7169203331";

fn folder() -> Folder {
    Folder::with(&[("www/a.txt", "hello"), ("www/index.php", "<?php")])
}

/// Starts a server that sends spans to `collector`, with keys of `[tracing]` and of the site.
fn start(collector: &str, tracing: &str, keys: &str) -> Running {
    let tracing = format!("[tracing]\nendpoint = \"{collector}\"\n{tracing}\n");
    Running::start(folder(), &format!("{SERVER}{tracing}{}", site(keys)))
}

/// Stops the server, so that all spans are sent, and returns the spans that the collector has received.
fn spans(server: Running, collector: &Upstream) -> Vec<Value> {
    server.stop();
    let mut all = Vec::new();
    for request in collector.all() {
        assert_eq!(request.line, "POST /v1/traces HTTP/1.1");
        assert_eq!(request.field("Content-Type"), Some("application/json"));
        let body: Value = serde_json::from_slice(&request.content).expect("JSON");
        let resource = &body["resourceSpans"][0];
        assert_eq!(resource["resource"]["attributes"][0]["key"], "service.name");
        let found = resource["scopeSpans"][0]["spans"].as_array().expect("a list of spans");
        all.extend(found.iter().cloned());
    }
    all
}

/// Returns the value of an attribute as text; empty without it.
fn attribute<'s>(span: &'s Value, name: &str) -> &'s str {
    let attributes = span["attributes"].as_array().expect("a list of attributes");
    let found = attributes.iter().find(|attribute| attribute["key"] == name);
    let value = found.map(|attribute| &attribute["value"]);
    let text = value.and_then(|value| value["stringValue"].as_str().or_else(|| value["intValue"].as_str()));
    text.unwrap_or_default()
}

fn collector() -> Upstream {
    Upstream::responding_with(ok("{}"))
}

fn with_context(path: &str, flags: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: t\r\nTraceparent: 00-{TRACE}-{PARENT}-{flags}\r\n\
         Tracestate: a=1\r\ntracestate: b=2\r\n\r\n"
    )
}

#[test]
fn spans_reach_the_collector_and_their_context_the_upstream() {
    let (collector, upstream) = (collector(), Upstream::responding_with(ok("from the upstream")));
    let keys = format!("[site.default.route.\"/api/*\"]\n{}", upstream.key());
    let server = start(
        &collector.url(),
        "service = \"shop\"\nheaders = { Authorization = \"Bearer s\" }",
        &keys,
    );
    let mut client = server.connect();
    client.send(with_context("/api/x?secret=1", "01"));
    client.response().expect("proxied", 200, &[]);
    // The first response comes from the disk, and the second from the worker cache.
    client.get("/a.txt");
    client.get("/a.txt");
    client.get("/missing");
    let sent = upstream.last();
    let all = spans(server, &collector);
    // Each of the four requests has a span, and so has the request to the upstream.
    assert_eq!(all.len(), 5, "{all:#?}");
    assert_eq!(collector.last().field("Authorization"), Some("Bearer s"));
    let named = |name: &str| all.iter().filter(|span| span["name"] == name).collect::<Vec<_>>();

    let [proxied] = named("GET /api/*")[..] else {
        panic!("{all:#?}")
    };
    assert_eq!(proxied["traceId"], TRACE);
    assert_eq!(proxied["parentSpanId"], PARENT);
    assert_eq!(proxied["traceState"], "a=1,b=2");
    // In OpenTelemetry, 2 is a span of a server and 3 one of a client.
    assert_eq!(proxied["kind"], 2);
    for (name, value) in [
        ("http.request.method", "GET"),
        ("http.response.status_code", "200"),
        ("http.route", "/api/*"),
        ("url.path", "/api/x"),
        ("url.scheme", "http"),
        ("server.address", "localhost"),
        ("client.address", "127.0.0.1"),
        ("network.protocol.version", "1.1"),
        ("user_agent.original", "t"),
    ] {
        assert_eq!(attribute(proxied, name), value, "{name}");
    }
    assert!(!proxied.to_string().contains("secret"), "{proxied}");

    let [child] = named("GET")[..] else { panic!("{all:#?}") };
    assert_eq!(
        (&child["traceId"], &child["kind"]),
        (&proxied["traceId"], &Value::from(3))
    );
    assert_eq!(child["parentSpanId"], proxied["spanId"]);
    assert_eq!(attribute(child, "url.full"), format!("{}/api/x", upstream.url()));
    let forwarded = format!("00-{TRACE}-{}-01", child["spanId"].as_str().expect("an id"));
    assert_eq!(sent.field("traceparent"), Some(forwarded.as_str()));
    assert_eq!(sent.field("tracestate"), Some("a=1,b=2"));

    let files = named("GET /*");
    let statuses: Vec<_> = files
        .iter()
        .map(|span| attribute(span, "http.response.status_code"))
        .collect();
    assert_eq!(statuses, ["200", "200", "404"]);
    assert!(
        files
            .iter()
            .all(|span| span["traceId"] != TRACE && span["parentSpanId"].is_null())
    );
    for span in &all {
        let time = |name: &str| {
            span[name]
                .as_str()
                .and_then(|time| time.parse::<u64>().ok())
                .expect("a time")
        };
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"), "{span}");
    }
}

#[test]
fn applications_get_the_context_as_a_variable() {
    let folder = folder();
    let _peer = Peer::start(&folder.path(SOCKET), |incoming, stream| {
        let text = format!(
            "Content-Type: text/plain\r\n\r\n{}",
            incoming.variable("HTTP_TRACEPARENT")
        );
        fastcgi::write_to(stream, fastcgi::response(text.as_bytes()));
        fastcgi::Next::Keep
    });
    let collector = collector();
    let text = format!(
        "{SERVER}[tracing]\nendpoint = \"{}\"\n{}",
        collector.url(),
        site(&format!("php = \"unix:{}\"", folder.path(SOCKET).display()))
    );
    let server = Running::start(folder, &text);
    let mut client = server.connect();
    client.send(with_context("/", "01"));
    let variable = client.response().text();
    let all = spans(server, &collector);
    let child = all
        .iter()
        .find(|span| span["kind"] == 3)
        .expect("a span of the application");
    assert_eq!(
        variable,
        format!("00-{TRACE}-{}-01", child["spanId"].as_str().expect("an id"))
    );
}

#[test]
fn the_span_of_an_application_has_the_status_of_its_response() {
    let folder = folder();
    let _peer = Peer::start(&folder.path(SOCKET), |_, stream| {
        fastcgi::write_to(stream, fastcgi::response(b"X-Accel-Redirect: /a.txt\r\n\r\n"));
        fastcgi::Next::Keep
    });
    let collector = collector();
    let text = format!(
        "{SERVER}[tracing]\nendpoint = \"{}\"\n{}",
        collector.url(),
        site(&format!("php = \"unix:{}\"", folder.path(SOCKET).display()))
    );
    let server = Running::start(folder, &text);
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-1\r\n\r\n");
    client.response().expect("a part of the file", 206, &[]);
    let all = spans(server, &collector);
    let status = |kind: u8| {
        let span = all.iter().find(|span| span["kind"] == kind).expect("a span");
        attribute(span, "http.response.status_code")
    };
    assert_eq!((status(2), status(3)), ("206", "200"), "{all:#?}");
}

#[test]
fn sampling_follows_the_client_and_then_the_configuration() {
    // A row has the sampled fraction, the flags of the client's context, and the number of spans. A sampled request has
    // one of its own and one for the request to the upstream.
    for (sample, flags, expected) in [
        ("100%", None, 2),
        ("0%", None, 0),
        ("100%", Some("00"), 0),
        ("0%", Some("01"), 2),
    ] {
        let (collector, upstream) = (collector(), Upstream::responding_with(ok("x")));
        let server = start(&collector.url(), &format!("sample = \"{sample}\""), &upstream.key());
        let mut client = server.connect();
        match flags {
            Some(flags) => client.send(with_context("/", flags)),
            None => client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        }
        client.response();
        let sent = upstream.last();
        let sent = sent.field("traceparent").expect("a context").to_owned();
        assert_eq!(spans(server, &collector).len(), expected, "{sample} {flags:?}");
        match (flags, expected) {
            // An unrecorded request forwards the context of its client.
            (Some(_), 0) => assert_eq!(sent, format!("00-{TRACE}-{PARENT}-00")),
            (None, 0) => assert!(sent.ends_with("-00") && !sent.contains(TRACE), "{sent}"),
            _ => assert!(sent.ends_with("-01") && !sent.contains(PARENT), "{sent}"),
        }
    }
}

#[test]
fn a_malformed_context_is_replaced() {
    let (collector, upstream) = (collector(), Upstream::responding_with(ok("x")));
    let server = start(&collector.url(), "", &upstream.key());
    let twice = format!("00-{TRACE}-{PARENT}-01\r\ntraceparent: 00-{TRACE}-{PARENT}-01");
    for context in ["nonsense", &format!("00-{}-{PARENT}-01", "0".repeat(32)), &twice] {
        let mut client = server.connect();
        client.send(format!(
            "GET / HTTP/1.1\r\nHost: localhost\r\ntraceparent: {context}\r\ntracestate: a=1\r\n\r\n"
        ));
        client.response();
        let sent = upstream.last();
        let parent = sent.field("traceparent").expect("a context");
        // A context of version 00 has 55 characters.
        assert!(parent.len() == 55 && !parent.contains(TRACE), "{parent}");
        assert_eq!(sent.field("tracestate"), None);
    }
    let all = spans(server, &collector);
    assert!(
        all.len() == 6 && all.iter().all(|span| span["traceId"] != TRACE),
        "{all:#?}"
    );
}

#[test]
fn without_a_collector_the_context_is_forwarded_unchanged() {
    let upstream = Upstream::responding_with(ok("x"));
    let server = Running::start(folder(), &format!("{SERVER}{}", site(&upstream.key())));
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\ntraceparent: nonsense\r\ntracestate: a=1\r\n\r\n");
    client.response();
    assert_eq!(upstream.last().field("traceparent"), Some("nonsense"));
    assert_eq!(upstream.last().field("tracestate"), Some("a=1"));
}

#[test]
fn a_collector_that_does_not_respond_affects_no_request() {
    // The first collector has closed its port, the second accepts connections and never responds, and the third refuses
    // spans. Each URL has true if the server must count dropped spans during the test.
    let closed = RefusingPort::new();
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let refusing = Upstream::responding_with("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
    let urls = [
        (format!("http://{}", closed.address()), true),
        (format!("http://{}", silent.local_addr().expect("its address")), false),
        (refusing.url(), true),
    ];
    for (url, is_counted) in urls {
        let server = start(&url, "", "");
        let mut client = server.connect();
        let begun = Instant::now();
        for _ in 0..1000 {
            client.get("/a.txt").expect(&url, 200, &[]);
        }
        assert!(begun.elapsed() < DEADLINE, "{url}");
        let dropped = || {
            let metrics = inventory::metrics(server.server());
            let name = "rocknet_trace_spans_dropped_total ";
            let line = metrics.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.parse::<u64>().ok()).expect("a counter")
        };
        while is_counted && dropped() == 0 {
            assert!(begun.elapsed() < DEADLINE, "{url}: no span was counted as dropped");
            std::thread::yield_now();
        }
    }
}
