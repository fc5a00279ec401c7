//! `Upgrade: h2c`: a valid upgrade request becomes stream 1; an invalid one gets an HTTP/1 response.

use std::process::Command;

use super::support::{Folder, Running};
use crate::wire::{self, GOAWAY, SETTINGS};

/// Value of `HTTP2-Settings` without a setting.
const NO_SETTINGS: &str = "";
/// Value of `HTTP2-Settings` with an initial window of 100 bytes.
const WINDOW: &str = "AAQAAABk";
/// Value of `HTTP2-Settings` with an invalid initial window.
const INVALID_WINDOW: &str = "AASAAAAA";

fn start(keys: &str) -> Running {
    let folder = Folder::with(&[("www/a.txt", "a")]);
    folder.write("www/large.bin", vec![b'x'; 1000]);
    let text = format!(
        "[server]\nworkers = 1\n{keys}\nevents = {{ wait = \"20ms\", connections = 16 }}\n{}",
        super::support::running::site("")
    );
    Running::start(folder, &text)
}

fn upgrade_request(path: &str, settings: &str) -> String {
    let fields = format!("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: {settings}");
    format!("GET {path} HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n")
}

#[test]
fn the_request_becomes_stream_1() {
    let server = start("h2c_upgrade = true");
    // A row has path, settings, an extension of the window in bytes, and the expected body of stream 1.
    for (path, settings, more, expected) in [
        ("/a.txt", NO_SETTINGS, 0, &b"a"[..]),
        // The initial window also applies to stream 1.
        ("/large.bin", WINDOW, 0, &[b'x'; 100]),
        ("/large.bin", WINDOW, 900, &[b'x'; 1000]),
    ] {
        let mut client = server.connect();
        client.send(upgrade_request(path, settings));
        let head = client.head();
        let agreed = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";
        assert_eq!(head, agreed, "{path}");
        client.send(wire::beginning(&[]));
        if more > 0 {
            client.send(wire::window(1, more));
        }
        // The test waits for the whole response on stream 3, and for the expected number of bytes on stream 1.
        client.send(wire::get(3, "/a.txt"));
        client.send(wire::frame(GOAWAY, 0, 0, [0; 8]));
        let mut received = Vec::new();
        loop {
            let (frames, _) = wire::frames(&received);
            let first = wire::body_of(&frames, 1);
            let has_third_ended = frames.iter().any(|frame| frame.stream == 3 && frame.ends_stream());
            if has_third_ended && first.len() >= expected.len() {
                assert_eq!(first, expected, "{path}");
                assert_eq!(wire::body_of(&frames, 3), b"a");
                assert_eq!(frames[0].kind, SETTINGS, "the preface of the server must come first");
                break;
            }
            received.extend_from_slice(&client.bytes(1));
        }
    }
}

#[test]
fn other_upgrade_requests_get_an_http_1_response() {
    let server = start("h2c_upgrade = true");
    let good = upgrade_request("/a.txt", NO_SETTINGS);
    for (what, request) in [
        ("another protocol", good.replace("h2c", "h3c")),
        (
            "a `Connection` field without HTTP2-Settings",
            good.replace("Upgrade, HTTP2-Settings", "Upgrade"),
        ),
        ("no settings", good.replace("HTTP2-Settings: \r\n", "")),
        (
            "settings twice",
            good.replace("HTTP2-Settings: \r\n", "HTTP2-Settings: \r\nHTTP2-Settings: \r\n"),
        ),
        ("half a setting", upgrade_request("/a.txt", "AAQA")),
        ("an invalid setting", upgrade_request("/a.txt", INVALID_WINDOW)),
        ("no base64url", upgrade_request("/a.txt", "AAQAAA+k")),
        ("HTTP/1.0", good.replace("HTTP/1.1\r\n", "HTTP/1.0\r\n")),
    ] {
        let mut client = server.connect();
        client.send(&request);
        let response = client.response();
        assert_eq!((response.status, response.text()), (200, "a".to_owned()), "{what}");
    }
    let mut client = server.connect();
    client.send(good.replace("Upgrade: h2c\r\n", "Upgrade: h2c\r\nContent-Length: 1\r\n") + "x");
    assert_eq!(client.response().status, 200, "content");
}

#[test]
fn the_upgrade_is_off_by_default() {
    for keys in ["", "h2c = true"] {
        let server = start(keys);
        let mut client = server.connect();
        client.send(upgrade_request("/a.txt", NO_SETTINGS));
        assert_eq!(client.response().status, 200, "{keys}");
    }
    // `h2c_upgrade` does not permit connections that begin with HTTP/2.
    let server = start("h2c_upgrade = true");
    let mut client = server.connect();
    client.send(wire::beginning(&[]));
    let output = client.rest();
    assert!(
        wire::frames(&output).0.iter().all(|frame| frame.kind != SETTINGS),
        "{output:?}"
    );
}

#[test]
fn curl_and_nghttp_can_upgrade() {
    let server = start("h2c_upgrade = true");
    let url = format!("http://{}/a.txt", server.address());
    for (program, arguments, expected) in [
        (
            "curl",
            &["-s", "--http2", "-w", " over %{http_version}"][..],
            "a over 2",
        ),
        ("nghttp", &["-u"], "a"),
    ] {
        let output = Command::new(program).args(arguments).arg(&url).output();
        let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{program}");
    }
}
