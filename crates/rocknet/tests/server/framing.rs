//! Where one message ends and the next begins: smuggling refused, pipelines in order, content read or thrown away.

use super::support::client::request;
use super::support::handlers::{Echo, Panics};
use super::support::running::{mount, site};
use super::support::{Client, Folder, Running};

fn server() -> Running {
    let folder = Folder::with(&[("www/index.html", "root"), ("www/a.txt", "a"), ("www/b.txt", "bb")]);
    Running::start_with(
        folder,
        &site(""),
        vec![mount("/echo/", Echo), mount("/panics/", Panics)],
    )
}

/// What follows a refused request on the connection: never to be answered.
const SMUGGLED: &str = "GET /a.txt HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[test]
fn smuggling_is_refused_and_the_connection_closed() {
    let server = server();
    let check = |what: &str, bytes: &str, status: u16| {
        let mut client = server.connect();
        client.send(format!("{bytes}{SMUGGLED}"));
        client.answer().expect(what, status, &["Connection: close"]);
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
    // A client of HTTP/2 would not understand an answer of HTTP/1.
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
            let status = client.answer().status;
            assert!(
                status == 400 || (target == "/a.txt" && status == 405),
                "{target} {content:?}: {status}"
            );
            let rest = String::from_utf8_lossy(&client.rest()).into_owned();
            assert!(
                !rest.contains("200 OK"),
                "{target} {content:?}: the smuggled request was answered: {rest}"
            );
        }
    }
}

#[test]
fn a_hundred_requests_in_one_write_are_answered_in_order() {
    let server = server();
    let row = |number: usize| match number % 5 {
        0 => ("GET /", 200, "root"),
        1 => ("GET /a.txt", 200, "a"),
        2 => ("HEAD /b.txt", 200, ""),
        3 => ("OPTIONS /b.txt", 204, ""),
        _ => ("GET /b.txt", 200, "bb"),
    };
    // Nothing is known at first, and all from the second round on.
    let mut client = server.connect();
    for round in 0..3 {
        let all: String = (0..100).map(|number| request(row(number).0, &[])).collect();
        client.send(all);
        for number in 0..100 {
            let (line, status, content) = row(number);
            let answer = client.answer_to(line.split(' ').next().unwrap_or_default());
            assert_eq!(
                (answer.status, &*answer.text()),
                (status, content),
                "round {round}, number {number}"
            );
        }
    }
    // Content between requests, and the same bytes one by one.
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
                client.answer().text(),
                "x".repeat(number % 3),
                "pieces of {piece}, number {number}"
            );
            client.answer().expect("what follows", 404, &[]);
        }
    }
}

#[test]
fn answers_larger_than_what_fits_come_in_order() {
    let server = server();
    server.folder.write("www/large.bin", vec![7; 300_000]);
    server.folder.write("www/medium.bin", vec![9; 40_000]);
    let mut client = server.connect();
    let all: String = (0..30)
        .map(|_| request("GET /large.bin", &[]) + &request("GET /medium.bin", &[]))
        .collect();
    client.send(all);
    for number in 0..30 {
        assert!(client.answer().body == vec![7; 300_000], "large, number {number}");
        assert!(client.answer().body == vec![9; 40_000], "medium, number {number}");
    }
}

#[test]
fn content_that_nobody_wants_is_thrown_away() {
    let server = server();
    let mut client = server.connect();
    for (fields, content) in [
        (&["Content-Length: 5"][..], "hello"),
        (&["Transfer-Encoding: chunked"], "5;x=y\r\nhello\r\n0\r\nX: y\r\n\r\n"),
        (&["Content-Length: 0"], ""),
    ] {
        client.send(request("POST /a.txt", fields) + content);
        client
            .answer()
            .expect("POST to a file", 405, &["Allow: GET, HEAD, OPTIONS", "!Connection"]);
        client.send(request("GET /a.txt", fields) + content);
        assert_eq!(client.answer().text(), "a", "GET with content");
    }
    // In pieces, the answer being there before the content.
    client.send(request("POST /a.txt", &["Content-Length: 200000"]));
    client.answer().expect("before the content", 405, &[]);
    for _ in 0..20 {
        client.send([b'x'; 10_000]);
    }
    assert_eq!(client.get("/a.txt").text(), "a", "after 200 kB");

    // Too much: the connection is given up.
    client.send(request("POST /a.txt", &["Content-Length: 100000000"]));
    client.answer().expect("before much content", 405, &[]);
    for _ in 0..200 {
        client.send_anyway([b'x'; 10_000]);
    }
    client.assert_closed("after 2 MB");
}

