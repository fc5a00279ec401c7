//! Bodies of proxied requests and responses, which are streamed, and interim responses.

use std::future::poll_fn;
use std::sync::mpsc;

use super::proxy::{folder, proxied};
use super::support::Running;
use super::support::client::request;
use super::support::http2::{Http2, whole};
use super::support::upstream::{Next, Upstream, ok, write_to};

over_http3! {
    request_bodies_are_streamed,
    events_are_not_buffered,
}

#[test]
fn request_bodies_are_streamed() {
    let upstream = Upstream::start(|incoming, stream| {
        let output = format!("{} {:?}", incoming.content.len(), incoming.field("Content-Length"));
        write_to(stream, ok(&output));
        Next::Keep
    });
    let server = proxied(&upstream, "");
    let mut client = server.connect();
    let large = "x".repeat(3_000_000);
    for (fields, content, expected) in [
        (&["Content-Length: 5"][..], "hello".to_owned(), "5 Some(\"5\")"),
        (&["Content-Length: 3000000"], large.clone(), "3000000 Some(\"3000000\")"),
        (
            &["Transfer-Encoding: chunked"],
            "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n".to_owned(),
            "5 None",
        ),
        (
            &["Content-Length: 4", "Expect: 100-continue"],
            "abcd".to_owned(),
            "4 Some(\"4\")",
        ),
    ] {
        client.send(request("POST /", fields));
        // Only the row with `Expect` has two fields.
        if fields.len() == 2 {
            assert!(client.head().starts_with("HTTP/1.1 100 "), "{fields:?}");
        }
        client.send(&content);
        assert_eq!(client.response().expect("POST", 200, &[]).text(), expected);
        let length: usize = expected
            .split(' ')
            .next()
            .and_then(|n| n.parse().ok())
            .expect("a number");
        assert_eq!(upstream.last().content.len(), length);
        assert_eq!(upstream.last().field("Expect"), None);
    }
    // Bodies over HTTP/2 are sent with and without a length.
    let text = format!(
        "[server]\nworkers = 1\nh2c = true\nevents = {{ wait = \"20ms\" }}\n[site.default]\nlisten = \"127.0.0.1:0\"\n{}\n",
        upstream.key()
    );
    let server = Running::start(folder(), &text);
    let mut client = Http2::to(server.address());
    let builder = client
        .request("POST", "/x?y")
        .header("cookie", "a=1")
        .header("cookie", "b=2");
    let response = client.send(builder, large.as_bytes()).expect("a response");
    assert_eq!(
        (response.status.as_u16(), &response.content[..]),
        (200, &b"3000000 None"[..])
    );
    let seen = upstream.last();
    assert_eq!(
        (&*seen.line, seen.field("Cookie")),
        ("POST /x?y HTTP/1.1", Some("a=1; b=2"))
    );
    assert_eq!(seen.field("Via"), Some("2 RockNet"));
    let builder = client.request("PUT", "/").header("content-length", "3000000");
    assert_eq!(
        client.send(builder, large.as_bytes()).expect("a response").content,
        b"3000000 Some(\"3000000\")"
    );
    assert_eq!(client.get("/").content, b"0 None");
}

#[test]
fn large_responses_are_streamed_over_both_versions() {
    const SIZE: usize = 5_000_000;
    for head in [
        format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n"),
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_owned(),
    ] {
        let has_length = head.contains("Length");
        let upstream = Upstream::start(move |_, stream| {
            write_to(stream, &head);
            for _ in 0..SIZE / 1000 {
                write_to(stream, [b'z'; 1000]);
            }
            if has_length { Next::Keep } else { Next::Close }
        });
        let text = format!(
            "[server]\nworkers = 1\nh2c = true\nevents = {{ wait = \"20ms\" }}\n[site.default]\nlisten = \"127.0.0.1:0\"\n{}\n",
            upstream.key()
        );
        let server = Running::start(folder(), &text);
        let length = SIZE.to_string();
        let mut client = server.connect();
        for _ in 0..2 {
            let response = client.get("/");
            assert_eq!(response.field("Content-Length"), has_length.then_some(&*length));
            assert!(response.body.len() == SIZE && response.body.iter().all(|byte| *byte == b'z'));
        }
        let mut client = Http2::to(server.address());
        let response = client.get("/");
        assert_eq!(response.content.len(), SIZE);
        let content_length = response
            .fields
            .get("content-length")
            .and_then(|length| length.to_str().ok());
        assert_eq!(content_length, has_length.then_some(&*length));
        assert_eq!(upstream.connections(), if has_length { 1 } else { 3 });
    }
}

#[test]
fn events_are_not_buffered() {
    let (more, wanted) = mpsc::channel::<()>();
    let wanted = std::sync::Arc::new(std::sync::Mutex::new(wanted));
    let upstream = Upstream::start(move |_, stream| {
        write_to(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
        );
        for number in 0..3 {
            write_to(stream, format!("8\r\ndata: {number}\n\r\n"));
            // The next event is sent when the client has received this one.
            let _ = wanted.lock().expect("one reader").recv();
        }
        write_to(stream, "0\r\n\r\n");
        Next::Keep
    });
    let server = proxied(&upstream, "");
    let mut client = server.connect();
    client.send(request("GET /", &[]));
    assert!(client.head().contains("Transfer-Encoding: chunked\r\n"));
    for number in 0..3 {
        assert_eq!(client.bytes(13), format!("8\r\ndata: {number}\n\r\n").into_bytes());
        more.send(()).expect("an upstream that waits");
    }
    assert_eq!(client.bytes(5), b"0\r\n\r\n");
    drop(more);
    assert_eq!(client.get("/x").status, 200, "the connection must be kept");
}

#[test]
fn interim_responses_precede_the_response() {
    let (more, wanted) = mpsc::channel::<()>();
    let wanted = std::sync::Arc::new(std::sync::Mutex::new(wanted));
    let upstream = Upstream::start(move |_, stream| {
        let wanted = wanted.lock().expect("one reader");
        for interim in [
            "HTTP/1.1 102 Processing\r\nX-A: 1\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: X-B\r\nX-B: 1\r\n\r\n",
        ] {
            write_to(stream, interim);
            let _ = wanted.recv();
        }
        write_to(stream, ok("a page"));
        Next::Keep
    });
    let text = format!(
        "[server]\nworkers = 1\nh2c = true\nevents = {{ wait = \"20ms\" }}\n[site.default]\nlisten = \"127.0.0.1:0\"\n{}\n",
        upstream.key()
    );
    let server = Running::start(folder(), &text);
    let mut client = server.connect();
    client.send(request("GET /", &[]));
    for head in [
        "HTTP/1.1 102 Processing\r\nX-A: 1\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n",
    ] {
        assert_eq!(client.head(), head);
        more.send(()).expect("an upstream that waits");
    }
    assert_eq!(client.response().text(), "a page");
    let mut client = Http2::to(server.address());
    let (mut response, _) = client.start_request(client.request("GET", "/"), true);
    for (status, name, value) in [(102, "x-a", "1"), (103, "link", "</a.css>; rel=preload")] {
        let message = client.wait(async { poll_fn(|context| response.poll_informational(context)).await });
        let message = message
            .expect("an interim response")
            .expect("an established connection");
        assert_eq!(message.status().as_u16(), status);
        let fields: Vec<_> = message
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_bytes()))
            .collect();
        assert_eq!(fields, [(name, value.as_bytes())]);
        more.send(()).expect("an upstream that waits");
    }
    let response = client.wait(whole(response)).expect("a response");
    assert_eq!(response.content, b"a page");
}
