//! Upstreams that violate the protocol, close or stall: the client gets an error, and no invalid data is forwarded.

use std::io::Read;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::support::client::request;
use super::support::upstream::{Next, Upstream, ok, write_to};
use super::support::{Folder, Running};

/// Timeouts that are longer than the tests.
const LONG_TIMEOUTS: &str = "first_byte = \"20s\", idle = \"20s\"";
/// Timeouts for upstreams that stall within a response.
const SHORT_IDLE: &str = "first_byte = \"20s\", idle = \"300ms\"";
/// Timeouts for upstreams that stall before a response.
const SHORT_FIRST_BYTE: &str = "first_byte = \"300ms\"";

/// Starts a proxy. `to`: TOML value of its key `to`. `times`: timeouts of the proxy. `mode`: value of `server.mode`.
fn proxied(to: &str, times: &str, mode: &str) -> Running {
    let text = format!(
        "[server]\nmode = \"{mode}\"\nworkers = 1\nevents = {{ wait = \"20ms\" }}\n[site.default]\nlisten = \"127.0.0.1:0\"\nproxy = {{ to = {to}, {times} }}\n"
    );
    Running::start(Folder::with(&[]), &text)
}

fn to(upstream: &Upstream) -> String {
    format!("\"{}\"", upstream.url())
}

#[test]
fn garbage_gets_502_and_is_never_forwarded() {
    let endless = format!("HTTP/1.1 200 OK\r\n{}", "X-A: 1234567890\r\n".repeat(5000));
    for sent in [
        "hello\r\n\r\n",
        "HTTP/1.1 20x OK\r\n\r\n",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        "HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nNo colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n",
        "HTTP/1.1 200 OK\r\n folded: yes\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: evil\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n",
        &"HTTP/1.1 100 Continue\r\n\r\n".repeat(1000),
        "\x16\x03\x01\x02\x00\x01",
        &endless,
        "HTTP/1.1 200 OK\r\nContent-Le",
        "",
    ] {
        let sent = sent.to_owned();
        let shown: String = sent.chars().take(60).collect();
        let upstream = Upstream::start(move |_, stream| {
            write_to(stream, &sent);
            Next::Close
        });
        let server = proxied(&to(&upstream), LONG_TIMEOUTS, "prod");
        let mut client = server.connect();
        let response = client.get("/");
        response.expect(&shown, 502, &["Server: RockNet", "!X-A", "!Upgrade"]);
        assert!(response.text().contains("502"), "{shown}: {response:?}");
        assert_eq!(
            client.get("/").status,
            502,
            "{shown}: the connection of the client must be kept"
        );
    }
}

#[test]
fn no_path_bypasses_the_rules() {
    let upstream = Upstream::start(|incoming, stream| {
        write_to(stream, ok(&incoming.line));
        Next::Keep
    });
    let key = upstream.key();
    let text = format!("{key}\n[site.default.route.\"/admin/*\"]\n{key}\ninternal = true\n");
    let server = Running::site(Folder::with(&[]), &text);
    let mut client = server.connect();
    for (path, status, incoming) in [
        ("/admin/x", 404, ""),
        ("/public/%2e%2e/admin/x", 404, ""),
        ("/public//../admin/x", 404, ""),
        ("//admin//x", 404, ""),
        ("/admin//../x", 200, "GET /x HTTP/1.1"),
        ("/admin/..//x", 200, "GET //x HTTP/1.1"),
        // An upstream that decodes slashes before it removes dot segments would misinterpret these paths.
        ("/public/..%2fadmin/x", 400, ""),
        ("/public%2F%2e%2E%2Fadmin/x", 400, ""),
        ("/public/..%5cadmin/x", 400, ""),
        ("/public/.\\admin", 400, ""),
        // Even with decoded slashes, this path has no dot segment.
        ("/public/a%2Fb..%2f.c", 200, "GET /public/a%2Fb..%2f.c HTTP/1.1"),
    ] {
        let response = client.get(path);
        response.expect(path, status, &[]);
        if status == 200 {
            assert_eq!(response.text(), incoming, "{path}");
        }
    }
}

#[test]
fn a_cut_response_is_detectable_by_the_client() {
    for sent in [
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n",
    ] {
        let upstream = Upstream::raw(move |mut stream: TcpStream| {
            let mut buffer = [0; 4096];
            let _ = stream.read(&mut buffer);
            // The response is sent in two parts, so that it has begun before the failure.
            let (first, second) = sent.split_at(sent.len() - 2);
            write_to(&mut stream, first);
            let _ = stream.read(&mut [0]).is_err();
            write_to(&mut stream, second);
        });
        // The upstream stalls before the second part until `idle` has passed.
        let server = proxied(&to(&upstream), SHORT_IDLE, "prod");
        let mut client = server.connect();
        client.send(request("GET /", &[]));
        assert!(client.head().starts_with("HTTP/1.1 200 "), "{sent}");
        let rest = String::from_utf8_lossy(&client.rest()).into_owned();
        assert!(!rest.ends_with("0\r\n\r\n") && rest.len() < 10, "{sent}: {rest:?}");
        // This upstream closes the connection in the middle of the response.
        let upstream = Upstream::raw(move |mut stream: TcpStream| {
            let mut buffer = [0; 4096];
            let _ = stream.read(&mut buffer);
            write_to(&mut stream, sent);
            let _ = stream.shutdown(Shutdown::Write);
            let _ = stream.read(&mut buffer);
        });
        let server = proxied(&to(&upstream), SHORT_IDLE, "prod");
        let mut client = server.connect();
        client.send(request("GET /", &["Connection: close"]));
        let rest = String::from_utf8_lossy(&client.rest()).into_owned();
        // If the response and the close arrive together, an error page is sent instead; otherwise the response is cut.
        let (head, content) = rest.split_once("\r\n\r\n").expect("a head");
        match head.split(' ').nth(1) {
            Some("502") => assert!(!content.contains("abc"), "{sent}: {rest:?}"),
            Some("200") if head.contains("\r\nContent-Length: 10") => assert_eq!(content, "abc", "{sent}"),
            Some("200") if head.contains("\r\nTransfer-Encoding: chunked") => {
                assert!(matches!(content, "" | "3\r\nabc\r\n"), "{sent}: {rest:?}");
            }
            _ => panic!("{sent}: {rest:?}"),
        }
    }
}

