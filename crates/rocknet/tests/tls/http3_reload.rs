//! HTTP/3 when reloads remove addresses and add them again: connections of removed addresses continue, and new
//! connections reach the new listener.

use std::net::{SocketAddr, TcpListener, UdpSocket};

use bytes::Buf;
use quinn::VarInt;

use super::certs::{Authority, Kind};
use super::client::TlsClient;
use super::http3_client::{Http3Client, get};
use super::support::{Folder, Running};

/// Size in bytes of a download that is still in progress after all reloads.
const LARGE: usize = 4 << 20;
/// Window of the slow download in bytes. The server cannot send more than this before the client has read it.
const WINDOW: u32 = 64 << 10;

/// Returns a configuration that also listens at the addresses in `more`. `shutdown` is so short that the connections of
/// a removed address would be cut at once if it also limited their drain time.
fn text(more: &[&str]) -> String {
    let listen: Vec<String> = more.iter().map(|more| format!(", \"https://{more}\"")).collect();
    format!(
        "[server]\nworkers = 2\n[limits]\nshutdown = \"1ms\"\n[site.\"a.test\"]\nroot = \"www\"\n\
         listen = [\"https://127.0.0.1:0\"{}]\ntls = {{ cert = \"a.pem\", key = \"a.key\" }}\n",
        listen.concat()
    )
}

/// Returns a port that is free for TCP and UDP at all addresses.
pub fn free_port() -> u16 {
    std::iter::repeat_with(|| TcpListener::bind("0.0.0.0:0").and_then(|socket| socket.local_addr()))
        .take(100)
        .filter_map(Result::ok)
        .find(|address| UdpSocket::bind(address).is_ok())
        .expect("a port")
        .port()
}

#[test]
fn connections_of_removed_addresses_continue() {
    let authority = Authority::new("root");
    let folder = Folder::with(&[("www/index.html", "home")]);
    folder.write("www/large.bin", vec![7; LARGE]);
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "a");
    let server = Running::start(folder, &text(&[]));
    let port = free_port();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let (one, all) = (address.to_string(), port.to_string());
    let tls = || TlsClient::new(authority.roots(), "a.test");

    let mut downloads = Vec::new();
    // Each address is removed and added while connections of earlier listeners at the same port are open.
    for more in [
        &[&*one][..],
        &[],
        &[&*one],
        &[&*all],
        &[&*one],
        &[],
        &[&*all],
        &[],
        &[&*all],
        &[&*one],
        &[&*one, &*all],
        &[&*one],
        &[&*all],
        &[&*one, &*all],
        &[&*all],
        &[],
    ] {
        server.reload(&text(more)).expect("a valid configuration");
        if !more.is_empty() {
            let fresh = Http3Client::open(&tls(), address).expect("a connection");
            assert_eq!(fresh.get("https://a.test/").body, b"home", "{more:?}");
            let mut transport = quinn::TransportConfig::default();
            transport.stream_receive_window(VarInt::from_u32(WINDOW));
            let client = Http3Client::open_with(&tls(), address, transport).expect("a connection");
            let mut sender = client.sender();
            let stream = client.block_on(async {
                let mut stream = sender
                    .send_request(get("https://a.test/large.bin"))
                    .await
                    .expect("a stream");
                stream.finish().await.expect("an open stream");
                assert_eq!(stream.recv_response().await.expect("a response").status(), 200);
                stream
            });
            downloads.push((client, sender, stream, 0));
        }
        // The client's datagrams must reach the server for each piece, because the window permits only one piece.
        for (client, _, stream, received) in &mut downloads {
            let goal = *received + WINDOW as usize;
            while *received < goal {
                let piece = client.block_on(stream.recv_data()).expect("an open stream");
                *received += piece.expect("more data").remaining();
            }
        }
    }
    for (client, _sender, mut stream, mut received) in downloads {
        while let Some(piece) = client.block_on(stream.recv_data()).expect("a whole response") {
            received += piece.remaining();
        }
        assert_eq!(received, LARGE);
    }
}

#[test]
fn a_client_may_read_its_response_after_it_has_acknowledged_it() {
    /// Size in bytes of a response that arrives completely before the client reads it.
    const SMALL: usize = 20_000;
    let authority = Authority::new("root");
    let folder = Folder::with(&[]);
    folder.write("www/small.bin", vec![7; SMALL]);
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "a");
    let port = free_port();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let server = Running::start(folder, &text(&[&address.to_string()]));
    let tls = || TlsClient::new(authority.roots(), "a.test");

    let unused = Http3Client::open(&tls(), address).expect("a connection");
    let client = Http3Client::open(&tls(), address).expect("a connection");
    let mut sender = client.sender();
    let mut stream = client.block_on(async {
        let mut stream = sender
            .send_request(get("https://a.test/small.bin"))
            .await
            .expect("a stream");
        stream.finish().await.expect("an open stream");
        assert_eq!(stream.recv_response().await.expect("a response").status(), 200);
        stream
    });
    server.reload(&text(&[])).expect("a valid configuration");
    // The server closes an idle connection of the removed address, and leaves a connection open whose response may
    // still be unread.
    unused.block_on(unused.connection.closed());
    assert!(client.connection.close_reason().is_none());
    let mut received = 0;
    while let Some(piece) = client.block_on(stream.recv_data()).expect("a whole response") {
        received += piece.remaining();
    }
    assert_eq!(received, SMALL);
}
