//! Tests request bodies: their parts, length, limit, windows and trailers.
//!
//! The functions that create frames take the stream as their first argument. The expected lines are a transcript:
//! events, the state of the connection (`idle`, `more` or `closed`), and the sent frames after `>`. Consecutive data
//! of one stream is one line.
//!
//! In calls of `respond`, the arguments after the status are the value of Content-Length, the fields, and true if the
//! response has no body. In calls of `queue_body`, the second argument is a number of bytes, and the third is true if
//! these bytes are the last.

use super::check::*;
use rocknet_proto::Limits;
use rocknet_proto::fuzzing::H2ResponseTiming;
use rocknet_proto::h2::{Config, ConnectionEvent, DecodedHead, ErrorCode, ReceivedEvent, ServerConnection, StreamId};
use rocknet_proto::status::Status;

/// Transcript line of a POST request on stream 1.
const POST_1: &str = "request 1 POST / @a";
/// Transcript lines of the response to a request on stream 1, with a body of 5 bytes.
const SENT: [&str; 2] = ["> head 1 :status=200 x-a=b", "> data 1 5 end"];

#[test]
fn bodies_arrive_in_parts() {
    server(
        &[post(1), data(1, "ab"), data(1, "c"), last_data(1, "d")],
        &[POST_1, "data 1 abcd", "end 1", "idle", SENT[0], SENT[1]],
    );
    server(
        &[post(1), last_data(1, "")],
        &[POST_1, "data 1 ", "end 1", "idle", SENT[0], SENT[1]],
    );
    server(
        &[post(1), data(1, ""), last_data(1, "x")],
        &[POST_1, "data 1 x", "end 1", "idle", SENT[0], SENT[1]],
    );
    // Two streams concurrently.
    server(
        &[
            post(1),
            post(3),
            data(1, "a"),
            data(3, "b"),
            last_data(1, "c"),
            rst(3, 8),
        ],
        &[
            POST_1,
            "request 3 POST / @a",
            "data 1 a",
            "data 3 b",
            "data 1 c",
            "end 1",
            "reset 3 CANCEL by client",
            "idle",
            SENT[0],
            SENT[1],
        ],
    );
}

/// RFC 9113 §8.1.1: a body whose length differs from Content-Length resets the stream.
#[test]
fn bodies_must_match_content_length() {
    let head = "request 1 POST / @a content-length=3";
    let post = || post_with(1, &[("content-length", "3")]);
    let error = "reset 1 PROTOCOL_ERROR a Content-Length that is invalid or differs from the request body";
    server(
        &[post(), data(1, "ab"), last_data(1, "c")],
        &[head, "data 1 abc", "end 1", "idle", SENT[0], SENT[1]],
    );
    server(
        &[post(), data(1, "abc"), last_data(1, "")],
        &[head, "data 1 abc", "end 1", "idle", SENT[0], SENT[1]],
    );
    server(
        &[post(), data(1, "abc"), trailers(1, &[])],
        &[head, "data 1 abc", "trailers 1", "idle", SENT[0], SENT[1]],
    );
    let reset = "> reset 1 PROTOCOL_ERROR";
    server(&[post(), data(1, "abcd")], &[head, error, "idle", reset]);
    server(
        &[post(), data(1, "ab"), data(1, "cd")],
        &[head, "data 1 ab", error, "idle", reset],
    );
    server(&[post(), last_data(1, "ab")], &[head, error, "idle", reset]);
    server(&[post(), last_data(1, "")], &[head, error, "idle", reset]);
    server(
        &[post(), data(1, "ab"), trailers(1, &[])],
        &[head, "data 1 ab", error, "idle", reset],
    );
}

