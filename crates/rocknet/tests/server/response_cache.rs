//! The response cache in front of a proxy: storing, and sending from the store.

mod bodies;
mod coalescing;
mod disk;
mod disk_keys;
mod disk_quotas;
mod purges;
mod ready;
mod ready_changes;
mod ready_guards;
mod safety;
mod scripts;
mod selection;
mod stale;

use std::net::TcpStream;

use rocknet_control::status::ResponseCache;

use super::support::client::request;
use super::support::upstream::{Next, ReceivedRequest, Upstream, write_to};
use super::support::{Folder, ReceivedResponse, Running};

over_http3! {
    fresh_responses_are_sent_from_the_store,
}

/// Returns a response with these fields, separated by `|`, and a length.
fn response(status: &str, fields: &str, content: &str) -> String {
    let fields: String = fields
        .split('|')
        .filter(|line| !line.is_empty())
        .map(|line| format!("{line}\r\n"))
        .collect();
    format!(
        "HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n{content}",
        content.len()
    )
}

/// Starts an upstream whose response to each request is made by `respond`.
fn upstream(respond: impl Fn(&ReceivedRequest) -> String + Send + Sync + Clone + 'static) -> Upstream {
    Upstream::start(move |request, stream: &mut TcpStream| {
        write_to(stream, respond(request));
        Next::Keep
    })
}

/// Starts a server that caches the responses of an upstream.
fn cached(upstream: &Upstream, cache: &str) -> Running {
    Running::site(
        Folder::with(&[("www/x", "")]),
        &format!("{}\ncache = {cache}", upstream.key()),
    )
}

/// Returns the part of `Cache-Status` after the name of the cache, without `ttl`.
fn status(response: &ReceivedResponse) -> String {
    let value = response
        .field("Cache-Status")
        .unwrap_or_else(|| panic!("no Cache-Status in {response:?}"));
    let value = value.strip_prefix("RockNet; ").unwrap_or_else(|| panic!("{value}"));
    let parts: Vec<_> = value.split("; ").filter(|part| !part.starts_with("ttl=")).collect();
    parts.join("; ")
}

/// Asserts the status of the cache and the body.
#[track_caller]
fn expect(response: &ReceivedResponse, cache: &str, body: &str) {
    assert_eq!(status(response), cache, "{response:?}");
    assert_eq!(response.text(), body, "{response:?}");
}

#[test]
fn fresh_responses_are_sent_from_the_store() {
    let upstream =
        upstream(|request| response("200 OK", "Cache-Control: max-age=60|ETag: \"1\"|X-A: b", &request.line));
    let server = cached(&upstream, "true");
    let first = server.get("/a?b=1");
    expect(&first, "fwd=uri-miss; stored", "GET /a?b=1 HTTP/1.1");
    first.expect("miss", 200, &["!Age", "X-A: b"]);
    for _ in 0..3 {
        let second = server.get("/a?b=1");
        expect(&second, "hit", "GET /a?b=1 HTTP/1.1");
        second.expect(
            "hit",
            200,
            &["Age", "X-A: b", "ETag: \"1\"", "Date", "Content-Length: 19"],
        );
    }
    let head = server.fetch("HEAD /a?b=1", &[]);
    expect(&head, "hit", "");
    head.expect("head", 200, &["Content-Length: 19"]);
    server
        .fetch("GET /a?b=1", &["If-None-Match: \"0\", \"1\""])
        .expect("304", 304, &["ETag: \"1\"", "X-A: b"]);
    let part = server.fetch("GET /a?b=1", &["Range: bytes=4-5"]);
    expect(&part, "hit", "/a");
    part.expect("part", 206, &["Content-Range: bytes 4-5/19"]);
    server
        .fetch("GET /a?b=1", &["Range: bytes=99-"])
        .expect("416", 416, &["Content-Range: bytes */19"]);
    assert_eq!(upstream.all().len(), 1);
    // Another query, path or host is another resource.
    for (line, fields) in [
        ("GET /a?b=2", &[][..]),
        ("GET /a", &[]),
        ("GET /A?b=1", &[]),
        ("GET /a?b=1", &["Host: other.test"]),
    ] {
        let other = server.fetch(line, fields);
        expect(&other, "fwd=uri-miss; stored", &format!("{line} HTTP/1.1"));
    }
    assert_eq!(upstream.all().len(), 5);
    // The case of the host is not significant.
    expect(
        &server.fetch("GET /a?b=1", &["Host: OTHER.test"]),
        "hit",
        "GET /a?b=1 HTTP/1.1",
    );
}

#[test]
fn vary_selects_a_response() {
    let upstream = upstream(|request| {
        let language = request.field("Accept-Language").unwrap_or("none");
        response("200 OK", "Cache-Control: max-age=60|Vary: Accept-Language", language)
    });
    let server = cached(&upstream, "true");
    expect(
        &server.fetch("GET /", &["Accept-Language: de"]),
        "fwd=uri-miss; stored",
        "de",
    );
    expect(
        &server.fetch("GET /", &["Accept-Language: en"]),
        "fwd=vary-miss; stored",
        "en",
    );
    expect(&server.get("/"), "fwd=vary-miss; stored", "none");
    expect(&server.fetch("GET /", &["Accept-Language: de"]), "hit", "de");
    expect(&server.fetch("GET /", &["Accept-Language: EN"]), "hit", "en");
    expect(&server.get("/"), "hit", "none");
}

