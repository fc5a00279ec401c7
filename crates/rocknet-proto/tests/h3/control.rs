//! Unidirectional streams: types, SETTINGS, GOAWAY, push IDs and priorities (RFC 9114 §6.2, §7.2; RFC 9218 §7.2).
//!
//! The second argument of `receive_unidirectional` is the time, which is always 0, and the last is true if the stream
//! ends with these bytes.

use rocknet_proto::Limits;
use rocknet_proto::h3::{Config, Critical, ServerConnection, UnidirectionalAction};

use super::wire::{GET, Peer, frame, headers, integer};

fn engine() -> ServerConnection {
    // The last argument is the time.
    ServerConnection::new(&Config::default(), &Limits::default(), 0)
}

/// Passes the bytes of stream 2, the client's first unidirectional stream, in pieces of one byte at time 0. `fin` is
/// true if the stream ends after the last byte. Returns the first error and its code as text.
fn error(bytes: &[u8], fin: bool) -> Option<String> {
    let mut engine = engine();
    for (number, byte) in bytes.iter().enumerate() {
        let fin = fin && number + 1 == bytes.len();
        if let Err(error) = engine.receive_unidirectional(2, 0, &[*byte], fin) {
            return Some(format!("{error:?} {:?}", error.code()));
        }
    }
    None
}

/// Frame types: 0 DATA, 3 CANCEL_PUSH, 4 SETTINGS, 7 GOAWAY, 0xd MAX_PUSH_ID, 0xf0700 and 0xf0701 PRIORITY_UPDATE of a
/// request and of a push. The types 8 (a frame of HTTP/2) and 0x21 are reserved.
#[test]
fn control_frames_and_stream_types_are_checked() {
    let settings = frame(4, &[]);
    let control = |frames: &[Vec<u8>]| [vec![0], frames.concat()].concat();
    let after = |next: Vec<u8>| control(&[settings.clone(), next]);
    let id = |kind, value| {
        let mut payload = Vec::new();
        integer(value, &mut payload);
        frame(kind, &payload)
    };
    // Bytes of the stream, and a part of the expected error.
    let rows: Vec<(Vec<u8>, Option<&str>)> = vec![
        (control(std::slice::from_ref(&settings)), None),
        (control(&[frame(0x21, b"")]), Some("MissingSettings")),
        (control(&[frame(7, b"\0")]), Some("MissingSettings")),
        (after(settings.clone()), Some("FrameUnexpected")),
        (after(frame(0, b"")), Some("FrameUnexpected")),
        (after(headers(&GET)), Some("FrameUnexpected")),
        (after(frame(8, b"")), Some("FrameUnexpected")),
        // Setting 2 exists only in HTTP/2. Setting 6 is sent twice, and then without its value.
        (control(&[frame(4, &[2, 0])]), Some("SettingsError")),
        (control(&[frame(4, &[6, 1, 6, 1])]), Some("SettingsError")),
        (control(&[frame(4, &[6])]), Some("FrameError")),
        (control(&[frame(4, &[0x21; 5000])]), Some("ExcessiveLoad")),
        (after(frame(0x21, &[0; 5000])), None),
        (after([id(7, 8), id(7, 4)].concat()), None),
        (after([id(7, 4), id(7, 8)].concat()), Some("IdError")),
        (after([id(0xd, 4), id(0xd, 8)].concat()), None),
        (after([id(0xd, 8), id(0xd, 4)].concat()), Some("IdError")),
        (after(id(3, 0)), Some("IdError")),
        (after(frame(7, b"\0\0")), Some("FrameError")),
        (after(frame(0xf_0700, b"\x04u=1")), None),
        (after(frame(0xf_0700, b"\x05u=1")), Some("IdError")),
        (after(frame(0xf_0701, b"\0u=1")), Some("IdError")),
        (after(frame(0xf_0700, b"")), Some("FrameError")),
        // Stream types: push, QPACK encoder and QPACK decoder.
        (vec![1], Some("StreamCreationError")),
        (vec![2], None),
        (vec![3], None),
    ];
    for (bytes, expected) in rows {
        let found = error(&bytes, false);
        match expected {
            None => assert_eq!(found, None, "{bytes:?}"),
            Some(expected) => assert!(
                found.as_ref().is_some_and(|found| found.contains(expected)),
                "{expected}: {found:?}"
            ),
        }
    }
}

