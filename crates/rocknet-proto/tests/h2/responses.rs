//! Tests responses through the API: their order, scheduling, server push, and graceful shutdown.
//!
//! In calls of `respond`, the arguments after the status are the value of Content-Length, the fields, and true if the
//! response has no body. In calls of `queue_body`, the second argument is a number of bytes, and the third is true if
//! these bytes are the last.

use super::check::*;
use rocknet_proto::h2::{
    BodyDelivery, Config, ConnectionEvent, DecodedHead, EncodeError, ErrorCode, PreparedHead, PushRequest, SendError,
    ServerConnection, StreamId,
};
use rocknet_proto::{Limits, Status};

const DATE: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";

/// A connection that has received the client preface, with the frames that it has written.
struct Server {
    connection: ServerConnection,
    head: DecodedHead,
    out: Vec<u8>,
}

impl Server {
    fn new() -> Server {
        let mut server = Server {
            connection: ServerConnection::new(&Config::default()),
            head: DecodedHead::default(),
            out: Vec::new(),
        };
        assert_eq!(server.receive(&beginning()), []);
        server.out.clear();
        server
    }

    /// Receives bytes at time 0 and returns the events that they cause.
    fn receive(&mut self, bytes: &[u8]) -> Vec<ConnectionEvent> {
        let (mut events, mut at) = (Vec::new(), 0);
        loop {
            let Server { connection, head, out } = self;
            let received = connection.receive(&Limits::default(), 0, &bytes[at..], head, out);
            at += received.consumed;
            match received.event {
                ConnectionEvent::More => return events,
                ConnectionEvent::Closed { .. } => {
                    events.push(received.event);
                    return events;
                }
                event => events.push(event),
            }
        }
    }

    /// Receives frames that must cause one request and no other event; returns the stream of the request.
    fn request(&mut self, bytes: &[u8]) -> StreamId {
        match self.receive(bytes)[..] {
            [ConnectionEvent::Request { stream, .. }] => stream,
            ref other => panic!("{other:?}"),
        }
    }

    /// Writes a response head; `end` is true if there is no body.
    fn respond(&mut self, stream: StreamId, end: bool) -> Result<(), SendError> {
        self.connection
            .respond(stream, Status::OK, None, [], end, &mut self.out)
    }

    /// Returns the streams and sizes of all data that may be sent, in parts of at most 1000 bytes.
    fn grants(&mut self) -> Vec<(u32, u64)> {
        std::iter::from_fn(|| self.connection.next_data(1000, &mut self.out))
            .map(|grant| (grant.stream.number(), grant.length))
            .collect()
    }

    /// Removes and returns the written frames.
    fn sent(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}

#[test]
fn refusals_of_head_requests_are_marked() {
    let mut server = Server::new();
    for (number, method, expected) in [(1, "HEAD", true), (3, "POST", false), (5, "HEAD", true)] {
        let pseudo = [
            (":method", method),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "a"),
        ];
        let refused = frame(
            HEADERS,
            END_STREAM | END_HEADERS,
            2 * number - 1,
            block(&[&pseudo[..], &[("host", "b")]].concat()),
        );
        let accepted = frame(HEADERS, END_HEADERS, 2 * number + 1, block(&pseudo));
        let mut events = server.receive(&refused);
        let stream = server.request(&accepted);
        assert_eq!(server.connection.set_body_limit(stream, 99), Ok(()));
        events.extend(server.receive(&frame(DATA, END_STREAM, stream.number(), [b'x'; 100])));
        let is_head = |event: &ConnectionEvent| match event {
            ConnectionEvent::Refused { is_head, .. } => Some(*is_head),
            _ => None,
        };
        let marks: Vec<_> = events.iter().filter_map(is_head).collect();
        assert_eq!(marks, [expected, expected], "{events:?}");
    }
}

