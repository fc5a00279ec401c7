//! Proxied requests over HTTP/1.1 and HTTP/2: the request that the upstream receives, and the response to the client.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;

use super::support::client::request;
use super::support::upstream::{Next, Upstream, ok, write_to};
use super::support::{DEADLINE, Folder, Running};

pub fn folder() -> Folder {
    Folder::with(&[("www/index.html", "a page"), ("www/a.txt", "a file")])
}

pub fn proxied(upstream: &Upstream, more: &str) -> Running {
    Running::site(folder(), &format!("{}\n{more}", upstream.key()))
}

#[test]
fn requests_are_rewritten_for_the_upstream() {
    let upstream = Upstream::responding_with(ok("hello"));
    let server = proxied(&upstream, "");
    let mut client = server.connect();
    for (line, fields, expected_line, present, absent) in [
        (
            "GET /",
            &[][..],
            "GET / HTTP/1.1",
            &["Host: localhost", "Via: 1.1 RockNet"][..],
            &["Connection"][..],
        ),
        (
            "GET /a%20b?x=1&y=%2F",
            &["Host: example.com:8080"],
            "GET /a%20b?x=1&y=%2F HTTP/1.1",
            &["Host: example.com:8080", "X-Forwarded-Host: example.com:8080"],
            &[],
        ),
        (
            "GET http://other.test/x?y",
            &["Host: other.test"],
            "GET /x?y HTTP/1.1",
            &["Host: other.test"],
            &[],
        ),
        ("GET /a/../b//c/%2e/d", &[], "GET /b//c/d HTTP/1.1", &[], &[]),
        (
            "BREW /pot",
            &[],
            "BREW /pot HTTP/1.1",
            &[],
            &["Content-Length", "Transfer-Encoding"],
        ),
        ("DELETE /x", &[], "DELETE /x HTTP/1.1", &[], &["Content-Length"]),
        (
            "POST /x",
            &["Content-Length: 0"],
            "POST /x HTTP/1.1",
            &["Content-Length: 0"],
            &[],
        ),
        (
            "GET /hop",
            &[
                "Connection: keep-alive, X-Mine, TE",
                "X-Mine: 1",
                "Keep-Alive: timeout=5",
                "TE: trailers",
                "Proxy-Connection: x",
                "Upgrade: h2c",
                "Proxy: http://evil",
                "Proxy-Authorization: x",
                "X-Kept: yes",
            ],
            "GET /hop HTTP/1.1",
            &["X-Kept: yes"],
            &[
                "Connection",
                "X-Mine",
                "Keep-Alive",
                "TE",
                "Proxy-Connection",
                "Upgrade",
                "Proxy",
                "Proxy-Authorization",
            ],
        ),
        (
            "GET /spoof",
            &[
                "X-Forwarded-For: 10.9.9.9",
                "X-Forwarded-Proto: https",
                "X-Forwarded-Host: evil",
                "Forwarded: for=10.9.9.9",
                "X-Real-IP: 10.9.9.9",
            ],
            "GET /spoof HTTP/1.1",
            &[
                "X-Forwarded-For: 127.0.0.1",
                "X-Forwarded-Proto: http",
                "X-Forwarded-Host: localhost",
            ],
            &["Forwarded", "X-Real-IP"],
        ),
    ] {
        let response = client.fetch(line, fields);
        response.expect(line, 200, &["Content-Length: 5", "Server: RockNet", "Date"]);
        assert_eq!(response.text(), "hello", "{line}");
        let incoming = upstream.last();
        assert_eq!(incoming.line, expected_line);
        for field in present {
            let (name, value) = field.split_once(": ").expect("a field");
            assert_eq!(incoming.field(name), Some(value), "{line}: {incoming:?}");
        }
        for name in absent {
            assert_eq!(incoming.field(name), None, "{line}");
        }
    }
    assert_eq!(upstream.connections(), 1, "the connection must be reused");
}