#[test]
fn critical_streams_may_not_end_and_are_unique() {
    // Types of the control stream, the QPACK encoder stream and the QPACK decoder stream.
    for kind in [0, 2, 3] {
        let bytes = if kind == 0 {
            [vec![0], frame(4, &[])].concat()
        } else {
            vec![kind]
        };
        let found = error(&bytes, true).expect("an error");
        assert!(found.contains("ClosedCriticalStream"), "{found}");

        let mut engine = engine();
        engine.receive_unidirectional(2, 0, &bytes, false).expect("the first");
        assert!(engine.receive_unidirectional(6, 0, &bytes, false).is_err());

        let mut engine = self::engine();
        engine.receive_unidirectional(2, 0, &bytes, false).expect("the first");
        assert!(engine.unidirectional_reset(2, 0).is_err());
        assert!(engine.unidirectional_reset(6, 0).is_ok());
    }
}

#[test]
fn streams_of_unknown_types_are_not_read() {
    let mut engine = engine();
    for stream in [2, 6, 10] {
        let found = engine.receive_unidirectional(stream, 0, &[0x21, 1, 2, 3], false);
        assert!(matches!(found, Ok(UnidirectionalAction::StopReading(_))), "{found:?}");
    }
    // A stream may end before its type has arrived.
    assert_eq!(
        engine.receive_unidirectional(14, 0, &[0x40], true),
        Ok(UnidirectionalAction::Continue)
    );
}

#[test]
fn a_priority_may_arrive_before_its_request() {
    // `Peer::new` has opened stream 2 as the control stream.
    let mut peer = Peer::new();
    let update = |number: u8, text: &str| frame(0xf_0700, &[&[number], text.as_bytes()].concat());
    for (number, text) in [(4, "u=1"), (0, "u=5, i"), (0, "u=6")] {
        peer.engine
            .receive_unidirectional(2, 0, &update(number, text), false)
            .expect("a valid update");
    }
    let (first, second) = (peer.open(), peer.open());
    assert_eq!(
        (
            peer.engine.priority(first).urgency,
            peer.engine.priority(second).urgency
        ),
        (6, 1)
    );
    // An update for an open stream replaces its priority (RFC 9218 §7).
    peer.engine
        .receive_unidirectional(2, 0, &update(4, "u=2"), false)
        .expect("a valid update");
    assert_eq!(peer.engine.priority(second).urgency, 2);
    assert_eq!(peer.engine.take_reprioritized(), None, "no response is pending");
    // The update replaces the priority in the request, too, although it has arrived first.
    let with_priority = [&GET[..], &[("priority", "u=4")]].concat();
    peer.receive(second, &headers(&with_priority), true, usize::MAX);
    assert_eq!(peer.engine.priority(second).urgency, 2);
    // While the response is pending, a changed priority is reported for the transport.
    for text in ["u=0", "u=7, i"] {
        peer.engine
            .receive_unidirectional(2, 0, &update(4, text), false)
            .expect("a valid update");
    }
    let (id, priority) = peer.engine.take_reprioritized().expect("a changed priority");
    assert_eq!((id, priority.urgency, priority.incremental), (second, 7, true));
    assert_eq!(peer.engine.take_reprioritized(), None);
    // The transport may still hold bytes of a response whose stream the engine has removed, so a changed priority is
    // reported here, too.
    peer.engine.abandon(second);
    peer.engine
        .receive_unidirectional(2, 0, &update(4, "u=0"), false)
        .expect("a valid update");
    let changed = peer.engine.take_reprioritized();
    assert_eq!(changed.map(|(id, priority)| (id, priority.urgency)), Some((second, 0)));
}

#[test]
fn goaway_announces_then_rejects() {
    let mut peer = Peer::new();
    let stream = peer.open();
    peer.engine.take_output(Critical::Control);
    peer.engine.begin_drain();
    assert!(peer.engine.is_draining() && !peer.engine.is_drained());
    let announced = peer.engine.take_output(Critical::Control);
    // Type of GOAWAY, length of the payload, and the first byte of the largest stream ID.
    assert_eq!(announced[..3], [7, 8, 0xff]);
    assert!(peer.engine.finish_drain() && !peer.engine.finish_drain());
    // GOAWAY with the ID of the next stream.
    assert_eq!(peer.engine.take_output(Critical::Control), [7, 1, 4]);
    assert!(peer.engine.open(rocknet_proto::h3::StreamId::new(4)).is_err());
    // The open stream is still served.
    let events = peer.receive(stream, &headers(&GET), true, usize::MAX);
    assert_eq!(events, ["GET / end=true continue=false"]);
    assert!(!peer.engine.is_drained());
    peer.engine.end_response(stream);
    assert!(peer.engine.is_drained());
}
