//! The response cache in front of a proxy: storing, sending from the store, and validation.

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

use std::collections::BTreeMap;
use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use rocknet_control::status::ResponseCache;

use super::proxy_fanout::raise_descriptor_limit;
use super::support::client::request;
use super::support::upstream::{self, Next, ReceivedRequest, Upstream, write_to};
use super::support::{DEADLINE, Folder, ReceivedResponse, Running};

over_http3! {
    fresh_responses_are_sent_from_the_store,
    stale_responses_are_validated,
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

#[test]
fn stale_responses_are_validated() {
    let upstream = upstream(|request| {
        if request.field("If-None-Match") == Some("\"1\"") && !request.line.contains("new") {
            return "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\nX-B: 2\r\nCache-Control: max-age=60\r\n\r\n"
                .to_owned();
        }
        let fields = "Cache-Control: max-age=0|ETag: \"1\"|X-B: 1|Content-Type: text/x";
        response("200 OK", fields, "body")
    });
    let server = cached(&upstream, "true");
    expect(&server.get("/"), "fwd=uri-miss; stored", "body");
    let confirmed = server.get("/");
    expect(&confirmed, "fwd=stale; fwd-status=304; stored", "body");
    confirmed.expect("validated", 200, &["X-B: 2", "Content-Type: text/x", "ETag: \"1\""]);
    // The 304 has given it a new lifetime.
    let hit = server.get("/");
    expect(&hit, "hit", "body");
    hit.expect("hit", 200, &["X-B: 2"]);
    assert_eq!(upstream.last().field("If-None-Match"), Some("\"1\""));
    // The preconditions of clients concern the stored response, and do not reach the upstream.
    expect(&server.get("/new"), "fwd=uri-miss; stored", "body");
    server
        .fetch("GET /new", &["If-None-Match: \"1\""])
        .expect("a precondition", 304, &[]);
    let replaced = server.fetch("GET /new", &["If-None-Match: \"2\""]);
    expect(&replaced, "fwd=stale; stored", "body");
    assert_eq!(upstream.last().field("If-None-Match"), Some("\"1\""));
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

/// RFC 9111 §4.3.4: such a 304 must not update the stored response. Its content may be another one.
#[test]
fn a_304_for_another_entity_tag_confirms_nothing() {
    let upstream = upstream(|request| match request.field("If-None-Match") {
        Some("\"1\"") => "HTTP/1.1 304 Not Modified\r\nETag: \"2\"\r\nCache-Control: max-age=60\r\n\r\n".to_owned(),
        Some(_) => panic!("{request:?}"),
        None if request.field("X-New").is_some() => response("200 OK", "Cache-Control: max-age=60|ETag: \"2\"", "new"),
        None => response("200 OK", "Cache-Control: max-age=0|ETag: \"1\"", "old"),
    });
    let server = cached(&upstream, "true");
    expect(&server.get("/"), "fwd=uri-miss; stored", "old");
    expect(&server.fetch("GET /", &["X-New: 1"]), "fwd=stale; stored", "new");
    let fields: Vec<_> = upstream
        .all()
        .iter()
        .map(|one| one.field("If-None-Match").map(str::to_owned))
        .collect();
    assert_eq!(fields, [None, Some("\"1\"".to_owned()), None]);
    expect(&server.get("/"), "hit", "new");
}

/// Directives that forbid a stale response apply, whatever the configuration permits.
#[test]
fn forbidden_stale_responses_are_not_sent() {
    let is_broken = Arc::new(Mutex::new(false));
    let broken = Arc::clone(&is_broken);
    let upstream = Upstream::start(move |request: &ReceivedRequest, stream: &mut TcpStream| {
        if *broken.lock().expect("not poisoned") {
            return Next::Close;
        }
        let control = request.field("X-Control").unwrap_or_default();
        let fields = format!("Cache-Control: max-age=1{control}|Age: 5|ETag: \"1\"");
        write_to(stream, response("200 OK", &fields, "body"));
        Next::Keep
    });
    let server = cached(
        &upstream,
        "{ stale_if_error = \"1d\", stale_while_revalidate = \"1d\" }",
    );
    let directives = ["must-revalidate", "proxy-revalidate", "no-cache", "s-maxage=1"];
    for directive in directives {
        let field = format!("X-Control: , {directive}");
        let response = server.fetch(&format!("GET /{directive}"), &[&field]);
        expect(&response, "fwd=uri-miss; stored", "body");
    }
    server.get("/permitted").expect("stored", 200, &[]);
    *is_broken.lock().expect("not poisoned") = true;
    for directive in directives {
        let response = server.get(&format!("/{directive}"));
        assert!(response.status >= 500, "{directive}: {response:?}");
    }
    server.get("/permitted").expect("stale", 200, &[]);
}

#[test]
fn a_cookie_of_a_validation_reaches_only_its_client() {
    let upstream = upstream(|request| match request.field("If-None-Match") {
        Some(_) => "HTTP/1.1 304 Not Modified\r\nSet-Cookie: a=b\r\nCache-Control: max-age=60\r\n\r\n".to_owned(),
        None => response("200 OK", "Cache-Control: max-age=0|ETag: \"1\"", "body"),
    });
    let server = cached(&upstream, "true");
    server.get("/");
    let confirmed = server.get("/");
    expect(&confirmed, "fwd=stale; fwd-status=304; stored", "body");
    confirmed.expect("the client of the validation", 200, &["Set-Cookie: a=b"]);
    server.get("/").expect("another client", 200, &["!Set-Cookie", "Age"]);
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
fn stale_responses_replace_errors() {
    let is_broken = Arc::new(Mutex::new(false));
    let broken = Arc::clone(&is_broken);
    let upstream = upstream(move |request| match *broken.lock().expect("not poisoned") {
        true => response("503 Service Unavailable", "", "sorry"),
        // An age beyond the lifetime makes the response stale when it arrives.
        false => response(
            "200 OK",
            &format!(
                "Cache-Control: max-age=1{}|Age: 5|ETag: \"1\"",
                request.field("X-More").unwrap_or_default()
            ),
            "body",
        ),
    });
    let server = cached(&upstream, "true");
    let more = ["X-More: , stale-if-error=60"];
    for (path, fields) in [("/with", &more[..]), ("/without", &[])] {
        expect(
            &server.fetch(&format!("GET {path}"), fields),
            "fwd=uri-miss; stored",
            "body",
        );
    }
    *is_broken.lock().expect("not poisoned") = true;
    let stale = server.get("/with");
    expect(&stale, "fwd=stale; fwd-status=503; detail=stale-if-error", "body");
    stale.expect("stale", 200, &[]);
    let error = server.get("/without");
    expect(&error, "fwd=stale; detail=no-freshness", "sorry");
    error.expect("error", 503, &[]);
}

#[test]
fn stale_responses_are_revalidated_in_the_background() {
    let (seen, requests) = mpsc::channel();
    let seen = Mutex::new(seen);
    let number = Arc::new(Mutex::new(0));
    let upstream = Upstream::start({
        let seen = Arc::new(seen);
        move |_, stream| {
            let mut number = number.lock().expect("not poisoned");
            *number += 1;
            let age = if *number == 1 { "|Age: 5" } else { "" };
            let fields = format!("Cache-Control: max-age=4, stale-while-revalidate=60|ETag: \"{number}\"{age}");
            write_to(stream, response("200 OK", &fields, &number.to_string()));
            let _ = seen.lock().expect("not poisoned").send(*number);
            Next::Keep
        }
    });
    let server = cached(&upstream, "true");
    expect(&server.get("/"), "fwd=uri-miss; stored", "1");
    expect(&server.get("/"), "hit", "1");
    assert_eq!(requests.iter().take(2).collect::<Vec<_>>(), [1, 2]);
    // The background request is stored soon after it was sent.
    let fresh = std::iter::repeat_with(|| server.get("/")).find(|response| response.text() == "2");
    assert_eq!(fresh.map(|response| status(&response)).as_deref(), Some("hit"));
    // It is no request of a client.
    let metrics = rocknet::inventory::metrics(server.server());
    let misses = metrics.lines().find(|line| line.contains("outcome=\"miss\""));
    assert!(misses.is_some_and(|line| line.ends_with(" 1")), "{metrics}");
}

#[test]
fn simultaneous_requests_cause_one() {
    const CLIENTS: usize = 50;
    let all_have_sent = Arc::new(Barrier::new(CLIENTS + 1));
    let wait = Arc::clone(&all_have_sent);
    let upstream = Upstream::start(move |_, stream| {
        wait.wait();
        write_to(stream, response("200 OK", "Cache-Control: max-age=60", "body"));
        Next::Keep
    });
    let server = cached(&upstream, "true");
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = server.connect();
                client.send(request("GET /", &[]));
                all_have_sent.wait();
                let response = client.response();
                assert_eq!(response.text(), "body");
                let status = status(&response);
                let expected = ["fwd=uri-miss; stored", "fwd=uri-miss; collapsed", "hit"];
                assert!(expected.contains(&&*status), "{status}");
            });
        }
    });
    assert_eq!(upstream.all().len(), 1);
}