#[test]
fn responses_of_upstreams_are_forwarded() {
    // Name, output of the upstream, and status, header fields and body of the response to the client.
    let rows: &[(&str, &str, u16, &[&str], &str)] = &[
        (
            "length",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX-A: 1\r\n\r\nabc",
            200,
            &["Content-Length: 3", "X-A: 1"],
            "abc",
        ),
        // The proxy has received the whole body before it sends the head, so it sends the length instead of chunks.
        (
            "chunked in one write",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n",
            200,
            &["Content-Length: 3"],
            "abc",
        ),
        (
            "hop-by-hop",
            "HTTP/1.1 200 Fine\r\nConnection: X-Mine\r\nX-Mine: 1\r\nKeep-Alive: timeout=9\r\nContent-Length: 0\r\nServer: old/1.0\r\n\r\n",
            200,
            &["!Connection", "!X-Mine", "!Keep-Alive", "Server: RockNet"],
            "",
        ),
        (
            "an error page of the upstream",
            "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nmine",
            404,
            &[],
            "mine",
        ),
        (
            "an empty error",
            "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n",
            401,
            &["WWW-Authenticate: Basic", "Content-Length: 0"],
            "",
        ),
        (
            "nothing",
            "HTTP/1.1 204 No Content\r\n\r\n",
            204,
            &["!Content-Length"],
            "",
        ),
        (
            "not modified",
            "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nContent-Length: 7\r\n\r\n",
            304,
            &["ETag: \"x\""],
            "",
        ),
        (
            "an unknown status",
            "HTTP/1.1 299 Hm\r\nContent-Length: 1\r\n\r\nx",
            299,
            &[],
            "x",
        ),
        (
            "interim first",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
            200,
            &[],
            "x",
        ),
        ("no reason", "HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx", 200, &[], "x"),
    ];
    for (name, output, status, fields, content) in rows {
        let upstream = Upstream::responding_with(*output);
        let server = proxied(&upstream, "");
        let mut client = server.connect();
        for _ in 0..2 {
            let response = client.get("/");
            response.expect(name, *status, fields);
            assert_eq!(response.text(), *content, "{name}");
        }
        assert_eq!(upstream.connections(), 1, "{name}");
    }
    // The upstream closes the connection after these responses.
    for output in [
        "HTTP/1.1 200 OK\r\n\r\nabc",
        "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc",
    ] {
        let upstream = Upstream::start(move |_, stream| {
            write_to(stream, output);
            Next::Close
        });
        let server = proxied(&upstream, "");
        let mut client = server.connect();
        for _ in 0..2 {
            assert_eq!(client.get("/").expect(output, 200, &[]).text(), "abc");
        }
        assert_eq!(upstream.connections(), 2);
    }
}

#[test]
fn responses_without_a_body_are_forwarded() {
    let upstream = Upstream::responding_with("HTTP/1.1 200 OK\r\nContent-Length: 12345\r\nX-A: 1\r\n\r\n");
    let server = proxied(&upstream, "");
    let mut client = server.connect();
    for _ in 0..2 {
        client
            .fetch("HEAD /", &[])
            .expect("HEAD", 200, &["Content-Length: 12345", "X-A: 1"]);
    }
    assert_eq!(upstream.connections(), 1);
    assert_eq!(upstream.last().line, "HEAD / HTTP/1.1");
}

#[test]
fn the_most_specific_route_is_used() {
    let (one, two) = (
        Upstream::responding_with(ok("one")),
        Upstream::responding_with(ok("two")),
    );
    let keys = format!(
        "{}\n[site.default.route.\"/api/*\"]\n{}\n[site.default.route.\"/api/files/*\"]\nroot = \"www\"\n[site.default.route.\"/index.html\"]\nproxy = false\n",
        one.key(),
        two.key()
    );
    let server = Running::site(folder(), &keys);
    for (path, content) in [
        ("/", "one"),
        ("/a.txt", "one"),
        ("/api/x", "two"),
        ("/api/files/../x", "two"),
        ("/index.html", "a page"),
    ] {
        assert_eq!(server.get(path).text(), content, "{path}");
    }
    assert_eq!(server.get("/api/files/a.txt").status, 404);
    // The upstream gets the path that a rule has rewritten.
    let keys = format!(
        "{}\n[[site.default.rule]]\npath = \"/old/*\"\nrewrite = \"/new/{{*}}\"\n",
        one.key()
    );
    let server = Running::site(folder(), &keys);
    assert_eq!(server.get("/old/x?y=1").text(), "one");
    assert_eq!(one.last().line, "GET /new/x?y=1 HTTP/1.1");
    // A site with a proxied route also serves files.
    let keys = format!("[site.default.route.\"/api/*\"]\n{}\n", one.key());
    let server = Running::site(folder(), &keys);
    for (path, content) in [("/", "a page"), ("/a.txt", "a file"), ("/api/", "one")] {
        assert_eq!(server.get(path).text(), content, "{path}");
    }
}

