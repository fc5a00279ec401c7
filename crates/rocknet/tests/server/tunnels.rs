//! Tunnels: a handler takes over a connection by `Upgrade` in HTTP/1.1, or a stream by extended CONNECT in HTTP/2.

mod http2;

use std::fs;
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Instant;

use bytes::Bytes;
use h2::ext::Protocol;
use h2::{RecvStream, SendStream};

use super::support::client::{read_some, request};
use super::support::http2::Http2;
use super::support::running::site;
use super::support::tunnels::{Peers, mounts, read, rest};
use super::support::{Client, DEADLINE, Folder, Running};

const SERVER: &str =
    "[server]\nworkers = 1\nblocking_threads = 2\nh2c = true\nevents = { wait = \"20ms\", connections = 16 }\n";
const UPGRADE: [&str; 2] = ["Connection: upgrade", "Upgrade: echo, other"];

/// Bytes that exceed all buffers of a tunnel: those of a socket pair, of two TCP sockets and of the worker. While one
/// side does not read, the other cannot send as much.
const IN_FLIGHT: usize = 64 << 20;

fn text(limits: &str, keys: &str) -> String {
    format!("{SERVER}[limits]\n{limits}\n{}", site(keys))
}

fn start(limits: &str) -> (Running, Peers) {
    let (mounts, peers) = mounts();
    let folder = Folder::with(&[("www/index.html", "root")]);
    (Running::start_with(folder, &text(limits, ""), mounts), peers)
}

/// Connects a client and establishes a tunnel, which begins with `early ` from the handler.
fn open_tunnel(server: &Running, peers: &mut Peers) -> (Client, UnixStream) {
    let mut client = server.connect();
    client.send(request("GET /join/x", &UPGRADE));
    let peer = peers.next();
    assert!(client.head().starts_with("HTTP/1.1 101 Switching Protocols\r\n"));
    assert_eq!(client.bytes(6), b"early ");
    (client, peer)
}

#[test]
fn a_connection_is_taken_over_with_early_bytes() {
    let folder = Folder::with(&[("www/index.html", "root")]);
    let log = folder.path("access.log");
    let (mounts, mut peers) = mounts();
    let keys = format!("log = {{ access = \"{}\", format = \"common\" }}", log.display());
    let server = Running::start_with(folder, &text("", &keys), mounts);
    let mut client = server.connect();
    // One write contains a request, the upgrade request, and the first bytes for the tunnel.
    client.send(request("GET /", &[]) + &request("GET /join/x", &UPGRADE) + "GET / HTTP/1.1\r\n\r\n");
    assert_eq!(client.response().text(), "root");
    let mut peer = peers.next();
    let response = client.response();
    response.expect(
        "a tunnel",
        101,
        &[
            "Upgrade: echo",
            "Connection: upgrade",
            "X-More: yes",
            "Server: RockNet",
            "Date",
            "!Content-Length",
        ],
    );
    assert_eq!(client.bytes(6), b"early ");
    assert_eq!(read(&mut peer, 18), b"GET / HTTP/1.1\r\n\r\n");
    for round in 0..100_u32 {
        client.send(round.to_be_bytes());
        assert_eq!(read(&mut peer, 4), round.to_be_bytes());
        peer.write_all(&[7; 300]).expect("written");
        assert_eq!(client.bytes(300), [7; 300]);
    }
    assert_eq!(server.server().status().tunnels_open, 1);
    // Each direction ends independently.
    client.end();
    assert_eq!(rest(&mut peer), (Vec::new(), true));
    peer.write_all(b"and one more thing").expect("written");
    drop(peer);
    assert_eq!(client.rest(), b"and one more thing");
    drop(client);
    let (server, _folder) = server.take();
    let started = Instant::now();
    while server.status().tunnels_open > 0 {
        assert!(started.elapsed() < DEADLINE, "the tunnel is still counted");
        thread::yield_now();
    }
    server.stop();
    let log_text = fs::read_to_string(log).expect("a log");
    // `early `, 300 bytes in each round, and `and one more thing`.
    let bytes = 6 + 100 * 300 + 18;
    assert!(
        log_text.contains(&format!("\"GET /join/x HTTP/1.1\" 101 {bytes}\n")),
        "{log_text}"
    );
}

