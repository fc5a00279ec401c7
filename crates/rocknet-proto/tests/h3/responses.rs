//! Responses: order of their parts, fields, and the end of streams.
//!
//! The third argument of `Peer::receive` is true if the stream ends with these bytes. The fourth is the size of the
//! pieces in which the bytes arrive; with `usize::MAX` they arrive at once.

use rocknet_proto::Status;
use rocknet_proto::h3::{PreparedHead, SendError};

use super::wire::{GET, Peer, headers};

const DATE: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";

#[test]
fn parts_of_a_response_have_an_order() {
    let mut peer = Peer::new();
    let stream = peer.open();
    peer.receive(stream, &headers(&GET), true, usize::MAX);
    let engine = &mut peer.engine;
    let mut out = Vec::new();
    assert_eq!(engine.begin_data(stream, 1, &mut out), Err(SendError::OutOfOrder));
    assert_eq!(engine.send_trailers(stream, [], &mut out), Err(SendError::OutOfOrder));
    assert_eq!(
        engine.send_interim(stream, Status::OK, [], &mut out),
        Err(SendError::OutOfOrder)
    );
    assert_eq!(
        engine.send_interim(stream, Status::SWITCHING_PROTOCOLS, [], &mut out),
        Err(SendError::OutOfOrder)
    );
    assert_eq!(
        engine.respond(stream, Status::CONTINUE, None, [], &mut out),
        Err(SendError::OutOfOrder)
    );
    assert!(out.is_empty());

    assert_eq!(engine.send_interim(stream, Status::EARLY_HINTS, [], &mut out), Ok(()));
    assert!(engine.may_respond(stream));
    assert_eq!(engine.respond(stream, Status::OK, Some(2), [], &mut out), Ok(()));
    assert!(!engine.may_respond(stream));
    assert_eq!(
        engine.respond(stream, Status::OK, None, [], &mut out),
        Err(SendError::OutOfOrder)
    );
    let head = PreparedHead::bare(Status::OK, None);
    assert_eq!(
        engine.respond_prepared(stream, &head, DATE, 0, &mut out),
        Err(SendError::OutOfOrder)
    );
    out.clear();
    assert_eq!(engine.begin_data(stream, 2, &mut out), Ok(()));
    // Header of a DATA frame of two bytes.
    assert_eq!(out, [0, 2]);
    engine.end_response(stream);
    assert_eq!(engine.begin_data(stream, 1, &mut out), Err(SendError::Gone));
    assert!(engine.is_idle());
}

#[test]
fn forbidden_fields_are_not_sent() {
    let mut peer = Peer::new();
    let stream = peer.open();
    peer.receive(stream, &headers(&GET), true, usize::MAX);
    let mut out = Vec::new();
    for (name, value) in [("connection", "close"), ("a b", "1"), ("x", "a\r\nb")] {
        let fields = [(name.as_bytes(), value.as_bytes())];
        let found = peer.engine.respond(stream, Status::OK, None, fields, &mut out);
        assert!(matches!(found, Err(SendError::Field(_))), "{name}");
    }
    assert!(out.is_empty() && peer.engine.may_respond(stream));
}

#[test]
fn a_prepared_head_and_its_body_header_are_one_write() {
    let mut peer = Peer::new();
    let stream = peer.open();
    peer.receive(stream, &headers(&GET), true, usize::MAX);
    let head = PreparedHead::new(Status::OK, Some(5), []).expect("no fields");
    let mut out = Vec::new();
    assert_eq!(peer.engine.respond_prepared(stream, &head, DATE, 5, &mut out), Ok(()));
    assert!(out.ends_with(&[0, 5]));
    assert_eq!(out.len(), head.memory_size() + DATE.len() + 2);
}

#[test]
fn the_rest_of_a_request_is_ignored_after_its_response() {
    let mut peer = Peer::new();
    let stream = peer.open();
    peer.receive(stream, &headers(&super::wire::post(&[])), false, usize::MAX);
    let mut out = Vec::new();
    assert_eq!(peer.engine.respond(stream, Status::OK, Some(0), [], &mut out), Ok(()));
    peer.engine.end_response(stream);
    assert!(!peer.engine.is_open(stream));
    // The rest of the request is ignored, and its frames are not even checked.
    assert!(peer.receive(stream, &[0xff; 100], true, usize::MAX).is_empty());
}
