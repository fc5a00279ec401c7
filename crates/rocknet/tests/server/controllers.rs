//! Controllers in C libraries: requests and responses, and misbehaving code.

mod examples;
mod isolated;
mod replacement;

use std::fs;
use std::path::Path;
use std::time::Instant;

use super::support::client::request;
use super::support::http2::Http2;
use super::support::{DEADLINE, Folder, Running, library};

/// Returns a site with three routes for each of these controllers of a library. One runs it in the pool of blocking
/// threads (`run_on = "worker"`), the one below `/n` on the thread of the connection (`run_on = "network"`), and the
/// one below `/i` in an isolated process.
fn site(library: &str, names: &[&str]) -> String {
    site_below(&PREFIXES, library, names)
}

/// Like [`site`], with the routes below these prefixes.
fn site_below(prefixes: &[&str], library: &str, names: &[&str]) -> String {
    let mut text = String::from("[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n");
    for (name, prefix) in names
        .iter()
        .flat_map(|name| prefixes.iter().map(move |prefix| (name, prefix)))
    {
        let how = match *prefix {
            "/n" => "run_on = \"network\"",
            "/i" => "isolate = true",
            _ => "run_on = \"worker\"",
        };
        text.push_str(&format!(
            "[site.default.route.\"{prefix}/{name}/*\"]\ncontroller = \"{library}:{name}\"\n{how}\n"
        ));
    }
    text
}

/// Controllers for which [`start`] makes routes.
const ALL: &[&str] = &["hello", "mirror", "echo", "misbehave", "missing", "count", "give"];

fn start() -> Running {
    let folder = Folder::with(&[("www/index.html", "a page")]);
    let text = format!(
        "[server]\nworkers = 1\nblocking_threads = 2\nh2c = true\n{}",
        site(&path_text(library::plain()), ALL)
    );
    Running::start(folder, &text)
}

fn path_text(path: &Path) -> String {
    path.display().to_string()
}

/// Path prefixes of the three routes of a controller: for the pool, the thread of the connection, and an isolated
/// process.
const PREFIXES: [&str; 3] = ["", "/n", "/i"];

#[test]
fn a_controller_responds_on_every_thread_and_over_every_version() {
    let server = start();
    let mut client = server.connect();
    let mut http2 = Http2::to(server.address());
    for prefix in PREFIXES {
        let path = format!("{prefix}/hello/x");
        for _ in 0..3 {
            let response = client.get(&path);
            response.expect(
                prefix,
                200,
                &[
                    "Content-Type: text/plain",
                    "Content-Length: 14",
                    "Server: RockNet",
                    "Date",
                ],
            );
            assert_eq!(response.text(), "hello from one");
        }
        let head = client.fetch(&format!("HEAD {path}"), &[]);
        head.expect(prefix, 200, &["Content-Length: 14"]);
        let response = http2.get(&path);
        assert_eq!(
            (response.status.as_u16(), &response.content[..]),
            (200, &b"hello from one"[..])
        );
        // Files are also served.
        assert_eq!(client.get("/").text(), "a page");
        // An error status without a body gets the error page.
        let missing = client.get(&format!("{prefix}/missing/"));
        missing.expect(prefix, 404, &["Content-Type: text/html; charset=utf-8"]);
    }
}

#[test]
fn a_controller_sees_its_request() {
    let server = start();
    let mut client = server.connect();
    let mut http2 = Http2::to(server.address());
    for prefix in PREFIXES {
        let fields = [
            "Host: example.com:81",
            "Accept: a",
            "X-Odd: \u{e9}",
            "accept: b",
            "X-Empty:",
        ];
        let text = client
            .fetch(&format!("PUT {prefix}/mirror//a%20b?x=1&y"), &fields)
            .text();
        let lines: Vec<&str> = text.lines().collect();
        let [path, decoded, target] = [
            format!("path={prefix}/mirror//a%20b"),
            format!("decoded={prefix}/mirror/a b"),
            format!("target={prefix}/mirror//a%20b?x=1&y"),
        ];
        // A name without `=` means that the request has no such value: `beyond` is a number without a property, and
        // `none` a field that was not sent. `second` is the second value of `Accept`.
        for line in [
            "method=PUT",
            &path,
            &decoded,
            "query=x=1&y",
            &target,
            "host=example.com:81",
            "version=HTTP/1.1",
            "scheme=http",
            "address=127.0.0.1",
            "certificate",
            "tls",
            "cipher",
            "name",
            "user",
            "beyond",
            "field Accept=a",
            "field X-Odd=\u{e9}",
            "field accept=b",
            "field X-Empty=",
            "accept=a",
            "second=b",
            "none",
        ] {
            assert!(lines.contains(&line), "{line:?} is not in {text}");
        }
        assert!(client.get(&format!("{prefix}/mirror/?")).text().contains("\nquery=\n"));
        assert!(client.get(&format!("{prefix}/mirror/")).text().contains("\nquery\n"));
        let text = String::from_utf8(http2.get(&format!("{prefix}/mirror/x")).content).expect("text");
        assert!(text.contains("\nversion=HTTP/2.0\n"), "{text}");
    }
}