/// RFC 9113 §8.1: a valid trailer section ends the request, and an invalid section resets the stream.
#[test]
fn trailers_end_the_request() {
    server(
        &[post(1), data(1, "x"), trailers(1, &[("digest", "y"), ("a", "b")])],
        &[POST_1, "data 1 x", "trailers 1 digest=y a=b", "idle", SENT[0], SENT[1]],
    );
    let check = |last: Vec<u8>, error: &str, code: &str| {
        server(
            &[post(1), last],
            &[
                POST_1,
                &format!("reset 1 {code} {error}"),
                "idle",
                &format!("> reset 1 {code}"),
            ],
        );
    };
    let open = frame(HEADERS, END_HEADERS, 1, block(&[("a", "b")]));
    check(open, "a second field block without END_STREAM", "PROTOCOL_ERROR");
    check(post(1), "a second field block without END_STREAM", "PROTOCOL_ERROR");
    check(
        trailers(1, &[(":path", "/")]),
        "a pseudo-header field in trailers",
        "PROTOCOL_ERROR",
    );
    check(
        trailers(1, &[("content-length", "0")]),
        "a field that is forbidden in trailers",
        "PROTOCOL_ERROR",
    );
    check(
        trailers(1, &[("host", "b")]),
        "a field that is forbidden in trailers",
        "PROTOCOL_ERROR",
    );
    check(
        trailers(1, &[("upgrade", "x")]),
        "a field that is forbidden in trailers",
        "PROTOCOL_ERROR",
    );
    check(
        trailers(1, &[("A", "b")]),
        "a field name that is not a lower-case token",
        "PROTOCOL_ERROR",
    );
    let large = "x".repeat(5000);
    check(
        trailers(1, &[("a", &large)]),
        "trailers above the limit of bytes or fields",
        "ENHANCE_YOUR_CALM",
    );
}

#[test]
fn a_body_above_its_limit_is_refused_once() {
    let limits = Limits {
        body_size: 4,
        ..Limits::default()
    };
    let check = |timing, frames: &[Vec<u8>], expected: &[&str]| {
        server_with(&limits, &Config::default(), timing, frames, expected);
    };
    let at_end = H2ResponseTiming::AfterBody;
    check(
        at_end,
        &[post(1), data(1, "ab"), last_data(1, "cd")],
        &[POST_1, "data 1 abcd", "end 1", "idle", SENT[0], SENT[1]],
    );
    check(
        at_end,
        &[post(1), data(1, "abcd"), data(1, "e"), last_data(1, "f"), get(3)],
        &[
            POST_1,
            "data 1 abcd",
            "refused 1 ContentTooLarge",
            "request 3 GET / @a end",
            "idle",
            "> head 1 :status=413 content-length=0 end",
            "> head 3 :status=200 x-a=b",
            "> data 3 5 end",
        ],
    );
}

/// A response may be complete before the request body. The remaining body is discarded, and the stream ends after it.
#[test]
fn a_body_after_its_response_is_discarded() {
    server_with(
        &Limits::default(),
        &Config::default(),
        H2ResponseTiming::AfterHead,
        &[post(1), data(1, "ab"), data(1, "cd"), last_data(1, "ef"), get(3)],
        &[
            POST_1,
            "request 3 GET / @a end",
            "idle",
            "> head 1 :status=200 content-length=5",
            "> data 1 5 end",
            "> head 3 :status=200 content-length=5",
            "> data 3 5 end",
        ],
    );
}

/// A connection that has received one request without its body.
struct Upload {
    connection: ServerConnection,
    head: DecodedHead,
    out: Vec<u8>,
    stream: StreamId,
}

impl Upload {
    fn new(config: &Config) -> Upload {
        let (mut connection, mut head, mut out) = (ServerConnection::new(config), DecodedHead::default(), Vec::new());
        let bytes = [beginning(), post(1)].concat();
        let received = connection.receive(&Limits::default(), 0, &bytes, &mut head, &mut out);
        let ConnectionEvent::Request { stream, .. } = received.event else {
            panic!("{received:?}")
        };
        assert_eq!(received.consumed, bytes.len());
        out.clear();
        Upload {
            connection,
            head,
            out,
            stream,
        }
    }

    /// Receives bytes at time 0 and returns the first event.
    fn receive(&mut self, bytes: &[u8]) -> ReceivedEvent {
        let Upload {
            connection, head, out, ..
        } = self;
        connection.receive(&Limits::default(), 0, bytes, head, out)
    }