/// The clocks of the upstream and of the server may differ.
#[test]
fn expires_counts_from_the_date_of_the_upstream() {
    let upstream = upstream(|request| {
        let expires = match request.line.contains("later") {
            true => "08:50:37",
            false => "08:49:30",
        };
        let day = "Sun, 06 Nov 1994";
        let fields = format!("Date: {day} 08:49:37 GMT|Expires: {day} {expires} GMT");
        response("200 OK", &fields, "body")
    });
    let server = cached(&upstream, "true");
    expect(&server.get("/later"), "fwd=uri-miss; stored", "body");
    let hit = server.get("/later");
    expect(&hit, "hit", "body");
    // The date of the response is that of the server.
    assert!(hit.field("Date").is_some_and(|date| !date.contains("1994")), "{hit:?}");
    expect(&server.get("/before"), "fwd=uri-miss; detail=stale", "body");
}

#[test]
fn preconditions_do_not_prevent_storing() {
    let upstream = upstream(|request| {
        assert_eq!(request.field("If-None-Match"), None);
        response("200 OK", "Cache-Control: max-age=60|ETag: \"1\"", "body")
    });
    let server = cached(&upstream, "true");
    let first = server.fetch("GET /", &["If-None-Match: \"1\""]);
    first.expect(
        "a client that has the response",
        304,
        &["Cache-Status: RockNet; fwd=uri-miss; stored"],
    );
    expect(&server.get("/"), "hit", "body");
}

#[test]
fn the_configuration_selects_requests_and_lifetimes() {
    let upstream = upstream(|request| match request.line.contains("missing") {
        true => response("404 Not Found", "", "missing"),
        false => response("200 OK", "", "found"),
    });
    let server = cached(
        &upstream,
        "{ ttl = \"1h\", statuses = { 404 = \"1m\" }, bypass_cookies = [\"login_*\"] }",
    );
    server.get("/");
    expect(&server.get("/"), "hit", "found");
    server.get("/missing");
    let missing = server.get("/missing");
    expect(&missing, "hit", "missing");
    missing.expect("404", 404, &[]);
    expect(&server.fetch("GET /", &["Cookie: theme=dark"]), "hit", "found");
    expect(
        &server.fetch("GET /", &["Cookie: theme=dark; login_1=x"]),
        "fwd=bypass",
        "found",
    );
    let mut client = server.connect();
    client.send(request("GET /", &["Content-Length: 1"]) + "x");
    expect(&client.response(), "fwd=bypass", "found");
}

#[test]
fn heuristic_freshness_is_off_by_default() {
    let upstream = Upstream::responding_with(response(
        "200 OK",
        "Date: Sun, 06 Nov 1994 08:49:37 GMT|Last-Modified: Sat, 05 Nov 1994 08:49:37 GMT",
        "body",
    ));
    let server = cached(&upstream, "true");
    expect(&server.get("/?a=b"), "fwd=uri-miss; detail=no-freshness", "body");
    let server = cached(&upstream, "{ heuristic = true }");
    expect(&server.get("/?a=b"), "fwd=uri-miss; stored", "body");
    let hit = server.get("/?a=b");
    expect(&hit, "hit", "body");
    // A tenth of a day.
    let value = hit.field("Cache-Status").unwrap_or_default();
    assert!(
        value.contains("ttl=86") && value.len() == "RockNet; hit; ttl=8640".len(),
        "{value}"
    );
}

#[test]
fn requests_are_counted_by_outcome() {
    let upstream = Upstream::responding_with(response("200 OK", "Cache-Control: max-age=60", "body"));
    let server = cached(&upstream, "true");
    assert_eq!(server.server().status().response_cache, ResponseCache::default());
    (0..3).for_each(|_| drop(server.get("/")));
    let stored = server.server().status().response_cache;
    assert_eq!(stored.addresses, 1);
    assert!(stored.bytes > 0 && stored.ready_hits <= 1, "{stored:?}");
    server.fetch("POST /", &["Content-Length: 0"]);
    let expected = ResponseCache {
        hits: 2,
        ready_hits: stored.ready_hits,
        misses: 1,
        bypassed: 1,
        hit_ratio: Some(0.6667),
        ..ResponseCache::default()
    };
    assert_eq!(server.server().status().response_cache, expected);
    let metrics = rocknet::inventory::metrics(server.server());
    for line in [
        "rocknet_stored_requests_total{site=\"default\",outcome=\"hit\"} 2",
        "rocknet_stored_requests_total{site=\"default\",outcome=\"miss\"} 1",
        "rocknet_stored_requests_total{site=\"default\",outcome=\"bypass\"} 1",
        "rocknet_stored_addresses 0",
    ] {
        assert!(metrics.lines().any(|other| other == line), "no {line} in {metrics}");
    }
}

#[test]
fn stored_responses_survive_a_reload() {
    let upstream = Upstream::responding_with(response("200 OK", "Cache-Control: max-age=60", "body"));
    let text = format!(
        "[site.default]\nlisten = \"127.0.0.1:0\"\n{}\ncache = true\n",
        upstream.key()
    );
    let server = Running::start(Folder::with(&[]), &text);
    server.get("/");
    server
        .reload(&format!("{text}headers = {{ X-New = \"1\" }}\n"))
        .expect("a valid configuration");
    let response = server.get("/");
    expect(&response, "hit", "body");
    response.expect("the filters of the new configuration", 200, &["X-New: 1"]);
    server
        .reload(&format!("{text}[cache]\nresponses = 0\n"))
        .expect("a valid configuration");
    assert_eq!(status(&server.get("/")), "fwd=uri-miss; detail=no-memory");
}
