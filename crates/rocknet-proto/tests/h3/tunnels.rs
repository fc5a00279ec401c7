//! Extended CONNECT and the tunnels after it (RFC 9220, RFC 9114 §4.4).
//!
//! The third argument of `Peer::receive` is true if the stream ends with these bytes. The fourth is the size of the
//! pieces in which the bytes arrive; with `usize::MAX` they arrive at once.

use rocknet_proto::Status;
use rocknet_proto::h3::{Config, ConnectionEvent, Critical, ServerConnection};

use super::wire::{Peer, frame, headers};

const CONNECT: [(&str, &str); 5] = [
    (":method", "CONNECT"),
    (":protocol", "websocket"),
    (":scheme", "https"),
    (":authority", "a"),
    (":path", "/chat"),
];

#[test]
fn an_accepted_connect_carries_data_without_a_limit_in_both_directions() {
    for size in [1, 7, usize::MAX] {
        let mut peer = Peer::new();
        peer.limits.body_size = 4;
        let stream = peer.open();
        let events = peer.receive(stream, &headers(&CONNECT), false, size);
        assert_eq!(events, ["CONNECT /chat end=false continue=false"]);
        assert_eq!(peer.head.protocol(), Some(&b"websocket"[..]));
        let mut out = Vec::new();
        peer.engine
            .respond(stream, Status::OK, None, [], &mut out)
            .expect("an open stream");
        peer.engine.begin_tunnel(stream);
        let events = peer.receive(stream, &frame(0, b"longer than the limit"), false, size);
        assert_eq!(events, ["body longer than the limit"]);
        out.clear();
        peer.engine.begin_data(stream, 3, &mut out).expect("an open stream");
        // Header of a DATA frame of three bytes.
        assert_eq!(out, [0, 3]);
        // The client ends its side, and the server may still send.
        assert_eq!(peer.receive(stream, &[], true, size), ["last"]);
        assert!(peer.engine.is_open(stream));
        peer.engine.begin_data(stream, 3, &mut out).expect("an open stream");
        peer.engine.end_response(stream);
        assert!(peer.engine.is_idle());
    }
}

#[test]
fn the_server_may_end_first() {
    let mut peer = Peer::new();
    let stream = peer.open();
    peer.receive(stream, &headers(&CONNECT), false, usize::MAX);
    peer.engine
        .respond(stream, Status::OK, None, [], &mut Vec::new())
        .expect("an open stream");
    peer.engine.begin_tunnel(stream);
    peer.engine.end_response(stream);
    assert!(peer.engine.receives_body(stream));
    assert_eq!(
        peer.receive(stream, &frame(0, b"more"), true, usize::MAX),
        ["body more", "last"]
    );
    assert!(peer.engine.is_idle());
}

#[test]
fn only_data_may_follow_a_connect() {
    for bytes in [headers(&[("x", "1")]), frame(1, b"")] {
        let mut peer = Peer::new();
        let events = peer.request(&[headers(&CONNECT), bytes].concat(), false);
        let last = events.last().expect("an event");
        assert!(last.contains("FrameUnexpected"), "{events:?}");
    }
}

#[test]
fn malformed_connects_are_reset() {
    let without = |name: &str| -> Vec<_> { CONNECT.iter().copied().filter(|(known, _)| *known != name).collect() };
    let mut get = CONNECT;
    get[0].1 = "GET";
    for (fields, error) in [
        (without(":scheme"), "PseudoMissing"),
        (without(":path"), "PseudoMissing"),
        (without(":protocol"), "Connect"),
        (get.to_vec(), "Protocol"),
        ([&CONNECT[..], &[("content-length", "1")]].concat(), "ContentLength"),
    ] {
        let mut peer = Peer::new();
        let events = peer.request(&headers(&fields), true);
        assert!(
            events[0].starts_with("Reset") && events[0].contains(error),
            "{error}: {events:?}"
        );
    }
}

#[test]
fn extended_connect_is_accepted_only_if_it_is_announced() {
    for connect_protocol in [true, false] {
        let mut peer = Peer::new();
        peer.engine = ServerConnection::new(&Config { connect_protocol }, &peer.limits, peer.now);
        // SETTINGS_ENABLE_CONNECT_PROTOCOL is 8 with the value 1 (RFC 9220 §3).
        let settings = peer.engine.take_output(Critical::Control);
        assert_eq!(
            settings.windows(2).any(|pair| pair == [8, 1]),
            connect_protocol,
            "{settings:?}"
        );
        let events = peer.request(&headers(&CONNECT), false);
        assert_eq!(events[0].contains("Protocol"), !connect_protocol, "{events:?}");
    }
}

#[test]
fn a_reset_ends_both_directions() {
    let mut peer = Peer::new();
    let stream = peer.open();
    peer.receive(stream, &headers(&CONNECT), false, usize::MAX);
    // The second argument is the time. The result is true because the response has not ended.
    assert_eq!(peer.engine.client_reset(stream, 0), Ok(true));
    let received = peer
        .engine
        .receive(&peer.limits, 0, stream, b"late", false, &mut peer.head);
    assert_eq!(received.event, ConnectionEvent::More);
    assert!(peer.engine.is_idle());
}