#[test]
fn parts_must_be_sent_in_order() {
    let mut server = Server::new();
    let id = server.request(&get(1));
    let Server { connection, out, .. } = &mut server;
    let field = [(b"link".as_slice(), b"</a>; rel=preload".as_slice())];
    let bad = [(b"a".as_slice(), b"\r\n".as_slice())];
    assert_eq!(connection.queue_body(id, 1, false, out), Err(SendError::OutOfOrder));
    assert_eq!(
        connection.finish_with_trailers(id, field, out),
        Err(SendError::OutOfOrder)
    );
    assert_eq!(
        connection.send_interim(id, Status::OK, field, out),
        Err(SendError::OutOfOrder)
    );
    assert_eq!(
        connection.send_interim(id, Status::SWITCHING_PROTOCOLS, field, out),
        Err(SendError::OutOfOrder)
    );
    assert_eq!(
        connection.respond(id, Status::CONTINUE, None, [], true, out),
        Err(SendError::OutOfOrder)
    );
    assert_eq!(
        connection.respond(id, Status::OK, None, bad, true, out),
        Err(SendError::Field(EncodeError::FieldValue))
    );
    assert!(out.is_empty(), "a failed call writes nothing");
    assert_eq!(connection.send_interim(id, Status::CONTINUE, [], out), Ok(()));
    assert_eq!(connection.send_interim(id, Status::EARLY_HINTS, field, out), Ok(()));
    assert_eq!(connection.respond(id, Status::OK, Some(3), [], false, out), Ok(()));
    assert_eq!(
        connection.respond(id, Status::OK, Some(3), [], false, out),
        Err(SendError::OutOfOrder)
    );
    assert_eq!(
        connection.send_interim(id, Status::EARLY_HINTS, field, out),
        Err(SendError::OutOfOrder)
    );
    assert_eq!(connection.queue_body(id, 3, false, out), Ok(()));
    assert_eq!(
        connection.finish_with_trailers(id, field, out),
        Err(SendError::OutOfOrder)
    );
    assert_eq!(
        connection.next_data(9, out).map(|grant| (grant.length, grant.end)),
        Some((3, false))
    );
    assert_eq!(
        connection.finish_with_trailers(id, bad, out),
        Err(SendError::Field(EncodeError::FieldValue))
    );
    assert_eq!(connection.finish_with_trailers(id, field, out), Ok(()));
    for gone in [
        connection.queue_body(id, 1, true, out),
        connection.finish_with_trailers(id, [], out),
    ] {
        assert_eq!(gone, Err(SendError::Gone));
    }
    assert!(connection.is_idle() && !connection.may_respond(id));
}

#[test]
fn an_empty_end_is_written_immediately() {
    let mut server = Server::new();
    let id = server.request(&get(1));
    assert_eq!(server.respond(id, false), Ok(()));
    server.sent();
    assert_eq!(server.connection.queue_body(id, 0, true, &mut server.out), Ok(()));
    assert_eq!(server.sent(), last_data(1, ""));
    // If data is queued, the end of the response waits, too.
    let id = server.request(&get(3));
    assert_eq!(server.respond(id, false), Ok(()));
    assert_eq!(server.connection.queue_body(id, 10, false, &mut server.out), Ok(()));
    assert_eq!(server.connection.queue_body(id, 0, true, &mut server.out), Ok(()));
    assert_eq!(
        server.connection.next_data(100, &mut server.out).map(|grant| grant.end),
        Some(true)
    );
}

#[test]
fn prepared_responses_are_sent_immediately_if_windows_allow() {
    let head =
        PreparedHead::new(Status::OK, Some(13), [(b"Vary".as_slice(), b"Origin".as_slice())]).expect("valid fields");
    let mut server = Server::new();
    let first = server.request(&get(1));
    let sending = server
        .connection
        .respond_prepared(first, &head, DATE, 13, &mut server.out);
    assert_eq!(sending, Ok(BodyDelivery::Now));
    let sent = server.sent();
    // The caller appends the payload of the DATA frame, so only its header is written.
    assert!(sent.ends_with(&last_data(1, "0123456789abc")[..9]));
    // The bytes are the same on any stream, except the stream ID.
    let second = server.request(&get(3));
    assert_eq!(
        server
            .connection
            .respond_prepared(second, &head, DATE, 13, &mut server.out),
        Ok(BodyDelivery::Now)
    );
    let again = server.sent();
    assert_eq!(again[9..again.len() - 9], sent[9..sent.len() - 9]);
    // Without a body, the head ends the stream.
    let third = server.request(&get(5));
    assert_eq!(
        server
            .connection
            .respond_prepared(third, &head, DATE, 0, &mut server.out),
        Ok(BodyDelivery::Done)
    );
    assert_eq!(server.sent()[4], END_STREAM | END_HEADERS);
    assert_eq!(
        server
            .connection
            .respond_prepared(third, &head, DATE, 0, &mut server.out),
        Err(SendError::Gone)
    );
    // A body that is larger than a frame or a window is queued.
    for (stream, size) in [(7, 16_385), (9, 70_000)] {
        let id = server.request(&get(stream));
        assert_eq!(
            server
                .connection
                .respond_prepared(id, &head, DATE, size, &mut server.out),
            Ok(BodyDelivery::Later)
        );
        assert_eq!(server.connection.queued(id), size);
    }
    // A change of the table size (setting 1) is sent before the next head, even a prepared head.
    server.receive(&settings(&[(1, 0)]));
    server.sent();
    let id = server.request(&get(11));
    assert!(
        server
            .connection
            .respond_prepared(id, &head, DATE, 0, &mut server.out)
            .is_ok()
    );
    // The field block begins with the table size 0 and `:status: 200`.
    assert_eq!(server.sent()[9..11], [0x20, 0x88]);
}