#[test]
fn request_bodies_arrive_complete_up_to_the_limit() {
    let server = start();
    let mut http2 = Http2::to(server.address());
    for prefix in PREFIXES {
        let path = format!("{prefix}/echo/");
        for (size, status) in [(0, 200), (1, 200), (100_000, 200), (1 << 20, 200), ((1 << 20) + 1, 413)] {
            let content = vec![b'c'; size];
            let what = format!("{size} bytes to {path}");
            let mut client = server.connect();
            client.send(request(&format!("POST {path}"), &[&format!("Content-Length: {size}")]));
            client.send_anyway(&content);
            let response = client.response();
            response.expect(&what, status, &[]);
            assert!(status != 200 || response.body == content, "{what}");
            if status == 200 {
                let response = http2.send(http2.request("POST", &path), &content).expect("a response");
                assert!(response.content == content, "{what} over HTTP/2");
            }
        }
        let mut client = server.connect();
        client.send(
            request(&format!("POST {path}"), &["Transfer-Encoding: chunked"]) + "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        );
        assert_eq!(client.response().text(), "abcde");
        // A body that arrives byte by byte blocks no other request.
        client.send(request(&format!("POST {path}"), &["Content-Length: 5"]));
        for byte in ["1", "2", "3", "4", "5"] {
            assert_eq!(
                server.get("/").text(),
                "a page",
                "other requests must be served meanwhile"
            );
            client.send(byte);
        }
        assert_eq!(client.response().text(), "12345");
    }
}

#[test]
fn a_misbehaving_controller_affects_only_its_own_response() {
    let server = start();
    let mut client = server.connect();
    for prefix in PREFIXES {
        // A row has the query, which selects the misbehaviour, the status, and the body unless it is an error page.
        for (what, status, output) in [
            ("nothing", 500, ""),
            ("fail", 500, ""),
            ("status", 500, ""),
            ("early", 500, ""),
            ("line", 500, ""),
            ("nul", 500, ""),
            ("name", 500, ""),
            ("null", 500, ""),
            ("negative", 500, ""),
            ("giant", 500, ""),
            ("body", 500, ""),
            ("length", 200, "said -4"),
            ("lines", 200, "said 0"),
            ("other", 200, "said 1"),
        ] {
            let response = client.get(&format!("{prefix}/misbehave/?{what}"));
            response.expect(what, status, &["!X-Evil", "!X-A"]);
            assert!(
                output.is_empty() || response.text() == output,
                "{what}: {}",
                response.text()
            );
            assert_eq!(
                client.get(&format!("{prefix}/hello/")).text(),
                "hello from one",
                "after {what}"
            );
        }
    }
}

#[test]
fn request_bodies_of_any_length_are_read_in_pieces() {
    let server = start();
    let mut http2 = Http2::to(server.address());
    for prefix in PREFIXES {
        let path = format!("{prefix}/count/");
        let mut client = server.connect();
        for (size, text) in [
            (0, "0 bytes in one"),
            (1, "1 bytes in one"),
            (5_000_000, "5000000 bytes in pieces"),
        ] {
            let content = vec![b'c'; size];
            client.send(request(&format!("POST {path}"), &[&format!("Content-Length: {size}")]));
            client.send(&content);
            assert_eq!(client.response().text(), text);
            let response = http2.send(http2.request("POST", &path), &content).expect("a response");
            assert_eq!(String::from_utf8_lossy(&response.content), text);
        }
        // The controller refuses the first request before it reads the body, and fails in the middle of the second
        // body.
        client.send(request(&format!("POST {path}"), &["Content-Length: 5", "X-Refuse: 1"]));
        assert_eq!(client.response().status, 403);
        client.send("12345");
        client.send(request(&format!("POST {path}"), &["Content-Length: 5"]) + "1234!");
        assert_eq!(client.response().status, 500);
        assert_eq!(client.get(&path).text(), "0 bytes in one");
    }
}

#[test]
fn response_bodies_of_any_length_are_sent_in_pieces() {
    let server = start();
    let mut http2 = Http2::to(server.address());
    for prefix in PREFIXES {
        for size in [0, 1, 1000, 3_000_001] {
            let path = format!("{prefix}/give/?{size}");
            let mut expected = b"begin:".to_vec();
            expected.resize(6 + size, b'g');
            let mut client = server.connect();
            for _ in 0..2 {
                let response = client.get(&path);
                response.expect(&path, 200, &["Transfer-Encoding: chunked", "!Content-Length"]);
                assert!(response.body == expected, "{path}");
            }
            assert!(http2.get(&path).content == expected, "{path} over HTTP/2");
            assert_eq!(client.fetch(&format!("HEAD {path}"), &[]).status, 200);
        }
        // The controller aborts, or reports that it has written more than the size of the buffer. The response is cut,
        // so that the client can detect the failure.
        for size in [-1, -2] {
            let path = format!("{prefix}/give/?{size}");
            let mut client = server.connect();
            client.send(request(&format!("GET {path}"), &[]));
            let text = String::from_utf8_lossy(&client.rest()).into_owned();
            assert!(
                text.starts_with("HTTP/1.1 200 ") && !text.ends_with("0\r\n\r\n"),
                "{text}"
            );
            let (response, _) = http2.start_request(http2.request("GET", &path), true);
            assert!(http2.response(response).is_err(), "{path}");
        }
    }
}

/// Builds a library that records its initialisation (`init`), its release (`drop`), and the end of each request (`end`)
/// in the file `marks`, each with `word`. `more`: further macros, given as `NAME` or `NAME=VALUE`.
fn build_recording_library(folder: &Folder, name: &str, word: &str, more: &[&str]) {
    let marks = format!("MARKS=\"{}\"", folder.path("marks").display());
    let word = format!("WORD=\"{word}\"");
    let definitions: Vec<&str> = [marks.as_str(), word.as_str()]
        .into_iter()
        .chain(more.iter().copied())
        .collect();
    library::put(folder, name, &definitions);
}

/// Waits until the file `marks` contains exactly these records.
#[track_caller]
fn wait_for_marks(folder: &Folder, expected: &[&str]) {
    let started = Instant::now();
    loop {
        let found = fs::read_to_string(folder.path("marks")).unwrap_or_default();
        let found: Vec<&str> = found.lines().collect();
        if found == expected {
            return;
        }
        assert!(started.elapsed() < DEADLINE, "{found:?} instead of {expected:?}");
        std::thread::yield_now();
    }
}

/// Calls `fetch` until it returns the text `expected`.
#[track_caller]
fn eventually(expected: &str, mut fetch: impl FnMut() -> String) {
    let started = Instant::now();
    loop {
        let found = fetch();
        if found == expected {
            return;
        }
        assert!(started.elapsed() < DEADLINE, "still {found:?}, not {expected:?}");
    }
}

#[test]
fn a_library_of_a_later_minor_version_is_loaded() {
    let folder = Folder::with(&[("www/index.html", "a page")]);
    library::put(&folder, "l.so", &["LATER"]);
    let server = Running::start(folder, &site("l.so", &["hello", "echo"]));
    for prefix in PREFIXES {
        assert_eq!(server.get(&format!("{prefix}/hello/")).text(), "hello from one");
        assert_eq!(server.get(&format!("{prefix}/echo/")).text(), "");
    }
}

#[test]
fn an_invalid_controller_is_refused_with_its_span_and_changes_nothing() {
    let folder = Folder::with(&[
        ("www/index.html", "a page"),
        ("text.so", "no library"),
        ("empty.so", ""),
    ]);
    library::put(&folder, "good.so", &[]);
    for (name, definition) in [
        ("version.so", "VERSION=2"),
        ("short.so", "SIZE=sizeof(rocknet_library_table)-8"),
        ("entry.so", "NAME=somebody_else"),
    ] {
        library::put(&folder, name, &[definition]);
    }
    build_recording_library(&folder, "fails.so", "fails", &["FAILS"]);
    let good = site("good.so", &["hello"]);
    let server = Running::start(folder, &good);
    let all = [
        ("gone.so:hello", "No such file"),
        ("www:hello", "Is a directory"),
        ("text.so:hello", "text.so: "),
        ("empty.so:hello", "empty.so: "),
        (
            "good.so:hallo",
            "the library has no controller of this name; its controllers are `hello`, `mirror`",
        ),
        (
            "version.so:hello",
            "it is built for version 2.0 of the ABI, but this server has 1.0",
        ),
        ("short.so:hello", "its table is too short"),
        ("entry.so:hello", "`rocknet_library` is missing"),
        ("fails.so:hello", "its `init` failed with -8"),
    ];
    for (isolate, (controller, expected)) in [false, true]
        .into_iter()
        .flat_map(|isolate| all.map(|each| (isolate, each)))
    {
        let text =
            format!("[site.default]\nlisten = \"127.0.0.1:0\"\ncontroller = \"{controller}\"\nisolate = {isolate}\n");
        let error = server.reload(&text).expect_err(controller);
        let span = format!("{}:", server.folder.path("rocknet.toml").display());
        assert!(error.contains(expected), "{controller}: {error}");
        assert!(error.contains(&span), "{controller}: {error}");
        assert_eq!(server.get("/hello/").text(), "hello from one", "after {controller}");
        let found = Running::try_start(
            Folder::with(&[]),
            &text.replace(
                "controller = \"",
                &format!("controller = \"{}/", server.folder.path("").display()),
            ),
            Vec::new(),
        );
        let error = found.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(expected), "{controller} at start: {error}");
    }
    // `init` of `fails.so` ran in a reload and at a start, in the server and in an isolated process.
    wait_for_marks(&server.folder, &["init fails"; 4]);
}

