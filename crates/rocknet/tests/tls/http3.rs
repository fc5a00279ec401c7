//! HTTP/3 over real sockets, with a client of another implementation.

use std::time::{Duration, Instant};

use super::certs::{Authority, Kind};
use super::client::TlsClient;
use super::http3_client::{Http3Client, connect, get, get_frame};
use super::support::handlers::Echo;
use super::support::running::mount;
use super::support::{DEADLINE, Folder, Running};

/// Size in bytes of a body that exceeds the windows of a connection.
const LARGE: usize = 5 << 20;

/// Size in bytes of a small body, which is nevertheless too large to be written at once.
const SMALL: usize = 40_000;

/// Returns a configuration with one site; `keys` are further keys of the site.
fn text(keys: &str) -> String {
    format!(
        "[site.default]\nlisten = \"https://127.0.0.1:0\"\nroot = \"www\"\n\
         tls = {{ cert = \"a.pem\", key = \"a.key\" }}\n{keys}"
    )
}

fn start(authority: &Authority, files: &[(&str, &str)], keys: &str) -> Running {
    let folder = Folder::with(files);
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "a");
    let text = text(keys);
    Running::start_with(folder, &text, vec![mount("/echo/", Echo)])
}

fn open(authority: &Authority, server: &Running) -> Http3Client {
    Http3Client::open(&TlsClient::new(authority.roots(), "a.test"), server.address()).expect("a connection")
}

#[test]
fn files_are_served() {
    let authority = Authority::new("root");
    let large = "0123456789abcdef".repeat(LARGE / 16);
    let server = start(
        &authority,
        &[("www/index.html", "hello over HTTP/3"), ("www/large.txt", &large)],
        "",
    );
    let client = open(&authority, &server);
    for _ in 0..3 {
        let response = client.get("https://a.test/");
        assert_eq!((response.status, &response.body[..]), (200, &b"hello over HTTP/3"[..]));
        assert_eq!(response.fields["content-length"], "17");
        assert_eq!(response.fields["content-type"], "text/html; charset=utf-8");
        assert!(response.fields.contains_key("date"));
    }
    for _ in 0..2 {
        let response = client.get("https://a.test/large.txt");
        assert_eq!(response.status, 200);
        assert!(response.body == large.as_bytes(), "{} bytes", response.body.len());
    }
    assert_eq!(client.get("https://a.test/missing").status, 404);
    let head = http::Request::head("https://a.test/large.txt")
        .body(())
        .expect("a request");
    let response = client.request(head, b"").expect("a response");
    assert_eq!((response.status, response.body.len()), (200, 0));
    assert_eq!(response.fields["content-length"], large.len().to_string());
    let range = http::Request::get("https://a.test/large.txt")
        .header("range", "bytes=16-31")
        .body(())
        .expect("a request");
    let response = client.request(range, b"").expect("a response");
    assert_eq!((response.status, &response.body[..]), (206, &b"0123456789abcdef"[..]));
}

#[test]
fn many_requests_share_a_connection() {
    let authority = Authority::new("root");
    let page = "p".repeat(100_000);
    let server = start(&authority, &[("www/index.html", "hello"), ("www/page.txt", &page)], "");
    let client = open(&authority, &server);
    for _ in 0..5 {
        let requests = (0..200).map(|number| match number % 2 {
            0 => get("https://a.test/"),
            _ => get("https://a.test/page.txt"),
        });
        for (number, response) in client.requests(requests.collect()).into_iter().enumerate() {
            let response = response.expect("a response");
            let expected = if number % 2 == 0 { "hello" } else { &page };
            assert!(response.body == expected.as_bytes(), "{number}");
        }
    }
}

