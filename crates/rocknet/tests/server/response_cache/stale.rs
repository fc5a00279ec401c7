//! Stale responses: validation with the upstream, and the cases in which they are sent as they are.

use std::net::TcpStream;
use std::sync::{Arc, Mutex, mpsc};

use super::super::support::upstream::{Next, ReceivedRequest, Upstream, write_to};
use super::{cached, expect, response, status, upstream};

over_http3! {
    stale_responses_are_validated,
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
