//! Tests frames and stream states by the sections of RFC 9113: each invalid frame causes the required error code.
//!
//! The expected lines are those of a transcript: events, the state of the connection (`idle`, `more` or `closed`), and
//! the sent frames after `>`.
//!
//! In flags, 4 is END_HEADERS, and 5 is END_STREAM and END_HEADERS. Type 22 is unknown, and error code 8 is CANCEL.
//! Setting 4 is INITIAL_WINDOW_SIZE, and setting 5 is MAX_FRAME_SIZE.

use super::check::*;
use rocknet_proto::Limits;
use rocknet_proto::fuzzing::{H2ResponseTiming, h2_transcript};
use rocknet_proto::h2::{Config, PREFACE};

/// Transcript line of a GET request on stream 1.
const GET_1: &str = "request 1 GET / @a end";
/// Transcript lines of the response to a request on stream 1, with a body of 5 bytes.
const SENT_1: [&str; 2] = ["> head 1 :status=200 x-a=b", "> data 1 5 end"];

/// §3.4: the client preface with its SETTINGS frame.
#[test]
fn the_client_preface_is_validated() {
    let get = get(1);
    for (bytes, expected) in [
        (PREFACE.to_vec(), vec!["idle"]),
        (PREFACE[..10].to_vec(), vec!["more"]),
        (
            b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            vec!["error Preface", "closed", "> go away 0 PROTOCOL_ERROR"],
        ),
        (
            b"PRI * HTTP/2.0\r\n\r\nXX".to_vec(),
            vec!["error Preface", "closed", "> go away 0 PROTOCOL_ERROR"],
        ),
        (
            [PREFACE.as_slice(), &get].concat(),
            vec!["error MissingSettings", "closed", "> go away 0 PROTOCOL_ERROR"],
        ),
        (
            [PREFACE.as_slice(), &frame(SETTINGS, ACK, 0, "")].concat(),
            vec!["error MissingSettings", "closed", "> go away 0 PROTOCOL_ERROR"],
        ),
    ] {
        for size in [1, 7, 1000] {
            let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
            let found = h2_transcript(
                &pieces,
                &Limits::default(),
                &Config::default(),
                H2ResponseTiming::AfterBody,
            );
            assert_eq!(found, expected, "{}", bytes.escape_ascii());
        }
    }
}

#[test]
fn a_request_gets_a_response() {
    server(&[get(1)], &[GET_1, "idle", SENT_1[0], SENT_1[1]]);
}

/// §4.1, §5.5: unknown frames and flags are ignored.
#[test]
fn unknown_frames_and_flags_are_ignored() {
    let expected = [GET_1, "idle", SENT_1[0], SENT_1[1]];
    server(&[frame(22, 0, 0, "unknown"), get(1)], &expected);
    server(&[frame(22, 0xff, 0, [0; 300]), get(1)], &expected);
    server(
        &[frame(SETTINGS, 0, 0, [0xff, 0, 0, 0, 0, 1]), get(1)],
        &[GET_1, "idle", "> settings ack", SENT_1[0], SENT_1[1]],
    );
    server(&[frame(PING, 0x16, 0, "12345678")], &["idle", "> pong 12345678"]);
    // The reserved bit before the stream ID is ignored.
    let mut reserved = get(1);
    reserved[5] |= 0x80;
    server(&[reserved], &expected);
}

