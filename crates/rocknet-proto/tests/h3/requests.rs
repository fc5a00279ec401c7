//! Tests valid and malformed requests (RFC 9114 §4), and misplaced or invalid frames (RFC 9114 §7).
//!
//! Frame types: 0 DATA, 1 HEADERS, 4 SETTINGS, 7 GOAWAY, 0xd MAX_PUSH_ID, 0xf0700 PRIORITY_UPDATE; 0x21 and 0x40 are
//! unknown. A request is reported as `GET / end=… continue=…`: `end` is true if neither a body nor trailers follow, and
//! `continue` is true if the client waits for 100. The event `last` ends a body.
//!
//! The second argument of `Peer::request` and the third argument of `Peer::receive` are true if the stream ends with
//! these bytes. The fourth argument of `Peer::receive` is the size of the pieces in which the bytes arrive; with
//! `usize::MAX` they arrive at once.

use rocknet_proto::Status;
use rocknet_proto::h3::{Critical, ErrorCode, StreamError};

use super::wire::{GET, Peer, frame, headers, post};

#[test]
fn requests_with_and_without_body() {
    let data = |text: &str| frame(0, text.as_bytes());
    // Bytes of the stream, and the expected events.
    let rows: Vec<(Vec<u8>, &[&str])> = vec![
        (headers(&GET), &["GET / end=true continue=false"]),
        (
            [headers(&post(&[])), data("abc")].concat(),
            &["POST / end=false continue=false", "body abc", "last"],
        ),
        (
            [headers(&post(&[("content-length", "6")])), data("abc"), data("def")].concat(),
            &["POST / end=false continue=false", "body abcdef", "last"],
        ),
        (
            [headers(&post(&[])), data("abc"), headers(&[("x-sum", "1")])].concat(),
            &["POST / end=false continue=false", "body abc", "trailers"],
        ),
        (
            [headers(&post(&[("expect", "100-continue")])), data("a")].concat(),
            &["POST / end=false continue=true", "body a", "last"],
        ),
        // An unknown frame is ignored wherever it is (RFC 9114 §9).
        (
            [
                frame(0x21, b"x"),
                headers(&post(&[])),
                frame(0x40, b""),
                data("a"),
                frame(0x21, b"y"),
            ]
            .concat(),
            &["POST / end=false continue=false", "body a", "last"],
        ),
    ];
    for (bytes, expected) in rows {
        assert_eq!(Peer::new().request(&bytes, true), expected);
    }
}

#[test]
fn malformed_requests_reset_their_stream() {
    let with = |replaced: usize, field: (&'static str, &'static str)| {
        let mut fields = GET.to_vec();
        fields[replaced] = field;
        headers(&fields)
    };
    let plus = |more: (&'static str, &'static str)| headers(&[&GET[..], &[more]].concat());
    let body = |fields: &[(&'static str, &'static str)], body: &str| {
        [headers(&post(fields)), frame(0, body.as_bytes())].concat()
    };
    // Bytes of the stream, and the error in the last event.
    let rows: Vec<(Vec<u8>, &str)> = vec![
        (headers(&GET[..3]), "PseudoMissing"),
        (headers(&[&GET[..], &GET[..1]].concat()), "PseudoRepeated"),
        (headers(&[&[("x", "y")], &GET[..]].concat()), "PseudoAfterFields"),
        (plus((":status", "200")), "PseudoOfResponse"),
        (plus(("X-Upper", "1")), "FieldName"),
        (plus(("x", "a\nb")), "FieldValue"),
        (plus(("connection", "close")), "ConnectionField"),
        (plus(("transfer-encoding", "chunked")), "ConnectionField"),
        (plus(("te", "gzip")), "Te"),
        (with(3, (":path", "")), "PathEmpty"),
        (plus(("content-length", "1")), "ContentLength"),
        (body(&[("content-length", "3")], "ab"), "ContentLength"),
        (body(&[("content-length", "1")], "ab"), "ContentLength"),
        (
            [headers(&post(&[])), headers(&[(":path", "/")])].concat(),
            "PseudoInTrailers",
        ),
        (
            [headers(&post(&[])), headers(&[("content-length", "1")])].concat(),
            "ForbiddenTrailer",
        ),
    ];
    for (bytes, expected) in rows {
        let mut peer = Peer::new();
        let events = peer.request(&bytes, true);
        let last = events.last().expect("an event");
        assert!(
            last.contains(expected) && last.starts_with("Reset"),
            "{expected}: {events:?}"
        );
        // The connection continues. It is not idle, because the second request has no response yet.
        assert_eq!(peer.request(&headers(&GET), true), ["GET / end=true continue=false"]);
        assert!(!peer.engine.is_idle());
    }
}

