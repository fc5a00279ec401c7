//! PHP over FastCGI, simulated by a scripted peer: which paths run a script, the variables of the script, and its
//! response.

use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use super::support::client::request;
use super::support::fastcgi::{Next, Peer, ReceivedRequest, SOCKET, end, record, response, stderr, stdout, write_to};
use super::support::http2::Http2;
use super::support::{Folder, Running};

const PHP: &str = "php = \"unix:php.sock\"";

fn folder() -> Folder {
    Folder::with(&[
        ("www/index.php", "<?php secret"),
        ("www/a.php", "<?php secret"),
        ("www/b/index.php", "<?php secret"),
        ("www/c/index.html", "a page"),
        ("www/pic.jpg", "a picture"),
        ("www/code.phtml", "<?php secret"),
        ("www/UPPER.PHP", "<?php secret"),
        ("www/uploads/x.php", "<?php secret"),
        ("www/uploads/x.jpg", "a picture"),
        ("www/.hidden/x.php", "<?php secret"),
    ])
}

/// Returns a response with the variables, one per line, followed by the request body.
fn mirror(incoming: &ReceivedRequest) -> Vec<u8> {
    let mut text = String::from("Content-Type: text/plain\r\n\r\n");
    for (name, value) in &incoming.variables {
        text.push_str(&format!("{name}={value}\n"));
    }
    let mut text = text.into_bytes();
    text.extend_from_slice(&incoming.content);
    text
}

/// Starts a server whose scripts respond with their variables and the request body.
fn mirrored() -> (Running, Peer) {
    let folder = folder();
    let peer = Peer::start(&folder.path(SOCKET), |incoming, stream| {
        write_to(stream, response(&mirror(incoming)));
        Next::Keep
    });
    (Running::site(folder, PHP), peer)
}

#[test]
fn paths_lead_to_scripts_files_and_the_front_controller() {
    let (server, _peer) = mirrored();
    let mut client = server.connect();
    // The second responses come from the worker cache.
    for _ in 0..2 {
        for (path, script, path_info) in [
            ("/", "/index.php", None),
            ("/index.php", "/index.php", None),
            ("/a.php", "/a.php", None),
            ("/a.php?x=1&y=%20", "/a.php", None),
            ("/a.php/", "/a.php", Some("/")),
            ("/a.php/b/c", "/a.php", Some("/b/c")),
            ("/a.php/x.php/y", "/a.php", Some("/x.php/y")),
            ("/a.php/Special:Search", "/a.php", Some("/Special:Search")),
            // After a script, names with a leading dot are not names of files.
            ("/a.php/dav/.bashrc", "/a.php", Some("/dav/.bashrc")),
            (
                "/index.php/.well-known/webfinger",
                "/index.php",
                Some("/.well-known/webfinger"),
            ),
            ("/b/", "/b/index.php", None),
            ("/nothing/here", "/index.php", None),
            ("/wiki/Special:Search", "/index.php", None),
            ("/missing.php", "/index.php", None),
            ("/missing.php/a", "/index.php", None),
            ("/pic.jpg/x.php", "/index.php", None),
            ("/pic.jpg%2Fx.php", "/index.php", None),
            ("/c/x/../../a.php", "/a.php", None),
            ("//a.php", "/a.php", None),
        ] {
            let text = client.get(path).text();
            let has = |line: String| text.lines().any(|found| found == line);
            assert!(has(format!("SCRIPT_NAME={script}")), "{path}: {text}");
            let root = server.folder.path("www").canonicalize().expect("the root");
            assert!(
                has(format!("SCRIPT_FILENAME={}{script}", root.display())),
                "{path}: {text}"
            );
            assert!(has(format!("DOCUMENT_ROOT={}", root.display())), "{path}: {text}");
            assert!(has(format!("REQUEST_URI={path}")), "{path}: {text}");
            assert!(has(format!(
                "QUERY_STRING={}",
                path.split_once('?').map_or("", |(_, query)| query)
            )));
            match path_info {
                Some(info) => assert!(has(format!("PATH_INFO={info}")), "{path}: {text}"),
                None => assert!(!text.contains("PATH_INFO="), "{path}: {text}"),
            }
        }
        for (path, status, content) in [
            ("/pic.jpg", 200, "a picture"),
            ("/uploads/x.jpg", 200, "a picture"),
            ("/c/", 200, "a page"),
            ("/c", 308, ""),
            ("/uploads/x.php", 403, ""),
            ("/uploads/x.php/y", 403, ""),
            ("/code.phtml", 403, ""),
            ("/UPPER.PHP", 403, ""),
            ("/.hidden/x.php", 404, ""),
            ("/.hidden/x.php/.y", 404, ""),
            ("/missing.php/.y", 404, ""),
            ("/c/.hidden/a.php/.y", 404, ""),
            ("/.hidden/x.php/Special:y", 404, ""),
        ] {
            let response = client.get(path);
            // A path below a script may get any status, as long as the script is neither run nor sent.
            let status = if path.contains("x.php/") {
                response.status
            } else {
                status
            };
            assert_eq!(response.status, status, "{path}: {response:?}");
            assert!(content.is_empty() || response.text() == content, "{path}: {response:?}");
            assert!(!response.text().contains("<?php"), "{path}: the source was sent");
            assert!(
                !response.text().contains("SCRIPT_NAME=/uploads"),
                "{path}: the script was run"
            );
            assert!(
                !response.text().contains("SCRIPT_NAME=/.hidden"),
                "{path}: the script was run"
            );
        }
    }
    for (line, status) in [
        ("POST /a.php", 200),
        ("PUT /a.php/x", 200),
        ("PUT /a.php/.x", 200),
        ("OPTIONS /a.php", 200),
        ("BREW /nothing", 200),
        ("POST /pic.jpg", 405),
        ("OPTIONS /pic.jpg", 204),
        ("TRACE /a.php", 405),
    ] {
        assert_eq!(client.fetch(line, &[]).status, status, "{line}");
    }
}

