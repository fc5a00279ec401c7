//! Tunnels over HTTP/3: a handler takes over a stream by extended CONNECT (RFC 9220).

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use bytes::{Buf, Bytes};
use h3::error::StreamError;
use h3::ext::Protocol;
use h3_quinn::BidiStream;

use super::certs::{Authority, Kind};
use super::client::TlsClient;
use super::http3_client::Http3Client;
use super::support::tunnels::{Peers, mounts, read, rest};
use super::support::{Folder, Running};

type TunnelStream = h3::client::RequestStream<BidiStream<Bytes>, Bytes>;

/// Number of bytes that exceeds all buffers of a tunnel.
const IN_FLIGHT: usize = 16 << 20;

/// Number of bytes that exceeds the windows of both sides several times.
const LARGE: usize = 4 << 20;

struct Fixture {
    authority: Authority,
    server: Running,
    peers: Peers,
}

fn start(limits: &str) -> Fixture {
    let authority = Authority::new("root");
    let folder = Folder::with(&[("www/index.html", "root")]);
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "a");
    let text = format!(
        "[server]\nworkers = 1\n[limits]\n{limits}\n[site.default]\nlisten = \"https://127.0.0.1:0\"\nroot = \"www\"\n\
         tls = {{ cert = \"a.pem\", key = \"a.key\" }}\n"
    );
    let (mounts, peers) = mounts();
    Fixture {
        server: Running::start_with(folder, &text, mounts),
        authority,
        peers,
    }
}

impl Fixture {
    fn connect(&self) -> Http3Client {
        let client = TlsClient::new(self.authority.roots(), "a.test");
        Http3Client::open(&client, self.server.address()).expect("a connection")
    }
}

fn connect_request(path: &str) -> http::Request<()> {
    http::Request::connect(format!("https://a.test{path}"))
        // The handler accepts any protocol, and the crate `h3` supports only a few.
        .extension(Protocol::CONNECT_UDP)
        .body(())
        .expect("a request")
}

/// Sends an extended CONNECT, and returns the stream and the status.
fn open(client: &Http3Client, request: http::Request<()>) -> (TunnelStream, u16) {
    client.block_on(async {
        let mut stream = client.sender().send_request(request).await.expect("a stream");
        let status = stream.recv_response().await.expect("a response").status();
        (stream, status.as_u16())
    })
}

/// Opens a tunnel, which begins with `early ` from the handler. Returns the client's stream, and the other end of the
/// handler's socket.
fn open_tunnel(client: &Http3Client, peers: &mut Peers) -> (TunnelStream, UnixStream) {
    let (mut stream, status) = open(client, connect_request("/join/x"));
    assert_eq!(status, 200);
    assert_eq!(client.block_on(receive(&mut stream, 6)), b"early ");
    (stream, peers.next())
}

/// Receives exactly `count` bytes.
async fn receive(stream: &mut TunnelStream, count: usize) -> Vec<u8> {
    let mut all = Vec::new();
    while all.len() < count {
        let mut piece = stream.recv_data().await.expect("no reset").expect("more data");
        all.extend_from_slice(&piece.copy_to_bytes(piece.remaining()));
    }
    assert_eq!(all.len(), count, "more bytes were received than expected");
    all
}

/// Receives until the stream ends.
async fn receive_all(stream: &mut TunnelStream) -> Result<Vec<u8>, StreamError> {
    let mut all = Vec::new();
    while let Some(mut piece) = stream.recv_data().await? {
        all.extend_from_slice(&piece.copy_to_bytes(piece.remaining()));
    }
    Ok(all)
}

#[test]
fn a_stream_is_taken_over_and_each_direction_ends_separately() {
    let mut fixture = start("");
    let client = fixture.connect();
    let (mut stream, mut peer) = open_tunnel(&client, &mut fixture.peers);
    for round in 0..100_u32 {
        client.block_on(async {
            stream
                .send_data(Bytes::copy_from_slice(&round.to_be_bytes()))
                .await
                .expect("sent");
        });
        assert_eq!(read(&mut peer, 4), round.to_be_bytes());
        peer.write_all(&[7; 300]).expect("written");
        assert_eq!(client.block_on(receive(&mut stream, 300)), [7; 300]);
    }
    // An ordinary request on the same connection is not a tunnel.
    assert_eq!(client.get("https://a.test/").body, b"root");
    assert_eq!(fixture.server.server().status().tunnels_open, 1);
    client.block_on(async { stream.finish().await.expect("ended") });
    assert_eq!(rest(&mut peer), (Vec::new(), true));
    peer.write_all(b"and one more thing").expect("written");
    drop(peer);
    assert_eq!(
        client.block_on(receive_all(&mut stream)).expect("an orderly end"),
        b"and one more thing"
    );
    wait_until_no_tunnel_is_open(&fixture.server, &client);
}