#[test]
fn handlers_read_content() {
    let server = server();
    let mut client = server.connect();
    let large = "0123456789".repeat(100_000);
    let chunked: String = large.as_bytes().chunks(9_999).map(chunk).collect();
    for (fields, content, expected) in [
        (&["Content-Length: 5"][..], "hello", "hello"),
        (&[], "", ""),
        (&["Content-Length: 0"], "", ""),
        (
            &["Transfer-Encoding: chunked"],
            "5\r\nhello\r\n00001;a=\"b\"\r\n!\r\n0\r\nX: y\r\n\r\n",
            "hello!",
        ),
        (&["Transfer-Encoding: CHUNKED"], "0\r\n\r\n", ""),
        (&["Content-Length: 1000000"], &large, &large),
        (&["Transfer-Encoding: chunked"], &format!("{chunked}0\r\n\r\n"), &large),
    ] {
        for separately in [false, true] {
            let head = request("POST /echo/x", fields);
            if separately {
                client.send(head);
                client.send(content);
            } else {
                client.send(head + content);
            }
            let answer = client.answer();
            assert_eq!(answer.status, 200);
            assert!(answer.text() == *expected, "{fields:?}: {} bytes", answer.body.len());
        }
    }
}

fn chunk(bytes: &[u8]) -> String {
    format!("{:x}\r\n{}\r\n", bytes.len(), String::from_utf8_lossy(bytes))
}

#[test]
fn a_hundred_comes_before_content_that_is_wanted() {
    let server = server();
    let fields = ["Content-Length: 5", "Expect: 100-continue"];
    let mut client = server.connect();
    for _ in 0..2 {
        client.send(request("POST /echo/x", &fields));
        client
            .answer()
            .expect("content is wanted", 100, &["!Content-Length", "!Connection"]);
        client.send("hello");
        assert_eq!(client.answer().text(), "hello");
    }
    // Content that comes without waiting needs no permission any more, but may get it.
    client.send(request("POST /echo/x", &fields) + "hello");
    let mut answer = client.answer();
    if answer.status == 100 {
        answer = client.answer();
    }
    assert_eq!(answer.text(), "hello");
    // Nobody wants it: no 100, and the client may keep its content; then the connection cannot go on.
    client.send(request("POST /a.txt", &fields));
    client
        .answer()
        .expect("content is not wanted", 405, &["Connection: close"]);
    client.assert_closed("content is not wanted");
    // HTTP/1.0 knows no 100.
    let mut client = server.connect();
    client.send("POST /echo/x HTTP/1.0\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nhi");
    assert_eq!(client.answer().text(), "hi");
}

#[test]
fn http_1_0_closes_unless_asked_not_to() {
    let server = server();
    let check = |bytes: &str, connection: &str, goes_on: bool| {
        let mut client = server.connect();
        client.send(bytes);
        let answer = client.answer();
        answer.expect(bytes, 200, &[connection, "Content-Length: 1"]);
        assert_eq!(answer.text(), "a", "{bytes}");
        if goes_on {
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
fn a_client_that_has_said_all_still_gets_its_answers() {
    let server = server();
    for requests in [1, 3] {
        let mut client = server.connect();
        client.send(request("GET /a.txt", &[]).repeat(requests));
        client.end();
        for _ in 0..requests {
            assert_eq!(client.answer().text(), "a");
        }
        client.assert_closed("all was said");
    }
    let mut client = server.connect();
    client.send("GET /a.txt HTTP/1.1\r\nHost: loc");
    client.end();
    client.assert_closed("half a request");
}

#[test]
fn a_panic_ends_one_exchange_alone() {
    let server = server();
    let mut innocent = server.connect();
    for path in ["/panics/now", "/panics/later"] {
        for line in [format!("GET {path}"), format!("POST {path}")] {
            let mut client: Client = server.connect();
            client.ask(&line, &[]).expect(&line, 500, &["Connection: close"]);
            client.assert_closed(&line);
            assert_eq!(innocent.get("/a.txt").text(), "a");
            assert_eq!(server.get("/b.txt").text(), "bb");
        }
    }
}