#[test]
fn both_directions_carry_large_amounts_at_the_same_time() {
    let (server, mut peers) = start("");
    let (mut client, peer) = open_tunnel(&server, &mut peers);
    const AMOUNT: usize = 6 << 20;
    let echoing = thread::spawn(move || {
        let (mut from, mut to, mut room, mut all) = (&peer, &peer, vec![0; 100_000], 0);
        while all < AMOUNT {
            let got = read_some(&mut from, &mut room).expect("bytes in time");
            assert!(got > 0, "ended after {all}");
            to.write_all(&room[..got]).expect("written");
            all += got;
        }
        drop(peer);
    });
    let sent: Vec<u8> = (0..100_003).map(|at| (at % 251) as u8).collect();
    let mut left = AMOUNT;
    while left > 0 {
        let piece = &sent[..sent.len().min(left)];
        client.send(piece);
        assert!(client.bytes(piece.len()) == piece, "the data was changed");
        left -= piece.len();
    }
    echoing.join().expect("an echo");
    client.end();
    client.assert_closed("after both ends");
}

#[test]
fn a_disconnect_of_one_side_closes_the_other() {
    let (server, mut peers) = start("");
    let (client, mut peer) = open_tunnel(&server, &mut peers);
    drop(client);
    assert_eq!(rest(&mut peer).0, b"");
    let (mut client, peer) = open_tunnel(&server, &mut peers);
    drop(peer);
    assert_eq!(client.rest(), b"");
    // If one direction is closed and no data arrives in the other, the tunnel times out.
    let (server, mut peers) = start("send_stall = \"200ms\"");
    let (mut client, peer) = open_tunnel(&server, &mut peers);
    peer.shutdown(Shutdown::Write).expect("an end");
    assert_eq!(client.rest(), b"");
    let mut peer = peer;
    assert_eq!(rest(&mut peer).0, b"");
}

#[test]
fn no_side_is_read_while_the_other_does_not_read() {
    let (server, mut peers) = start("");
    let (mut client, peer) = open_tunnel(&server, &mut peers);
    // The peer does not read, so the client cannot send more than the buffers accept.
    let flooding = thread::spawn(move || {
        let mut sent = 0;
        while sent < IN_FLIGHT && client.try_send(&[b'x'; 65_536]) {
            sent += 65_536;
        }
        (client, sent)
    });
    let (client, sent) = flooding.join().expect("a flood that ends");
    assert!(
        sent < IN_FLIGHT,
        "all of {sent} bytes were accepted although the other side does not read"
    );
    drop((client, peer));
    // A client that does not read is disconnected, and so is its peer.
    let (server, mut peers) = start("send_stall = \"300ms\"");
    let (client, mut peer) = open_tunnel(&server, &mut peers);
    let mut sent = 0;
    while sent < IN_FLIGHT && peer.write_all(&[b'x'; 65_536]).is_ok() {
        sent += 65_536;
    }
    assert!(
        sent < IN_FLIGHT,
        "all of {sent} bytes were accepted although the other side does not read"
    );
    drop(client);
}

#[test]
fn tunnels_outlive_timeouts_and_reloads() {
    let limits = "keep_alive = \"100ms\"\nbody_idle = \"100ms\"\nconnection_age = \"1s\"";
    let (server, mut peers) = start(limits);
    let (mut client, mut peer) = open_tunnel(&server, &mut peers);
    let mut http2 = Http2::to(server.address());
    let (mut to, mut from, mut peer2) = open_tunnel_http2(&mut http2, &mut peers);
    // Each round lasts for `keep_alive`, and all rounds together are longer than `connection_age`.
    for round in 0..12 {
        let mut idle = server.connect();
        assert_eq!(idle.get("/").text(), "root");
        idle.assert_closed("idle");
        server
            .reload(&text(limits, &format!("headers = {{ \"X-Round\" = \"{round}\" }}")))
            .expect("a reload");
        client.send("up");
        assert_eq!(read(&mut peer, 2), b"up");
        peer.write_all(b"down").expect("written");
        assert_eq!(client.bytes(4), b"down");
        to.send_data(Bytes::from_static(b"up"), false).expect("sent");
        assert_eq!(read(&mut peer2, 2), b"up");
        peer2.write_all(b"down").expect("written");
        assert_eq!(http2.wait(bytes(&mut from, 4)), b"down");
    }
}