#[test]
fn an_incomplete_request_is_reset() {
    for bytes in [Vec::new(), frame(0x21, b"x")] {
        let events = Peer::new().request(&bytes, true);
        assert_eq!(events, ["Reset { error: Incomplete, is_pending: false }"]);
    }
}

#[test]
fn misplaced_and_invalid_frames_close_the_connection() {
    let get = headers(&GET);
    let trailers = headers(&[("x", "1")]);
    // Bytes of the stream, and the error in the last event.
    let rows: Vec<(Vec<u8>, &str)> = vec![
        (frame(0, b"a"), "FrameUnexpected"),
        ([&get[..], &trailers, &trailers].concat(), "FrameUnexpected"),
        ([&get[..], &trailers, &frame(0, b"a")].concat(), "FrameUnexpected"),
        // Frames of the control stream, and PUSH_PROMISE (5), which only a server sends.
        (frame(4, b""), "FrameUnexpected"),
        (frame(5, b""), "FrameUnexpected"),
        (frame(7, b"\0"), "FrameUnexpected"),
        (frame(0xd, b"\0"), "FrameUnexpected"),
        (frame(0xf_0700, b"\0"), "FrameUnexpected"),
        // Types of frames that exist only in HTTP/2.
        (frame(2, b""), "FrameUnexpected"),
        (frame(6, b""), "FrameUnexpected"),
        // The stream ends within a frame.
        (get[..get.len() - 1].to_vec(), "FrameError"),
        (get[..1].to_vec(), "FrameError"),
        ([&get[..], &[0, 5, b'a']].concat(), "FrameError"),
        // A field section that cannot be decoded.
        (frame(1, &[0, 0, 0xff, 0xff, 0xff]), "Qpack"),
        (frame(1, &[0]), "Qpack"),
    ];
    for (bytes, expected) in rows {
        let events = Peer::new().request(&bytes, true);
        let last = events.last().expect("an event");
        assert!(
            last.contains(expected) && last.starts_with("Closed"),
            "{expected}: {events:?}"
        );
    }
}

#[test]
fn requests_above_a_limit_or_without_a_valid_host_are_refused() {
    let long = "x".repeat(9000);
    let many: Vec<(&str, &str)> = GET.into_iter().chain((0..200).map(|_| ("x", "1"))).collect();
    let path = [GET[0], GET[1], GET[2], (":path", &long)];
    let (large, huge) = ("x".repeat(20_000), "x".repeat(70_000));
    let field = |value| [GET[0], GET[1], GET[2], GET[3], ("x", value)];
    // Bytes of the stream, and the refusal in the first event.
    for (bytes, expected) in [
        (headers(&path), "TargetTooLong"),
        (headers(&many), "TooMany"),
        (headers(&field(&large)), "TooLarge"),
        // This section is so large that it is not even received.
        (headers(&field(&huge)), "TooLarge"),
        // These requests are within all limits: the first has no host, and the second has two hosts.
        (headers(&[GET[0], GET[1], GET[3]]), "HostMissing"),
        (headers(&[&GET[..], &[("host", "b")]].concat()), "HostMismatch"),
    ] {
        let mut peer = Peer::new();
        let events = peer.request(&bytes, true);
        assert!(
            events[0].starts_with("Refused") && events[0].contains(expected),
            "{events:?}"
        );
        assert_eq!(peer.request(&headers(&GET), true), ["GET / end=true continue=false"]);
    }
}

#[test]
fn sections_after_a_cancellation_are_not_acknowledged() {
    let huge = "x".repeat(70_000);
    let mut peer = Peer::new();
    // The type of the encoder stream, a table capacity of 4096 bytes, and an insertion of `a: b`.
    let inserts = [2, 0x3f, 0xe1, 0x1f, 0x41, b'a', 1, b'b'];
    peer.engine
        .receive_unidirectional(6, 0, &inserts, false)
        .expect("an encoder stream");
    peer.engine.take_output(Critical::Decoder);
    let stream = peer.open();
    let head = headers(&[GET[0], GET[1], GET[2], GET[3], ("x", &huge)]);
    let events = peer.receive(stream, &head, false, usize::MAX);
    assert!(events[0].contains("TooLarge"), "{events:?}");
    let cancellation = [0x40];
    assert_eq!(peer.engine.take_output(Critical::Decoder), cancellation);
    // Trailers that refer to the entry. The client may have released its references already.
    let trailers = frame(1, &[2, 0, 0x80]);
    assert_eq!(peer.receive(stream, &trailers, true, usize::MAX), [""; 0]);
    assert_eq!(peer.engine.take_output(Critical::Decoder), cancellation);
    peer.engine.end_response(stream);
    assert!(!peer.engine.is_open(stream));
    // The same trailers of another request are acknowledged.
    let events = peer.request(&[headers(&GET), trailers].concat(), true);
    assert_eq!(events, ["GET / end=false continue=false", "trailers"]);
    assert_eq!(peer.engine.take_output(Critical::Decoder), [0x84]);
}

