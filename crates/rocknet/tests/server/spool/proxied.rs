//! Request bodies that a proxy buffers (`request_buffering`).

use std::io::Read;
use std::sync::mpsc;

use super::super::support::client::request;
use super::super::support::http2::Http2;
use super::super::support::upstream::{self, Upstream, ok};
use super::super::support::{DEADLINE, Folder, Running};
use super::{LARGE, SERVER, content, post};

over_http3! {
    a_proxy_buffers_whole_bodies_if_configured,
    grpc_calls_are_streamed_despite_buffering,
    a_buffered_body_is_retried_with_another_upstream,
}

fn proxied(upstreams: &str, keys: &str) -> Running {
    let folder = Folder::with(&[("spool/here", "")]);
    let text = format!(
        "{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nproxy = {{ to = {upstreams}, request_buffering = true, {keys} }}\n"
    );
    Running::start(folder, &text)
}

/// Returns the length of a body, true if it is that of [`content`], and the fields that frame it.
fn lengths(incoming: &upstream::ReceivedRequest) -> String {
    let same = incoming.content == content(incoming.content.len());
    let (length, coding) = (incoming.field("Content-Length"), incoming.field("Transfer-Encoding"));
    format!("{} {same} {length:?} {coding:?}", incoming.content.len())
}

#[test]
fn a_proxy_buffers_whole_bodies_if_configured() {
    let upstream = Upstream::start(|incoming, stream| {
        upstream::write_to(stream, ok(&lengths(incoming)));
        upstream::Next::Keep
    });
    let server = proxied(&format!("\"{}\"", upstream.url()), "connect = \"3s\"");
    let mut client = server.connect();
    let mut http2 = Http2::to(server.address());
    for length in [0, 5, 65_536, 65_537, LARGE] {
        let expected = format!("{length} true Some(\"{length}\") None");
        assert_eq!(post(&mut client, "/", length), expected);
        let response = http2
            .send(http2.request("PUT", "/"), &content(length))
            .expect("a response");
        assert_eq!(String::from_utf8_lossy(&response.content), expected, "over HTTP/2");
    }
    // No upstream connection is opened until the request is complete.
    let before = upstream.connections();
    let mut slow = server.connect();
    slow.send(request("POST /", &["Content-Length: 100000"]));
    slow.send(&content(100_000)[..99_999]);
    assert_eq!(client.get("/").text(), "0 true None None");
    assert_eq!(upstream.connections(), before);
    slow.send(&content(100_000)[99_999..]);
    assert_eq!(slow.response().text(), "100000 true Some(\"100000\") None");
}

/// The body is forwarded in chunks, because only chunked coding can have trailers.
#[test]
fn a_buffered_body_keeps_its_trailers() {
    let (output, received) = mpsc::channel();
    let upstream = Upstream::raw(move |mut stream| {
        let (mut all, mut piece) = (Vec::new(), [0; 4096]);
        while !all.ends_with(b"X-Sum: 1\r\n\r\n") {
            match stream.read(&mut piece) {
                Ok(got @ 1..) => all.extend_from_slice(&piece[..got]),
                _ => return,
            }
        }
        let _ = output.send(String::from_utf8_lossy(&all).into_owned());
        upstream::write_to(&mut stream, ok("done"));
    });
    let server = proxied(&format!("\"{}\"", upstream.url()), "connect = \"3s\"");
    let mut client = server.connect();
    client.send(request("POST /", &["Transfer-Encoding: chunked", "Trailer: X-Sum"]));
    client.send("3\r\nabc\r\n2\r\nde\r\n");
    client.send("0\r\nX-Sum: 1\r\n\r\n");
    assert_eq!(client.response().text(), "done");
    let incoming = received.recv_timeout(DEADLINE).expect("a request");
    assert!(incoming.contains("Transfer-Encoding: chunked\r\n"), "{incoming}");
    assert!(
        incoming.ends_with("\r\n\r\n5\r\nabcde\r\n0\r\nX-Sum: 1\r\n\r\n"),
        "{incoming}"
    );
}

/// gRPC requests are not buffered, because the client of a streaming call may wait for a response before it ends the
/// request.
#[test]
fn grpc_calls_are_streamed_despite_buffering() {
    let (output, received) = mpsc::channel();
    let upstream = Upstream::raw(move |mut stream| {
        let (mut all, mut piece) = (Vec::new(), [0; 4096]);
        while let Ok(got @ 1..) = stream.read(&mut piece) {
            all.extend_from_slice(&piece[..got]);
            if all.ends_with(b"first\r\n") {
                let _ = output.send(());
            }
        }
    });
    let server = proxied(&format!("\"{}\"", upstream.url()), "connect = \"3s\"");
    let mut client = server.connect();
    client.send(request(
        "POST /",
        &["Content-Type: application/grpc+proto", "Transfer-Encoding: chunked"],
    ));
    client.send("5\r\nfirst\r\n");
    assert_eq!(received.recv_timeout(DEADLINE), Ok(()), "before the request has ended");
}

#[test]
fn a_buffered_body_is_retried_with_another_upstream() {
    let (used_first, first_was_used) = mpsc::channel();
    // The upstream receives a whole request and closes the connection.
    let failing = Upstream::start(move |incoming, _| {
        let _ = used_first.send(incoming.content.len());
        upstream::Next::Close
    });
    let good = Upstream::start(|incoming, stream| {
        upstream::write_to(stream, ok(&lengths(incoming)));
        upstream::Next::Keep
    });
    let to = format!("[\"{}\", {{ url = \"{}\", backup = true }}]", failing.url(), good.url());
    let server = proxied(&to, "fails = 0, balance = \"round_robin\"");
    // A request that may have had an effect is sent again only if it is idempotent.
    for (method, expected) in [("PUT", 200), ("DELETE", 200), ("POST", 502)] {
        let mut client = server.connect();
        client.send(request(&format!("{method} /"), &[&format!("Content-Length: {LARGE}")]));
        client.send(content(LARGE));
        let response = client.response();
        assert_eq!(first_was_used.recv_timeout(DEADLINE), Ok(LARGE), "{method}");
        assert_eq!(response.status, expected, "{method}: {response:?}");
        if expected == 200 {
            assert_eq!(
                response.text(),
                format!("{LARGE} true Some(\"{LARGE}\") None"),
                "{method}"
            );
        }
    }
}