#[test]
fn a_stop_closes_tunnels_orderly_within_its_timeout() {
    let (server, mut peers) = start("shutdown = \"1s\"");
    let (mut client, mut peer) = open_tunnel(&server, &mut peers);
    let mut http2 = Http2::to(server.address());
    let (mut to, mut from, mut peer2) = open_tunnel_http2(&mut http2, &mut peers);
    let (server, _folder) = server.take();
    let stopping = thread::spawn(move || server.stop());
    // During the stop, tunnels still forward data.
    client.send("last words");
    assert_eq!(read(&mut peer, 10), b"last words");
    to.send_data(Bytes::from_static(b"last words"), false).expect("sent");
    assert_eq!(read(&mut peer2, 10), b"last words");
    client.assert_closed("a stop");
    assert_eq!(rest(&mut peer), (Vec::new(), true));
    assert_eq!(rest(&mut peer2), (Vec::new(), true));
    assert_eq!(http2.wait(all(&mut from)).expect("an orderly end"), b"");
    drop((client, http2));
    assert!(stopping.join().expect("a stop"), "something was cut");
}

#[test]
fn a_stop_closes_tunnels_of_removed_addresses_in_its_own_time() {
    let limits = "upgrade_drain = \"1h\"\nshutdown = \"3s\"";
    let (server, mut peers) = start(limits);
    let (mut client, mut peer) = open_tunnel(&server, &mut peers);
    let moved = text(limits, "").replace("127.0.0.1:0", "127.0.0.2:0");
    server.reload(&moved).expect("a reload");
    // The tunnel has noticed that its address was removed.
    client.send("up");
    assert_eq!(read(&mut peer, 2), b"up");
    let (server, _folder) = server.take();
    let stopping = thread::spawn(move || server.stop());
    client.assert_closed("a stop");
    assert_eq!(rest(&mut peer), (Vec::new(), true));
    drop(client);
    assert!(stopping.join().expect("a stop"), "something was cut");
}

#[test]
fn only_upgrade_requests_get_a_tunnel() {
    let (server, _peers) = start("");
    let none = "a page, requested protocol None";
    for (line, fields, status, expected) in [
        ("GET /join/x", &[][..], 200, none),
        ("GET /join/x", &["Upgrade: echo"], 200, none),
        ("GET /join/x", &["Connection: upgrade"], 200, none),
        (
            "POST /join/x",
            &["Connection: upgrade", "Upgrade: echo", "Content-Length: 1"],
            200,
            none,
        ),
        (
            "GET /join/page",
            &UPGRADE,
            200,
            "a page, requested protocol Some(\"echo, other\")",
        ),
        ("GET /", &UPGRADE, 200, "root"),
    ] {
        let response = server.fetch(line, fields);
        assert_eq!(
            (response.status, response.text().as_str()),
            (status, expected),
            "{line} {fields:?}"
        );
    }
    // The handler opens a tunnel for a request that is no upgrade.
    assert_eq!(server.get("/join/anyway").status, 500);
    let mut client = server.connect();
    client.send("GET /join/x HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
    assert_eq!(client.response().text(), none);
}

// Tunnels over HTTP/2.

fn connect(client: &mut Http2, path: &str) -> http::request::Builder {
    client.request("CONNECT", path).extension(Protocol::from_static("echo"))
}

/// Opens a tunnel over HTTP/2. Returns both directions of its stream, and the end of the tunnel that the test reads.
fn open_tunnel_http2(client: &mut Http2, peers: &mut Peers) -> (SendStream<Bytes>, RecvStream, UnixStream) {
    let builder = connect(client, "/join/x");
    let (response, to) = client.start_request(builder, false);
    let peer = peers.next();
    let response = client.wait(response).expect("a response");
    assert_eq!(response.status(), 200);
    let mut from = response.into_body();
    assert_eq!(client.wait(bytes(&mut from, 6)), b"early ");
    (to, from, peer)
}

/// Receives exactly `count` bytes.
async fn bytes(from: &mut RecvStream, count: usize) -> Vec<u8> {
    let mut all = Vec::new();
    while all.len() < count {
        let piece = from.data().await.expect("more data").expect("no reset");
        from.flow_control().release_capacity(piece.len()).expect("capacity");
        all.extend_from_slice(&piece);
    }
    assert_eq!(all.len(), count, "more bytes were received than expected");
    all
}

/// Receives until the stream ends.
async fn all(from: &mut RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut all = Vec::new();
    while let Some(piece) = from.data().await {
        let piece = piece?;
        from.flow_control().release_capacity(piece.len())?;
        all.extend_from_slice(&piece);
    }
    Ok(all)
}
