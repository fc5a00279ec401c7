//! Limits of routes: the length of request bodies, and the response timeout.

use std::time::{Duration, Instant};

use http::Request;

use super::support::client::request;
use super::support::fastcgi::{Next, Peer, SOCKET, record, response, stdout, write_to};
use super::support::http2::Http2;
use super::support::upstream::{self, Upstream};
use super::support::{Folder, Running};

const SITE: &str = r#"[server]
h2c = true
workers = 1
events = { wait = "20ms" }
[limits]
body_size = 1000
[site.":0"]
root = "www"
php = "unix:php.sock"
limits = { body_size = 100 }
rule = [{ path = "/led/*", rewrite = "/large/{*}" }]
[site.":0".route."/large/*"]
limits = { body_size = 2000 }
[site.":0".route."/quick/*"]
limits = { answer_timeout = "100ms" }
"#;

/// Starts a server, and an application that responds with the length of the request body, or never for `?hang`, or with
/// the beginning of a response for `?begin`.
fn start() -> (Running, Peer) {
    let folder = Folder::with(&[("www/a.php", ""), ("www/large/a.php", ""), ("www/quick/a.php", "")]);
    let peer = Peer::start(&folder.path(SOCKET), |incoming, stream| {
        if incoming.variable("QUERY_STRING") == "hang" {
            // The application sends nothing until the server closes the connection.
            let _ = record(stream);
            return Next::Close;
        }
        if incoming.variable("QUERY_STRING") == "begin" {
            write_to(stream, stdout(b"Content-Type: text/plain\r\n\r\nbegun"));
            let _ = record(stream);
            return Next::Close;
        }
        let text = format!("Content-Type: text/plain\r\n\r\n{}", incoming.content.len());
        write_to(stream, response(text.as_bytes()));
        Next::Keep
    });
    (Running::start(folder, SITE), peer)
}

#[test]
fn each_route_has_its_body_limit() {
    let (server, _peer) = start();
    let mut h2 = Http2::to(server.address());
    for (path, most) in [
        ("/a.php", 100),
        ("/quick/a.php", 100),
        ("/large/a.php", 2000),
        ("/x/../large/a.php", 2000),
        ("/led/a.php", 2000),
    ] {
        for (size, status) in [(most, 200), (most + 1, 413)] {
            let line = format!("POST {path}");
            let content = "x".repeat(size);
            let mut client = server.connect();
            client.send_anyway(request(&line, &[&format!("Content-Length: {size}")]) + &content);
            let response = client.response();
            response.expect(&format!("{line}: {size}"), status, &[]);
            let builder: http::request::Builder = Request::builder()
                .method("POST")
                .uri(format!("http://localhost{path}"))
                .header("content-length", size);
            let over_h2 = h2.send(builder, content.as_bytes()).expect("a response");
            assert_eq!(over_h2.status.as_u16(), status, "{line}: {size} over HTTP/2");
            if status == 200 {
                assert_eq!(
                    (response.text(), &over_h2.content[..]),
                    (size.to_string(), size.to_string().as_bytes())
                );
            }
        }
    }
}

#[test]
fn each_route_has_its_response_timeout() {
    let (server, _peer) = start();
    let mut h2 = Http2::to(server.address());
    let started = Instant::now();
    server
        .connect()
        .fetch("GET /quick/a.php?hang", &[])
        .expect("the route's own time", 504, &[]);
    assert_eq!(h2.get("/quick/a.php?hang").status.as_u16(), 504);
    let taken = started.elapsed();
    // Two timeouts of 100 ms have passed, with a margin for the precision of timers.
    assert!(taken >= Duration::from_millis(150), "after {taken:?}");
    // The default for other routes is sixty seconds.
    assert!(taken < Duration::from_secs(20), "after {taken:?}");
    let mut client = server.connect();
    client.send(request("GET /a.php?hang", &[]));
    assert!(!client.has_something_within(Duration::from_millis(400)));
}

#[test]
fn each_piece_of_a_response_has_the_timeout_of_its_route() {
    let (server, _peer) = start();
    // The default for other routes is longer than the client waits.
    let mut client = server.connect();
    client.send(request("GET /quick/a.php?begin", &[]));
    assert!(client.head().starts_with("HTTP/1.1 200"));
    assert!(!client.rest().ends_with(b"0\r\n\r\n"), "a cut response looks complete");
    let mut h2 = Http2::to(server.address());
    let builder = Request::builder().uri("http://localhost/quick/a.php?begin");
    assert!(h2.send(builder, b"").is_err());
    let mut client = server.connect();
    client.send(request("GET /a.php?begin", &[]));
    client.head();
    assert_eq!(client.bytes(10), b"5\r\nbegun\r\n");
    assert!(!client.has_something_within(Duration::from_millis(400)));
}

