//! Bodies of many sizes over TLS in both directions, and responses that are cut.

use std::time::Instant;

use rocknet::exchange::Exchange;
use rocknet::handler::{Handler, HandlerFuture, respond_with};
use rocknet::response::Response;
use rocknet_proto::status::Status;
use rustls::version::{TLS12, TLS13};

use super::certs::{Authority, Kind};
use super::client::TlsClient;
use super::support::running::mount;
use super::support::{Client, DEADLINE, Folder, Running};

/// Sends the request body back.
struct Echo;

impl Handler for Echo {
    fn handle(&self, mut exchange: Exchange) -> HandlerFuture {
        respond_with(async move {
            let mut content = Vec::new();
            while let Ok(Some(chunk)) = exchange.body.chunk().await {
                content.extend_from_slice(&chunk);
            }
            Response::new(Status::OK).body(content)
        })
    }
}

fn start(authority: &Authority, keys: &str) -> Running {
    let folder = Folder::with(&[("www/index.html", "hello")]);
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "a");
    Running::start_with(
        folder,
        &format!(
            "{keys}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\ncompress = false\n\
             tls = {{ cert = \"a.pem\", key = \"a.key\" }}"
        ),
        vec![mount("/echo/", Echo)],
    )
}

/// Returns a body with a fixed pattern.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

#[test]
fn files_of_every_size_arrive_whole() {
    let authority = Authority::new("root");
    let server = start(&authority, "");
    for version in [&TLS13, &TLS12] {
        let client_config = TlsClient {
            only: Some(version),
            ..TlsClient::new(authority.roots(), "a.test")
        };
        let mut client: Client = client_config.client(server.address());
        // The sizes are near the limits of a record, a cached file, a flight, and a piece of a file.
        for length in [
            0,
            1,
            4_229,
            13_900,
            14_100,
            16_384,
            16_385,
            51_200,
            51_201,
            65_536,
            262_144,
            1 << 20,
            5_000_001,
        ] {
            let content = pattern(length);
            let name = format!("www/{length}");
            server.folder.write(&name, &content);
            // The path is the name without `www`.
            let response = client.get(&name[3..]);
            response.expect(&name, 200, &[]);
            assert!(response.body == content, "{length} bytes under {version:?}");
        }
        let range = client.fetch("GET /5000001", &["Range: bytes=1000000-1999999"]);
        assert!(range.status == 206 && range.body == pattern(5_000_001)[1_000_000..2_000_000]);
    }
}

#[test]
fn uploads_arrive_whole_and_pipelined_requests_get_responses_in_order() {
    let authority = Authority::new("root");
    let server = start(&authority, "");
    let mut client = TlsClient::new(authority.roots(), "a.test").client(server.address());
    for length in [0, 1, 16_384, 16_385, 300_000, 2_000_000] {
        let content = pattern(length);
        client.send(format!(
            "POST /echo/ HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n"
        ));
        client.send(&content);
        let response = client.response();
        assert!(
            response.status == 200 && response.body == content,
            "{length} bytes: {response:?}"
        );
    }
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n".repeat(500));
    for number in 0..500 {
        assert_eq!(client.response().text(), "hello", "response {number}");
    }
}

#[test]
fn a_client_that_does_not_read_is_disconnected_and_others_continue() {
    let authority = Authority::new("root");
    let server = start(&authority, "[limits]\nsend_stall = \"300ms\"\n");
    server.folder.sparse("www/large", 256 << 20);
    let mut greedy = TlsClient::new(authority.roots(), "a.test").client(server.address());
    greedy.send("GET /large HTTP/1.1\r\nHost: h\r\n\r\n");
    let mut other = TlsClient::new(authority.roots(), "a.test").client(server.address());
    let started = Instant::now();
    while server.server().status().connections_open > 1 {
        assert!(
            started.elapsed() < DEADLINE,
            "the connection of the client that does not read is still open"
        );
        other.get("/").expect("beside", 200, &[]);
    }
}

#[test]
fn a_truncated_file_does_not_end_like_a_complete_one() {
    let authority = Authority::new("root");
    let server = start(&authority, "");
    server.folder.sparse("www/large", 64 << 20);
    let mut client = TlsClient::new(authority.roots(), "a.test").client(server.address());
    client.send("GET /large HTTP/1.1\r\nHost: h\r\n\r\n");
    client.head();
    client.bytes(1000);
    server.folder.write("www/large", "short");
    let rest = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| client.rest()));
    // The connection ends by a reset, at which `rest` returns, or without close_notify, at which `rest` panics.
    match rest {
        Ok(rest) => assert!(rest.len() < (64 << 20) - 1000, "{} bytes", rest.len()),
        Err(panic) => {
            let message = panic.downcast_ref::<String>().expect("a message");
            assert!(message.contains("close_notify"), "{message}");
        }
    }
}
