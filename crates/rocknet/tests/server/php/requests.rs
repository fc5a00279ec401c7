//! Requests as scripts get them: variables and bodies.

use std::sync::{Arc, Mutex, mpsc};

use super::{PHP, folder, mirrored};
use crate::support::Running;
use crate::support::client::request;
use crate::support::fastcgi::{Peer, SOCKET, end, record, stdout, write_to};

over_http3! {
    scripts_get_the_length_of_the_body,
    responses_are_streamed_and_request_bodies_are_spooled,
}

#[test]
fn a_script_gets_only_the_variables_of_its_request() {
    let (server, _peer) = mirrored();
    let fields = [
        "Host: Example.com:81",
        "Proxy: http://evil",
        "X_Real_IP: 10.0.0.1",
        "X.Real.IP: 10.0.0.1",
        "X-Real-IP: 192.0.2.1",
        "Cookie: a=1",
        "cookie: b=2",
        "Accept: text/html",
        "ACCEPT: */*",
        "Authorization: Basic YTpi",
        "Connection: x-real-ip",
        "TE: trailers",
        "Content-Type: text/x",
        "Content-Length: 4",
        "Empty:",
    ];
    let mut client = server.connect();
    client.send(request("POST /a.php/i?q", &fields) + "body");
    let text = client.response().text();
    for line in [
        "GATEWAY_INTERFACE=CGI/1.1",
        "SERVER_SOFTWARE=RockNet",
        "SERVER_PROTOCOL=HTTP/1.1",
        "SERVER_NAME=example.com",
        "REQUEST_METHOD=POST",
        "REQUEST_SCHEME=http",
        "REMOTE_ADDR=127.0.0.1",
        "SERVER_ADDR=127.0.0.1",
        "REDIRECT_STATUS=200",
        "HTTP_HOST=Example.com:81",
        "HTTP_X_REAL_IP=192.0.2.1",
        "HTTP_COOKIE=a=1; b=2",
        "HTTP_ACCEPT=text/html, */*",
        "HTTP_AUTHORIZATION=Basic YTpi",
        "HTTP_EMPTY=",
        "CONTENT_TYPE=text/x",
        "CONTENT_LENGTH=4",
        "DOCUMENT_URI=/a.php/i",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
    }
    for name in [
        "HTTP_PROXY",
        "HTTP_CONNECTION",
        "HTTP_TE",
        "HTTP_CONTENT",
        "HTTPS",
        "10.0.0.1",
    ] {
        assert!(!text.contains(name), "{name} is in {text}");
    }
    assert!(text.ends_with("\nbody"), "{text}");
    // The target is in absolute form, as for a proxy.
    client.send("GET http://h/x/y?z HTTP/1.1\r\nHost: h\r\n\r\n");
    let text = client.response().text();
    assert!(
        text.contains("\nREQUEST_URI=/x/y?z\n") && text.contains("\nHTTP_HOST=h\n"),
        "{text}"
    );
}

#[test]
fn scripts_get_the_length_of_the_body() {
    let (server, _peer) = mirrored();
    let mut client = server.connect();
    let large = "0123456789".repeat(500_000);
    client.send(request("POST /a.php", &["Content-Length: 5000000"]) + &large);
    let response = client.response();
    let text = response.text();
    assert!(
        text.contains("CONTENT_LENGTH=5000000\n") && text.ends_with(&large),
        "{response:?}"
    );
    // The script gets the length of a chunked body, because it starts when the body is complete.
    for size in [0, 5, 64 * 1024, 64 * 1024 + 1] {
        let content = "x".repeat(size);
        let chunk = if size == 0 {
            String::new()
        } else {
            format!("{size:x}\r\n{content}\r\n")
        };
        let mut client = server.connect();
        client.send(request("POST /a.php", &["Transfer-Encoding: chunked"]) + &chunk + "0\r\n\r\n");
        let response = client.response();
        assert_eq!(response.status, 200, "{size}: {response:?}");
        let text = response.text();
        let start: String = text.chars().take(2000).collect();
        // Over HTTP/3, the end of the stream may arrive with the head. The request then has no body, and the script
        // gets no length (RFC 3875 §4.1.2).
        let has_no_body = size == 0 && !text.contains("CONTENT_LENGTH");
        assert!(
            has_no_body || text.contains(&format!("CONTENT_LENGTH={size}\n")),
            "{size}: {start}"
        );
    }
    let mut client = server.connect();
    client.send(request("POST /a.php", &["Content-Length: 5", "Expect: 100-continue"]));
    assert_eq!(client.response().status, 100);
    client.send("hello");
    assert!(client.response().text().ends_with("\nhello"));
}

#[test]
fn responses_are_streamed_and_request_bodies_are_spooled() {
    let folder = folder();
    let (received, receiver) = mpsc::channel();
    let (go, goes) = mpsc::channel::<()>();
    let goes = Arc::new(Mutex::new(goes));
    let _peer = Peer::raw(&folder.path(SOCKET), move |mut stream| {
        while let Ok(Some((kind, content))) = record(&mut stream) {
            // Records of type 5 (`FCGI_STDIN`) have the request body; an empty one ends it.
            match (kind, content.len()) {
                (5, 0) => break,
                (5, _) => drop(received.send(content)),
                _ => {}
            }
        }
        let wait = || goes.lock().expect("a lock").recv().expect("a word from the test");
        write_to(&mut stream, stdout(b"A: b\r\n\r\nfirst"));
        wait();
        write_to(&mut stream, stdout(b"second"));
        wait();
        write_to(&mut stream, end(0));
    });
    let server = Running::site(folder, PHP);
    let mut client = server.connect();
    client.send(request("POST /a.php", &["Content-Length: 10"]) + "01234");
    // The script gets the request only when the client has sent the whole body.
    assert_eq!(server.get("/pic.jpg").text(), "a picture");
    assert!(receiver.try_recv().is_err());
    client.send("56789");
    assert_eq!(receiver.recv().expect("a body"), b"0123456789");
    assert!(client.head().starts_with("HTTP/1.1 200"));
    assert_eq!(client.bytes(10), b"5\r\nfirst\r\n");
    go.send(()).expect("a peer");
    assert_eq!(client.bytes(11), b"6\r\nsecond\r\n");
    go.send(()).expect("a peer");
    assert_eq!(client.bytes(5), b"0\r\n\r\n");
}