#[test]
fn responses_of_one_urgency_take_turns() {
    let authority = Authority::new("root");
    let large = "0123456789abcdef".repeat(LARGE / 16);
    let files = [
        ("www/a.txt", &*large),
        ("www/b.txt", &large),
        ("www/c.txt", &large),
        ("www/small.txt", &large[..SMALL]),
    ];
    let server = start(&authority, &files, "");
    // The window is small, so that no datagram is lost on its way. After a loss, the end of a response would be late.
    // Without a Priority field, responses share the connection.
    let mut transport = quinn::TransportConfig::default();
    transport.receive_window(quinn::VarInt::from_u32(64 * 1024));
    let client = TlsClient::new(authority.roots(), "a.test");
    let client = Http3Client::open_with(&client, server.address(), transport).expect("a connection");
    // `received` has the number of bytes of each response that had arrived when the first response was complete.
    let urls = ["https://a.test/a.txt", "https://a.test/b.txt", "https://a.test/c.txt"];
    let received = client.received_with_first(urls.map(get).into());
    assert!(received.iter().all(|bytes| *bytes > LARGE / 2), "{received:?}");
    // RFC 9218 §4.2: with the field, but without its parameter `i` (incremental), the responses are sent one after the
    // other.
    let one_by_one = urls.map(|url| with_priority(url, "u=3"));
    let received = client.received_with_first(one_by_one.into());
    assert!(received[1..].iter().all(|bytes| *bytes < LARGE / 8), "{received:?}");
    // One response without and one with `i`: neither holds back the other.
    let mixed = [with_priority(urls[0], "u=3"), with_priority(urls[1], "u=3, i")];
    let received = client.received_with_first(mixed.into());
    assert!(received.iter().all(|bytes| *bytes > LARGE / 2), "{received:?}");
    // A more urgent response overtakes one that was requested before it. Its file is in the cache of the worker, so
    // that it does not wait for a busy disk.
    let small = client
        .request(get("https://a.test/small.txt"), b"")
        .expect("a response");
    assert_eq!(small.body.len(), SMALL);
    let overtaking = [
        with_priority(urls[0], "u=3"),
        with_priority("https://a.test/small.txt", "u=0"),
    ];
    let received = client.received_with_first(overtaking.into());
    assert!(received[0] < LARGE / 8 && received[1] == SMALL, "{received:?}");
}

fn with_priority(url: &str, priority: &str) -> http::Request<()> {
    let request = http::Request::get(url).header("priority", priority);
    request.body(()).expect("a request")
}

fn post(url: &str) -> http::Request<()> {
    http::Request::post(url).body(()).expect("a request")
}

#[test]
fn request_bodies_of_every_size_reach_the_handler() {
    let authority = Authority::new("root");
    let server = start(&authority, &[("www/index.html", "hello")], "");
    let client = open(&authority, &server);
    for length in [0, 1, 4096, 100_000, LARGE] {
        let body: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        let response = client.request(post("https://a.test/echo/"), &body).expect("a response");
        assert_eq!(response.status, 200);
        assert!(response.body == body, "{length}: {} bytes", response.body.len());
    }
}

#[test]
fn requests_above_the_limits_are_refused_and_the_connection_continues() {
    let authority = Authority::new("root");
    let server = start(
        &authority,
        &[("www/index.html", "hello")],
        "limits = { body_size = \"1KB\" }\n",
    );
    let client = open(&authority, &server);
    for length in [2000, LARGE] {
        let response = client.request(post("https://a.test/echo/"), &vec![0; length]);
        assert_eq!(response.expect("a response").status, 413, "{length}");
    }
    // 18,000 bytes exceed the default of `header_size`, 16 KiB.
    let large = http::Request::get("https://a.test/")
        .header("x-large", "x".repeat(18_000))
        .body(())
        .expect("a request");
    assert_eq!(client.request(large, b"").expect("a response").status, 431);
    // Responses to HEAD have no body. Responses to POST have one.
    for (method, has_body) in [("HEAD", false), ("POST", true)] {
        for (size, body, status) in [(0, LARGE, 413), (18_000, 0, 431)] {
            let request = http::Request::builder().method(method).uri("https://a.test/echo/");
            let request = request.header("x-large", "x".repeat(size)).body(()).expect("a request");
            let response = client.request(request, &vec![0; body]).expect("a response");
            assert_eq!(response.status, status, "{method} {size}");
            assert_eq!(!response.body.is_empty(), has_body, "{method} {size}");
        }
    }
    let long = get(&format!("https://a.test/{}", "x".repeat(9000)));
    assert_eq!(client.request(long, b"").expect("a response").status, 414);
    assert_eq!(
        client
            .request(post("https://a.test/"), b"x")
            .expect("a response")
            .status,
        405
    );
    assert_eq!(client.get("https://a.test/").status, 200);
}

#[test]
fn a_head_that_does_not_arrive_ends_only_its_stream() {
    let authority = Authority::new("root");
    let limits = "[limits]\nheader_timeout = \"300ms\"\n";
    let server = start(&authority, &[("www/index.html", "hello")], limits);
    let client = open(&authority, &server);
    let (mut send, mut receive) = client.block_on(client.connection.open_bi()).expect("a stream");
    // The type of a HEADERS frame without its length.
    client.block_on(send.write_all(b"\x01")).expect("an open stream");
    let read_byte = async |receive: &mut quinn::RecvStream| {
        tokio::time::timeout(Duration::from_millis(20), receive.read(&mut [0])).await
    };
    let result = loop {
        match client.block_on(read_byte(&mut receive)) {
            Ok(result) => break result,
            // Other requests do not extend the deadline of the head.
            Err(_) => assert_eq!(client.get("https://a.test/").status, 200),
        }
    };
    // H3_REQUEST_REJECTED: no part of the request was processed.
    let expected = quinn::ReadError::Reset(0x10b_u32.into());
    assert_eq!(result, Err(expected));
    assert_eq!(client.get("https://a.test/").status, 200);
}