#[test]
fn a_body_above_its_limit_is_refused_or_reset() {
    let bytes = [headers(&post(&[])), frame(0, &[b'x'; 100])].concat();
    let mut peer = Peer::new();
    let stream = peer.open();
    assert_eq!(peer.receive(stream, &headers(&post(&[])), false, usize::MAX).len(), 1);
    assert_eq!(peer.engine.set_body_limit(stream, 99), Ok(()));
    let events = peer.receive(stream, &frame(0, &[b'x'; 100]), true, usize::MAX);
    assert_eq!(events, ["Refused { refusal: ContentTooLarge, is_head: false }"]);

    let mut peer = Peer::new();
    let announced = headers(&post(&[("content-length", "100")]));
    let stream = peer.open();
    assert_eq!(peer.receive(stream, &announced, false, usize::MAX).len(), 1);
    assert!(peer.engine.set_body_limit(stream, 99).is_err());
    assert!(peer.engine.set_body_limit(stream, 100).is_ok());

    // After the response has begun, the stream is cancelled.
    let mut peer = Peer::new();
    let stream = peer.open();
    peer.receive(stream, &headers(&post(&[])), false, usize::MAX);
    assert_eq!(peer.engine.set_body_limit(stream, 99), Ok(()));
    let responded = peer.engine.respond(stream, Status::OK, None, [], &mut Vec::new());
    assert_eq!(responded, Ok(()));
    let events = peer.receive(stream, &frame(0, &[b'x'; 100]), true, usize::MAX);
    assert!(events[0].starts_with("Reset { error: BodyTooLarge"), "{events:?}");
    assert_eq!(StreamError::BodyTooLarge.code(), ErrorCode::RequestCancelled);

    peer = Peer::new();
    peer.limits.body_size = 50;
    let events = peer.request(&bytes, true);
    assert_eq!(events[1], "Refused { refusal: ContentTooLarge, is_head: false }");
}

#[test]
fn refusals_of_head_requests_are_marked() {
    let mut peer = Peer::new();
    peer.limits.body_size = 50;
    for (method, is_head) in [("HEAD", true), ("POST", false), ("HEAD", true)] {
        let fields = |further: &[(&'static str, &'static str)]| {
            let pseudo = [
                (":method", method),
                (":scheme", "https"),
                (":path", "/"),
                (":authority", "a"),
            ];
            headers(&[&pseudo[..], further].concat())
        };
        let with_body = [fields(&[]), frame(0, &[b'x'; 100])].concat();
        let end = format!("is_head: {is_head} }}");
        for bytes in [with_body, fields(&[("host", "b")])] {
            let events = peer.request(&bytes, true);
            let last = events.last().expect("an event");
            assert!(last.starts_with("Refused") && last.ends_with(&end), "{events:?}");
        }
    }
}

/// The events do not depend on the split of the bytes, in a case that the random bytes of `splits.rs` rarely reach.
#[test]
fn a_body_that_ends_too_early_is_reported_before_the_error() {
    let bytes = [headers(&post(&[("content-length", "6")])), frame(0, b"abcd")].concat();
    for size in [1, bytes.len()] {
        let mut peer = Peer::new();
        let stream = peer.open();
        let events = peer.receive(stream, &bytes, true, size);
        assert_eq!(events[1], "body abcd", "{size}");
        assert!(
            events[2].starts_with("Reset { error: Malformed(ContentLength)"),
            "{events:?}"
        );
    }
}

#[test]
fn unknown_frames_before_the_end_are_not_a_body() {
    let unknown = frame(0x21, b"yy");
    // Bytes after the head of a GET request, and the expected events.
    let rows: [(Vec<u8>, &[&str]); 4] = [
        ([&unknown[..], &unknown].concat(), &["GET / end=true continue=false"]),
        (
            [&unknown[..], &frame(0, b"a")].concat(),
            &["GET / end=false continue=false", "body a", "last"],
        ),
        (
            unknown[..3].to_vec(),
            &["GET / end=false continue=false", "Closed { error: FrameError }"],
        ),
        (
            frame(4, b""),
            &["GET / end=false continue=false", "Closed { error: FrameUnexpected }"],
        ),
    ];
    for (after, expected) in rows {
        let bytes = [headers(&GET), after].concat();
        assert_eq!(Peer::new().request(&bytes, true), expected, "{bytes:?}");
    }
}
