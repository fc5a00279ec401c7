//! HTTP/2 without TLS: the same sites and handlers as HTTP/1.1, and many streams on one connection.

use http::StatusCode;

use super::support::client::Client;
use super::support::handlers::{Deferred, Echo, Panics};
use super::support::http2::Http2;
use super::support::running::{mount, site};
use super::support::{Folder, Running};
use rocknet::snapshot::Mount;

const SERVER: &str =
    "[server]\nworkers = 1\nblocking_threads = 2\nh2c = true\nevents = { wait = \"20ms\", connections = 16 }\n";

fn start(limits: &str, mounts: Vec<Mount>) -> Running {
    let folder = Folder::with(&[("www/a.txt", "a"), ("www/empty", ""), ("www/sub/index.html", "sub")]);
    folder.write("www/large", content(300_000));
    folder.write("www/cached", content(40_000));
    Running::start_with(folder, &format!("{SERVER}{limits}\n{}", site("")), mounts)
}

/// Returns a body with a fixed pattern.
fn content(length: usize) -> Vec<u8> {
    (0..length).map(|place| (place % 251) as u8).collect()
}

#[test]
fn files_are_served_as_over_http_1() {
    let server = start("", Vec::new());
    let mut client = Http2::to(server.address());
    for (path, status, expected) in [
        ("/a.txt", 200, &b"a"[..]),
        ("/a.txt", 200, b"a"),
        ("/empty", 200, b""),
        ("/cached", 200, &content(40_000)),
        ("/large", 200, &content(300_000)),
        ("/sub/", 200, b"sub"),
        ("/sub", 308, b""),
        ("/%00", 400, b""),
        ("/none", 404, b""),
    ] {
        let found = client.get(path);
        assert_eq!(found.status, StatusCode::from_u16(status).expect("a status"), "{path}");
        if status == 200 {
            assert!(found.content == expected, "{path}: {} bytes", found.content.len());
            assert_eq!(
                found.fields["content-length"],
                expected.len().to_string().as_str(),
                "{path}"
            );
        }
        assert_eq!(found.fields["server"], "RockNet", "{path}");
        // An HTTP date has 29 characters (RFC 9110 §5.6.7).
        assert_eq!(found.fields["date"].len(), 29, "{path}");
        assert!(!found.fields.contains_key("connection"), "{path}");
    }
}

#[test]
fn head_conditions_and_ranges_apply() {
    let server = start("", Vec::new());
    let mut client = Http2::to(server.address());
    let tag = client.get("/large").fields["etag"].clone();
    // `usize::MAX` leaves the length of the body unchecked.
    for (method, fields, status, length) in [
        ("HEAD", &[][..], 200, 0),
        ("GET", &[("if-none-match", tag.to_str().expect("a tag"))], 304, 0),
        ("GET", &[("range", "bytes=5-104")], 206, 100),
        ("GET", &[("range", "bytes=400000-")], 416, usize::MAX),
        ("POST", &[], 405, usize::MAX),
    ] {
        let mut request = client.request(method, "/large");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let (response, _) = client.start_request(request, true);
        let response = client.response(response).expect("a response");
        assert_eq!(response.status.as_u16(), status, "{method} {fields:?}");
        if length != usize::MAX {
            assert_eq!(response.content.len(), length, "{method} {fields:?}");
        }
    }
}

#[test]
fn refusals_of_head_requests_have_no_body() {
    let server = start("[limits]\nbody_size = \"1KB\"", vec![mount("/echo/", Echo)]);
    let mut client = Http2::to(server.address());
    for (method, has_body) in [("HEAD", false), ("POST", true), ("HEAD", false)] {
        // Too large as announced, too large as sent, and with a head that is too large.
        let large = "x".repeat(20_000);
        for (name, value, body, status) in [
            ("content-length", "2000", &[b'x'; 2000][..], 413),
            ("a", "b", &[b'x'; 2000], 413),
            ("a", &large, b"", 431),
        ] {
            let request = client.request(method, "/echo/x").header(name, value);
            let response = client.send(request, body).expect("a response");
            assert_eq!(response.status.as_u16(), status, "{method} {name}");
            assert_eq!(!response.content.is_empty(), has_body, "{method} {name} {status}");
        }
    }
}

#[test]
fn bodies_flow_both_ways() {
    let server = start("", vec![mount("/echo/", Echo)]);
    let mut client = Http2::to(server.address());
    for length in [0, 1, 16_384, 70_000, 1_500_000] {
        let sent = content(length);
        let request = client.request("POST", "/echo/x");
        let response = client.send(request, &sent).expect("a response");
        assert_eq!(response.status, StatusCode::OK, "{length}");
        assert!(response.content == sent, "{length}: {}", response.content.len());
    }
}

