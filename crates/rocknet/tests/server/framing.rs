//! Message framing of HTTP/1: request smuggling, pipelining, and the end of connections.

use super::support::client::request;
use super::support::handlers::{Echo, Panics};
use super::support::running::{mount, site};
use super::support::{Client, Folder, Running};

/// Starts a server with a handler that echoes the request body, and one that panics.
pub fn server() -> Running {
    let folder = Folder::with(&[("www/index.html", "root"), ("www/a.txt", "a"), ("www/b.txt", "bb")]);
    Running::start_with(
        folder,
        &site(""),
        vec![mount("/echo/", Echo), mount("/panics/", Panics)],
    )
}

/// Request after a refused request on the same connection. It must get no response.
const SMUGGLED: &str = "GET /a.txt HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[test]
fn smuggling_is_refused_and_the_connection_closed() {
    let server = server();
    let check = |what: &str, bytes: &str, status: u16| {
        let mut client = server.connect();
        client.send(format!("{bytes}{SMUGGLED}"));
        client.response().expect(what, status, &["Connection: close"]);
        client.assert_closed(what);
    };
    for (fields, status) in [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", 400),
        ("Transfer-Encoding: chunked\r\nContent-Length: 0", 400),
        ("Content-Length: 5\r\nContent-Length: 5", 400),
        ("Content-Length: 5\r\nContent-Length: 6", 400),
        ("Content-Length: 5, 5", 400),
        ("Content-Length: +5", 400),
        ("Content-Length: 0x5", 400),
        ("Content-Length: 5a", 400),
        ("Content-Length:", 400),
        ("Content-Length: 18446744073709551616", 400),
        ("Transfer-Encoding: chunked, identity", 400),
        ("Transfer-Encoding: identity", 400),
        ("Transfer-Encoding: chunked, chunked", 400),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", 400),
        ("Transfer-Encoding: xchunked", 400),
        ("Transfer-Encoding : chunked", 400),
        ("Transfer-Encoding:\x0bchunked", 400),
        ("Transfer-Encoding: gzip, chunked", 501),
        ("Content-Length : 5", 400),
        ("Content-Length\t: 5", 400),
        ("X: a\r\n Content-Length: 5", 400),
        ("X: a\nContent-Length: 5", 400),
        ("X: a\rContent-Length: 5", 400),
        ("X: a\0b", 400),
        ("X", 400),
        (": x", 400),
        ("X Y: z", 400),
        ("Host: other", 400),
        ("Expect: 200-ok\r\nContent-Length: 0", 417),
    ] {
        for target in ["/a.txt", "/echo/x", "/none"] {
            let bytes = format!("POST {target} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n\r\n");
            check(&format!("{target} {fields:?}"), &bytes, status);
        }
    }
    for (bytes, status) in [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        ("GET / HTTP/1.1\nHost: localhost\n\n", 400),
        ("GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        ("GET /\r\n\r\n", 400),
        ("GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        ("GET / HTTP/1.2\r\nHost: localhost\r\n\r\n", 505),
        ("GET / HTTP/2.0\r\nHost: localhost\r\n\r\n", 505),
        ("GET / http/1.1\r\nHost: localhost\r\n\r\n", 400),
        ("\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n", 400),
        (
            "POST /echo/x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
    ] {
        check(&format!("{bytes:?}"), bytes, status);
    }
    // An HTTP/2 preface gets no response, because the client would not understand HTTP/1.
    let mut client = server.connect();
    client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    client.assert_closed("the preface of HTTP/2");
}

#[test]
fn broken_chunks_are_refused_and_the_connection_closed() {
    let server = server();
    for content in [
        "5 \r\nhello\r\n0\r\n\r\n",
        "x\r\n",
        "-1\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5;a\nb\r\nhello\r\n0\r\n\r\n",
        "FFFFFFFFFFFFFFFFF\r\n",
        "0\r\nContent Length: 5\r\n\r\n",
        "\r\n",
    ] {
        for target in ["/a.txt", "/echo/x"] {
            let mut client = server.connect();
            client.send(request(&format!("POST {target}"), &["Transfer-Encoding: chunked"]));
            client.send_anyway(format!("{content}{SMUGGLED}"));
            let status = client.response().status;
            // A POST to a file can be refused before its body is read.
            assert!(
                status == 400 || (target == "/a.txt" && status == 405),
                "{target} {content:?}: {status}"
            );
            let rest = String::from_utf8_lossy(&client.rest()).into_owned();
            assert!(
                !rest.contains("200 OK"),
                "{target} {content:?}: the smuggled request got a response: {rest}"
            );
        }
    }
}

#[test]
fn a_hundred_pipelined_requests_get_responses_in_order() {
    let server = server();
    let row = |number: usize| match number % 5 {
        0 => ("GET /", 200, "root"),
        1 => ("GET /a.txt", 200, "a"),
        2 => ("HEAD /b.txt", 200, ""),
        3 => ("OPTIONS /b.txt", 204, ""),
        _ => ("GET /b.txt", 200, "bb"),
    };
    // In the first round nothing is cached; from the second round on everything is.
    let mut client = server.connect();
    for round in 0..3 {
        let all: String = (0..100).map(|number| request(row(number).0, &[])).collect();
        client.send(all);
        for number in 0..100 {
            let (line, status, content) = row(number);
            let response = client.response_to(line.split(' ').next().unwrap_or_default());
            assert_eq!(
                (response.status, &*response.text()),
                (status, content),
                "round {round}, number {number}"
            );
        }
    }
    // The requests have bodies, and are sent in one write and in small pieces.
    let mut all = String::new();
    for number in 0..20 {
        all.push_str(&request("POST /echo/x", &[&format!("Content-Length: {}", number % 3)]));
        all.push_str(&"x".repeat(number % 3));
        all.push_str(&request("GET /none", &[]));
    }
    for piece in [all.len(), 1, 7] {
        for bytes in all.as_bytes().chunks(piece) {
            client.send(bytes);
        }
        for number in 0..20 {
            assert_eq!(
                client.response().text(),
                "x".repeat(number % 3),
                "pieces of {piece}, number {number}"
            );
            client.response().expect("what follows", 404, &[]);
        }
    }
}

#[test]
fn large_pipelined_responses_arrive_in_order() {
    let server = server();
    server.folder.write("www/large.bin", vec![7; 300_000]);
    server.folder.write("www/medium.bin", vec![9; 40_000]);
    let mut client = server.connect();
    let all: String = (0..30)
        .map(|_| request("GET /large.bin", &[]) + &request("GET /medium.bin", &[]))
        .collect();
    client.send(all);
    for number in 0..30 {
        assert!(client.response().body == vec![7; 300_000], "large, number {number}");
        assert!(client.response().body == vec![9; 40_000], "medium, number {number}");
    }
}

#[test]
fn http_1_0_closes_unless_keep_alive_is_requested() {
    let server = server();
    let check = |bytes: &str, connection: &str, is_kept: bool| {
        let mut client = server.connect();
        client.send(bytes);
        let response = client.response();
        response.expect(bytes, 200, &[connection, "Content-Length: 1"]);
        assert_eq!(response.text(), "a", "{bytes}");
        if is_kept {
            assert_eq!(client.get("/b.txt").text(), "bb", "{bytes}");
        } else {
            client.assert_closed(bytes);
        }
    };
    for _ in 0..2 {
        check("GET /a.txt HTTP/1.0\r\n\r\n", "Connection: close", false);
        check(
            "GET /a.txt HTTP/1.0\r\nHost: localhost\r\n\r\n",
            "Connection: close",
            false,
        );
        check(
            "GET /a.txt HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
            "Connection: keep-alive",
            true,
        );
        check(
            "GET /a.txt HTTP/1.0\r\nConnection: close, keep-alive\r\n\r\n",
            "Connection: close",
            false,
        );
        check(
            "GET /a.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
            "Connection: close",
            false,
        );
        check(
            "GET /a.txt HTTP/1.1\r\nHost: x\r\nConnection: TE, Close\r\n\r\n",
            "Connection: close",
            false,
        );
        check(
            "GET /a.txt HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n",
            "!Connection",
            true,
        );
    }
}

#[test]
fn a_half_closed_client_still_gets_its_responses() {
    let server = server();
    for requests in [1, 3] {
        let mut client = server.connect();
        client.send(request("GET /a.txt", &[]).repeat(requests));
        client.end();
        for _ in 0..requests {
            assert_eq!(client.response().text(), "a");
        }
        client.assert_closed("all responses were sent");
    }
    let mut client = server.connect();
    client.send("GET /a.txt HTTP/1.1\r\nHost: loc");
    client.end();
    client.assert_closed("half a request");
}

#[test]
fn requests_after_a_close_are_discarded_without_harm() {
    let server = server();
    server.folder.write("www/large.bin", vec![7; 2_000_000]);
    // A size of 0 leaves the length of the body unchecked.
    for (path, size) in [("/a.txt", 1), ("/large.bin", 2_000_000), ("/none", 0)] {
        let mut client = server.connect();
        let last = request(&format!("GET {path}"), &["Connection: close"]);
        client.send(last + &request("GET /b.txt", &[]).repeat(3));
        // Without lingering, these bytes would cause a reset, which would discard the response. They are sent only
        // during a large response: after a small one the socket may already be closed.
        if size > 1 {
            client.send_anyway(request("GET /b.txt", &[]).repeat(20_000));
        }
        let response = client.response();
        response.expect(path, response.status, &["Connection: close"]);
        assert!(size == 0 || response.body.len() == size, "{path}: {response:?}");
        client.assert_closed(path);
    }
}

#[test]
fn clients_that_disconnect_midway_leave_no_resources() {
    let folder = Folder::with(&[("www/a.txt", "a")]);
    folder.sparse("www/large.bin", 50 << 20);
    let text = format!("[limits]\nconnections = 2\n{}", site(""));
    let server = Running::start_with(folder, &text, vec![mount("/echo/", Echo)]);
    for bytes in [
        "",
        "GET /a",
        "GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\nGET",
        "GET /large.bin HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST /echo/x HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhell",
        "POST /echo/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhell",
        "POST /a.txt HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhell",
        "GET / HTTP/1.1\r\nbad\r\n\r\n",
    ] {
        // These are more connections than the limit permits, so each must be closed after the client has disconnected.
        for _ in 0..5 {
            let mut client = server.connect();
            client.send(bytes);
            drop(client);
            assert_eq!(server.get("/a.txt").text(), "a", "{bytes:?}");
        }
    }
}

#[test]
fn garbage_does_not_affect_later_requests() {
    let server = server();
    let mut innocent = server.connect();
    let mut state = 0x2026_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let pieces = [
        "GET ",
        "POST /echo/x",
        " HTTP/1.1",
        "\r\n",
        "Host: x",
        "Content-Length: ",
        "5",
        "\r\n\r\n",
        "\n",
        ": ",
        "\0",
        "chunked",
        "%",
    ];
    for number in 0..500 {
        let mut bytes = Vec::new();
        for _ in 0..random() % 20 {
            if random() % 3 == 0 {
                bytes.extend_from_slice(&random().to_le_bytes());
            } else {
                bytes.extend_from_slice(pieces[random() as usize % pieces.len()].as_bytes());
            }
        }
        let mut client = server.connect();
        client.send_anyway(&bytes);
        client.end_anyway();
        let rest = client.rest();
        assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 "), "{number}: {bytes:?}");
        assert_eq!(innocent.get("/a.txt").text(), "a", "{number}: {bytes:?}");
    }
}

#[test]
fn a_panic_ends_only_one_exchange() {
    let server = server();
    let mut innocent = server.connect();
    for path in ["/panics/now", "/panics/later"] {
        for line in [format!("GET {path}"), format!("POST {path}")] {
            let mut client: Client = server.connect();
            client.fetch(&line, &[]).expect(&line, 500, &["Connection: close"]);
            client.assert_closed(&line);
            assert_eq!(innocent.get("/a.txt").text(), "a");
            assert_eq!(server.get("/b.txt").text(), "bb");
        }
    }
}

over_http3! {
    a_hundred_pipelined_requests_get_responses_in_order,
    large_pipelined_responses_arrive_in_order,
}
