//! Responses of scripts, their failures, and the connections to the application.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use super::{PHP, folder};
use crate::support::Running;
use crate::support::client::request;
use crate::support::fastcgi::{Next, Peer, SOCKET, end, record, response, stderr, stdout, write_to};
use crate::support::running::site;

over_http3! {
    connections_are_kept_and_replaced,
    responses_are_forwarded_or_refused,
    errors_get_a_status_and_in_dev_mode_a_hint,
    a_missing_response_times_out,
    a_disconnect_of_the_client_aborts_the_script,
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
            site(PHP)
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
        site(PHP)
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