    /// Removes and returns the frames that the connection has written.
    fn sent(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}

/// Configuration with the smallest windows that a connection uses: the initial window of HTTP/2 (RFC 9113 §6.9.2).
const NARROW: Config = Config {
    streams: 8,
    stream_window: 65_535,
    connection_window: 65_535,
    connect_protocol: false,
};

#[test]
fn released_bytes_reopen_windows() {
    let mut upload = Upload::new(&NARROW);
    let (piece, stream) = (frame(DATA, 0, 1, vec![b'x'; 16_000]), upload.stream);
    for round in 0..4 {
        let received = upload.receive(&piece);
        assert!(
            matches!(received.event, ConnectionEvent::Data { .. }),
            "{round}: {received:?}"
        );
        assert!(upload.sent().is_empty(), "no window is opened before data is released");
    }
    upload.connection.release(stream, 30_000, &mut upload.out);
    assert!(upload.sent().is_empty(), "less than half a window is not granted");
    upload.connection.release(stream, 3000, &mut upload.out);
    assert_eq!(upload.sent(), [window(1, 33_000), window(0, 33_000)].concat());
    for _ in 0..2 {
        assert!(matches!(upload.receive(&piece).event, ConnectionEvent::Data { .. }));
    }
    let received = upload.receive(&piece);
    assert!(matches!(received.event, ConnectionEvent::Closed { .. }), "{received:?}");
    assert!(upload.sent().ends_with(&[0, 0, 0, ErrorCode::FlowControlError as u8]));
}

#[test]
fn a_stream_above_its_window_is_reset() {
    let wide = Config {
        connection_window: 1 << 20,
        ..NARROW
    };
    let mut upload = Upload::new(&wide);
    let full = frame(DATA, 0, 1, vec![b'x'; 16_384]);
    for _ in 0..3 {
        assert!(matches!(upload.receive(&full).event, ConnectionEvent::Data { .. }));
    }
    let ConnectionEvent::Reset { code, .. } = upload.receive(&full).event else {
        panic!("no reset")
    };
    assert_eq!(code, ErrorCode::FlowControlError);
    assert_eq!(upload.sent(), rst(1, ErrorCode::FlowControlError as u32));
}

/// The end of a response body discards the remaining request body. In a tunnel, the end of the sent data closes only
/// that direction.
#[test]
fn the_end_of_a_tunnel_closes_one_direction() {
    for is_tunnel in [false, true] {
        let mut upload = Upload::new(&NARROW);
        let stream = upload.stream;
        let piece = frame(DATA, 0, 1, vec![b'x'; 1000]);
        if is_tunnel {
            // A tunnel ignores the body limit: `piece` is larger than the limit, and is accepted.
            upload
                .connection
                .set_body_limit(stream, 10)
                .expect("no body was received yet");
            upload.connection.begin_tunnel(stream);
        }
        let head = upload
            .connection
            .respond(stream, Status::OK, None, [], false, &mut upload.out);
        assert_eq!(head, Ok(()));
        assert_eq!(upload.connection.queue_body(stream, 0, true, &mut upload.out), Ok(()));
        let received = upload.receive(&piece);
        // The data follows the nine bytes of the frame header.
        let reported = matches!(
            received.event,
            ConnectionEvent::Data {
                start: 9,
                end: 1009,
                last: false,
                ..
            }
        );
        assert_eq!(reported, is_tunnel, "{received:?}");
        assert_eq!(upload.connection.receives_body(stream), is_tunnel);
        upload.connection.discard_body(stream, &mut upload.out);
        let received = upload.receive(&piece);
        assert_eq!(received.event, ConnectionEvent::More, "the body is discarded");
    }
}

/// Unreleased bytes of a stream are returned to the connection window when the stream is reset or ends, or when its
/// body is discarded.
#[test]
fn unreleased_bytes_are_returned_to_the_connection_window() {
    // The server resets the stream, the server discards the body, the client resets the stream, or the response ends.
    for way in 0..4 {
        let mut upload = Upload::new(&NARROW);
        let piece = frame(DATA, 0, 1, vec![b'x'; 16_000]);
        for _ in 0..3 {
            assert!(matches!(upload.receive(&piece).event, ConnectionEvent::Data { .. }));
        }
        let stream = upload.stream;
        match way {
            0 => upload.connection.reset(stream, ErrorCode::Cancel, &mut upload.out),
            1 => upload.connection.discard_body(stream, &mut upload.out),
            2 => {
                assert!(matches!(
                    upload.receive(&rst(1, 8)).event,
                    ConnectionEvent::Reset { .. }
                ));
            }
            _ => {
                let sent =
                    upload
                        .connection
                        .respond(stream, rocknet_proto::Status::OK, None, [], true, &mut upload.out);
                assert_eq!(sent, Ok(()));
            }
        }
        let granted = window(0, 48_000);
        let sent = upload.sent();
        assert!(
            sent.windows(granted.len()).any(|part| part == granted),
            "way {way}: {sent:?}"
        );
        // The bytes are not returned a second time.
        upload.connection.release(stream, 48_000, &mut upload.out);
        assert!(upload.sent().is_empty(), "way {way}");
    }
}

/// A discarded body is received until its window is exhausted. Then the stream is reset with NO_ERROR.
#[test]
fn a_discarded_body_is_limited_to_its_window() {
    let mut upload = Upload::new(&NARROW);
    let stream = upload.stream;
    let sent = upload
        .connection
        .respond(stream, rocknet_proto::Status::OK, None, [], true, &mut upload.out);
    assert_eq!(sent, Ok(()));
    upload.sent();
    // Together, the frames fill the window of 65,535 bytes.
    for size in [16_384, 16_384, 16_384, 16_383] {
        let received = upload.receive(&frame(DATA, 0, 1, vec![b'x'; size]));
        assert_eq!(received.event, ConnectionEvent::More);
    }
    let sent = upload.sent();
    assert!(sent.ends_with(&rst(1, 0)), "{sent:?}");
    // Frames that were in flight are discarded.
    assert_eq!(upload.receive(&data(1, "late")).event, ConnectionEvent::More);
    assert!(upload.connection.is_idle() && !upload.connection.is_closed());
}

/// Returns the types of the frames in `bytes`. The last frame may lack its payload.
fn kinds(mut bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(header) = bytes.get(..9) {
        all.push(header[3]);
        let length = usize::from(header[1]) << 8 | usize::from(header[2]);
        bytes = bytes.get(9 + length..).unwrap_or_default();
    }
    all
}

/// WINDOW_UPDATE and RST_STREAM at the end of a stream are not written between the header of a DATA frame and its
/// payload.
#[test]
fn no_frame_separates_a_header_from_its_payload() {
    // Columns 1 and 2: true if the client has ended the request, and number of body bytes that it has sent. Column 3:
    // types of the frames up to the last DATA header of the response. Column 4: types of the frames after its payload.
    for (ended, sent, before, after) in [
        (true, 1_000, &[DATA][..], &[][..]),
        (true, 65_535, &[WINDOW_UPDATE, DATA], &[]),
        (false, 65_534, &[WINDOW_UPDATE, DATA], &[]),
        (false, 65_535, &[WINDOW_UPDATE, DATA], &[RST_STREAM]),
    ] {
        let what = format!("{sent} bytes, ended: {ended}");
        let mut upload = Upload::new(&NARROW);
        let mut left = sent;
        while left > 0 {
            let now = left.min(16_000);
            left -= now;
            let flags = u8::from(ended && left == 0);
            let received = upload.receive(&frame(DATA, flags, 1, vec![b'x'; now]));
            assert!(
                matches!(received.event, ConnectionEvent::Data { .. }),
                "{what}: {received:?}"
            );
        }
        let Upload {
            connection,
            stream,
            out,
            ..
        } = &mut upload;
        assert_eq!(connection.respond(*stream, Status::OK, None, [], false, out), Ok(()));
        assert_eq!(connection.queue_body(*stream, 5, true, out), Ok(()));
        upload.sent();
        let Upload { connection, out, .. } = &mut upload;
        let grant = connection.next_data(1000, out).expect("room");
        assert_eq!((grant.length, grant.end), (5, true), "{what}");
        let written = upload.sent();
        assert_eq!(kinds(&written), before, "{what}");
        assert_eq!(written[written.len() - 9..], [0, 0, 5, DATA, 1, 0, 0, 0, 1], "{what}");
        let Upload { connection, out, .. } = &mut upload;
        assert_eq!(connection.next_data(1000, out), None);
        assert_eq!(kinds(&upload.sent()), after, "{what}");
    }
}