/// §4.2, §6: frames of an invalid size or on an invalid stream for their type.
#[test]
fn invalid_sizes_and_streams_are_errors() {
    let large = vec![0; 16_385];
    // Checks for FRAME_SIZE_ERROR; `last` is the stream that GOAWAY names.
    let size = |frames: &[Vec<u8>], error, last| rejected(frames, error, last, "FRAME_SIZE_ERROR");
    size(&[post(1), frame(DATA, 0, 1, &large)], "FrameTooLarge", 1);
    size(&[frame(HEADERS, 5, 1, &large)], "FrameTooLarge", 0);
    size(&[frame(SETTINGS, 0, 0, &large)], "FrameTooLarge", 0);
    size(&[frame(22, 0, 0, &large)], "FrameTooLarge", 0);
    size(&[frame(PRIORITY_FRAME, 0, 1, [0; 4])], "FrameSize", 0);
    size(&[get(1), frame(RST_STREAM, 0, 1, [0; 3])], "FrameSize", 1);
    size(&[frame(SETTINGS, ACK, 0, [0; 6])], "FrameSize", 0);
    size(&[frame(SETTINGS, 0, 0, [0; 5])], "FrameSize", 0);
    size(&[frame(PING, 0, 0, [0; 7])], "FrameSize", 0);
    size(&[frame(GOAWAY, 0, 0, [0; 7])], "FrameSize", 0);
    size(&[frame(WINDOW_UPDATE, 0, 0, [0; 3])], "FrameSize", 0);
    size(&[frame(PRIORITY_UPDATE, 0, 0, [0; 3])], "FrameSize", 0);
    // Frame type, a stream that the type does not allow, and the size of the payload in bytes.
    for (kind, stream, length) in [
        (DATA, 0, 0),
        (HEADERS, 0, 0),
        (PRIORITY_FRAME, 0, 5),
        (RST_STREAM, 0, 4),
        (CONTINUATION, 0, 0),
        (SETTINGS, 1, 0),
        (PING, 1, 8),
        (GOAWAY, 1, 8),
        (PRIORITY_UPDATE, 1, 4),
    ] {
        let bytes = vec![0; length];
        rejected(&[frame(kind, 0, stream, bytes)], "WrongStream", 0, "PROTOCOL_ERROR");
    }
    rejected(
        &[frame(PUSH_PROMISE, 4, 1, [0, 0, 0, 2])],
        "PushFromClient",
        0,
        "PROTOCOL_ERROR",
    );
}

/// §5.1: frames on idle streams.
#[test]
fn frames_on_idle_streams_are_errors() {
    for frame in [data(1, "x"), rst(1, 8), window(1, 1), data(2, ""), window(2, 5)] {
        rejected(&[frame], "IdleStream", 0, "PROTOCOL_ERROR");
    }
    rejected(&[frame(CONTINUATION, 4, 1, "")], "Continuation", 0, "PROTOCOL_ERROR");
    // PRIORITY is allowed in any state.
    server(
        &[frame(PRIORITY_FRAME, 0, 9, [0; 5]), get(1)],
        &[GET_1, "idle", SENT_1[0], SENT_1[1]],
    );
}

/// §5.1: frames on streams that the client has ended.
#[test]
fn data_after_the_end_of_a_stream_resets_it() {
    // Checks the transcript of a server that does not respond to requests.
    let config = Config::default();
    let never = |frames: &[Vec<u8>], expected: &[&str]| {
        server_with(&Limits::default(), &config, H2ResponseTiming::Never, frames, expected);
    };
    let closed = "reset 1 STREAM_CLOSED a frame after the end of its stream";
    never(
        &[get(1), data(1, "x")],
        &[GET_1, closed, "idle", "> reset 1 STREAM_CLOSED"],
    );
    never(
        &[get(1), trailers(1, &[("a", "b")])],
        &[GET_1, closed, "idle", "> reset 1 STREAM_CLOSED"],
    );
    rejected(
        &[get(1), frame(CONTINUATION, 4, 1, "")],
        "Continuation",
        1,
        "PROTOCOL_ERROR",
    );
    // Control frames on the stream remain valid.
    never(
        &[get(1), window(1, 1), frame(PRIORITY_FRAME, 0, 1, [0; 5])],
        &[GET_1, "more"],
    );
    never(&[get(1), rst(1, 8)], &[GET_1, "reset 1 CANCEL by client", "idle"]);
}