/// RFC 9218: more urgent bodies are sent first. Among equally urgent bodies, incremental bodies take turns, and other
/// bodies are sent one after the other.
#[test]
fn bodies_are_scheduled_by_priority() {
    let with = |stream, priority: &str| get_with(stream, &[("priority", priority)]);
    // Returns the streams of the DATA frames in their order. The frames in `between` arrive before any data is sent.
    let order = |requests: &[Vec<u8>], between: &[u8]| {
        let mut server = Server::new();
        for request in requests {
            let id = server.request(request);
            assert_eq!(server.respond(id, false), Ok(()));
            assert_eq!(server.connection.queue_body(id, 2000, true, &mut server.out), Ok(()));
        }
        server.receive(between);
        server
            .grants()
            .into_iter()
            .map(|(stream, _)| stream)
            .collect::<Vec<_>>()
    };
    // Without a priority, streams take turns.
    assert_eq!(order(&[get(1), get(3)], &[]), [1, 3, 1, 3]);
    assert_eq!(order(&[with(1, "u=3"), with(3, "u=3")], &[]), [1, 1, 3, 3]);
    assert_eq!(order(&[with(1, "u=3, i"), with(3, "i")], &[]), [1, 3, 1, 3]);
    assert_eq!(
        order(&[with(1, "u=7"), with(3, "u=1"), get(5)], &[]),
        [3, 3, 5, 5, 1, 1]
    );
    // PRIORITY_UPDATE of an open stream, and of a stream before it opens.
    let update = |stream: u32, field: &str| {
        frame(
            PRIORITY_UPDATE,
            0,
            0,
            [&stream.to_be_bytes()[..], field.as_bytes()].concat(),
        )
    };
    assert_eq!(order(&[get(1), get(3)], &update(3, "u=0")), [3, 3, 1, 1]);
    let ahead = [update(3, "u=0"), get(1)].concat();
    assert_eq!(order(&[ahead, with(3, "u=7")], &[]), [3, 3, 1, 1]);
}

#[test]
fn a_prepared_response_does_not_overtake_a_more_urgent_one() {
    let head = PreparedHead::new(Status::OK, Some(5), []).expect("valid fields");
    for (priority, expected) in [
        ("u=0", BodyDelivery::Now),
        ("u=3", BodyDelivery::Now),
        ("u=7", BodyDelivery::Later),
    ] {
        let mut server = Server::new();
        let id = server.request(&get(1));
        assert_eq!(server.respond(id, false), Ok(()));
        assert_eq!(server.connection.queue_body(id, 2000, true, &mut server.out), Ok(()));
        let id = server.request(&get_with(3, &[("priority", priority)]));
        let sending = server.connection.respond_prepared(id, &head, DATE, 5, &mut server.out);
        assert_eq!(sending, Ok(expected), "{priority}");
    }
}

const STYLE: PushRequest<'_> = PushRequest {
    scheme: b"https",
    authority: b"a",
    path: b"/style.css",
};

#[test]
fn a_promise_opens_a_stream_for_its_response() {
    let mut server = Server::new();
    let page = server.request(&get(1));
    assert_eq!(server.respond(page, false), Ok(()));
    server.sent();
    let Server { connection, out, .. } = &mut server;
    for path in [&b"/a b"[..], b"/a#b", b"a", b""] {
        let bad = PushRequest { path, ..STYLE };
        assert_eq!(
            connection.push_promise(page, &bad, [], out),
            Err(SendError::Field(EncodeError::RequestLine))
        );
        assert!(out.is_empty());
    }
    let pushed = connection
        .push_promise(page, &STYLE, [], out)
        .expect("the client allows push");
    assert_eq!(pushed.number(), 2);
    assert_eq!(out[3..13], [PUSH_PROMISE, END_HEADERS, 0, 0, 0, 1, 0, 0, 0, 2]);
    assert!(!connection.may_push(pushed), "a pushed stream cannot push");
    out.clear();
    assert_eq!(connection.respond(pushed, Status::OK, Some(5), [], false, out), Ok(()));
    assert_eq!(connection.queue_body(pushed, 5, true, out), Ok(()));
    assert_eq!(
        connection.next_data(100, out).map(|grant| (grant.stream, grant.end)),
        Some((pushed, true))
    );
    // The client refuses a push.
    let other = connection
        .push_promise(page, &STYLE, [], out)
        .expect("the client allows push");
    assert_eq!(other.number(), 4);
    let events = server.receive(&rst(4, ErrorCode::Cancel as u32));
    assert!(matches!(events[..], [ConnectionEvent::Reset { stream, .. }] if stream == other));
    assert_eq!(server.respond(other, true), Err(SendError::Gone));
    // The client must not send on a pushed stream.
    let third = server
        .connection
        .push_promise(page, &STYLE, [], &mut server.out)
        .expect("the client still allows push");
    assert!(server.connection.may_respond(third));
    let events = server.receive(&data(6, "x"));
    assert!(
        matches!(
            events[..],
            [ConnectionEvent::Reset {
                code: ErrorCode::StreamClosed,
                ..
            }]
        ),
        "{events:?}"
    );
}