#[test]
fn each_head_has_its_own_deadline() {
    let authority = Authority::new("root");
    let limits = "[limits]\nheader_timeout = \"2s\"\n";
    let server = start(&authority, &[("www/index.html", "hello")], limits);
    let client = open(&authority, &server);
    // The type of a HEADERS frame without its length.
    let begin = || {
        client.block_on(async {
            let (mut send, receive) = client.connection.open_bi().await.expect("a stream");
            send.write_all(b"\x01").await.expect("an open stream");
            (send, receive)
        })
    };
    let (mut first, _received) = begin();
    // At least one tick of the server lies between the heads.
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(600) {
        assert_eq!(client.get("https://a.test/").status, 200);
    }
    let (_second, mut received) = begin();
    first.reset(CANCELLED).expect("an open stream");
    // The deadline that was set for the first head passes without effect. Nothing else wakes the connection.
    let result = client.block_on(async { received.read(&mut [0]).await });
    // H3_REQUEST_REJECTED: no part of the request was processed.
    assert_eq!(result, Err(quinn::ReadError::Reset(0x10b_u32.into())));
}

/// Starts a request on a stream that the test reads itself.
fn start_request(client: &Http3Client, path: &str) -> quinn::RecvStream {
    client.block_on(async {
        let (mut send, receive) = client.connection.open_bi().await.expect("a stream");
        send.write_all(&get_frame("a.test", path))
            .await
            .expect("an open stream");
        send.finish().expect("an open stream");
        receive
    })
}

/// Error code of a stream whose response the client does not take: H3_REQUEST_CANCELLED.
const CANCELLED: quinn::VarInt = quinn::VarInt::from_u32(0x10c);

#[test]
fn a_stream_that_is_not_read_is_reset_although_others_are_read() {
    let authority = Authority::new("root");
    let page = "p".repeat(100_000);
    let limits = "[limits]\nsend_stall = \"300ms\"\n";
    let server = start(&authority, &[("www/page.txt", &page)], limits);
    server.folder.sparse("www/large.bin", 64 << 20);
    let mut transport = quinn::TransportConfig::default();
    transport.stream_receive_window(64_000_u32.into());
    let client = TlsClient::new(authority.roots(), "a.test");
    let client = Http3Client::open_with(&client, server.address(), transport).expect("a connection");
    let mut unread = start_request(&client, "/large.bin");
    let started = Instant::now();
    loop {
        let response = client.get("https://a.test/page.txt");
        assert!(response.status == 200 && response.body == page.as_bytes());
        let reset = async { tokio::time::timeout(Duration::from_millis(1), unread.received_reset()).await };
        if let Ok(reset) = client.block_on(reset) {
            assert_eq!(reset, Ok(Some(CANCELLED)));
            return;
        }
        assert!(started.elapsed() < DEADLINE, "the stream is still open");
    }
}

#[test]
fn a_stream_that_waits_for_its_turn_is_not_reset() {
    let authority = Authority::new("root");
    let limits = "[limits]\nsend_stall = \"300ms\"\n[cache]\nmax_file = \"16MiB\"\n";
    let large = "x".repeat(16 << 20);
    let server = start(&authority, &[("www/large.bin", &large)], limits);
    let mut transport = quinn::TransportConfig::default();
    // The responses share what the connection permits. With so small a window, no machine receives 16 MiB in a second.
    transport.receive_window(500_u32.into());
    let client = TlsClient::new(authority.roots(), "a.test");
    let client = Http3Client::open_with(&client, server.address(), transport).expect("a connection");
    let read = async |stream: &mut quinn::RecvStream| stream.read_chunk(usize::MAX, true).await;
    let mut first = start_request(&client, "/large.bin");
    let chunk = client.block_on(read(&mut first));
    assert!(matches!(chunk, Ok(Some(_))), "{chunk:?}");
    let mut second = start_request(&client, "/large.bin");
    let (started, mut bytes) = (Instant::now(), 0);
    client.block_on(async {
        while started.elapsed() < Duration::from_millis(1000) {
            tokio::select! {
                chunk = read(&mut first) => assert!(matches!(chunk, Ok(Some(_))), "the first: {chunk:?}"),
                chunk = read(&mut second) => match chunk {
                    Ok(Some(chunk)) => bytes += chunk.bytes.len(),
                    other => panic!("the second, after {bytes} bytes: {other:?}"),
                },
            }
        }
    });
    drop(first);
    let chunk = client.block_on(read(&mut second));
    assert!(matches!(chunk, Ok(Some(_))), "{chunk:?}");
}

