//! Spooled request bodies: applications are called when the body is complete. The bodies have different lengths, have
//! no `Content-Length`, or arrive slowly.

mod proxied;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use super::support::client::{Client, request};
use super::support::fastcgi::{self, Next, Peer, write_to};
use super::support::gateway::GatewayProtocol;
use super::support::http2::Http2;
use super::support::{DEADLINE, Folder, Running};

const SERVER: &str = "[server]\nworkers = 1\nblocking_threads = 2\nh2c = true\nevents = { wait = \"20ms\" }\n\
                      spool = { folder = \"spool\" }\n";
/// Length of a body that is spooled to disk.
const LARGE: usize = 1_000_000;

/// CGI program that responds with the value of `CONTENT_LENGTH`, the actual length, and true if the body is that of
/// [`content`].
const PROGRAM: &str = "#!/usr/bin/env python3
import os, sys
body = sys.stdin.buffer.read()
same = body == bytes(at // 3 % 251 for at in range(len(body)))
print('Content-Type: text/plain\\n')
print(os.environ.get('CONTENT_LENGTH'), len(body), same, end='')
";

/// Returns a body with a fixed pattern.
fn content(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at / 3 % 251) as u8).collect()
}

/// Returns the response of an application other than [`PROGRAM`], with the same text.
fn description(incoming: &fastcgi::ReceivedRequest) -> Vec<u8> {
    let length = incoming.variables.get("CONTENT_LENGTH").map_or("None", String::as_str);
    let (got, same) = (
        incoming.content.len(),
        incoming.content == content(incoming.content.len()),
    );
    let same = if same { "True" } else { "False" };
    format!("Content-Type: text/plain\r\n\r\n{length} {got} {same}").into_bytes()
}

/// A server with one application of each kind, at [`PATHS`].
struct Servers {
    server: Running,
    peers: Vec<Peer>,
}

/// Paths of the applications: PHP, CGI, FastCGI, SCGI and uwsgi.
const PATHS: [&str; 5] = ["/a.php", "/cgi-bin/count.py", "/fastcgi/x", "/scgi/x", "/uwsgi/x"];

impl Servers {
    fn new(limits: &str) -> Servers {
        let folder = Folder::with(&[
            ("www/a.php", "<?php secret"),
            ("www/cgi-bin/count.py", PROGRAM),
            ("spool/here", ""),
        ]);
        folder.remove("spool/here");
        fs::set_permissions(folder.path("www/cgi-bin/count.py"), fs::Permissions::from_mode(0o755)).expect("a mode");
        let fastcgi_peer = |name: &str| {
            Peer::start(&folder.path(name), |incoming, stream| {
                write_to(stream, fastcgi::response(&description(incoming)));
                Next::Keep
            })
        };
        let gateway_peer = |protocol: GatewayProtocol, name: &str| {
            protocol.start(&folder.path(name), |incoming, stream| {
                write_to(stream, description(incoming));
            })
        };
        let peers = vec![
            fastcgi_peer("php.sock"),
            fastcgi_peer("fastcgi.sock"),
            gateway_peer(GatewayProtocol::Scgi, "scgi.sock"),
            gateway_peer(GatewayProtocol::Uwsgi, "uwsgi.sock"),
        ];
        let mut text = format!(
            "{SERVER}[limits]\n{limits}\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\nphp = \"unix:php.sock\"\n\
             cgi = \"/cgi-bin\"\n"
        );
        for key in ["fastcgi", "scgi", "uwsgi"] {
            text += &format!("[site.default.route.\"/{key}/*\"]\n{key} = \"unix:{key}.sock\"\n");
        }
        Servers {
            server: Running::start(folder, &text),
            peers,
        }
    }

    /// Returns the number of spool files that this process has open, according to `/proc`.
    fn open_files(&self) -> usize {
        let folder = self.server.folder.path("spool");
        let descriptors = fs::read_dir("/proc/self/fd").expect("our descriptors");
        let links = descriptors
            .flatten()
            .filter_map(|entry| fs::read_link(entry.path()).ok());
        links.filter(|link| link.starts_with(&folder)).count()
    }

