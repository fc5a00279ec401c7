//! Tunnels over streams of HTTP/2, which begin with extended CONNECT.

use std::io::Write;
use std::net::Shutdown;
use std::thread;
use std::time::Duration;

use bytes::Bytes;

use super::super::support::client::read_some;
use super::super::support::http2::Http2;
use super::super::support::tunnels::{read, rest};
use super::{IN_FLIGHT, all, bytes, connect, open_tunnel_http2, start};

#[test]
fn http2_streams_are_taken_over() {
    let (server, mut peers) = start("");
    let mut client = Http2::to(server.address());
    // The SETTINGS of the server have arrived when the first response has.
    assert_eq!(client.get("/").content, b"root");
    assert!(client.is_extended_connect_enabled());
    let builder = connect(&mut client, "/join/x");
    let (response, mut to) = client.start_request(builder, false);
    to.send_data(Bytes::from_static(b"first"), false).expect("sent");
    let mut peer = peers.next();
    let response = client.wait(response).expect("a response");
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["x-more"], "yes");
    for none in ["upgrade", "connection", "content-length"] {
        assert!(!response.headers().contains_key(none), "{none}");
    }
    let mut from = response.into_body();
    assert_eq!(client.wait(bytes(&mut from, 6)), b"early ");
    assert_eq!(read(&mut peer, 5), b"first");
    // Other streams are still served.
    assert_eq!(client.get("/").content, b"root");
    for _ in 0..50 {
        to.send_data(Bytes::from_static(b"ping"), false).expect("sent");
        assert_eq!(read(&mut peer, 4), b"ping");
        peer.write_all(&[b'p'; 20_000]).expect("written");
        assert_eq!(client.wait(bytes(&mut from, 20_000)).len(), 20_000);
    }
    // The server's direction ends first, and then the client's.
    peer.shutdown(Shutdown::Write).expect("an end");
    assert_eq!(client.wait(all(&mut from)).expect("an end"), b"");
    to.send_data(Bytes::from_static(b"still here"), true).expect("sent");
    assert_eq!(rest(&mut peer), (b"still here".to_vec(), true));
    // The client's direction ends first.
    let (mut to, mut from, mut peer) = open_tunnel_http2(&mut client, &mut peers);
    to.send_data(Bytes::new(), true).expect("sent");
    assert_eq!(rest(&mut peer), (Vec::new(), true));
    let sending = thread::spawn(move || peer.write_all(&vec![b'y'; 1_000_000]));
    assert_eq!(client.wait(all(&mut from)).expect("an end").len(), 1_000_000);
    sending.join().expect("a writer").expect("written");
    assert_eq!(client.get("/").content, b"root");
}

#[test]
fn a_reset_stream_closes_its_peer() {
    let (server, mut peers) = start("");
    let mut client = Http2::to(server.address());
    let (mut to, _from, mut peer) = open_tunnel_http2(&mut client, &mut peers);
    to.send_reset(h2::Reason::CANCEL);
    assert_eq!(rest(&mut peer).0, b"");
    let (_to, _from, mut peer) = open_tunnel_http2(&mut client, &mut peers);
    drop(client);
    assert_eq!(rest(&mut peer).0, b"");
    // A peer that closes its socket ends both directions of the stream.
    let mut client = Http2::to(server.address());
    let (mut to, mut from, peer) = open_tunnel_http2(&mut client, &mut peers);
    drop(peer);
    assert_eq!(client.wait(all(&mut from)).expect("an end"), b"");
    to.send_data(Bytes::from_static(b"never received"), false)
        .expect("sent");
    let reason = client.wait(std::future::poll_fn(|context| to.poll_reset(context)));
    assert_eq!(reason.expect("a reset"), h2::Reason::CONNECT_ERROR);
    assert_eq!(client.get("/").content, b"root");
}

