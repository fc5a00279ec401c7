//! Connections that end at any byte, on either side of the proxy: the client gets an error or a detectable cut, and no
//! connection remains open.

mod http2;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_linger;

use super::support::client::request;
use super::support::upstream::{Next, Upstream, ok, write_to};
use super::support::{DEADLINE, Folder, Running};

fn proxied(upstream: &Upstream) -> Running {
    // The timeouts are longer than the test, so the proxy has to detect the end of a connection.
    let text = format!(
        "[server]\nworkers = 1\nh2c = true\nevents = {{ wait = \"20ms\" }}\n[site.default]\nlisten = \"127.0.0.1:0\"\n\
         proxy = {{ to = \"{}\", first_byte = \"10m\", idle = \"10m\" }}\n",
        upstream.url()
    );
    Running::start(Folder::with(&[]), &text)
}

/// Makes the kernel reset the connection when it is closed.
fn reset_on_close(stream: &TcpStream) {
    set_socket_linger(stream, Some(Duration::ZERO)).expect("an option of the socket");
}

/// Number of open connections of an upstream.
#[derive(Clone, Default)]
struct OpenConnections(Arc<AtomicUsize>);

/// Counts as an open connection until it is dropped.
struct CountedConnection(OpenConnections);

impl OpenConnections {
    fn count(&self) -> CountedConnection {
        self.0.fetch_add(1, Ordering::SeqCst);
        CountedConnection(self.clone())
    }

