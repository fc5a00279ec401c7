//! The access log as JSON: the same record for every version of HTTP and every handler, and the durations that the
//! status of the server reports.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rocknet::snapshot::Mount;

use super::access::{auth, basic, over_http1};
use super::support::fastcgi::{self, Peer, SOCKET};
use super::support::folder::Folder;
use super::support::handlers::{Deferred, Echo};
use super::support::http2::Http2;
use super::support::running::{Running, mount, site};
use super::support::upstream::{self, Upstream, ok};

const SERVER: &str =
    "[server]\nworkers = 1\nblocking_threads = 2\nh2c = true\nevents = { wait = \"20ms\", connections = 16 }\n";

fn folder() -> Folder {
    Folder::with(&[("www/a.txt", "hello"), ("www/index.php", "<?php")])
}

/// Starts a site with further keys, runs `send_requests`, stops the server, and returns the lines of its log.
fn lines(folder: Folder, keys: &str, mounts: Vec<Mount>, send_requests: impl FnOnce(&Running)) -> Vec<String> {
    let log = folder.path("access.log");
    let keys = format!("{keys}\nlog = {{ access = \"{}\", format = \"json\" }}", log.display());
    let server = Running::start_with(folder, &format!("{SERVER}{}", site(&keys)), mounts);
    send_requests(&server);
    let (server, _folder) = server.take();
    server.stop();
    let log = fs::read_to_string(&log).expect("an access log");
    log.lines().map(str::to_owned).collect()
}

/// Returns the text of a member's value. Works only for values without a comma.
fn member<'l>(line: &'l str, name: &str) -> &'l str {
    let after = line.split_once(&format!("\"{name}\":"));
    let value = after.unwrap_or_else(|| panic!("{name} is missing in {line}")).1;
    value.split([',', '}']).next().unwrap_or_default()
}

#[track_caller]
fn check(line: &str, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        assert_eq!(member(line, name), *value, "{name} in {line}");
    }
}

/// Returns the value of a member that is a number.
fn number(line: &str, name: &str) -> u64 {
    let value = member(line, name);
    value.parse().unwrap_or_else(|_| panic!("{name} is {value} in {line}"))
}

/// Sends each request, given by method, path and body, over HTTP/1.1 and then over HTTP/2.
fn over_both(server: &Running, requests: &[(&str, &str, &[u8])]) {
    let mut first = server.connect();
    for (method, path, body) in requests {
        let length = format!("Content-Length: {}", body.len());
        first.send(format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{length}\r\n\r\n"
        ));
        first.send(body);
        first.response();
    }
    let mut second = Http2::to(server.address());
    for (method, path, body) in requests {
        let request = second.request(method, path);
        match body.is_empty() {
            true => drop(second.get(path)),
            false => drop(second.send(request, body)),
        }
    }
}

#[test]
fn every_version_and_handler_has_the_same_record() {
    let upstream = Upstream::responding_with(ok("from another server"));
    let proxied = lines(folder(), &upstream.key(), Vec::new(), |server| {
        over_both(server, &[("GET", "/p", b""), ("POST", "/q", &[b'x'; 70_000])]);
    });
    let peer_folder = folder();
    let socket = peer_folder.path(SOCKET);
    let _peer = Peer::start(&socket, |incoming, stream| {
        let text = format!("Content-Type: text/plain\r\n\r\n{} bytes", incoming.content.len());
        fastcgi::write_to(stream, fastcgi::response(text.as_bytes()));
        fastcgi::Next::Keep
    });
    let php = lines(peer_folder, "php = \"unix:php.sock\"", Vec::new(), |server| {
        over_both(server, &[("POST", "/index.php", b"12345678")]);
    });
    let files = lines(folder(), "", vec![mount("/echo", Echo)], |server| {
        let requests: &[(&str, &str, &[u8])] = &[
            ("GET", "/a.txt", b""),
            ("GET", "/a.txt", b""),
            ("GET", "/none", b""),
            ("POST", "/echo", b"twelve bytes"),
        ];
        over_both(server, requests);
    });
    assert_eq!(
        (proxied.len(), php.len(), files.len()),
        (4, 2, 8),
        "{proxied:#?}\n{php:#?}\n{files:#?}"
    );

    let address = format!("\"{}\"", upstream.url());
    let socket = format!("\"unix:{}\"", socket.display());
    // The first half of each log is from HTTP/1.1, the second from HTTP/2.
    for (half, protocol) in ["\"HTTP/1.1\"", "\"HTTP/2\""].into_iter().enumerate() {
        let common = [
            ("protocol", protocol),
            ("tls", "null"),
            ("user", "null"),
            ("client", "\"127.0.0.1\""),
        ];
        for (line, target, status, received, sent, from) in [
            (&proxied[2 * half], "/p", "200", "0", "19", Some(&address)),
            (&proxied[2 * half + 1], "/q", "200", "70000", "19", Some(&address)),
            (&php[half], "/index.php", "200", "8", "7", Some(&socket)),
            (&files[4 * half], "/a.txt", "200", "0", "5", None),
            (&files[4 * half + 1], "/a.txt", "200", "0", "5", None),
            (&files[4 * half + 3], "/echo", "200", "12", "12", None),
        ] {
            check(line, &common);
            check(
                line,
                &[
                    ("target", &format!("\"{target}\"")),
                    ("status", status),
                    ("bytes_received", received),
                    ("bytes_sent", sent),
                    ("upstream", from.map_or("null", |from| from)),
                ],
            );
            let duration = number(line, "duration_us");
            match from {
                Some(_) => assert!(number(line, "upstream_us") <= duration, "{line}"),
                None => check(line, &[("upstream_us", "null")]),
            }
        }
        check(&files[4 * half + 2], &[("status", "404")]);
        let page = |half: usize| number(&files[4 * half + 2], "bytes_sent");
        assert!(page(half) > 100 && page(half) == page(0), "{files:#?}");
    }
}