/// The response to one request is sent to a herd of clients that request an expired response.
#[test]
fn a_herd_on_an_expired_response_causes_one_request() {
    const CLIENTS: usize = 1_000;
    raise_descriptor_limit();
    let (release, released) = mpsc::channel();
    let released = Arc::new(Mutex::new(released));
    let upstream = Upstream::start(move |request, stream| {
        let (control, content) = match request.field("If-None-Match") {
            None => ("max-age=0", "old"),
            Some(_) => {
                released.lock().expect("not poisoned").recv().expect("the herd is here");
                ("max-age=60", "new")
            }
        };
        write_to(
            stream,
            response("200 OK", &format!("Cache-Control: {control}|ETag: \"1\""), content),
        );
        Next::Keep
    });
    let server = cached(&upstream, "true");
    expect(&server.get("/"), "fwd=uri-miss; stored", "old");
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send(request("GET /", &[]));
    }
    release.send(()).expect("the upstream waits");
    let mut counts = BTreeMap::new();
    for client in &mut clients {
        let response = client.response();
        assert_eq!(response.text(), "new");
        *counts.entry(status(&response)).or_insert(0) += 1;
    }
    assert_eq!(upstream.all().len(), 2, "{counts:?}");
    assert_eq!(counts.remove("fwd=stale; stored"), Some(1), "{counts:?}");
    // A request that the server has read only after the response gets it from the store.
    assert!(
        counts
            .keys()
            .all(|key| ["hit", "fwd=stale; collapsed"].contains(&&**key)),
        "{counts:?}"
    );
}