    fn wait_for_none(&self, what: &str) {
        let began = Instant::now();
        while self.0.load(Ordering::SeqCst) > 0 {
            assert!(began.elapsed() < DEADLINE, "{what}: {:?} are still open", self.0);
            std::thread::yield_now();
        }
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Responses of an upstream: with a length, in chunks, and after an interim response.
const RESPONSES: [&str; 3] = [
    "HTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 5\r\n\r\nabcde",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
    "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde",
];

#[test]
fn a_response_that_ends_early_is_an_error_or_detectably_cut() {
    for sent in RESPONSES {
        for is_abrupt in [false, true] {
            let upstream = Upstream::start(move |incoming, stream| {
                let limit = incoming
                    .line
                    .split(['/', ' '])
                    .nth(2)
                    .and_then(|number| number.parse().ok());
                let length: usize = limit.expect("a number");
                write_to(stream, &sent[..length]);
                if is_abrupt {
                    reset_on_close(stream);
                }
                Next::Close
            });
            let server = proxied(&upstream);
            for length in 0..=sent.len() {
                let mut client = server.connect();
                client.send(request(&format!("GET /{length}"), &["Connection: close"]));
                let got = String::from_utf8_lossy(&client.rest()).into_owned();
                // The 103 response is forwarded if the final response has not arrived yet.
                let got = match got.split_once("\r\n\r\n") {
                    Some((first, rest)) if first.starts_with("HTTP/1.1 103 ") => rest,
                    _ => &got,
                };
                let (head, content) = got.split_once("\r\n\r\n").unwrap_or((got, ""));
                let has_length = head.contains("Content-Length: 5");
                let is_whole = head.starts_with("HTTP/1.1 200 ")
                    && (has_length && content == "abcde" || !has_length && content.ends_with("0\r\n\r\n"));
                let is_cut = head.starts_with("HTTP/1.1 200 ") && !is_whole;
                // After a reset an unknown part of the response is lost.
                let is_right = match length == sent.len() {
                    true => is_whole || is_abrupt,
                    false => !is_whole,
                };
                assert!(
                    is_right && (is_whole || is_cut || head.starts_with("HTTP/1.1 502 ")),
                    "{length} of {sent:?}, reset: {is_abrupt}: {got:?}"
                );
            }
        }
    }
}

#[test]
fn an_endless_head_is_refused() {
    let written = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&written);
    let open = OpenConnections::default();
    let counted = open.clone();
    let upstream = Upstream::raw(move |mut stream: TcpStream| {
        let _counted = counted.count();
        let _ = stream.read(&mut [0; 4096]);
        write_to(&mut stream, "HTTP/1.1 200 OK\r\n");
        let line = format!("X-A: {}\r\n", "a".repeat(1000));
        while stream.write_all(line.as_bytes()).is_ok() {
            count.fetch_add(line.len(), Ordering::SeqCst);
        }
    });
    let server = proxied(&upstream);
    let mut client = server.connect();
    client.get("/").expect("endless", 502, &["!X-A"]);
    open.wait_for_none("a head without end");
    // The upstream could write little more than fits into the socket buffers.
    assert!(
        written.load(Ordering::SeqCst) < 64 << 20,
        "the proxy read {written:?} bytes"
    );
}

#[test]
fn a_disconnect_at_any_byte_of_a_request_closes_the_upstream_connection() {
    let sent = request("POST /x", &["Content-Length: 5"]) + "hello";
    for is_abrupt in [false, true] {
        let open = OpenConnections::default();
        let counted = open.clone();
        // The upstream never responds.
        let upstream = Upstream::raw(move |mut stream: TcpStream| {
            let _counted = counted.count();
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let server = proxied(&upstream);
        for length in 0..=sent.len() {
            let mut client = TcpStream::connect(server.address()).expect("a connection");
            client.write_all(&sent.as_bytes()[..length]).expect("to be sent");
            if is_abrupt {
                reset_on_close(&client);
            }
        }
        open.wait_for_none("requests of clients that left");
    }
}

/// Starts an upstream with endless responses: for `/sized` with a huge length, for other paths without a length.
fn endless() -> (Upstream, OpenConnections) {
    let open = OpenConnections::default();
    let counted = open.clone();
    let upstream = Upstream::raw(move |mut stream: TcpStream| {
        let _counted = counted.count();
        let mut incoming = [0; 4096];
        let _ = stream.read(&mut incoming);
        let head = match incoming.starts_with(b"GET /sized") {
            true => "HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n",
            false => "HTTP/1.1 200 OK\r\n\r\n",
        };
        write_to(&mut stream, head);
        while stream.write_all(&[b'x'; 65_536]).is_ok() {}
    });
    (upstream, open)
}

#[test]
fn a_disconnect_during_a_response_closes_the_upstream_connection() {
    let (upstream, open) = endless();
    let server = proxied(&upstream);
    for target in ["/sized", "/open"] {
        for taken in [0, 1, 1000, 1_000_000] {
            for is_abrupt in [false, true] {
                let mut client = TcpStream::connect(server.address()).expect("a connection");
                client
                    .write_all(request(&format!("GET {target}"), &[]).as_bytes())
                    .expect("to be sent");
                client.read_exact(&mut vec![0; taken]).expect("the beginning");
                if is_abrupt {
                    reset_on_close(&client);
                }
            }
        }
    }
    open.wait_for_none("responses to clients that disconnected");
}

#[test]
fn an_upstream_that_closes_during_a_request_body_gives_502() {
    // The upstream reads as many bytes as the path names, and then resets the connection.
    let upstream = Upstream::raw(|mut stream: TcpStream| {
        let mut incoming = vec![0; 100_000];
        let got = stream.read(&mut incoming).unwrap_or(0);
        let head = String::from_utf8_lossy(&incoming[..got]).into_owned();
        let limit = head.split(['/', ' ']).nth(2).and_then(|number| number.parse().ok());
        let mut left: usize = limit.expect("a number");
        // At the end of the input each read counts as one byte, so that the loop ends.
        while left > 0 {
            let now = left.min(incoming.len());
            left -= stream.read(&mut incoming[..now]).unwrap_or(now).clamp(1, left);
        }
        reset_on_close(&stream);
    });
    let server = proxied(&upstream);
    for amount in [0, 1, 1000, 70_000, 500_000] {
        let mut client = server.connect();
        client.send(request(&format!("POST /{amount}"), &["Content-Length: 1000000"]));
        client.send_anyway(vec![b'x'; 1_000_000]);
        assert_eq!(client.response().status, 502, "after {amount} bytes");
    }
    let upstream = Upstream::responding_with(ok("alive"));
    assert_eq!(proxied(&upstream).get("/").text(), "alive");
}

over_http3! {
    an_endless_head_is_refused,
    an_upstream_that_closes_during_a_request_body_gives_502,
}