#[test]
fn an_upstream_that_does_not_respond_is_logged() {
    let upstream = Upstream::raw(drop);
    let records = lines(folder(), &upstream.key(), Vec::new(), |server| {
        server.connect().get("/").expect("no response", 502, &[]);
    });
    let address = format!("\"{}\"", upstream.url());
    check(
        &records[0],
        &[("status", "502"), ("upstream", &address), ("upstream_us", "null")],
    );
}

#[test]
fn a_response_that_was_cut_has_the_same_bytes_in_every_version() {
    const SENT: usize = 1000;
    let upstream = Upstream::start(|_, stream| {
        let part = "x".repeat(SENT);
        upstream::write_to(
            stream,
            format!("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{part}"),
        );
        upstream::Next::Close
    });
    let records = lines(folder(), &upstream.key(), Vec::new(), |server| {
        let mut client = server.connect();
        client.send("GET /cut HTTP/1.1\r\nHost: localhost\r\n\r\n");
        client.rest();
        let mut client = Http2::to(server.address());
        let (response, _) = client.start_request(client.request("GET", "/cut"), true);
        assert!(client.response(response).is_err(), "the response was not cut");
    });
    assert_eq!(records.len(), 2, "{records:#?}");
    for line in &records {
        check(line, &[("status", "200"), ("bytes_sent", &SENT.to_string())]);
    }
}

#[test]
fn durations_are_logged_and_added_up_for_status() {
    /// Minimum duration of the slow response.
    const DURATION: Duration = Duration::from_millis(30);
    /// Number of requests for a file, which take less time than `DURATION`.
    const READY: usize = 200;
    let (waits, mut waiting) = Deferred::new();
    let mut whole = Duration::ZERO;
    let records = lines(folder(), "", vec![mount("/slow", waits)], |server| {
        let mut client = server.connect();
        let begun = Instant::now();
        client.send("GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let incoming = waiting.next();
        // The sleep is the duration of the handler.
        thread::sleep(DURATION);
        incoming.respond("slow");
        client.response();
        whole = begun.elapsed();
        for _ in 0..READY {
            client.get("/a.txt");
        }
        let durations = server.server().status().durations;
        let [site] = &durations[..] else {
            panic!("exactly one site must have requests: {durations:?}");
        };
        assert_eq!((site.site.as_str(), site.responses), ("default", READY as u64 + 1));
        assert!(site.p50_us < 30_000 && site.p50_us <= site.p99_us, "{site:?}");
        // The 99th percentile of 201 responses excludes the slow one.
        assert!(site.p99_us < 30_000, "{site:?}");
    });
    let slow = number(&records[0], "duration_us");
    let whole = u64::try_from(whole.as_micros()).expect("a short time");
    assert!(slow >= 30_000 && slow <= whole, "{slow} of {whole}");
    // The second response may be slow too, because its file comes from the disk.
    for ready in &records[2..] {
        assert!(number(ready, "duration_us") < 30_000, "{ready}");
    }
}

#[test]
fn the_user_is_logged_only_if_the_password_was_verified() {
    let keys = format!("{}\nrule = [ {{ path = \"/gone\", respond = 410 }} ]", auth());
    let all = lines(folder(), &keys, Vec::new(), |server| {
        for (path, password) in [
            ("/a.txt", None),
            ("/a.txt", Some("wrong")),
            // The pool verifies the first password. The second is found in the cache of verified passwords, and the
            // third response comes from the worker cache.
            ("/a.txt", Some("secret")),
            ("/a.txt", Some("secret")),
            ("/a.txt", Some("secret")),
            ("/none", Some("secret")),
            ("/gone", Some("secret")),
        ] {
            let field = password.map(|password| basic("bob", password));
            let fields: Vec<&str> = field.as_deref().into_iter().collect();
            over_http1(server, &format!("GET {path}"), &fields, "");
        }
    });
    let named: Vec<_> = all
        .iter()
        .map(|line| (member(line, "status"), member(line, "user")))
        .collect();
    assert_eq!(
        named,
        [
            ("401", "null"),
            ("401", "null"),
            ("200", "\"bob\""),
            ("200", "\"bob\""),
            ("200", "\"bob\""),
            ("404", "\"bob\""),
            ("410", "\"bob\""),
        ],
        "{all:#?}"
    );
}

over_http3! {
    an_upstream_that_does_not_respond_is_logged,
    a_response_that_was_cut_has_the_same_bytes_in_every_version,
    the_user_is_logged_only_if_the_password_was_verified,
}