fn wait_until_no_tunnel_is_open(server: &Running, client: &Http3Client) {
    client.block_on(async {
        while server.server().status().tunnels_open > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn the_handler_can_end_first() {
    let mut fixture = start("");
    let client = fixture.connect();
    let (mut stream, mut peer) = open_tunnel(&client, &mut fixture.peers);
    peer.write_all(b"good bye").expect("written");
    peer.shutdown(std::net::Shutdown::Write).expect("ended");
    assert_eq!(
        client.block_on(receive_all(&mut stream)).expect("an orderly end"),
        b"good bye"
    );
    client.block_on(async { stream.send_data(Bytes::from_static(b"me too")).await.expect("sent") });
    assert_eq!(read(&mut peer, 6), b"me too");
    client.block_on(async { stream.finish().await.expect("ended") });
    assert_eq!(rest(&mut peer), (Vec::new(), true));
    wait_until_no_tunnel_is_open(&fixture.server, &client);
}

#[test]
fn both_directions_carry_large_amounts_at_the_same_time() {
    let mut fixture = start("");
    let client = fixture.connect();
    let (stream, mut peer) = open_tunnel(&client, &mut fixture.peers);
    let mut writing = peer.try_clone().expect("a clone");
    let down: Vec<u8> = (0..LARGE).map(|at| (at / 7) as u8).collect();
    let up: Bytes = (0..LARGE).map(|at| (at / 5) as u8).collect();
    let expected = (down.clone(), up.clone());
    let sending = thread::spawn(move || writing.write_all(&down).expect("written"));
    let receiving = thread::spawn(move || read(&mut peer, LARGE));
    // The stream is kept until the other side has received everything.
    let (received, _stream) = client.block_on(async {
        let (mut to, mut from) = stream.split();
        let sent = tokio::spawn(async move {
            for at in (0..up.len()).step_by(1 << 20) {
                to.send_data(up.slice(at..at + (1 << 20))).await.expect("sent");
            }
            to
        });
        let mut all = Vec::new();
        while all.len() < LARGE {
            let mut piece = from.recv_data().await.expect("no reset").expect("more data");
            all.extend_from_slice(&piece.copy_to_bytes(piece.remaining()));
        }
        let to = sent.await.expect("no panic");
        (all, (to, from))
    });
    assert!(received == expected.0, "{} bytes", received.len());
    assert!(receiving.join().expect("no panic") == expected.1, "the other direction");
    sending.join().expect("no panic");
}

#[test]
fn a_reset_stream_closes_its_peer_only() {
    let mut fixture = start("");
    let client = fixture.connect();
    let (mut stream, mut peer) = open_tunnel(&client, &mut fixture.peers);
    let (mut other, mut other_peer) = open_tunnel(&client, &mut fixture.peers);
    stream.stop_stream(h3::error::Code::H3_REQUEST_CANCELLED);
    rest(&mut peer);
    client.block_on(async { other.send_data(Bytes::from_static(b"still here")).await.expect("sent") });
    assert_eq!(read(&mut other_peer, 10), b"still here");
    assert_eq!(client.get("https://a.test/").body, b"root");
}

#[test]
fn no_side_is_read_while_the_other_does_not_read() {
    let mut fixture = start("send_stall = \"300ms\"");
    let client = fixture.connect();
    let (mut stream, mut peer) = open_tunnel(&client, &mut fixture.peers);
    let mut sent = 0;
    while sent < IN_FLIGHT && peer.write_all(&[b'x'; 65_536]).is_ok() {
        sent += 65_536;
    }
    assert!(
        sent < IN_FLIGHT,
        "all of {sent} bytes were accepted although the client does not read"
    );
    let error = client
        .block_on(receive_all(&mut stream))
        .expect_err("the stream is cut");
    assert!(error.to_string().contains("H3_REQUEST_CANCELLED"), "{error}");
}

#[test]
fn a_stop_closes_tunnels_orderly_within_its_timeout() {
    let mut fixture = start("shutdown = \"1s\"");
    let client = fixture.connect();
    let (mut stream, mut peer) = open_tunnel(&client, &mut fixture.peers);
    let (server, _folder) = fixture.server.take();
    let stopping = thread::spawn(move || server.stop());
    // During the stop, tunnels still forward data.
    client.block_on(async { stream.send_data(Bytes::from_static(b"last words")).await.expect("sent") });
    assert_eq!(read(&mut peer, 10), b"last words");
    assert_eq!(client.block_on(receive_all(&mut stream)).expect("an orderly end"), b"");
    assert_eq!(rest(&mut peer), (Vec::new(), true));
    client.closed();
    assert!(stopping.join().expect("a stop"), "something was cut");
}

#[test]
fn every_stream_can_be_a_tunnel() {
    let mut fixture = start("");
    let client = fixture.connect();
    let mut all: Vec<_> = (0..100).map(|_| open_tunnel(&client, &mut fixture.peers)).collect();
    assert_eq!(fixture.server.server().status().tunnels_open, 100);
    for (number, (stream, peer)) in all.iter_mut().enumerate().rev() {
        let bytes = vec![number as u8; 100];
        client.block_on(async { stream.send_data(bytes.clone().into()).await.expect("sent") });
        assert_eq!(read(peer, 100), bytes);
        peer.write_all(&bytes[..50]).expect("written");
        assert_eq!(client.block_on(receive(stream, 50)), bytes[..50]);
    }
}

#[test]
fn connect_without_a_tunnel_handler_is_refused() {
    let fixture = start("");
    let client = fixture.connect();
    for path in ["/", "/none", "/join/page"] {
        assert_eq!(open(&client, connect_request(path)).1, 501, "{path}");
    }
    let post = http::Request::post("https://a.test/join/x")
        .body(())
        .expect("a request");
    let response = client.request(post, b"abc").expect("a response");
    assert_eq!(response.body, b"a page, requested protocol None");
    // The handler opens a tunnel for a request that is no CONNECT.
    assert_eq!(client.get("https://a.test/join/anyway").status, 500);
}