/// §5.1: frames on closed streams.
#[test]
fn frames_on_closed_streams_are_errors() {
    // Checks that a frame on stream 1, after a request and its whole response, ends the connection.
    let check = |frame: Vec<u8>, error: &str, code: &str| {
        let bytes = [beginning(), get(1), frame].concat();
        let found = h2_transcript(
            &[&bytes],
            &Limits::default(),
            &Config::default(),
            H2ResponseTiming::AfterHead,
        );
        assert_eq!(found[..3], [GET_1, &format!("error {error}"), "closed"], "{error}");
        assert_eq!(found.last(), Some(&format!("> go away 1 {code}")), "{error}");
    };
    check(data(1, "x"), "ClosedStream", "STREAM_CLOSED");
    check(trailers(1, &[]), "ClosedStream", "STREAM_CLOSED");
    check(frame(CONTINUATION, 4, 1, ""), "Continuation", "PROTOCOL_ERROR");
    // After RST_STREAM from the client, the stream is closed.
    rejected(&[get(1), rst(1, 8), data(1, "x")], "ClosedStream", 1, "STREAM_CLOSED");
    rejected(&[get(1), rst(1, 8), get(1)], "ClosedStream", 1, "STREAM_CLOSED");
    // These frames may still be in flight, so they are ignored. The head of the response was sent before the reset, and
    // its body is discarded.
    server(
        &[
            get(1),
            rst(1, 8),
            window(1, 5),
            rst(1, 8),
            frame(PRIORITY_FRAME, 0, 1, [0; 5]),
        ],
        &[GET_1, "reset 1 CANCEL by client", "idle", SENT_1[0]],
    );
}

/// §5.1: frames in flight to a stream that the server has reset are ignored, but their field blocks are decoded.
#[test]
fn frames_in_flight_to_a_reset_stream_are_ignored() {
    // The last five bytes add the field `n: v` to the dynamic table, where it has the index 62.
    let indexed = [block(POST_FIELDS), vec![0x40, 1, b'n', 1, b'v']].concat();
    let by_index = [block(GET_FIELDS), vec![0x80 | 62]].concat();
    server(
        &[
            post_with(1, &[("content-length", "1")]),
            data(1, "xx"),
            data(1, "yy"),
            window(1, 10),
            frame(
                HEADERS,
                5,
                1,
                [&block(&[("t", "u")])[..], &indexed[indexed.len() - 5..]].concat(),
            ),
            frame(HEADERS, 5, 3, by_index),
        ],
        &[
            "request 1 POST / @a content-length=1",
            "reset 1 PROTOCOL_ERROR a Content-Length that is invalid or differs from the request body",
            "request 3 GET / @a n=v end",
            "idle",
            "> reset 1 PROTOCOL_ERROR",
            "> head 3 :status=200 x-a=b",
            "> data 3 5 end",
        ],
    );
}

/// §5.1.1: stream identifiers.
#[test]
fn stream_ids_are_odd_and_increase() {
    rejected(&[get(2)], "InvalidStreamId", 0, "PROTOCOL_ERROR");
    rejected(&[get(5), get(3)], "InvalidStreamId", 5, "PROTOCOL_ERROR");
}

/// §5.1.2: more concurrent streams than allowed.
#[test]
fn streams_above_the_limit_are_refused() {
    let config = Config {
        streams: 1,
        ..Config::default()
    };
    server_with(
        &Limits::default(),
        &config,
        H2ResponseTiming::Never,
        &[get(1), get(3), rst(1, 8), get(5)],
        &[
            GET_1,
            "rejected Refused",
            "reset 1 CANCEL by client",
            "request 5 GET / @a end",
            "more",
            "> reset 3 REFUSED_STREAM",
        ],
    );
}

/// §6.1, §6.2: padding of DATA and HEADERS.
#[test]
fn padding_is_validated_and_removed() {
    let padded = |kind, flags, stream, payload: &[u8]| frame(kind, flags | PADDED, stream, payload);
    let head = [&[3][..], &block(POST_FIELDS), &[0; 3]].concat();
    server(
        &[
            padded(HEADERS, END_HEADERS, 1, &head),
            padded(DATA, 0, 1, b"\x02ab\0\0"),
            padded(DATA, 0, 1, b"\x00c"),
            padded(DATA, END_STREAM, 1, b"\x01\0"),
        ],
        &[
            "request 1 POST / @a",
            "data 1 abc",
            "end 1",
            "idle",
            SENT_1[0],
            SENT_1[1],
        ],
    );
    for payload in [&b"\x01"[..], b"\x03ab", b"\xffabc"] {
        rejected(&[post(1), padded(DATA, 0, 1, payload)], "Padding", 1, "PROTOCOL_ERROR");
        rejected(
            &[padded(HEADERS, END_HEADERS, 1, payload)],
            "Padding",
            0,
            "PROTOCOL_ERROR",
        );
    }
    rejected(&[post(1), padded(DATA, 0, 1, b"")], "FrameSize", 1, "FRAME_SIZE_ERROR");
}