    /// Waits until `count` spool files are open, because another thread closes them with a short delay.
    #[track_caller]
    fn wait_for_open_files(&self, count: usize) {
        let deadline = Instant::now() + DEADLINE;
        while self.open_files() != count {
            assert!(Instant::now() < deadline, "{} files, not {count}", self.open_files());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    #[track_caller]
    fn assert_no_file_is_left(&self) {
        self.wait_for_open_files(0);
        let folder = fs::read_dir(self.server.folder.path("spool")).expect("the folder");
        assert_eq!(folder.count(), 0);
    }
}

/// Returns a request whose body is sent in chunks of 10,000 bytes.
fn chunked(path: &str, content: &[u8]) -> Vec<u8> {
    let mut bytes = request(&format!("POST {path}"), &["Transfer-Encoding: chunked"]).into_bytes();
    for piece in content.chunks(10_000) {
        bytes.extend(format!("{:x}\r\n", piece.len()).bytes());
        bytes.extend_from_slice(piece);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

#[test]
fn every_application_gets_bodies_of_any_length_with_their_length() {
    let servers = Servers::new("");
    let mut http2 = Http2::to(servers.server.address());
    for path in PATHS {
        let mut client = servers.server.connect();
        // The lengths are near the limit for memory and near the size of a piece on disk.
        for length in [0, 5, 65_536, 65_537, 262_144, 262_145, LARGE] {
            let (what, body) = (format!("{path}, {length} bytes"), content(length));
            let expected = format!("{length} {length} True");
            client.send(chunked(path, &body));
            assert_eq!(client.response().expect(&what, 200, &[]).text(), expected, "{what}");
            client.send(request(
                &format!("POST {path}"),
                &[&format!("Content-Length: {length}")],
            ));
            client.send(&body);
            assert_eq!(
                client.response().expect(&what, 200, &[]).text(),
                expected,
                "{what}, with a length"
            );
            let response = http2.send(http2.request("POST", path), &body).expect("a response");
            assert_eq!(response.status, 200, "{what}");
            assert_eq!(
                String::from_utf8_lossy(&response.content),
                expected,
                "{what}, over HTTP/2"
            );
        }
        // SCGI requires a length in every request.
        let expected = if path == "/scgi/x" { "0 0 True" } else { "None 0 True" };
        assert_eq!(client.get(path).text(), expected, "{path}: no body");
    }
    servers.assert_no_file_is_left();
}

#[test]
fn a_slow_upload_occupies_no_application() {
    let servers = Servers::new("");
    let paths = ["/a.php", "/fastcgi/x", "/scgi/x", "/uwsgi/x"];
    for (path, peer) in paths.into_iter().zip(&servers.peers) {
        // Number of connections for the last request below: PHP connections are kept and reused.
        let new = usize::from(path != "/a.php");
        let nothing = if path == "/scgi/x" { "0 0 True" } else { "None 0 True" };
        let before = peer.connections();
        let body = content(100_000);
        let mut slow = servers.server.connect();
        slow.send(request(&format!("POST {path}"), &["Content-Length: 100000"]));
        slow.send(&body[..99_999]);
        // In the meantime the only worker serves this request, and the application has only its connection.
        assert_eq!(servers.server.get(path).text(), nothing, "{path}");
        assert_eq!(peer.connections(), before + 1, "{path}");
        slow.send(&body[99_999..]);
        assert_eq!(slow.response().text(), "100000 100000 True", "{path}");
        assert_eq!(peer.connections(), before + 2, "{path}");
        // If a client disconnects before the end of its body, the application is not called.
        let mut leaving = servers.server.connect();
        leaving.send(request(&format!("POST {path}"), &["Content-Length: 100000"]));
        leaving.send(&body[..99_999]);
        drop(leaving);
        assert_eq!(servers.server.get(path).text(), nothing, "{path}");
        assert_eq!(peer.connections(), before + 2 + new, "{path}");
    }
    servers.assert_no_file_is_left();
}

#[test]
fn clients_that_wait_for_100_continue_get_it() {
    let servers = Servers::new("");
    for path in PATHS {
        let mut client = servers.server.connect();
        client.send(request(
            &format!("POST {path}"),
            &["Content-Length: 100000", "Expect: 100-continue"],
        ));
        assert_eq!(client.response().status, 100, "{path}");
        client.send(content(100_000));
        assert_eq!(client.response().text(), "100000 100000 True", "{path}");
    }
}

#[test]
fn bodies_above_the_limit_are_refused() {
    const LIMIT: usize = 200_000;
    let servers = Servers::new("body_size = 200000");
    let mut http2 = Http2::to(servers.server.address());
    for path in PATHS {
        for (length, status) in [(LIMIT, 200), (LIMIT + 1, 413)] {
            let mut client = servers.server.connect();
            client.send_anyway(chunked(path, &content(length)));
            assert_eq!(client.response().status, status, "{path}, {length} bytes in chunks");
            let response = http2.send(http2.request("POST", path), &content(length));
            let response = response.expect("a response");
            assert_eq!(response.status, status, "{path}, {length} bytes over HTTP/2");
        }
    }
    servers.assert_no_file_is_left();
}

#[test]
fn a_client_that_stalls_is_disconnected() {
    let servers = Servers::new("body_idle = \"300ms\"\nbody_rate = 0");
    for path in PATHS {
        // The received part is in memory or on disk.
        for sent in [10, 99_999] {
            let mut client = servers.server.connect();
            client.send(request(&format!("POST {path}"), &["Content-Length: 100000"]));
            client.send(&content(100_000)[..sent]);
            assert_eq!(client.response().status, 408, "{path}, {sent} bytes");
            client.assert_closed(path);
        }
    }
    assert!(servers.peers.iter().all(|peer| peer.connections() == 0));
    servers.assert_no_file_is_left();
}

#[test]
fn a_reset_stream_leaves_no_file() {
    let servers = Servers::new("");
    let mut http2 = Http2::to(servers.server.address());
    for path in PATHS {
        let (response, mut stream) = http2.start_request(http2.request("POST", path), false);
        stream.reserve_capacity(100_000);
        stream
            .send_data(content(100_000).into(), false)
            .expect("an open stream");
        servers.wait_for_open_files(1);
        stream.send_reset(h2::Reason::CANCEL);
        assert!(http2.response(response).is_err(), "{path}");
        servers.wait_for_open_files(0);
    }
    assert!(servers.peers.iter().all(|peer| peer.connections() == 0));
    servers.assert_no_file_is_left();
}

#[test]
fn a_client_below_the_minimum_rate_is_disconnected() {
    let servers = Servers::new("body_idle = \"1s\"\nbody_rate = \"100KiB/s\"");
    let mut client = servers.server.connect();
    client.send(request("POST /a.php", &["Content-Length: 90000"]));
    // The client is never silent for a second, but far too slow.
    let begun = Instant::now();
    while !client.has_something_within(Duration::from_millis(100)) {
        assert!(begun.elapsed() < DEADLINE, "the slow client was not disconnected");
        client.send_anyway([b'x'; 100]);
    }
    assert_eq!(client.response().status, 408);
}

/// The response timeout restarts with each piece of the body that the application reads.
#[test]
fn an_application_can_read_a_body_slowly() {
    /// Value of `answer_timeout` in the configuration below.
    const TIMEOUT: Duration = Duration::from_secs(1);
    const LENGTH: usize = 3_000_000;
    let folder = Folder::with(&[("www/a.php", "<?php")]);
    fs::create_dir(folder.path("spool")).expect("a folder");
    let _peer = Peer::raw(&folder.path("php.sock"), |mut stream| {
        let (mut got, begun) = (0, Instant::now());
        while let Ok(Some((kind, content))) = fastcgi::record(&mut stream) {
            // Records of type 5 (`FCGI_STDIN`) have the request body; an empty one ends it.
            got += if kind == 5 { content.len() } else { 0 };
            if kind == 5 && content.is_empty() {
                break;
            }
            // Reading the whole body takes twice the timeout, and each piece far less.
            let due =
                TIMEOUT * 2 * u32::try_from(got / 1000).expect("few") / u32::try_from(LENGTH / 1000).expect("few");
            std::thread::sleep(due.saturating_sub(begun.elapsed()));
        }
        let output = format!("X-A: b\r\n\r\n{got} {}", begun.elapsed() > TIMEOUT);
        write_to(&mut stream, fastcgi::response(output.as_bytes()));
    });
    let text = format!(
        "{SERVER}[limits]\nanswer_timeout = \"1s\"\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n\
         php = \"unix:php.sock\"\n"
    );
    let server = Running::start(folder, &text);
    assert_eq!(post(&mut server.connect(), "/a.php", LENGTH), format!("{LENGTH} true"));
    let mut http2 = Http2::to(server.address());
    let response = http2
        .send(http2.request("POST", "/a.php"), &content(LENGTH))
        .expect("a response");
    assert_eq!(String::from_utf8_lossy(&response.content), format!("{LENGTH} true"));
}

#[test]
fn routes_and_folders_have_their_own_settings() {
    let folder = Folder::with(&[("www/a.php", "<?php")]);
    let _peer = Peer::start(&folder.path("php.sock"), |incoming, stream| {
        write_to(stream, fastcgi::response(&description(incoming)));
        Next::Keep
    });
    fs::create_dir(folder.path("spool")).expect("a folder");
    let text = format!(
        "{SERVER}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\nphp = \"unix:php.sock\"\n\
         limits = {{ body_memory = \"1MiB\" }}\n\
         [site.default.route.\"/low/*\"]\nroot = \"www\"\nlimits = {{ body_memory = 10 }}\n"
    );
    let server = Running::start(folder, &text);
    server.folder.write("www/low/a.php", "<?php");
    // Only bodies that are spooled to disk need the folder.
    fs::remove_dir(server.folder.path("spool")).expect("the folder to go");
    for (path, length, status) in [
        ("/a.php", 1 << 20, 200),
        ("/a.php", (1 << 20) + 1, 500),
        ("/low/a.php", 10, 200),
        ("/low/a.php", 11, 500),
    ] {
        let mut client = server.connect();
        client.send_anyway(chunked(path, &content(length)));
        assert_eq!(client.response().status, status, "{path}, {length} bytes");
    }
    fs::create_dir(server.folder.path("spool")).expect("a folder");
    assert_eq!(post(&mut server.connect(), "/low/a.php", 11), "11 11 True");
}

fn post(client: &mut Client, path: &str, length: usize) -> String {
    client.send(chunked(path, &content(length)));
    client.response().text()
}

over_http3! {
    a_slow_upload_occupies_no_application,
    clients_that_wait_for_100_continue_get_it,
    bodies_above_the_limit_are_refused,
    a_client_below_the_minimum_rate_is_disconnected,
    an_application_can_read_a_body_slowly,
    routes_and_folders_have_their_own_settings,
}