#[test]
fn requests_are_edited_as_configured() {
    let upstream = Upstream::responding_with(ok("hello"));
    let keys = format!(
        "headers = {{ \"X-From\" = \"here\" }}\n[site.default.route.\"/api/v1/*\"]\nproxy = {{ to = \"{}\", strip = \"/api/v1/\", \
         headers = {{ Host = \"app.internal:81\", \"X-Key\" = \"secret\", Cookie = \"\", \"X-Forwarded-Host\" = \"\" }} }}\n",
        upstream.url()
    );
    let server = Running::site(folder(), &keys);
    let mut client = server.connect();
    for (path, line) in [
        ("/api/v1/users?x=1", "GET /users?x=1 HTTP/1.1"),
        ("/%61pi//v1/a%20b", "GET /a%20b HTTP/1.1"),
        ("/api/v1/", "GET / HTTP/1.1"),
        ("/x/../api/v1/y", "GET /y HTTP/1.1"),
    ] {
        let response = client.fetch(&format!("GET {path}"), &["Cookie: a=b", "X-Key: forged", "X-Kept: 1"]);
        response.expect(path, 200, &["X-From: here"]);
        let incoming = upstream.last();
        assert_eq!(incoming.line, line);
        for (name, value) in [
            ("Host", Some("app.internal:81")),
            ("X-Key", Some("secret")),
            ("X-Kept", Some("1")),
            ("Cookie", None),
            ("X-Forwarded-Host", None),
        ] {
            assert_eq!(incoming.field(name), value, "{path}: {incoming:?}");
        }
    }
}

#[test]
fn unix_socket_upstreams_are_reached() {
    use std::os::unix::net::UnixListener;
    let folder = folder();
    let listener = UnixListener::bind(folder.path("app.sock")).expect("a socket");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut buffer = [0; 4096];
            while stream.read(&mut buffer).is_ok_and(|count| count > 0) {
                let _ = stream.write_all(ok("by a socket").as_bytes());
            }
        }
    });
    let server = Running::site(folder, "proxy = \"unix:app.sock\"");
    let mut client = server.connect();
    for _ in 0..2 {
        assert_eq!(client.get("/").text(), "by a socket");
    }
}

#[test]
fn a_disconnect_of_the_client_closes_the_upstream_connection() {
    let (arrived, arrivals) = mpsc::channel();
    let (gone, ended) = mpsc::channel();
    let upstream = Upstream::raw(move |mut stream: TcpStream| {
        let (mut buffer, mut incoming) = ([0; 4096], Vec::new());
        // The proxy closes or resets the connection when the response is no longer needed.
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            incoming.extend_from_slice(&buffer[..count]);
            if incoming.ends_with(b"12345") || incoming.starts_with(b"GET ") && incoming.ends_with(b"\r\n\r\n") {
                let _ = arrived.send(());
            }
        }
        let _ = gone.send(());
    });
    let server = proxied(&upstream, "");
    // The client disconnects in the middle of a request, and after a whole request. The timeouts of the server are
    // longer than the deadline of the test, so the server has to detect the close.
    for output in [
        request("POST /", &["Content-Length: 10"]) + "12345",
        request("GET /", &[]),
    ] {
        let mut client = server.connect();
        client.send(&output);
        arrivals.recv_timeout(DEADLINE).expect("everything that was sent");
        assert!(
            ended.try_recv().is_err(),
            "the upstream connection was closed before the client disconnected: {output}"
        );
        drop(client);
        assert!(
            ended.recv_timeout(DEADLINE).is_ok(),
            "the upstream connection is still open: {output}"
        );
    }
}

#[test]
fn names_are_resolved_without_delaying_the_start() {
    let upstream = Upstream::responding_with(ok("by name"));
    let port = upstream.url().rsplit(':').next().expect("a port").to_owned();
    let keys = format!(
        "proxy = \"http://localhost:{port}\"\n[site.default.route.\"/none\"]\nproxy = \"http://no-such-name.invalid\"\n"
    );
    let server = Running::site(folder(), &keys);
    assert_eq!(server.get("/").text(), "by name");
    server.get("/none").expect("no such name", 502, &[]);
}

over_http3! {
    responses_of_upstreams_are_forwarded,
    responses_without_a_body_are_forwarded,
    the_most_specific_route_is_used,
    requests_are_edited_as_configured,
    unix_socket_upstreams_are_reached,
    a_disconnect_of_the_client_closes_the_upstream_connection,
    names_are_resolved_without_delaying_the_start,
}
