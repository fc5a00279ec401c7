//! Clients that do not read their responses: their connections are reset, so that the kernel discards the data for
//! them.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread;

use rocknet::exchange::Exchange;
use rocknet::handler::{Handler, HandlerFuture, respond_with};
use rocknet::response::Response;
use rocknet::tunnel::Splice;
use rocknet_io::stream::Stream;

use super::support::client::request;
use super::support::reset::{assert_reset, wait_for_queue};
use super::support::running::{mount, site};
use super::support::{DEADLINE, Folder, Running};
use crate::wire;

const SERVER: &str =
    "[server]\nworkers = 1\nblocking_threads = 2\nh2c = true\nevents = { wait = \"20ms\", connections = 16 }\n";
const LIMITS: &str = "send_stall = \"1500ms\"\nkeep_alive = \"1500ms\"\nheader_timeout = \"5s\"";
/// Size of a file that exceeds the kernel buffers of both sides.
const LARGE: u64 = 64 << 20;
/// Size of a file that exceeds the receive buffer of the client, but fits into the kernel buffers of both sides.
const MEDIUM: u64 = 600 << 10;

/// Opens a tunnel for each client to a peer that writes without end.
struct SendsEndlessly;

impl Handler for SendsEndlessly {
    fn handle(&self, _: Exchange) -> HandlerFuture {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        ours.set_nonblocking(true).expect("non-blocking");
        theirs.set_write_timeout(Some(DEADLINE)).expect("a deadline");
        thread::spawn(move || while theirs.write_all(&[b'x'; 64 * 1024]).is_ok() {});
        respond_with(async move {
            let stream = Stream::new(ours.into()).expect("a link");
            Response::tunnel("echo", Splice::new(stream, Vec::new()))
        })
    }
}

fn start() -> Running {
    let folder = Folder::with(&[("www/index.html", "root")]);
    folder.sparse("www/large.bin", LARGE);
    folder.sparse("www/medium.bin", MEDIUM);
    let text = format!("{SERVER}[limits]\n{LIMITS}\n{}", site(""));
    Running::start_with(folder, &text, vec![mount("/talk/", SendsEndlessly)])
}

#[test]
fn a_client_that_does_not_read_is_reset() {
    let server = start();
    let http2 = |path: &str| [wire::open_beginning(), wire::get(1, path)].concat();
    // A row has a name, the request of a client, and true if the client closes its sending side. In the names, `all in
    // the kernel` means that the whole response fits into the kernel buffers, and `the last` that the server closes the
    // connection after the response.
    let rows: &[(&str, Vec<u8>, bool)] = &[
        ("HTTP/1.1", request("GET /large.bin", &[]).into(), false),
        ("HTTP/1.1, its side ended", request("GET /large.bin", &[]).into(), true),
        (
            "HTTP/1.1, all in the kernel",
            request("GET /medium.bin", &[]).into(),
            false,
        ),
        (
            "HTTP/1.1, all in the kernel, its side ended",
            request("GET /medium.bin", &[]).into(),
            true,
        ),
        (
            "HTTP/1.1, all in the kernel, and the last",
            request("GET /medium.bin", &["Connection: close"]).into(),
            false,
        ),
        (
            "HTTP/1.1, all in the kernel, the last, its side ended",
            request("GET /medium.bin", &["Connection: close"]).into(),
            true,
        ),
        ("HTTP/2", http2("/large.bin"), false),
        ("HTTP/2, its side ended", http2("/large.bin"), true),
        ("HTTP/2, all in the kernel", http2("/medium.bin"), false),
        ("HTTP/2, all in the kernel, its side ended", http2("/medium.bin"), true),
        (
            "a tunnel",
            request("GET /talk/x", &["Connection: upgrade", "Upgrade: echo"]).into(),
            false,
        ),
        (
            "a tunnel in HTTP/2",
            [
                wire::open_beginning(),
                wire::frame(
                    wire::HEADERS,
                    wire::END_HEADERS,
                    1,
                    wire::block(&[
                        (":method", "CONNECT"),
                        (":protocol", "echo"),
                        (":scheme", "http"),
                        (":path", "/talk/x"),
                        (":authority", "h"),
                    ]),
                ),
            ]
            .concat(),
            false,
        ),
    ];
    let address = server.address();
    thread::scope(|scope| {
        for (what, bytes, ends) in rows {
            scope.spawn(move || {
                let mut client = TcpStream::connect(address).expect("a connection");
                client.write_all(bytes).expect("room");
                if *ends {
                    // The client closes its sending side only after its response has begun, because an HTTP/2 client
                    // that closes earlier gets no response.
                    wait_for_queue(what, &client);
                    // On a busy machine the reset can already have arrived.
                    match client.shutdown(Shutdown::Write) {
                        Ok(()) => {}
                        Err(error) => assert_eq!(error.kind(), ErrorKind::NotConnected, "{what}"),
                    }
                }
                assert_reset(what, &mut client);
            });
        }
    });
}

/// The server does not reset a client that reads, even if the client or the server has ended its side.
#[test]
fn a_client_that_reads_gets_the_whole_response() {
    let server = start();
    for (what, fields, ends) in [
        ("kept", &[][..], true),
        ("the last", &["Connection: close"], false),
        ("the last, its side ended", &["Connection: close"], true),
    ] {
        let mut client = TcpStream::connect(server.address()).expect("a connection");
        client.set_read_timeout(Some(DEADLINE)).expect("an option");
        client
            .write_all(request("GET /medium.bin", fields).as_bytes())
            .expect("room");
        if ends {
            client.shutdown(Shutdown::Write).expect("an open connection");
        }
        // The response has begun to arrive.
        let mut first = [0; 1000];
        client.read_exact(&mut first).expect("the beginning");
        let mut all = first.to_vec();
        client.read_to_end(&mut all).expect(what);
        let head = all.windows(4).position(|end| end == b"\r\n\r\n").expect("a head") + 4;
        assert_eq!((all.len() - head) as u64, MEDIUM, "{what}");
    }
}
