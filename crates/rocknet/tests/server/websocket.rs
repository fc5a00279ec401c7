//! WebSocket and other upgrades through the proxy: the upstream gets an HTTP/1.1 upgrade request from clients of every
//! HTTP version.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use bytes::Bytes;
use h2::ext::Protocol;

use super::support::http2::Http2;
use super::support::upstream::{Next, ReceivedRequest, Upstream, ok, write_to};
use super::support::{Client, Folder, Running};

const SERVER: &str =
    "[server]\nworkers = 1\nblocking_threads = 2\nh2c = true\nevents = { wait = \"20ms\", connections = 16 }\n";

/// Example key of RFC 6455 §1.3. `ACCEPT` is the value of `Sec-WebSocket-Accept` for this key.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
/// Frame with the text `hello` from a server.
const HELLO: &[u8] = b"\x81\x05hello";
/// Frame with the text `hello` from a client, which has to mask its frames (RFC 6455 §5.7).
const MASKED: &[u8] = b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";

fn start(upstream: &Upstream) -> Running {
    let folder = Folder::with(&[("www/index.html", "a page")]);
    let text = format!(
        "{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n{}\n",
        upstream.key()
    );
    Running::start(folder, &text)
}

/// Accepts any upgrade, sends [`HELLO`] in the same write, and echoes until the proxy closes the connection.
fn echo(incoming: &ReceivedRequest, stream: &mut TcpStream) -> Next {
    let Some(protocol) = incoming.field("Upgrade") else {
        write_to(stream, ok("no upgrade"));
        return Next::Keep;
    };
    let accept = match incoming.field("Sec-WebSocket-Key") {
        Some(key) => format!("Sec-WebSocket-Accept: {}\r\n", accept(key)),
        None => String::new(),
    };
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n{accept}X-Kept: yes\r\n\r\n"
    );
    write_to(stream, [head.as_bytes(), HELLO].concat());
    let mut room = [0; 4096];
    while let Ok(got) = stream.read(&mut room) {
        if got == 0 {
            break;
        }
        write_to(stream, &room[..got]);
    }
    Next::Close
}