/// RFC 7540 §5.3.1: a stream must not depend on itself. This is the only rule of the deprecated priorities that is
/// still enforced.
#[test]
fn a_stream_must_not_depend_on_itself() {
    // Returns the payload of HEADERS with a dependency on a stream.
    let on = |stream: u8| [&[0, 0, 0, stream, 16][..], &block(GET_FIELDS)].concat();
    server(
        &[frame(HEADERS, 5 | PRIORITY, 1, on(3))],
        &[GET_1, "idle", SENT_1[0], SENT_1[1]],
    );
    server(
        &[frame(HEADERS, 5 | PRIORITY, 1, on(1))],
        &["rejected SelfDependency", "idle", "> reset 1 PROTOCOL_ERROR"],
    );
    rejected(
        &[frame(PRIORITY_FRAME, 0, 5, [0x80, 0, 0, 5, 1])],
        "SelfDependency",
        0,
        "PROTOCOL_ERROR",
    );
}

/// §6.5: valid and invalid settings of the client.
#[test]
fn settings_are_acknowledged_or_rejected() {
    // Settings 1 and 3 are HEADER_TABLE_SIZE and MAX_CONCURRENT_STREAMS, and setting 99 is unknown.
    server(&[settings(&[(1, 0), (3, 5), (99, 1)])], &["idle", "> settings ack"]);
    server(&[frame(SETTINGS, ACK, 0, "")], &["idle"]);
    // Settings 2, 8 and 9 are ENABLE_PUSH, ENABLE_CONNECT_PROTOCOL and NO_RFC7540_PRIORITIES.
    for (name, value, error, code) in [
        (2, 2, "InvalidSetting", "PROTOCOL_ERROR"),
        (4, 1 << 31, "InitialWindowTooLarge", "FLOW_CONTROL_ERROR"),
        (5, 16_383, "InvalidSetting", "PROTOCOL_ERROR"),
        (5, 1 << 24, "InvalidSetting", "PROTOCOL_ERROR"),
        (8, 2, "InvalidSetting", "PROTOCOL_ERROR"),
        (9, 2, "InvalidSetting", "PROTOCOL_ERROR"),
    ] {
        rejected(&[settings(&[(name, value)])], error, 0, code);
    }
}

/// §6.7, §6.8: PING is acknowledged, and requests after a GOAWAY of the client are still served.
#[test]
fn pings_are_acknowledged_and_goaway_is_reported() {
    server(
        &[frame(PING, 0, 0, "12345678"), frame(PING, ACK, 0, "abcdefgh")],
        &["pong abcdefgh", "idle", "> pong 12345678"],
    );
    server(
        &[frame(GOAWAY, 0, 0, [0, 0, 0, 0, 0, 0, 0, 2, b'w', b'h', b'y']), get(1)],
        &["client goes INTERNAL_ERROR", GET_1, "idle", SENT_1[0], SENT_1[1]],
    );
}

/// §6.9: invalid window updates.
#[test]
fn invalid_window_updates_are_errors() {
    rejected(&[window(0, 0)], "ZeroWindowIncrement", 0, "PROTOCOL_ERROR");
    rejected(&[window(0, 0x7fff_ffff)], "WindowTooLarge", 0, "FLOW_CONTROL_ERROR");
    let never = |frames: &[Vec<u8>], expected: &[&str]| {
        server_with(
            &Limits::default(),
            &Config::default(),
            H2ResponseTiming::Never,
            frames,
            expected,
        );
    };
    never(
        &[get(1), window(1, 0)],
        &[
            GET_1,
            "reset 1 PROTOCOL_ERROR a WINDOW_UPDATE of zero on a stream",
            "idle",
            "> reset 1 PROTOCOL_ERROR",
        ],
    );
    never(
        &[get(1), window(1, 0x7fff_ffff)],
        &[
            GET_1,
            "reset 1 FLOW_CONTROL_ERROR a stream window above 2^31-1",
            "idle",
            "> reset 1 FLOW_CONTROL_ERROR",
        ],
    );
    rejected(
        &[get(1), window(1, 1), settings(&[(4, 0x7fff_ffff)])],
        "InitialWindowTooLarge",
        1,
        "FLOW_CONTROL_ERROR",
    );
}