/// The worker caches the controller of a route for one path, but no response.
#[test]
fn a_route_for_one_path_calls_its_controller_each_time() {
    let folder = Folder::with(&[("www/index.html", "a page")]);
    library::put(&folder, "a.so", &["WORD=\"one\""]);
    let site = |how: &str| {
        let mut text =
            "[server]\nworkers = 1\nh2c = true\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n".to_owned();
        for name in ["hello", "mirror", "count", "missing"] {
            text.push_str(&format!(
                "[site.default.route.\"/{name}\"]\ncontroller = \"a.so:{name}\"\n{how}\n"
            ));
        }
        text
    };
    let server = Running::start(folder, &site("run_on = \"network\"\nheaders = { X-A = \"1\" }"));
    let mut client = server.connect();
    let mut http2 = Http2::to(server.address());
    for number in 0..3 {
        client
            .get("/hello")
            .expect("a first time and later", 200, &["X-A: 1", "Content-Length: 14"]);
        let text = client
            .fetch(&format!("GET /mirror?{number}"), &[&format!("X-Odd: {number}")])
            .text();
        let (query, field) = (format!("\nquery={number}\n"), format!("\nfield X-Odd={number}\n"));
        assert!(text.contains(&query) && text.contains(&field), "{text}");
        client.fetch("HEAD /mirror", &[]).expect("HEAD", 200, &["X-A: 1"]);
        let text = client.fetch("PUT /mirror", &[]).text();
        assert!(text.contains("method=PUT\n"), "{text}");
        let text = client.get("/%6dirror").text();
        assert!(
            text.contains("path=/%6dirror\n") && text.contains("decoded=/mirror\n"),
            "{text}"
        );
        let text = String::from_utf8(http2.get("/mirror").content).expect("text");
        assert!(text.contains("\nversion=HTTP/2.0\n"), "{text}");
        client.get("/missing").expect(
            "an error without a body",
            404,
            &["Content-Type: text/html; charset=utf-8"],
        );
    }
    // The reload changes both the configuration and the library.
    library::put(&server.folder, "a.so", &["WORD=\"two\""]);
    server
        .reload(&site("run_on = \"network\""))
        .expect("a good configuration");
    let response = client.get("/hello");
    response.expect("after a reload", 200, &["!X-A"]);
    assert_eq!(response.text(), "hello from two");
}

over_http3! {
    a_controller_responds_on_every_thread_and_over_every_version,
    request_bodies_arrive_complete_up_to_the_limit,
    a_misbehaving_controller_affects_only_its_own_response,
    request_bodies_of_any_length_are_read_in_pieces,
    a_library_of_a_later_minor_version_is_loaded,
}