/// Computes `Sec-WebSocket-Accept` with openssl, independently of the server's code.
fn accept(key: &str) -> String {
    if key == KEY {
        return ACCEPT.to_owned();
    }
    let script =
        format!("printf %s '{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11' | openssl sha1 -binary | openssl base64");
    let output = std::process::Command::new("sh")
        .args(["-c", &script])
        .output()
        .expect("openssl");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// Requests an upgrade to one of these protocols, with further header fields.
fn upgrade(client: &mut Client, protocols: &str, more: &[&str]) -> super::support::ReceivedResponse {
    let mut fields = vec![
        "Connection: keep-alive, Upgrade".to_owned(),
        format!("Upgrade: {protocols}"),
    ];
    fields.extend(more.iter().map(|&field| field.to_owned()));
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    client.fetch("GET /chat?room=1", &fields)
}

#[test]
fn a_handshake_and_the_following_bytes_are_forwarded() {
    let upstream = Upstream::start(echo);
    let server = start(&upstream);
    let mut client = server.connect();
    // An earlier request opens an upstream connection, which the upgrade reuses.
    assert_eq!(client.get("/x").text(), "no upgrade");
    let key = format!("Sec-WebSocket-Key: {KEY}");
    let response = upgrade(
        &mut client,
        "websocket",
        &[
            &key,
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Protocol: chat, superchat",
            "Cookie: a=b",
        ],
    );
    response.expect(
        "a handshake",
        101,
        &[
            "Upgrade: websocket",
            "Connection: upgrade",
            "X-Kept: yes",
            "!Content-Length",
            "!Transfer-Encoding",
        ],
    );
    assert_eq!(response.field("Sec-WebSocket-Accept"), Some(ACCEPT));
    let incoming = upstream.last();
    assert_eq!(incoming.line, "GET /chat?room=1 HTTP/1.1");
    for (name, value) in [
        ("Connection", "upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Key", KEY),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Protocol", "chat, superchat"),
        ("Cookie", "a=b"),
        ("X-Forwarded-For", "127.0.0.1"),
    ] {
        assert_eq!(
            incoming.field(name).map(str::to_ascii_lowercase),
            Some(value.to_ascii_lowercase()),
            "{name}"
        );
    }
    assert_eq!(upstream.connections(), 1);
    assert_eq!(client.bytes(HELLO.len()), HELLO);
    for _ in 0..100 {
        client.send(MASKED);
        assert_eq!(client.bytes(MASKED.len()), MASKED);
    }
    assert_eq!(server.server().status().tunnels_open, 1);
    client.end();
    client.assert_closed("both directions have ended");
    // The upgraded connection cannot be reused for another request.
    assert_eq!(server.get("/y").text(), "no upgrade");
    assert_eq!(upstream.connections(), 2);
}

#[test]
fn the_upstream_gets_the_same_request_over_http_2() {
    let upstream = Upstream::start(echo);
    let server = start(&upstream);
    let mut client = Http2::to(server.address());
    assert_eq!(client.get("/x").content, b"no upgrade");
    let builder = client
        .request("CONNECT", "/chat?room=1")
        .extension(Protocol::from_static("websocket"))
        .header("sec-websocket-version", "13")
        .header("origin", "http://localhost");
    let (response, mut to) = client.start_request(builder, false);
    let response = client.wait(response).expect("a response");
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["x-kept"], "yes");
    for none in ["sec-websocket-accept", "upgrade", "connection"] {
        assert!(!response.headers().contains_key(none), "{none}");
    }
    let incoming = upstream.last();
    assert_eq!(incoming.line, "GET /chat?room=1 HTTP/1.1");
    assert_eq!(incoming.field("Upgrade"), Some("websocket"));
    // The proxy has generated the key: 16 bytes in Base64.
    assert_eq!(incoming.field("Sec-WebSocket-Key").map(str::len), Some(24));
    assert_eq!(incoming.field("Content-Length"), None);
    assert_eq!(incoming.field("Transfer-Encoding"), None);
    let mut from = response.into_body();
    let mut read = |count: usize| {
        let mut all = Vec::new();
        while all.len() < count {
            let piece = client.wait(from.data()).expect("more").expect("no reset");
            from.flow_control().release_capacity(piece.len()).expect("capacity");
            all.extend_from_slice(&piece);
        }
        all
    };
    assert_eq!(read(HELLO.len()), HELLO);
    for _ in 0..100 {
        to.send_data(Bytes::from_static(MASKED), false).expect("sent");
        assert_eq!(read(MASKED.len()), MASKED);
    }
    to.send_data(Bytes::new(), true).expect("sent");
    let end = client.wait(async {
        // The end can arrive as an empty frame.
        while let Some(Ok(piece)) = from.data().await {
            assert!(piece.is_empty(), "bytes after the end");
        }
        from.is_end_stream()
    });
    assert!(end, "no orderly end");
    assert_eq!(client.get("/y").content, b"no upgrade");
}

/// Starts an upstream that responds to a handshake with these bytes.
fn responding(bytes: &'static str) -> Upstream {
    Upstream::start(move |_, stream| {
        write_to(stream, bytes);
        let _ = stream.shutdown(Shutdown::Write);
        Next::Close
    })
}

#[test]
fn other_responses_to_a_handshake_are_forwarded_or_refused() {
    const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\n";
    // A row has the response of the upstream, and the status over HTTP/1.1 and over HTTP/2. A response without a status
    // line follows `SWITCH`.
    let rows: &[(&str, u16, u16)] = &[
        // The upstream refuses. An HTTP/2 client would interpret a status of success as acceptance, so it gets 501.
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno", 200, 501),
        ("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", 403, 403),
        (
            "HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n",
            426,
            426,
        ),
        // The upstream accepts another protocol or none, or its `Sec-WebSocket-Accept` is missing or wrong. An HTTP/1.1
        // client verifies that field itself.
        ("Connection: upgrade\r\nUpgrade: other\r\n\r\n", 502, 502),
        ("Connection: upgrade\r\n\r\n", 502, 502),
        ("Upgrade: websocket\r\n\r\n", 502, 502),
        ("Connection: upgrade\r\nUpgrade: websocket\r\n\r\n", 101, 502),
        (
            "Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
            101,
            502,
        ),
        ("", 502, 502),
    ];
    for &(response, first, second) in rows {
        let response: &'static str = if response.starts_with("HTTP") || response.is_empty() {
            response
        } else {
            String::leak(format!("{SWITCH}{response}"))
        };
        let upstream = responding(response);
        let server = start(&upstream);
        assert_eq!(
            upgrade(&mut server.connect(), "websocket", &[]).status,
            first,
            "{response}"
        );
        let mut client = Http2::to(server.address());
        // The client must receive the SETTINGS of the server before it may send an extended CONNECT.
        assert_eq!(
            client
                .send(client.request("TRACE", "/"), b"")
                .expect("a response")
                .status,
            405
        );
        let builder = client
            .request("CONNECT", "/chat")
            .extension(Protocol::from_static("websocket"));
        let (found, _to) = client.start_request(builder, false);
        assert_eq!(client.wait(found).expect("a response").status(), second, "{response}");
    }
}