/// §6.9.1, §6.9.2: windows limit response bodies, even after the initial window has changed.
#[test]
fn windows_limit_bodies() {
    // The response to `/big` has a body of 100,000 bytes. The initial windows have 65,535 bytes.
    let big = "request 1 GET /big @a end";
    let head = "> head 1 :status=200 x-a=b";
    // The window of the connection is smaller.
    server(
        &[settings(&[(4, 200_000)]), get_path(1, "/big")],
        &[
            big,
            "more",
            "> settings ack",
            head,
            "> data 1 16384",
            "> data 1 16384",
            "> data 1 16384",
            "> data 1 16383",
        ],
    );
    // The window of the stream is smaller.
    server(
        &[settings(&[(4, 10)]), window(0, 100_000), get_path(1, "/big")],
        &[big, "more", "> settings ack", head, "> data 1 10"],
    );
    // The test server sends bodies only after it has received all frames. Until then, each setting changes the window
    // of the stream by its difference from the previous setting, so the window has 100, 50, 57 and finally 7 bytes.
    server(
        &[
            settings(&[(4, 100)]),
            get_path(1, "/big"),
            settings(&[(4, 50)]),
            window(1, 7),
            settings(&[(4, 0)]),
        ],
        &[
            big,
            "more",
            "> settings ack",
            head,
            "> settings ack",
            "> settings ack",
            "> data 1 7",
        ],
    );
    server(
        &[settings(&[(4, 0)]), get(1)],
        &[GET_1, "more", "> settings ack", SENT_1[0]],
    );
    server(
        &[settings(&[(4, 0)]), get(1), window(1, 3), window(1, 2)],
        &[GET_1, "idle", "> settings ack", SENT_1[0], SENT_1[1]],
    );
    // Frames have the maximum size that the client permits.
    server(
        &[settings(&[(5, 20_000)]), get_path(1, "/big")],
        &[
            big,
            "more",
            "> settings ack",
            head,
            "> data 1 20000",
            "> data 1 20000",
            "> data 1 20000",
            "> data 1 5535",
        ],
    );
}

/// §4.3, §6.10: field blocks that are split into several frames.
#[test]
fn only_continuations_follow_an_open_field_block() {
    let block = block(GET_FIELDS);
    let (front, back) = block.split_at(7);
    let expected = [GET_1, "idle", SENT_1[0], SENT_1[1]];
    server(
        &[
            frame(HEADERS, END_STREAM, 1, front),
            frame(CONTINUATION, END_HEADERS, 1, back),
        ],
        &expected,
    );
    let pieces: Vec<Vec<u8>> = std::iter::once(frame(HEADERS, END_STREAM, 1, ""))
        .chain(block.chunks(8).map(|piece| frame(CONTINUATION, 0, 1, piece)))
        .chain([frame(CONTINUATION, END_HEADERS, 1, "")])
        .collect();
    server(&pieces, &expected);
    let open = frame(HEADERS, END_STREAM, 1, front);
    for other in [
        get(1),
        get(3),
        frame(PING, 0, 0, [0; 8]),
        data(1, ""),
        frame(CONTINUATION, 4, 3, back),
        frame(22, 0, 0, ""),
    ] {
        rejected(&[open.clone(), other], "Continuation", 0, "PROTOCOL_ERROR");
    }
    rejected(
        &[get(1), frame(CONTINUATION, 4, 1, back)],
        "Continuation",
        1,
        "PROTOCOL_ERROR",
    );
}

/// §4.3, RFC 7541: invalid field blocks.
#[test]
fn invalid_field_blocks_are_compression_errors() {
    // In order: index 0, index 62 with an empty dynamic table, a table size after a field, and a table size of 4097
    // bytes (more than 4096). Then a Huffman string that is only padding, and a name that lacks four of its five
    // bytes.
    for (block, error) in [
        (&[0x80][..], "Compression(Index)"),
        (&[0xbe], "Compression(Index)"),
        (&[0x82, 0x20], "Compression(MisplacedTableSize)"),
        (&[0x3f, 0xe2, 0x1f], "Compression(TableSize)"),
        (&[0x00, 0x81, 0xff], "Compression(HuffmanPadding)"),
        (&[0x40, 5, b'a'], "Compression(Truncated)"),
    ] {
        rejected(&[frame(HEADERS, 5, 1, block)], error, 1, "COMPRESSION_ERROR");
    }
}