#[test]
fn push_is_refused_if_the_client_does_not_allow_it() {
    // Setting 2 is ENABLE_PUSH, and setting 3 is MAX_CONCURRENT_STREAMS. In the last row, push is allowed until the
    // client sends GOAWAY.
    for (setting, goes_away) in [((2, 0), false), ((3, 0), false), ((3, 100), true)] {
        let mut server = Server::new();
        server.receive(&settings(&[setting]));
        let page = server.request(&get(1));
        assert_eq!(server.connection.may_push(page), goes_away, "{setting:?}");
        if goes_away {
            server.receive(&frame(GOAWAY, 0, 0, [0; 8]));
        }
        assert_eq!(
            server.connection.push_promise(page, &STYLE, [], &mut server.out).err(),
            Some(SendError::OutOfOrder)
        );
    }
    let mut server = Server::new();
    server.receive(&settings(&[(3, 1)]));
    let page = server.request(&get(1));
    assert!(
        server
            .connection
            .push_promise(page, &STYLE, [], &mut server.out)
            .is_ok()
    );
    assert!(!server.connection.may_push(page), "only one concurrent push");
}

/// RFC 9113 §6.8: a graceful shutdown takes two GOAWAY frames, so that no request in flight is lost.
#[test]
fn graceful_shutdown_loses_no_request() {
    let mut server = Server::new();
    let first = server.request(&get(1));
    server.connection.begin_drain(&mut server.out);
    server.connection.begin_drain(&mut server.out);
    // The first GOAWAY has the largest stream ID and the code NO_ERROR. The server chooses the payload of the PING.
    let largest_id = [&[0x7f, 0xff, 0xff, 0xff][..], &[0; 4]].concat();
    assert_eq!(
        server.sent(),
        [frame(GOAWAY, 0, 0, largest_id), frame(PING, 0, 0, "farewell")].concat()
    );
    // This request was in flight when the client received GOAWAY.
    let second = server.request(&get(3));
    assert!(server.receive(&frame(PING, ACK, 0, "farewell")).is_empty());
    assert_eq!(server.sent(), frame(GOAWAY, 0, 0, [0, 0, 0, 3, 0, 0, 0, 0]));
    assert!(server.connection.is_draining() && !server.connection.is_drained());
    // A request after the final GOAWAY is ignored, but its field block is decoded.
    let late = [block(GET_FIELDS), vec![0x40, 1, b'n', 1, b'v']].concat();
    let late = [
        frame(HEADERS, END_HEADERS, 5, late),
        data(5, "x"),
        window(5, 1),
        rst(5, 8),
    ]
    .concat();
    assert!(server.receive(&late).is_empty());
    for id in [first, second] {
        assert!(!server.connection.is_drained());
        assert_eq!(server.respond(id, true), Ok(()));
    }
    assert!(server.connection.is_drained() && !server.connection.is_closed());
    server.sent();
    server.connection.close(ErrorCode::NoError, &mut server.out);
    assert_eq!(server.sent(), frame(GOAWAY, 0, 0, [0, 0, 0, 3, 0, 0, 0, 0]));
    assert!(server.receive(&get(7)).is_empty() && server.connection.is_closed());
}

#[test]
fn a_ping_is_acknowledged() {
    let mut server = Server::new();
    server.connection.ping(*b"alive???", &mut server.out);
    assert_eq!(server.sent(), frame(PING, 0, 0, "alive???"));
    let events = server.receive(&frame(PING, ACK, 0, "alive???"));
    assert_eq!(events, [ConnectionEvent::Pong { opaque: *b"alive???" }]);
}

/// The server preface announces the limits and opens the connection window.
#[test]
fn the_server_preface_announces_its_limits() {
    let (mut connection, mut out) = (ServerConnection::new(&Config::default()), Vec::new());
    connection.write_preface(&Limits::default(), &mut out);
    // The limit of a field list counts 32 bytes for each of 100 fields in addition to their text (RFC 9113 §6.5.2).
    let expected = settings(&[(3, 128), (4, 262_144), (6, 16_384 + 3200), (9, 1)]);
    assert_eq!(out, [expected, window(0, (1 << 20) - 65_535)].concat());
}