#[test]
fn upgrades_to_other_http_versions_are_refused() {
    let upstream = Upstream::start(echo);
    let server = start(&upstream);
    for protocols in ["h2c", "H2C, TLS/1.0", "HTTP/2.0"] {
        let response = upgrade(
            &mut server.connect(),
            protocols,
            &["HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"],
        );
        assert_eq!(
            (response.status, response.text().as_str()),
            (200, "no upgrade"),
            "{protocols}"
        );
        assert_eq!(upstream.last().field("Upgrade"), None);
    }
    let mut client = server.connect();
    assert_eq!(upgrade(&mut client, "h2c, other/1", &[]).status, 101);
    assert_eq!(upstream.last().field("Upgrade"), Some("other/1"));
    let mut client = Http2::to(server.address());
    assert_eq!(client.get("/x").content, b"no upgrade");
    let builder = client
        .request("CONNECT", "/chat")
        .extension(Protocol::from_static("h2c"));
    let (found, _to) = client.start_request(builder, false);
    assert_eq!(client.wait(found).expect("a response").status(), 501);
}

#[test]
fn an_upstream_that_does_not_read_times_out() {
    let upstream = Upstream::start(|incoming, stream| {
        let _ = accept_upgrade(incoming, stream);
        // The upstream does not read, and keeps the connection open until the proxy closes it.
        let started = std::time::Instant::now();
        while matches!(stream.take_error(), Ok(None)) && started.elapsed() < super::support::DEADLINE {
            std::thread::yield_now();
        }
        Next::Close
    });
    let folder = Folder::with(&[("www/index.html", "a page")]);
    let text = format!(
        "{SERVER}[limits]\nsend_stall = \"200ms\"\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n{}\n",
        upstream.key()
    );
    let server = Running::start(folder, &text);
    let mut client = server.connect();
    upgrade(&mut client, "websocket", &[&format!("Sec-WebSocket-Key: {KEY}")]).expect("an upgrade", 101, &[]);
    // The data exceeds all buffers.
    client.send_anyway(vec![b'x'; 64 << 20]);
    wait_until_no_tunnel_is_open(&server);
}

#[track_caller]
fn wait_until_no_tunnel_is_open(server: &Running) {
    let started = std::time::Instant::now();
    while server.server().status().tunnels_open > 0 {
        assert!(started.elapsed() < super::support::DEADLINE, "a tunnel is still open");
        std::thread::yield_now();
    }
}

#[test]
fn either_side_can_disconnect() {
    let upstream = Upstream::start(|incoming, stream| {
        let _ = accept_upgrade(incoming, stream);
        let mut byte = [0];
        // `x` makes the upstream close without a reply.
        let _ = stream.read(&mut byte);
        assert!(byte[0] == b'x' || byte[0] == 0);
        Next::Close
    });
    let server = start(&upstream);
    let mut client = server.connect();
    assert_eq!(upgrade(&mut client, "other", &[]).status, 101);
    client.send("x");
    assert_eq!(client.rest(), b"");
    drop(client);
    let mut client = server.connect();
    assert_eq!(upgrade(&mut client, "other", &[]).status, 101);
    drop(client);
    wait_until_no_tunnel_is_open(&server);
}

/// Accepts the upgrade to the requested protocol and sends nothing else.
fn accept_upgrade(incoming: &ReceivedRequest, stream: &mut TcpStream) -> std::io::Result<()> {
    let protocol = incoming.field("Upgrade").unwrap_or("none");
    write!(
        stream,
        "HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: {protocol}\r\n\r\n"
    )
}