/// A pause in the response of an upstream may be longer than `answer_timeout`, because `idle` limits it.
#[test]
fn each_piece_of_a_proxied_response_has_the_timeout_of_the_proxy() {
    let upstream = Upstream::start(|_, stream| {
        upstream::write_to(stream, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nbegun");
        std::thread::sleep(Duration::from_secs(1));
        upstream::write_to(stream, "ended");
        upstream::Next::Keep
    });
    let text = format!(
        "[server]\nh2c = true\nworkers = 1\nevents = {{ wait = \"20ms\" }}\n[limits]\nanswer_timeout = \"100ms\"\n\
         [site.default]\nlisten = \"127.0.0.1:0\"\nproxy = {{ to = \"{}\", idle = \"1m\" }}\n",
        upstream.url()
    );
    let server = Running::start(Folder::with(&[]), &text);
    assert_eq!(server.get("/").text(), "begunended");
    assert_eq!(&Http2::to(server.address()).get("/").content[..], b"begunended");
}

#[test]
fn a_route_that_is_known_late_has_its_body_limit() {
    let folder = Folder::with(&[("www/up/c.php", ""), ("www/large/a.php", "")]);
    let _peer = Peer::start(&folder.path(SOCKET), |incoming, stream| {
        let text = format!("Content-Type: text/plain\r\n\r\n{}", incoming.content.len());
        write_to(stream, response(text.as_bytes()));
        Next::Keep
    });
    // With these links, the lookup of the rule always waits for the disk, and the body is opened before its result.
    let keys = "php = \"unix:php.sock\"\nlimits = { body_size = 100 }\nsymlinks = \"owner\"\n\
                rule = [{ path = \"/up/*\", exists = \"nothing\", rewrite = \"/large/a.php\" }]\n\
                route.\"/large/*\".limits = { body_size = 2000 }";
    let server = Running::site(folder, keys);
    for (path, size, status) in [
        ("/up/none", 2000, 200),
        ("/up/none", 2001, 413),
        ("/up/c.php", 100, 200),
        ("/up/c.php", 101, 413),
        ("/up/c.php", 1900, 413),
    ] {
        let (line, content) = (format!("POST {path}"), "x".repeat(size));
        let mut client = server.connect();
        client.send_anyway(request(&line, &[&format!("Content-Length: {size}")]) + &content);
        client.response().expect(&format!("{path}: {size}"), status, &[]);
        let mut client = server.connect();
        let chunks = format!("{size:x}\r\n{content}\r\n0\r\n\r\n");
        client.send_anyway(request(&line, &["Transfer-Encoding: chunked"]) + &chunks);
        client
            .response()
            .expect(&format!("{path}: chunks of {size}"), status, &[]);
    }
}

#[test]
fn a_route_that_depends_on_several_lookups_has_its_body_limit() {
    let folder = Folder::with(&[("www/up/c.php", ""), ("www/up/mark", ""), ("www/large/a.php", "")]);
    let _peer = Peer::start(&folder.path(SOCKET), |incoming, stream| {
        let text = format!("Content-Type: text/plain\r\n\r\n{}", incoming.content.len());
        write_to(stream, response(text.as_bytes()));
        Next::Keep
    });
    // The two lookups have different results, and only both lead to the route with the large limit.
    let keys = "php = \"unix:php.sock\"\nlimits = { body_size = 100 }\nsymlinks = \"owner\"\n\
                rule = [{ path = \"/up/*\", exists = \"nothing\", rewrite = \"/second/{*}\" }, \
                { path = \"/second/*\", exists = \"file\", exists_at = \"/up/mark\", rewrite = \"/large/a.php\" }]\n\
                route.\"/large/*\".limits = { body_size = 2000 }";
    let server = Running::site(folder, keys);
    for (path, size, status) in [
        ("/up/none", 2000, 200),
        ("/up/none", 2001, 413),
        ("/up/c.php", 100, 200),
        ("/up/c.php", 101, 413),
    ] {
        let mut client = server.connect();
        let head = request(&format!("POST {path}"), &[&format!("Content-Length: {size}")]);
        client.send_anyway(head + &"x".repeat(size));
        client.response().expect(&format!("{path}: {size}"), status, &[]);
    }
}

over_http3! {
    each_piece_of_a_proxied_response_has_the_timeout_of_the_proxy,
}