#[test]
fn windows_limit_a_stream_in_both_directions() {
    let (server, mut peers) = start("");
    let mut client = Http2::to(server.address());
    let (mut to, mut from, peer) = open_tunnel_http2(&mut client, &mut peers);
    // The peer does not read, so the client can send no more than the windows and buffers accept.
    to.reserve_capacity(IN_FLIGHT);
    let mut sent = 0;
    let stuck = client.try_wait(Duration::from_millis(500), async {
        while sent < IN_FLIGHT {
            let room = std::future::poll_fn(|context| to.poll_capacity(context)).await;
            let room = room.expect("a stream").expect("no error");
            to.send_data(vec![b'x'; room].into(), false).expect("sent");
            sent += room;
            to.reserve_capacity(IN_FLIGHT);
        }
    });
    assert!(
        stuck.is_none() && sent < IN_FLIGHT,
        "all of {sent} bytes were accepted although the other side does not read"
    );
    // In the other direction, the server sends no more than the window of the client permits.
    peer.set_write_timeout(Some(Duration::from_millis(500)))
        .expect("a timeout");
    let mut peer = peer;
    let mut written = 0;
    while written < IN_FLIGHT && peer.write_all(&[b'y'; 65_536]).is_ok() {
        written += 65_536;
    }
    assert!(
        written < IN_FLIGHT,
        "all of {written} bytes were accepted although the other side does not read"
    );
    // Other streams are not affected, and this stream continues when both sides read again.
    let reading = thread::spawn(move || {
        let mut all = 0;
        let mut room = vec![0; 65_536];
        while all < sent {
            all += read_some(&mut peer, &mut room).expect("bytes in time");
        }
        (all, peer)
    });
    let got = client.wait(async {
        let mut got = 0;
        while got < written {
            let piece = from.data().await.expect("more").expect("no reset");
            from.flow_control().release_capacity(piece.len()).expect("capacity");
            got += piece.len();
        }
        got
    });
    assert!(got >= written);
    assert_eq!(reading.join().expect("a reader").0, sent);
}

#[test]
fn a_client_that_closes_its_window_is_disconnected() {
    let (server, mut peers) = start("send_stall = \"300ms\"");
    let mut client = Http2::to(server.address());
    let (_to, mut from, mut peer) = open_tunnel_http2(&mut client, &mut peers);
    let mut sent = 0;
    while sent < IN_FLIGHT && peer.write_all(&[b'x'; 65_536]).is_ok() {
        sent += 65_536;
    }
    assert!(
        sent < IN_FLIGHT,
        "all of {sent} bytes were accepted although the other side does not read"
    );
    let error = client.wait(async {
        loop {
            // The client receives the data, but never releases its flow-control window.
            match from.data().await {
                Some(Ok(_)) => {}
                Some(Err(error)) => break error,
                None => panic!("the stream ended as if it were complete"),
            }
        }
    });
    assert_eq!(error.reason(), Some(h2::Reason::CANCEL));
}

#[test]
fn every_stream_can_be_a_tunnel() {
    let (server, mut peers) = start("");
    let mut client = Http2::to(server.address());
    assert_eq!(client.get("/").content, b"root");
    let mut all: Vec<_> = (0..100).map(|_| open_tunnel_http2(&mut client, &mut peers)).collect();
    assert_eq!(server.server().status().tunnels_open, 100);
    for (number, (to, from, peer)) in all.iter_mut().enumerate().rev() {
        to.send_data(vec![number as u8; 100].into(), false).expect("sent");
        assert_eq!(read(peer, 100), vec![number as u8; 100]);
        peer.write_all(&[number as u8; 50]).expect("written");
        assert_eq!(client.wait(bytes(from, 50)), vec![number as u8; 50]);
    }
}

#[test]
fn connect_without_a_tunnel_handler_is_refused() {
    let (server, _peers) = start("");
    let mut client = Http2::to(server.address());
    assert_eq!(client.get("/").content, b"root");
    for (path, status) in [("/", 501), ("/none", 501), ("/join/page", 501)] {
        let builder = connect(&mut client, path);
        let (response, _to) = client.start_request(builder, false);
        let response = client.wait(response).expect("a response");
        assert_eq!(response.status(), status, "{path}");
    }
    // An ordinary request on the same connection is not a tunnel.
    let response = client
        .send(client.request("POST", "/join/x"), b"abc")
        .expect("a response");
    assert_eq!(response.content, b"a page, requested protocol None");
    assert_eq!(client.get("/join/anyway").status, 500);
}
