//! Health checks: their requests, and the state of upstreams that fail them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use super::proxy_balance::{balanced, list, until};
use super::support::DEADLINE;
use super::support::upstream::{Next, Upstream, ok, write_to};

#[test]
fn health_checks_mark_upstreams_down_and_up() {
    let is_healthy = Arc::new(AtomicBool::new(true));
    let healthy = Arc::clone(&is_healthy);
    let checked = Upstream::start(move |incoming, stream| {
        let output = match (incoming.line.as_str(), healthy.load(Ordering::SeqCst)) {
            ("GET /up?x=1 HTTP/1.1", true) => "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
            ("GET /up?x=1 HTTP/1.1", false) => "HTTP/1.1 503 Ill\r\nContent-Length: 0\r\n\r\n".to_owned(),
            _ => ok("checked"),
        };
        write_to(stream, output);
        Next::Keep
    });
    let health = "health = { path = \"/up?x=1\", status = 204, interval = \"100ms\", rise = 1, fall = 1 }";
    let server = balanced(&list(std::slice::from_ref(&checked)), health);
    let mut client = server.connect();
    assert_eq!(client.get("/").text(), "checked");
    is_healthy.store(false, Ordering::SeqCst);
    until(&mut client, |status, _| status == 503);
    is_healthy.store(true, Ordering::SeqCst);
    until(&mut client, |status, text| status == 200 && text == "checked");
    // All requests succeed while another upstream is healthy.
    is_healthy.store(false, Ordering::SeqCst);
    let other = Upstream::start(|incoming, stream| {
        let is_check = incoming.line.starts_with("GET /up");
        write_to(
            stream,
            if is_check {
                "HTTP/1.1 204 Fine\r\n\r\n".to_owned()
            } else {
                ok("other")
            },
        );
        Next::Keep
    });
    let to = format!("[\"{}\", \"{}\", \"http://127.0.0.1:1\"]", checked.url(), other.url());
    let server = balanced(&to, &format!("balance = \"round_robin\", {health}"));
    let mut client = server.connect();
    // Number of responses in a row that come from the healthy upstream.
    let mut row = 0;
    until(&mut client, |status, text| {
        assert_eq!(status, 200);
        text == "other"
    });
    let began = Instant::now();
    while row < 10 {
        row = if client.get("/").text() == "other" { row + 1 } else { 0 };
        assert!(began.elapsed() < DEADLINE);
    }
}

#[test]
fn health_checks_have_the_header_fields_of_requests_and_their_own() {
    let keys = "headers = { Host = \"app.internal\", X-Key = \"1\", X-Gone = \"\" }";
    let check = "path = \"/up\", interval = \"100ms\", rise = 1, fall = 1";
    // Further keys of the health check, and the values of `Host`, `X-Key` and `User-Agent` in its requests.
    for (own, expected) in [
        ("", ["app.internal", "1", "RockNet (health check)"]),
        (
            ", headers = { host = \"check.internal\", User-Agent = \"me\" }",
            ["check.internal", "1", "me"],
        ),
    ] {
        let (received, checks) = mpsc::channel();
        let upstream = Upstream::start(move |incoming, stream| {
            if incoming.line.starts_with("GET /up ") {
                let all = ["Host", "X-Key", "User-Agent", "X-Gone"];
                let _ = received.send(all.map(|name| incoming.field(name).map(str::to_owned)));
            }
            write_to(stream, ok("here"));
            Next::Keep
        });
        let server = balanced(
            &list(std::slice::from_ref(&upstream)),
            &format!("{keys}, health = {{ {check}{own} }}"),
        );
        let [host, key, agent, gone] = checks.recv_timeout(DEADLINE).expect("a check");
        assert_eq!([host, key, agent], expected.map(|value| Some(value.to_owned())));
        assert_eq!(gone, None);
        drop(server);
    }
}

over_http3! {
    health_checks_mark_upstreams_down_and_up,
}