#[test]
fn timeouts_and_refused_connections_are_distinguished() {
    let silent = Upstream::raw(|mut stream: TcpStream| {
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let dripping = Upstream::raw(|mut stream: TcpStream| {
        let mut buffer = [0; 4096];
        let _ = stream.read(&mut buffer);
        for byte in "HTTP/1.1 200 OK\r\n".bytes().cycle().take(10_000) {
            write_to(&mut stream, [byte]);
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    });
    for (upstream, status, hint) in [
        (to(&silent), 504, "did not begin its response within"),
        (to(&dripping), 504, "did not begin its response within"),
        (
            "\"http://127.0.0.1:1\"".to_owned(),
            502,
            "http://127.0.0.1:1 cannot be reached",
        ),
        (
            "\"unix:/nonexistent/socket\"".to_owned(),
            502,
            "unix:/nonexistent/socket cannot be reached",
        ),
    ] {
        let server = proxied(&upstream, SHORT_FIRST_BYTE, "dev");
        let response = server.get("/");
        assert_eq!(response.status, status, "{upstream}: {response:?}");
        assert!(response.text().contains(hint), "{upstream}: {}", response.text());
        let server = proxied(&upstream, SHORT_FIRST_BYTE, "prod");
        let response = server.get("/");
        assert_eq!(response.status, status, "{upstream}: {response:?}");
        assert!(
            !response.text().contains(hint),
            "{upstream}: the upstream was disclosed to clients in `prod` mode"
        );
    }
}

#[test]
fn a_silently_closed_connection_is_replaced_if_that_is_safe() {
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    // The upstream serves one request per connection, and closes the connection when it receives the next.
    let upstream = Upstream::raw(move |mut stream: TcpStream| {
        let mut buffer = [0; 4096];
        let _ = stream.read(&mut buffer);
        count.fetch_add(1, Ordering::SeqCst);
        write_to(&mut stream, ok("once"));
        let _ = stream.read(&mut buffer);
    });
    let server = proxied(&to(&upstream), LONG_TIMEOUTS, "prod");
    let mut client = server.connect();
    for number in 1..=5 {
        client.get("/").expect("GET", 200, &[]);
        assert_eq!(requests.load(Ordering::SeqCst), number);
    }
    // A request that may have had an effect is not sent again.
    client.fetch("POST /", &["Content-Length: 0"]).expect("POST", 502, &[]);
    assert_eq!(requests.load(Ordering::SeqCst), 5);
}

#[test]
fn the_next_upstream_is_tried_if_one_is_unreachable() {
    let upstream = Upstream::responding_with(ok("here"));
    let server = proxied(
        &format!("[\"http://127.0.0.1:1\", \"{}\"]", upstream.url()),
        LONG_TIMEOUTS,
        "prod",
    );
    let mut client = server.connect();
    for _ in 0..6 {
        assert_eq!(client.get("/").expect("GET", 200, &[]).text(), "here");
    }
    client.send(request("POST /", &["Content-Length: 3"]));
    client.send("abc");
    client.response().expect("POST", 200, &[]);
    assert_eq!(upstream.last().content, b"abc");
    let server = proxied(
        "[\"http://127.0.0.1:1\", \"http://127.0.0.1:2\"]",
        LONG_TIMEOUTS,
        "prod",
    );
    server.get("/").expect("no upstream", 502, &[]);
}

#[test]
fn a_response_can_arrive_before_the_request_is_complete() {
    let upstream = Upstream::raw(|mut stream: TcpStream| {
        let mut buffer = [0; 4096];
        let _ = stream.read(&mut buffer);
        write_to(
            &mut stream,
            "HTTP/1.1 413 Too Much\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno",
        );
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let server = proxied(&to(&upstream), LONG_TIMEOUTS, "prod");
    let mut client = server.connect();
    client.send(request("POST /", &["Content-Length: 1000000"]));
    client.send("x".repeat(1000));
    let response = client.response();
    response.expect("early", 413, &[]);
    assert_eq!(response.text(), "no");
}

over_http3! {
    garbage_gets_502_and_is_never_forwarded,
    no_path_bypasses_the_rules,
    timeouts_and_refused_connections_are_distinguished,
    the_next_upstream_is_tried_if_one_is_unreachable,
    a_response_can_arrive_before_the_request_is_complete,
}
