//! Request and response bodies: with a length or in chunks, read or discarded, and with 100 (Continue).

use super::framing::server;
use super::support::client::request;

#[test]
fn an_unread_body_is_discarded() {
    let server = server();
    let mut client = server.connect();
    for (fields, content) in [
        (&["Content-Length: 5"][..], "hello"),
        (&["Transfer-Encoding: chunked"], "5;x=y\r\nhello\r\n0\r\nX: y\r\n\r\n"),
        (&["Content-Length: 0"], ""),
    ] {
        client.send(request("POST /a.txt", fields) + content);
        client
            .response()
            .expect("POST to a file", 405, &["Allow: GET, HEAD, OPTIONS", "!Connection"]);
        client.send(request("GET /a.txt", fields) + content);
        assert_eq!(client.response().text(), "a", "GET with a body");
    }
    // The response is sent before the body arrives. The body is then discarded.
    client.send(request("POST /a.txt", &["Content-Length: 200000"]));
    client.response().expect("before the body", 405, &[]);
    for _ in 0..20 {
        client.send([b'x'; 10_000]);
    }
    assert_eq!(client.get("/a.txt").text(), "a", "after 200 kB");

    // A body that is too long to be discarded closes the connection.
    client.send(request("POST /a.txt", &["Content-Length: 100000000"]));
    client.response().expect("before a long body", 405, &[]);
    for _ in 0..200 {
        client.send_anyway([b'x'; 10_000]);
    }
    client.assert_closed("after 2 MB");
}

#[test]
fn handlers_read_bodies() {
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
            let response = client.response();
            assert_eq!(response.status, 200);
            assert!(
                response.text() == *expected,
                "{fields:?}: {} bytes",
                response.body.len()
            );
        }
    }
}

fn chunk(bytes: &[u8]) -> String {
    format!("{:x}\r\n{}\r\n", bytes.len(), String::from_utf8_lossy(bytes))
}

#[test]
fn continue_100_is_sent_before_a_body_that_is_read() {
    let server = server();
    let fields = ["Content-Length: 5", "Expect: 100-continue"];
    let mut client = server.connect();
    for _ in 0..2 {
        client.send(request("POST /echo/x", &fields));
        client
            .response()
            .expect("the body is read", 100, &["!Content-Length", "!Connection"]);
        client.send("hello");
        assert_eq!(client.response().text(), "hello");
    }
    // A client that sends its body without waiting needs no 100, but can get one.
    client.send(request("POST /echo/x", &fields) + "hello");
    let mut response = client.response();
    if response.status == 100 {
        response = client.response();
    }
    assert_eq!(response.text(), "hello");
    // If the body is not read, no 100 is sent and the connection is closed, because the client may never send its body.
    client.send(request("POST /a.txt", &fields));
    client
        .response()
        .expect("the body is not read", 405, &["Connection: close"]);
    client.assert_closed("the body is not read");
    // HTTP/1.0 has no 100 (Continue).
    let mut client = server.connect();
    client.send("POST /echo/x HTTP/1.0\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nhi");
    assert_eq!(client.response().text(), "hi");
}

#[test]
fn a_body_without_a_length_is_framed_for_the_version() {
    let server = server();
    let text = "a line of text that repeats itself\n".repeat(10_000);
    server.folder.write("www/large.txt", &text);
    for _ in 0..2 {
        let mut client = server.connect();
        let response = client.fetch("GET /large.txt", &["Accept-Encoding: gzip"]);
        response.expect(
            "HTTP/1.1",
            200,
            &["Transfer-Encoding: chunked", "!Content-Length", "!Connection"],
        );
        let gzip = response.body;
        // HTTP/1.0 has no chunked coding, so the end of the connection ends the body.
        for fields in ["", "Connection: keep-alive\r\n"] {
            let mut old = server.connect();
            old.send(format!(
                "GET /large.txt HTTP/1.0\r\nAccept-Encoding: gzip\r\n{fields}\r\n"
            ));
            let response = old.response();
            response.expect(
                "HTTP/1.0",
                200,
                &["!Transfer-Encoding", "!Content-Length", "Connection: close"],
            );
            assert!(response.body == gzip, "HTTP/1.0: {} bytes", response.body.len());
        }
        let head = client.fetch("HEAD /large.txt", &["Accept-Encoding: gzip"]);
        head.expect("HEAD", 200, &["Content-Encoding: gzip", "!Content-Length"]);
        assert_eq!(client.get("/a.txt").text(), "a", "after HEAD");
    }
}
