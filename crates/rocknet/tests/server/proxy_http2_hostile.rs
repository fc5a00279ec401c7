//! HTTP/2 upstreams that send invalid heads and trailers: the client gets 502 or a detectable cut, and fields that are
//! not allowed in trailers are dropped.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};

use super::proxy_streams::proxied;
use super::support::Running;
use super::support::http2::Http2;
use super::support::upstream::Upstream;
use super::wire::{self, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, frame};

/// A frame or field block that an upstream sends on the stream of a request.
#[derive(Clone, Copy)]
enum UpstreamFrame {
    /// Fields of a head or of trailers, and true if they end the stream.
    Fields(&'static [(&'static str, &'static str)], bool),
    /// A DATA frame with the text `begun`.
    Data,
}

use UpstreamFrame::{Data, Fields};

const OK: (&str, &str) = (":status", "200");
const HEAD: UpstreamFrame = Fields(&[OK], false);

impl UpstreamFrame {
    /// Returns the bytes of the frames for a stream.
    fn frames(self, stream: u32) -> Vec<u8> {
        match self {
            Data => frame(DATA, 0, stream, "begun"),
            Fields(fields, ends) => {
                let block = wire::block(fields);
                let end = if ends { END_STREAM } else { 0 };
                // The block is sent in two frames, like that of a large head.
                let (first, second) = block.split_at(block.len() / 2);
                [
                    frame(HEADERS, end, stream, first),
                    frame(CONTINUATION, END_HEADERS, stream, second),
                ]
                .concat()
            }
        }
    }
}

/// Starts an upstream that responds to the only request of each connection with `first`, and sends `then` when the test
/// sends a signal through `go`. Without `go`, it sends nothing more.
fn sending(first: &'static [UpstreamFrame], then: &'static [UpstreamFrame], go: Option<Receiver<()>>) -> Upstream {
    let go = Arc::new(Mutex::new(go));
    Upstream::raw(move |mut stream: TcpStream| {
        let _ = stream.write_all(&wire::settings(&[]));
        let (mut unread, mut buffer) = (vec![], [0; 4096]);
        let mut incoming = None;
        while incoming.is_none() {
            match stream.read(&mut buffer) {
                Ok(got @ 1..) => unread.extend_from_slice(&buffer[..got]),
                _ => return,
            }
            let frames = unread.get(wire::PREFACE.len()..).map(wire::frames);
            incoming =
                frames.and_then(|(frames, _)| frames.iter().find(|frame| frame.kind == HEADERS).map(|f| f.stream));
        }
        let stream_id = incoming.expect("a request");
        let write_to = |stream: &mut TcpStream, all: &[UpstreamFrame]| {
            let bytes: Vec<u8> = all.iter().flat_map(|sent| sent.frames(stream_id)).collect();
            let _ = stream.write_all(&bytes);
        };
        write_to(&mut stream, first);
        if let Some(go) = &*go.lock().expect("no thread panicked") {
            let _ = go.recv();
            write_to(&mut stream, then);
        }
        let _ = stream.read_to_end(&mut Vec::new());
    })
}

fn server(upstream: &Upstream) -> Running {
    proxied(&upstream.url().replace("http://", "h2c://"), "")
}

#[test]
fn malformed_heads_get_502_and_forbidden_trailers_are_dropped() {
    const WHOLE: &str = "5\r\nbegun\r\n0\r\n";
    /// The client gets a 502.
    const ERROR: Option<&str> = None;
    // A row has the frames of the upstream, and the trailers that the client gets after a complete body.
    let rows: &[(&'static [UpstreamFrame], Option<&str>)] = &[
        (
            &[HEAD, Data, Fields(&[("grpc-status", "0")], true)],
            Some("grpc-status: 0\r\n"),
        ),
        (
            &[
                HEAD,
                Data,
                Fields(
                    &[
                        ("content-length", "9"),
                        ("x-sum", "5"),
                        ("set-cookie", "a=b"),
                        ("content-type", "a/b"),
                        ("vary", "*"),
                        ("cache-control", "no-store"),
                        ("location", "/"),
                        ("host", "h"),
                        ("trailer", "x"),
                        ("expires", "0"),
                    ],
                    true,
                ),
            ],
            Some("x-sum: 5\r\n"),
        ),
        (
            &[
                Fields(&[(":status", "103"), ("link", "</a>")], false),
                HEAD,
                Data,
                Fields(&[], true),
            ],
            Some(""),
        ),
        (&[Fields(&[OK, (":path", "/")], true)], ERROR),
        (&[Fields(&[(":path", "/"), OK], true)], ERROR),
        (&[Fields(&[OK, (":method", "GET")], true)], ERROR),
        (&[Fields(&[OK, (":authority", "h")], true)], ERROR),
        (&[Fields(&[OK, (":scheme", "http")], true)], ERROR),
        (&[Fields(&[OK, (":protocol", "x")], true)], ERROR),
        (&[Fields(&[OK, (":x", "x")], true)], ERROR),
        (&[Fields(&[OK, OK], true)], ERROR),
        (&[Fields(&[("a", "b"), OK], true)], ERROR),
        (&[Fields(&[("a", "b")], true)], ERROR),
        (&[Fields(&[(":status", "20")], true)], ERROR),
        (&[Fields(&[(":status", "099")], true)], ERROR),
        (&[Fields(&[(":status", "101")], false), HEAD, Data], ERROR),
        (
            &[Fields(&[(":status", "103"), (":path", "/")], false), HEAD, Data],
            ERROR,
        ),
        (&[Fields(&[(":status", "103")], true)], ERROR),
        (&[Fields(&[OK, ("connection", "close")], true)], ERROR),
        (&[Fields(&[OK, ("transfer-encoding", "chunked")], true)], ERROR),
        (&[Fields(&[OK, ("upgrade", "x")], true)], ERROR),
        (&[Fields(&[OK, ("te", "gzip")], true)], ERROR),
        (&[Fields(&[OK, ("X-Upper", "b")], true)], ERROR),
        (&[Fields(&[OK, ("a b", "c")], true)], ERROR),
        (&[Fields(&[OK, ("", "c")], true)], ERROR),
        (&[Fields(&[OK, ("a", " b")], true)], ERROR),
        (&[Fields(&[OK, ("a", "b\r\nc: d")], true)], ERROR),
        (&[Fields(&[OK, ("a", "b\0c")], true)], ERROR),
        (&[Fields(&[OK, ("content-length", "5")], true)], ERROR),
        (&[Fields(&[OK, ("content-length", "1, 1")], false), Data], ERROR),
        (
            &[
                Fields(&[OK, ("content-length", "1"), ("content-length", "2")], false),
                Data,
            ],
            ERROR,
        ),
        (&[Data], ERROR),
    ];
    for (number, (sent, expected)) in rows.iter().enumerate() {
        let upstream = sending(sent, &[], None);
        let server = server(&upstream);
        let mut client = server.connect();
        client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        let rest = client.rest();
        let text = String::from_utf8_lossy(&rest);
        let (head, content) = text
            .split_once("\r\n\r\n")
            .unwrap_or_else(|| panic!("row {number}: {text}"));
        match expected {
            None => assert!(head.starts_with("HTTP/1.1 502 "), "row {number}: {text}"),
            Some(trailers) => {
                // In one row a 103 precedes the response, so the content begins with the head of the response.
                let content = content.rsplit_once("HTTP/1.1 200 ").map_or(content, |(_, last)| {
                    last.split_once("\r\n\r\n").map_or("", |(_, content)| content)
                });
                assert!(
                    head.starts_with("HTTP/1.1 200 ") || head.starts_with("HTTP/1.1 103 "),
                    "row {number}: {text}"
                );
                assert_eq!(content, format!("{WHOLE}{trailers}\r\n"), "row {number}");
            }
        }
    }
}

#[test]
fn malformed_trailers_cut_the_response() {
    const BEGUN: &[UpstreamFrame] = &[HEAD, Data];
    let rows: &[&'static [UpstreamFrame]] = &[
        &[Fields(&[OK], true)],
        &[Fields(&[("a", "b"), OK], true)],
        &[Fields(&[(":path", "/")], true)],
        &[Fields(&[("connection", "close")], true)],
        &[Fields(&[("a", "b\0")], true)],
        // These trailers do not end the stream.
        &[Fields(&[("a", "b")], false)],
    ];
    for (number, then) in rows.iter().enumerate() {
        let (go, signal) = mpsc::channel();
        let upstream = sending(BEGUN, then, Some(signal));
        let server1 = server(&upstream);
        let mut client = server1.connect();
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        assert!(client.head().starts_with("HTTP/1.1 200 "), "row {number}");
        assert_eq!(client.bytes(10), b"5\r\nbegun\r\n", "row {number}");
        go.send(()).expect("a server that waits");
        assert_eq!(
            String::from_utf8_lossy(&client.rest()),
            "",
            "row {number}: the response must be cut without any trailer"
        );

        let (go, signal) = mpsc::channel();
        let upstream = sending(BEGUN, then, Some(signal));
        let server2 = server(&upstream);
        let mut client = Http2::to(server2.address());
        let (response, _) = client.start_request(client.request("GET", "/"), true);
        let is_reset = client.wait(async {
            let mut body = response.await.expect("a head").into_body();
            assert_eq!(body.data().await.expect("data").expect("data"), "begun");
            go.send(()).expect("a server that waits");
            match body.data().await {
                Some(end) => end.is_err(),
                None => body.trailers().await.is_err(),
            }
        });
        assert!(is_reset, "row {number}");
    }
}

over_http3! {
    malformed_trailers_cut_the_response,
}