#[test]
fn streams_do_not_wait_for_each_other() {
    let (waits, mut waiting) = Deferred::new();
    let server = start("", vec![mount("/wait/", waits)]);
    // The windows are large enough for all responses, because this client reads one response after the other.
    let mut windows = h2::client::Builder::new();
    windows
        .initial_window_size(1 << 20)
        .initial_connection_window_size(1 << 25);
    let mut client = Http2::with(server.address(), &windows);
    let (slow, _) = client.start_request(client.request("GET", "/wait/1"), true);
    let responses: Vec<_> = (0..100)
        .map(|number| {
            let path = if number % 2 == 0 { "/cached" } else { "/large" };
            (path, client.start_request(client.request("GET", path), true).0)
        })
        .collect();
    for (path, response) in responses {
        let length = if path == "/cached" { 40_000 } else { 300_000 };
        assert_eq!(
            client.response(response).expect("a response").content.len(),
            length,
            "{path}"
        );
    }
    assert!(waiting.next().respond("at last"));
    assert_eq!(client.response(slow).expect("a response").content, b"at last");
}

/// The sizes are near the limits for a cached file, a frame, and a piece of a file.
#[test]
fn large_files_arrive_whole_through_any_window() {
    let server = start("", Vec::new());
    let sizes = [
        51_201, 57_343, 57_344, 65_535, 65_536, 73_727, 73_728, 262_145, 2_000_003,
    ];
    for size in sizes {
        server.folder.write(&format!("www/{size}"), content(size));
    }
    // The windows allow a piece too small to be sent directly from the file, one frame, the default of 65,535 bytes, or
    // the whole file.
    for window in [5_000, 16_384, 65_535, 1 << 22] {
        let mut windows = h2::client::Builder::new();
        windows
            .initial_window_size(window)
            .initial_connection_window_size(window.max(1 << 22) * 2);
        let mut client = Http2::with(server.address(), &windows);
        // Files that would take 100 windows or more are not requested.
        let pending: Vec<_> = sizes
            .iter()
            .filter(|&&size| size < 100 * window as usize)
            .map(|&size| {
                (
                    size,
                    client.start_request(client.request("GET", &format!("/{size}")), true).0,
                )
            })
            .collect();
        for (size, response) in pending {
            let response = client.response(response).expect("a response");
            assert!(response.content == content(size), "{size} through {window}");
        }
        let request = client
            .request("GET", "/2000003")
            .header("range", "bytes=3-70002, 100000-299999");
        let (response, _) = client.start_request(request, true);
        let parts = client.response(response).expect("a response").content;
        for range in [3..70_003, 100_000..300_000] {
            let part = &content(300_000)[range.clone()];
            assert!(
                parts.windows(part.len()).any(|window| window == part),
                "{range:?} through {window}"
            );
        }
    }
}

#[test]
fn a_body_beyond_the_limit_is_refused_only_on_its_stream() {
    let server = start("[limits]\nbody_size = \"100KB\"", vec![mount("/echo/", Echo)]);
    let mut client = Http2::to(server.address());
    let announced = client.request("POST", "/echo/x").header("content-length", "200000");
    for request in [client.request("POST", "/echo/x"), announced] {
        let response = client.send(request, &content(200_000)).expect("a response");
        assert_eq!(response.status, StatusCode::PAYLOAD_TOO_LARGE);
    }
    assert_eq!(client.get("/a.txt").content, b"a");
}

#[test]
fn a_panic_ends_only_its_stream() {
    let server = start("", vec![mount("/panic/", Panics)]);
    let mut client = Http2::to(server.address());
    for path in ["/panic/now", "/panic/later"] {
        assert_eq!(client.get(path).status, StatusCode::INTERNAL_SERVER_ERROR, "{path}");
        assert_eq!(client.get("/a.txt").content, b"a", "after {path}");
    }
}

#[test]
fn a_reset_stream_cancels_its_handler() {
    let (waits, mut waiting) = Deferred::new();
    let server = start("", vec![mount("/wait/", waits)]);
    let mut client = Http2::to(server.address());
    let (response, mut stream) = client.start_request(client.request("POST", "/wait/1"), false);
    let incoming = waiting.next();
    stream.send_reset(h2::Reason::CANCEL);
    drop(response);
    // The connection still works, and the response shows that the server has read the reset.
    assert_eq!(client.get("/a.txt").content, b"a");
    assert!(!incoming.respond("too late"), "the handler must be cancelled");
}