#[test]
fn bodies_of_unknown_length_are_stored_up_to_the_limit() {
    let upstream = upstream(|request| {
        let size: usize = request
            .line
            .split(['/', ' '])
            .find_map(|part| part.parse().ok())
            .expect("a size");
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n";
        format!("{head}{size:x}\r\n{}\r\n0\r\n\r\n", "x".repeat(size))
    });
    let server = cached(&upstream, "{ max_object = \"300KiB\" }");
    for (size, second) in [
        (300 * 1024, "hit"),
        (300 * 1024 + 1, "fwd=uri-miss; stored"),
        (2_000_000, "fwd=uri-miss; stored"),
    ] {
        let path = format!("/{size}");
        let first = server.get(&path);
        assert_eq!((first.body.len(), &*status(&first)), (size, "fwd=uri-miss; stored"));
        // The body is stored soon after its end was sent.
        let response = server.get(&path);
        assert_eq!(response.body.len(), size);
        if second != "hit" {
            assert_eq!(status(&response), second, "{size}");
        } else {
            assert!(
                ["hit", "fwd=uri-miss; collapsed"].contains(&&*status(&response)),
                "{response:?}"
            );
        }
    }
}

#[test]
fn bodies_in_progress_share_a_limit() {
    const SIZE: usize = 300 * 1024;
    let upstream = upstream(|_| {
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n";
        format!("{head}{SIZE:x}\r\n{}\r\n0\r\n\r\n", "x".repeat(SIZE))
    });
    // A quarter of this size is less than the body.
    let text = format!(
        "[cache]\nresponses = \"1MiB\"\n[site.default]\nlisten = \"127.0.0.1:0\"\n{}\ncache = true\n",
        upstream.key()
    );
    let server = Running::start(Folder::with(&[]), &text);
    for number in 1..=3 {
        assert_eq!(server.get("/").body.len(), SIZE);
        assert_eq!(upstream.all().len(), number);
    }
}

#[test]
fn a_body_is_received_after_its_client_has_left() {
    let (leave, left) = mpsc::channel();
    let left = Arc::new(Mutex::new(left));
    let upstream = Upstream::start(move |_, stream| {
        write_to(
            stream,
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 8\r\n\r\nfour",
        );
        left.lock().expect("not poisoned").recv().expect("the client leaves");
        write_to(stream, "more");
        Next::Keep
    });
    let server = cached(&upstream, "true");
    let mut client = server.connect();
    client.send(request("GET /", &[]));
    assert!(client.head().contains("fwd=uri-miss; stored"));
    drop(client);
    leave.send(()).expect("the upstream waits");
    assert_eq!(server.get("/").text(), "fourmore");
    assert_eq!(upstream.all().len(), 1);
}

/// Without a limit, a stream without an end would occupy the server and the upstream.
#[test]
fn an_endless_body_is_given_up_after_its_client_has_left() {
    let (end, ended) = mpsc::channel();
    let end = Arc::new(Mutex::new(end));
    let upstream = Upstream::raw(move |mut stream: TcpStream| {
        let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
        let _ = upstream::request(&mut reader);
        write_to(
            &mut stream,
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n",
        );
        // A piece arrives before each deadline for the next piece.
        while stream.write_all(b"1\r\nx\r\n").is_ok() {
            thread::sleep(Duration::from_millis(10));
        }
        let _ = end.lock().expect("not poisoned").send(());
    });
    let settings = format!(
        "proxy = {{ to = \"{}\", idle = \"300ms\" }}\ncache = true",
        upstream.url()
    );
    let server = Running::site(Folder::with(&[("www/x", "")]), &settings);
    // Time passes only for a worker with a connection.
    let mut other = server.connect();
    other.send("GET ");
    let mut client = server.connect();
    client.send(request("GET /", &[]));
    assert!(client.head().contains("fwd=uri-miss; stored"));
    drop(client);
    assert_eq!(ended.recv_timeout(DEADLINE), Ok(()));
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
