//! Buffering between clients and upstreams of different speed: responses are read before slow clients accept them, and
//! request bodies are collected before they are sent to the upstream.

use std::sync::mpsc;

use super::support::client::request;
use super::support::http2::Http2;
use super::support::upstream::{Next, Upstream, ok, write_to};
use super::support::{DEADLINE, Folder, Running};

fn proxied(upstream: &Upstream, keys: &str) -> Running {
    let text = format!(
        "[server]\nworkers = 1\nh2c = true\nevents = {{ wait = \"20ms\" }}\n\
         [site.default]\nlisten = \"127.0.0.1:0\"\nproxy = {{ to = \"{}\", {keys} }}\n",
        upstream.url()
    );
    Running::start(Folder::with(&[]), &text)
}

/// Length of a response in bytes, far more than the socket buffers.
const LARGE: usize = 24 << 20;

#[test]
fn an_upstream_is_free_before_the_client_has_read_the_response() {
    let (sent, received) = mpsc::channel();
    let upstream = Upstream::start(move |_, stream| {
        write_to(stream, format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n"));
        write_to(stream, vec![b'x'; LARGE]);
        let _ = sent.send(());
        Next::Keep
    });
    let server = proxied(&upstream, "buffering = \"32MiB\", connections = 1");
    let mut slow = server.connect();
    slow.send(request("GET /", &[]));
    assert!(slow.head().starts_with("HTTP/1.1 200 "));
    received
        .recv_timeout(DEADLINE)
        .expect("the whole response is sent although the client has read only the head");
    // The only permit of the upstream and its connection are free again.
    let mut other = server.connect();
    let response = other.get("/");
    assert!(response.body.len() == LARGE && response.body.iter().all(|byte| *byte == b'x'));
    assert_eq!(upstream.connections(), 1);
    assert!(slow.bytes(LARGE).iter().all(|byte| *byte == b'x'));
    assert_eq!(slow.get("/").body.len(), LARGE, "the connection must be kept");
}

#[test]
fn buffering_is_limited() {
    let (sent, received) = mpsc::channel();
    let upstream = Upstream::start(move |_, stream| {
        write_to(stream, format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n"));
        write_to(stream, vec![b'x'; LARGE]);
        let _ = sent.send(());
        Next::Keep
    });
    let server = proxied(&upstream, "buffering = true");
    let mut slow = server.connect();
    slow.send(request("GET /", &[]));
    assert!(slow.head().starts_with("HTTP/1.1 200 "));
    // The response is far longer than the buffer, so the proxy cannot receive all of it while the client does not read.
    // Another request succeeds in the meantime.
    let mut other = Http2::to(server.address());
    assert_eq!(other.get("/").content.len(), LARGE);
    received.recv_timeout(DEADLINE).expect("the other request");
    assert!(
        received.try_recv().is_err(),
        "the proxy received the whole response for a client that does not read"
    );
    assert_eq!(slow.bytes(LARGE).len(), LARGE);
    received.recv_timeout(DEADLINE).expect("the whole response");
    // If a client disconnects, its connection to the upstream is closed.
    let mut leaving = server.connect();
    leaving.send(request("GET /", &[]));
    assert!(leaving.head().starts_with("HTTP/1.1 200 "));
    drop(leaving);
    received
        .recv_timeout(DEADLINE)
        .expect("the end of the upstream's write");
}

#[test]
fn buffered_responses_are_unchanged() {
    // With the keys of the third row, the proxy buffers nothing.
    for keys in ["buffering = true", "buffering = \"1KiB\"", "connect = \"3s\""] {
        // Output of the upstream, and the body that the client gets; `None` if the response is cut.
        for (sent, expected) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", Some("")),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
                Some("abc"),
            ),
            ("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabcd", Some("abcd")),
            ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", None),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
                None,
            ),
        ] {
            let (more, wanted) = mpsc::channel::<()>();
            let wanted = std::sync::Arc::new(std::sync::Mutex::new(wanted));
            let upstream = Upstream::start(move |_, stream| {
                // The response is sent in two parts, so that it begins before it is complete.
                let head = sent.find("\r\n\r\n").expect("a head") + 4;
                write_to(stream, &sent[..head]);
                let _ = wanted.lock().expect("one reader").recv();
                write_to(stream, &sent[head..]);
                Next::Close
            });
            let server = proxied(&upstream, keys);
            let mut client = server.connect();
            client.send(request("GET /", &["Connection: close"]));
            let head = client.head();
            more.send(()).expect("an upstream that waits");
            let rest = String::from_utf8_lossy(&client.rest()).into_owned();
            match expected {
                Some(content) if head.contains("chunked") => {
                    assert!(rest.ends_with("0\r\n\r\n"), "{keys}: {sent:?}: {rest:?}");
                    let letters: String = rest.chars().filter(|c| ('a'..='d').contains(c)).collect();
                    assert_eq!(letters, content, "{keys}: {sent:?}");
                }
                Some(content) => assert_eq!(rest, content, "{keys}: {sent:?}"),
                None => assert!(
                    !rest.ends_with("0\r\n\r\n") && rest.len() < 10,
                    "{keys}: {sent:?}: {rest:?}"
                ),
            }
        }
    }
}