#[test]
fn a_response_timeout_gets_503_on_its_stream() {
    let (waits, mut waiting) = Deferred::new();
    let server = start("[limits]\nanswer_timeout = \"100ms\"", vec![mount("/wait/", waits)]);
    let mut client = Http2::to(server.address());
    let (response, _) = client.start_request(client.request("GET", "/wait/1"), true);
    let _asked = waiting.next();
    let response = client.response(response).expect("a response");
    assert_eq!(response.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(client.get("/a.txt").content, b"a");
}

#[test]
fn idle_connections_get_a_goaway() {
    let server = start("[limits]\nkeep_alive = \"100ms\"", Vec::new());
    let mut client = Http2::to(server.address());
    assert_eq!(client.get("/a.txt").content, b"a");
    assert_eq!(
        client.end(),
        None,
        "the connection must be closed with GOAWAY and NO_ERROR"
    );
}

#[test]
fn a_stop_completes_responses_in_progress() {
    let (waits, mut waiting) = Deferred::new();
    let server = start("", vec![mount("/wait/", waits)]);
    let mut client = Http2::to(server.address());
    let (response, _) = client.start_request(client.request("GET", "/wait/1"), true);
    let incoming = waiting.next();
    let stopping = std::thread::spawn(move || server.stop());
    assert!(incoming.respond("in time"));
    assert_eq!(client.response(response).expect("a response").content, b"in time");
    assert!(
        stopping.join().expect("no panic"),
        "no connection may be cut by the stop"
    );
}

#[test]
fn http_1_works_on_the_same_port() {
    let server = start("", Vec::new());
    assert_eq!(server.get("/a.txt").text(), "a");
    // A damaged preface gets no response, and neither does a line of three words of which the second is no request
    // target: both can belong to another protocol.
    for bytes in ["PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", "GARBAGE INSTEAD OF-IT\r\n\r\n"] {
        let mut client = server.connect();
        client.send(bytes);
        client.assert_closed("an unknown protocol");
    }
    // Other input is handled as HTTP/1, even if it begins like the preface and arrives byte by byte.
    for (line, status) in [
        ("GET / ", 400),
        ("GET / FOO", 400),
        ("GET /", 400),
        ("GET http://a/ FOO", 400),
        ("OPTIONS * FOO", 400),
        ("P / FOO", 400),
        ("PR / FOO", 400),
        ("PRI", 400),
        ("PRI *", 400),
        ("PRINT / FOO", 400),
        ("PRI * HTTP/1.2", 505),
        ("PRI * HTTP/2.1", 505),
        ("PRI /x HTTP/1.1", 400),
    ] {
        for piece in [1, usize::MAX] {
            let mut client = server.connect();
            for bytes in format!("{line}\r\n\r\n").as_bytes().chunks(piece) {
                client.send_anyway(bytes);
            }
            assert_eq!(client.response().status, status, "{line:?} by {piece}");
            client.assert_closed(line);
        }
    }
    let mut client = server.connect();
    client.send("GET / HTTP/7.0\r\n\r\n");
    assert_eq!(
        client.response().status,
        505,
        "an unsupported version gets an HTTP/1 response"
    );
}

#[test]
fn an_incomplete_preface_times_out_like_a_head() {
    let server = start("[limits]\nheader_timeout = \"600ms\"", Vec::new());
    for line in ["P", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r", "PRIX", "GET / HTTP/1.1\r\n"] {
        let began = std::time::Instant::now();
        let mut client = server.connect();
        client.send(line);
        // A client that has sent the first line of the preface expects HTTP/2, so it gets no HTTP/1 response.
        if line.starts_with("PRI *") {
            client.assert_closed(line);
        } else {
            assert_eq!(client.response().status, 408, "{line:?}");
        }
        let took = began.elapsed();
        // The bound leaves 50 ms for the ticks of the server's timers.
        assert!(took >= std::time::Duration::from_millis(550), "{line:?} after {took:?}");
    }
}

#[test]
fn garbage_after_the_preface_gets_a_goaway_and_a_close() {
    let server = start("", Vec::new());
    for garbage in [&[0u8; 64][..], b"GET / HTTP/1.1\r\n\r\n", &[0xff; 200]] {
        let mut client = server.connect();
        client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        client.send(garbage);
        let output = client.rest();
        // The header of a GOAWAY frame has type 7 and stream 0.
        assert!(
            output.windows(9).any(|frame| frame[3] == 7 && frame[5..9] == [0; 4]),
            "a GOAWAY in {output:?}"
        );
    }
}

#[test]
fn a_listener_accepts_http_2_by_its_scheme() {
    let folder = Folder::with(&[("www/a.txt", "a")]);
    let site = |name: &str, listen: &str| format!("[site.\"{name}\"]\nlisten = \"{listen}\"\nroot = \"www\"\n");
    let text = site("a.test", "h2c://127.0.0.1:0") + &site("b.test", "http://127.0.0.2:0");
    let server = Running::start(folder, &text);
    let address = |ip: [u8; 4]| {
        let mut all = server.addresses().into_iter();
        all.find(|address| address.ip() == std::net::IpAddr::from(ip))
            .expect("an address")
    };
    let (with, without) = (address([127, 0, 0, 1]), address([127, 0, 0, 2]));
    let mut client = Http2::to(with);
    let get = http::Request::builder().uri("http://a.test/a.txt");
    let found = client.send(get, b"").expect("a response");
    assert_eq!((found.status, &found.content[..]), (StatusCode::OK, &b"a"[..]));
    // HTTP/1 is accepted at the same listener.
    let request = "GET /a.txt HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let mut client = Client::to(with);
    client.send(request);
    client.response().expect("HTTP/1", 200, &[]);
    // The other listener closes the connection of a client that begins with HTTP/2.
    let mut client = Client::to(without);
    client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    client.assert_closed("HTTP/2 at a listener without it");
}