#[test]
fn routes_and_other_keys_apply() {
    let folder = folder();
    folder.write("www/app.php", "<?php secret");
    let _peer = Peer::start(&folder.path(SOCKET), |incoming, stream| {
        write_to(stream, response(&mirror(incoming)));
        Next::Keep
    });
    let keys = format!(
        "{PHP}\nfallback = \"/app.php\"\nindex = [\"a.php\"]\nerrors = {{ 403 = \"/a.php\" }}\n\
         [site.default.route.\"/b/*\"]\nphp = false\n[site.default.route.\"/none/*\"]\ntry = [\"{{path}}\"]\nroot = \"www/c\"\n"
    );
    let server = Running::site(folder, &keys);
    for (path, status, content) in [
        ("/", 200, "SCRIPT_NAME=/a.php\n"),
        ("/nothing", 200, "SCRIPT_NAME=/app.php\n"),
        // Scripts are served as files if their route does not run PHP.
        ("/b/index.php", 200, "<?php secret"),
        // If an error page is a script, the built-in page is sent instead of its source.
        ("/UPPER.PHP", 403, "<h1>"),
        ("/none/x", 404, "<h1>"),
    ] {
        let response = server.get(path);
        assert_eq!(response.status, status, "{path}: {response:?}");
        assert!(response.text().contains(content), "{path}: {}", response.text());
    }
    // A replaced script is run, and is served as a file after a reload that turns PHP off.
    server.folder.remove("www/a.php");
    server.folder.write("www/a.php", "<?php other");
    assert_eq!(server.get("/a.php").status, 200);
    server
        .reload(&super::support::running::site("php = false"))
        .expect("a reload");
    assert_eq!(server.get("/a.php").text(), "<?php other");
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
fn responses_are_forwarded_or_refused() {
    let cookies = "Set-Cookie: x\r\n".repeat(256);
    let long = format!("A: {}\r\n\r\n", "x".repeat(64 * 1024));
    let large = format!("Content-Type: text/x\r\n\r\n{}", "0123456789".repeat(100_000));
    // A row has the output of a script, and the status, header fields and body length of the response to the client.
    // `usize::MAX` leaves the length unchecked.
    let rows: Vec<(String, u16, Vec<&'static str>, usize)> = vec![
        (
            "Content-Type: text/x\r\n\r\nhello".into(),
            200,
            vec!["Content-Type: text/x", "Content-Length: 5"],
            5,
        ),
        (
            "Status: 404 Nope\nX-A: b\n\nhello".into(),
            404,
            vec!["X-A: b", "Content-Length: 5", "!Status"],
            5,
        ),
        ("Status: 404\r\n\r\n".into(), 404, vec!["Content-Length: 0"], 0),
        ("Status: 204\r\n\r\n".into(), 204, vec!["!Content-Length"], 0),
        ("Location: /x\r\n\r\n".into(), 302, vec!["Location: /x"], 0),
        (
            "Location: /x\r\nStatus: 301\r\n\r\n".into(),
            301,
            vec!["Location: /x"],
            0,
        ),
        (
            "Connection: close\r\nTransfer-Encoding: x\r\nContent-Length: 3\r\nKeep-Alive: 9\r\n\r\nhello".into(),
            200,
            vec!["Content-Length: 5", "!Connection", "!Transfer-Encoding", "!Keep-Alive"],
            5,
        ),
        (large, 200, vec!["Transfer-Encoding: chunked"], 1_000_000),
        // A response may have 256 header fields, but not one more.
        (format!("{cookies}\r\n"), 200, vec!["Content-Length: 0"], 0),
        (format!("{cookies}A: b\r\n\r\n"), 502, vec![], usize::MAX),
        (long, 502, vec![], usize::MAX),
        ("no head at all".into(), 502, vec![], usize::MAX),
        ("Warning\r\n\r\n".into(), 502, vec![], usize::MAX),
        ("A: b\rSet-Cookie: c\r\n\r\n".into(), 502, vec![], usize::MAX),
        ("Status: 100\r\n\r\n".into(), 502, vec![], usize::MAX),
        (String::new(), 502, vec![], usize::MAX),
    ];
    let folder = folder();
    let texts: Vec<String> = rows.iter().map(|(text, ..)| text.clone()).collect();
    let texts = Arc::new(texts);
    let _peer = Peer::start(&folder.path(SOCKET), move |incoming, stream| {
        let number: usize = incoming.variable("QUERY_STRING").parse().expect("the number of a row");
        write_to(stream, stderr(b"PHP message: oops\n"));
        write_to(stream, response(texts[number].as_bytes()));
        Next::Keep
    });
    let server = Running::site(folder, PHP);
    let mut client = server.connect();
    for (number, (text, status, fields, length)) in rows.iter().enumerate() {
        let start: String = text.chars().take(40).collect();
        let response = client.get(&format!("/a.php?{number}"));
        response.expect(&start, *status, fields);
        assert!(
            *length == usize::MAX || response.body.len() == *length,
            "{start:?}: {response:?}"
        );
        // A response to HEAD has no body, and the connection is kept.
        assert_eq!(
            client.fetch(&format!("HEAD /a.php?{number}"), &[]).status,
            *status,
            "{start:?}"
        );
    }
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

#[test]
fn connections_are_kept_and_replaced() {
    let folder = folder();
    let peer = Peer::start(&folder.path(SOCKET), |incoming, stream| {
        write_to(stream, response(b"A: b\r\n\r\nhello"));
        if incoming.variable("QUERY_STRING") == "close" {
            Next::Close
        } else {
            Next::Keep
        }
    });
    let server = Running::site(folder, PHP);
    // Idle connections are kept for one second. If a busy machine pauses for longer, the attempt is repeated.
    let found = (0..TRIES).find_map(|_| {
        let (begun, before) = (Instant::now(), peer.connections());
        let mut client = server.connect();
        let counts = [
            "GET /a.php",
            "GET /b/",
            "GET /nothing",
            // A request that must not be sent twice gets a new connection, which is kept afterwards.
            "POST /a.php",
            "GET /a.php?close",
            // The application has closed the kept connection, so the request is sent again on a new one.
            "GET /a.php?close",
            "GET /a.php",
            "GET /a.php?close",
        ]
        .map(|line| {
            assert_eq!(client.fetch(line, &[]).text(), "hello", "{line}");
            peer.connections() - before
        });
        (begun.elapsed() < MAX_DURATION).then_some(counts)
    });
    // Number of connections that were opened up to and including each request.
    assert_eq!(found, Some([1, 1, 1, 2, 2, 3, 4, 4]));
}

/// Maximum number of attempts.
const TRIES: usize = 50;
/// Maximum duration of an attempt, shorter than the time for which idle connections are kept.
const MAX_DURATION: Duration = Duration::from_millis(900);

#[test]
fn errors_get_a_status_and_in_dev_mode_a_hint() {
    const SERVER: &str = "[server]\nmode = \"MODE\"\nworkers = 1\nevents = { wait = \"20ms\" }\n";
    for mode in ["dev", "prod"] {
        let folder = folder();
        let _peer = Peer::start(&folder.path(SOCKET), |incoming, stream| {
            match incoming.variable("QUERY_STRING") {
                "broken" => write_to(stream, "HTTP/1.1 400 Bad Request\r\n\r\n"),
                // Protocol status 2 is `FCGI_OVERLOADED`.
                "full" => write_to(stream, end(2)),
                "half" => write_to(stream, stdout(b"A: b\r\n")),
                _ => {}
            }
            Next::Close
        });
        folder.write("www/gone/index.php", "");
        let text = format!(
            "{SERVER}{}[site.default.route.\"/gone/*\"]\nphp = \"unix:nobody.sock\"\n\
             [site.default.route.\"/own/*\"]\nerrors = {{ 502 = \"/pic.jpg\" }}\n",
            super::support::running::site(PHP)
        );
        let server = Running::start(folder, &text.replace("MODE", mode));
        for (path, status, hint) in [
            ("/a.php?broken", 502, "does not speak FastCGI"),
            ("/a.php?full", 503, "pm.max_children"),
            ("/a.php?half", 502, "ended before"),
            ("/a.php?silent", 502, "ended before"),
            ("/gone/", 502, "Start php-fpm"),
        ] {
            let response = server.get(path);
            assert_eq!(response.status, status, "{mode} {path}: {response:?}");
            let text = response.text();
            assert!(text.contains("<h1>"), "{mode} {path}: {text}");
            assert_eq!(text.contains(hint), mode == "dev", "{mode} {path}: {text}");
            // Only the hints for `gone` and `broken` name the socket.
            assert_eq!(
                text.contains(".sock"),
                mode == "dev" && (path.contains("gone") || path.contains("broken")),
                "{mode} {path}"
            );
        }
        // In `dev` mode, the page with the hint is sent instead of the error page of the route.
        let response = server.get("/own/x?silent");
        assert_eq!(
            (response.status, response.text() == "a picture"),
            (502, mode == "prod"),
            "{mode}"
        );
    }
}

#[test]
fn a_missing_response_times_out() {
    let folder = folder();
    let _peer = Peer::start(&folder.path(SOCKET), |incoming, stream| {
        if incoming.variable("QUERY_STRING") == "half" {
            write_to(stream, stdout(b"A: b\r\n"));
        }
        // The application sends nothing more until the server closes the connection.
        let _ = record(stream);
        Next::Close
    });
    let text = format!(
        "[server]\nmode = \"dev\"\nworkers = 1\nevents = {{ wait = \"20ms\" }}\n[limits]\nanswer_timeout = \"1s\"\n{}",
        super::support::running::site(PHP)
    );
    let server = Running::start(folder, &text);
    let mut client = server.connect();
    for (line, content) in [("GET /a.php", ""), ("GET /a.php?half", ""), ("POST /a.php", "hello")] {
        client.send(request(line, &[&format!("Content-Length: {}", content.len())]) + content);
        let response = client.response();
        response.expect(line, 504, &[]);
        assert!(
            response.text().contains("limits.answer_timeout"),
            "{line}: {}",
            response.text()
        );
    }
}

#[test]
fn an_incomplete_response_is_cut() {
    let folder = folder();
    let _peer = Peer::start(&folder.path(SOCKET), |_, stream| {
        write_to(stream, stdout(b"A: b\r\n\r\nhello"));
        Next::Close
    });
    let server = Running::site(folder, PHP);
    let mut client = server.connect();
    client.send(request("GET /a.php", &[]));
    assert!(client.head().starts_with("HTTP/1.1 200"));
    assert_eq!(client.rest(), b"5\r\nhello\r\n", "the last chunk must be missing");
}

#[test]
fn a_disconnect_of_the_client_aborts_the_script() {
    let folder = folder();
    let (report, reports) = mpsc::channel();
    let _peer = Peer::raw(&folder.path(SOCKET), move |mut stream| {
        while let Ok(Some((kind, content))) = record(&mut stream) {
            // An empty record of type 5 (`FCGI_STDIN`) ends the request.
            if kind == 5 && content.is_empty() {
                let _ = report.send("requested");
            }
        }
        let _ = report.send("disconnected");
    });
    let server = Running::site(folder, PHP);
    let mut client = server.connect();
    client.send(request("GET /a.php", &[]));
    assert_eq!(reports.recv().expect("a request"), "requested");
    drop(client);
    assert_eq!(reports.recv().expect("an end"), "disconnected");
}

#[test]
fn scripts_are_served_over_http2() {
    let folder = folder();
    let _peer = Peer::start(&folder.path(SOCKET), |incoming, stream| {
        write_to(stream, response(&mirror(incoming)));
        Next::Keep
    });
    let text = format!(
        "[server]\nh2c = true\nworkers = 1\n{}",
        super::support::running::site(PHP)
    );
    let server = Running::start(folder, &text);
    let mut client = Http2::to(server.address());
    let page = String::from_utf8(client.get("/nothing/here").content).expect("text");
    assert!(
        page.contains("SERVER_PROTOCOL=HTTP/2.0\n") && page.contains("SCRIPT_NAME=/index.php\n"),
        "{page}"
    );
    assert!(page.contains(&format!("HTTP_HOST={}\n", server.address())), "{page}");
    let content = vec![b'x'; 1 << 20];
    let builder = client.request("POST", "/a.php").header("content-length", content.len());
    let response = client.send(builder, &content).expect("a response");
    assert!(
        response.status == 200 && response.content.ends_with(&content),
        "{}",
        response.content.len()
    );
}

over_http3! {
    connections_are_kept_and_replaced,
    paths_lead_to_scripts_files_and_the_front_controller,
    routes_and_other_keys_apply,
    responses_are_forwarded_or_refused,
    scripts_get_the_length_of_the_body,
    responses_are_streamed_and_request_bodies_are_spooled,
    errors_get_a_status_and_in_dev_mode_a_hint,
    a_missing_response_times_out,
    a_disconnect_of_the_client_aborts_the_script,
}