#[test]
fn upstreams_do_not_wait_for_slow_clients() {
    let upstream = Upstream::start(|incoming, stream| {
        write_to(
            stream,
            ok(&format!(
                "{} {:?}",
                incoming.content.len(),
                incoming.field("Content-Length")
            )),
        );
        Next::Keep
    });
    let server = proxied(&upstream, "request_buffering = \"8KiB\"");
    let mut slow = server.connect();
    slow.send(request("POST /", &["Content-Length: 5"]));
    slow.send("abc");
    // Another request gets a response over the only connection: the incomplete request opened no connection.
    let mut other = server.connect();
    assert_eq!(other.get("/").text(), "0 None");
    assert_eq!(upstream.connections(), 1);
    slow.send("de");
    assert_eq!(slow.response().text(), "5 Some(\"5\")");
    assert_eq!(
        (&upstream.last().content[..], upstream.connections()),
        (&b"abcde"[..], 1)
    );
    // A body that exceeds the buffer is forwarded as it arrives.
    let content: Vec<u8> = (0..100_000_u32).map(|number| (number % 251) as u8).collect();
    slow.send(request("PUT /", &["Content-Length: 100000"]));
    for piece in content.chunks(7001) {
        slow.send(piece);
    }
    assert_eq!(slow.response().text(), "100000 Some(\"100000\")");
    assert!(upstream.last().content == content);
    slow.send(request("POST /", &["Transfer-Encoding: chunked"]));
    slow.send("3\r\nabc\r\n");
    slow.send("0\r\n\r\n");
    assert_eq!(slow.response().text(), "3 None");
    // If a client disconnects before its body is complete, the upstream gets no request.
    let mut leaving = server.connect();
    leaving.send(request("POST /", &["Content-Length: 5"]));
    leaving.send("abc");
    drop(leaving);
    assert_eq!(other.get("/").text(), "0 None");
    // Connections are not counted here: the last response may reach the client before its connection is idle again.
    assert_eq!(upstream.all().len(), 5, "{:?}", upstream.last());
}

#[test]
fn a_buffered_body_goes_to_the_next_upstream_if_one_is_unreachable() {
    let upstream = Upstream::responding_with(ok("here"));
    let text = format!(
        "[site.default]\nlisten = \"127.0.0.1:0\"\nproxy = {{ to = [\"http://127.0.0.1:1\", \"{}\"], request_buffering = true, fails = 0 }}\n",
        upstream.url()
    );
    let server = Running::start(Folder::with(&[]), &text);
    for _ in 0..6 {
        let mut client = server.connect();
        client.send(request("POST /", &["Content-Length: 3"]));
        client.send("abc");
        assert_eq!(client.response().text(), "here");
        assert_eq!(upstream.last().content, b"abc");
    }
}

over_http3! {
    buffered_responses_are_unchanged,
    an_upstream_is_free_before_the_client_has_read_the_response,
    buffering_is_limited,
    upstreams_do_not_wait_for_slow_clients,
    a_buffered_body_goes_to_the_next_upstream_if_one_is_unreachable,
}