#[test]
fn each_name_has_its_certificate_and_serves_no_other_site() {
    let authority = Authority::new("root");
    let folder = Folder::with(&[("a/index.html", "site a"), ("b/index.html", "site b")]);
    let mut text = String::new();
    for name in ["a", "b"] {
        authority
            .leaf(Kind::Ecdsa, &[&format!("{name}.test")])
            .write(&folder, name);
        text += &format!(
            "[site.\"{name}.test\"]\nlisten = \"https://127.0.0.1:0\"\nroot = \"{name}\"\n\
             tls = {{ cert = \"{name}.pem\", key = \"{name}.key\" }}\n"
        );
    }
    let server = Running::start(folder, &text);
    for name in ["a", "b"] {
        let host = format!("{name}.test");
        let client = Http3Client::open(&TlsClient::new(authority.roots(), &host), server.address());
        let client = client.expect("a certificate for this name");
        let response = client.get(&format!("https://{host}/"));
        assert_eq!(response.body, format!("site {name}").as_bytes());
        let other = if name == "a" { "b" } else { "a" };
        assert_eq!(client.get(&format!("https://{other}.test/")).status, 421);
    }
}

#[test]
fn a_stop_ends_connections_in_an_orderly_way() {
    let authority = Authority::new("root");
    let server = start(&authority, &[("www/index.html", "hello")], "");
    let client = open(&authority, &server);
    assert_eq!(client.get("https://a.test/").status, 200);
    drop(server);
    let closed = client.closed();
    // The error code is H3_NO_ERROR.
    assert!(
        matches!(&closed, quinn::ConnectionError::ApplicationClosed(close) if close.error_code == 0x100_u32.into()),
        "{closed}"
    );
}

#[test]
fn a_stop_announces_the_end_before_it_rejects_requests() {
    let authority = Authority::new("root");
    let server = start(&authority, &[("www/index.html", "hello")], "");
    let client = TlsClient::new(authority.roots(), "a.test");
    let (runtime, _endpoint, connection) = connect(&client, server.address()).expect("a connection");
    let mut control = runtime.block_on(connection.accept_uni()).expect("a control stream");
    drop(server);
    let mut bytes = Vec::new();
    let read = async {
        while let Ok(Some(chunk)) = control.read_chunk(usize::MAX, true).await {
            bytes.extend_from_slice(&chunk.bytes);
        }
    };
    runtime
        .block_on(async { tokio::time::timeout(Duration::from_secs(20), read).await })
        .expect("the server closes");

    let mut rest = &bytes[..];
    assert_eq!(integer(&mut rest), 0, "the type of a control stream");
    let mut announced = Vec::new();
    while !rest.is_empty() {
        let (kind, length) = (integer(&mut rest), integer(&mut rest));
        let (mut payload, after) = rest.split_at(length as usize);
        // Type 7 is GOAWAY.
        if kind == 7 {
            announced.push(integer(&mut payload));
        }
        rest = after;
    }
    // The first GOAWAY has the largest ID of a request stream, and the second the ID of the first request stream
    // (RFC 9114 §5.2).
    assert_eq!(announced, [(1 << 62) - 4, 0]);
}

/// Reads a variable-length integer (RFC 9000 §16).
fn integer(bytes: &mut &[u8]) -> u64 {
    let length = 1 << (bytes[0] >> 6);
    let (integer, rest) = bytes.split_at(length);
    *bytes = rest;
    let first = u64::from(integer[0] & 0x3f);
    integer[1..]
        .iter()
        .fold(first, |value, byte| value << 8 | u64::from(*byte))
}

#[test]
fn connections_survive_new_client_addresses_whichever_worker_they_reach() {
    let authority = Authority::new("root");
    let folder = Folder::with(&[("www/index.html", "hello")]);
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "a");
    let text = "[server]\nhttp3 = true\nworkers = 3\n[site.default]\nlisten = \"https://127.0.0.1:0\"\nroot = \"www\"\n\
                tls = { cert = \"a.pem\", key = \"a.key\" }\n";
    let server = Running::start(folder, text);
    let client = open(&authority, &server);
    let id = client.connection.stable_id();
    for _ in 0..12 {
        // The kernel selects the socket of a worker by the addresses of a datagram, so after most of these changes the
        // datagrams reach another worker.
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        client.block_on(async { client.endpoint.rebind(socket).expect("another address") });
        assert_eq!(client.get("https://a.test/").status, 200);
    }
    assert_eq!(client.connection.stable_id(), id);
    assert!(client.connection.close_reason().is_none());
}

#[test]
fn a_reload_keeps_connections_and_changes_their_routes() {
    let authority = Authority::new("root");
    let server = start(&authority, &[("www/index.html", "old"), ("new/index.html", "new")], "");
    let client = open(&authority, &server);
    assert_eq!(client.get("https://a.test/").body, b"old");
    server
        .reload(&text("").replace("root = \"www\"", "root = \"new\""))
        .expect("a valid configuration");
    assert_eq!(client.get("https://a.test/").body, b"new");
    assert!(client.connection.close_reason().is_none());
}
