//! Constructors of frames, and the functions that check the rows of all test tables.

use rocknet_proto::Limits;
use rocknet_proto::fuzzing::{H2ResponseTiming, h2_transcript};
use rocknet_proto::h2::{Config, PREFACE};

// Flags (RFC 9113 §6).
pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const PADDED: u8 = 8;
pub const PRIORITY: u8 = 0x20;

// Types of frames.
pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY_FRAME: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;
pub const PRIORITY_UPDATE: u8 = 16;

/// Returns a frame. `kind` is the number of its type.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: impl AsRef<[u8]>) -> Vec<u8> {
    let payload = payload.as_ref();
    let length = (payload.len() as u32).to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Returns a field block that has only literals without indexing.
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for string in [name, value] {
            // Longer strings are written with three continuation bytes, which is enough for the tests.
            if string.len() < 127 {
                block.push(string.len() as u8);
            } else {
                let rest = string.len() - 127;
                block.extend_from_slice(&[
                    127,
                    (rest & 0x7f) as u8 | 0x80,
                    (rest >> 7) as u8 | 0x80,
                    (rest >> 14) as u8,
                ]);
            }
            block.extend_from_slice(string.as_bytes());
        }
    }
    block
}

pub const GET_FIELDS: &[(&str, &str)] = &[
    (":method", "GET"),
    (":scheme", "http"),
    (":path", "/"),
    (":authority", "a"),
];
pub const POST_FIELDS: &[(&str, &str)] = &[
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/"),
    (":authority", "a"),
];

/// Returns HEADERS of a GET request that ends with them.
pub fn get(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, stream, block(GET_FIELDS))
}

pub fn get_path(stream: u32, path: &str) -> Vec<u8> {
    let fields = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "a"),
    ];
    frame(HEADERS, END_STREAM | END_HEADERS, stream, block(&fields))
}

pub fn get_with(stream: u32, fields: &[(&str, &str)]) -> Vec<u8> {
    frame(
        HEADERS,
        END_STREAM | END_HEADERS,
        stream,
        block(&[GET_FIELDS, fields].concat()),
    )
}

/// Returns HEADERS of a POST request whose body follows.
pub fn post(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, block(POST_FIELDS))
}

pub fn post_with(stream: u32, fields: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, block(&[POST_FIELDS, fields].concat()))
}

pub fn data(stream: u32, bytes: &str) -> Vec<u8> {
    frame(DATA, 0, stream, bytes)
}

pub fn last_data(stream: u32, bytes: &str) -> Vec<u8> {
    frame(DATA, END_STREAM, stream, bytes)
}

pub fn trailers(stream: u32, fields: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, stream, block(fields))
}

pub fn rst(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, code.to_be_bytes())
}

pub fn window(stream: u32, increment: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, increment.to_be_bytes())
}

pub fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (name, value) in values {
        payload.extend_from_slice(&name.to_be_bytes());
        payload.extend_from_slice(&value.to_be_bytes());
    }
    frame(SETTINGS, 0, 0, payload)
}

/// Returns the preface of a client with empty SETTINGS.
pub fn beginning() -> Vec<u8> {
    [PREFACE.as_slice(), &settings(&[])].concat()
}

/// Checks the transcript of frames after a valid preface, with a response after each request. The expected lines omit
/// the acknowledgement of the SETTINGS in the preface.
pub fn server(frames: &[Vec<u8>], expected: &[&str]) {
    server_with(
        &Limits::default(),
        &Config::default(),
        H2ResponseTiming::AfterBody,
        frames,
        expected,
    );
}

/// Checks the transcript like [`server`], with the limits, configuration and time of the responses as parameters. The
/// bytes are received whole, byte by byte, and cut in two.
pub fn server_with(limits: &Limits, config: &Config, timing: H2ResponseTiming, frames: &[Vec<u8>], expected: &[&str]) {
    let bytes = [beginning(), frames.concat()].concat();
    let check = |found: Vec<String>, how: &str| {
        // The transcript has the events first, and then the frames that were sent.
        let first_event = found.iter().position(|line| !line.starts_with('>')).unwrap_or_default();
        let ack = found.iter().position(|line| line == "> settings ack");
        let mut found = found;
        found.remove(ack.expect("the settings were acknowledged"));
        assert_eq!(first_event, 0);
        assert_eq!(found, expected, "{how}: {}", bytes.escape_ascii());
    };
    let run = |pieces: &[&[u8]]| h2_transcript(pieces, limits, config, timing);
    check(run(&[&bytes]), "whole");
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    check(run(&single), "byte by byte");
    // At most 60 positions of the cut, so that long inputs do not take long.
    for cut in (1..bytes.len()).step_by(bytes.len() / 60 + 1) {
        let (front, back) = bytes.split_at(cut);
        check(run(&[front, back]), "cut in two");
    }
}

/// Checks that the frames end the connection with this error, and that GOAWAY has this last stream and code.
pub fn rejected(frames: &[Vec<u8>], error: &str, last: u32, code: &str) {
    let (error, go_away) = (format!("error {error}"), format!("> go away {last} {code}"));
    let bytes = [beginning(), frames.concat()].concat();
    let found = h2_transcript(
        &[&bytes],
        &Limits::default(),
        &Config::default(),
        H2ResponseTiming::Never,
    );
    assert!(found.contains(&error), "{error}: {found:?}");
    assert_eq!(found.last(), Some(&go_away), "{error}");
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    let again = h2_transcript(&single, &Limits::default(), &Config::default(), H2ResponseTiming::Never);
    assert_eq!(found, again, "byte by byte");
    // More frames must not change the result.
    let followed = [bytes, get(99)].concat();
    let again = h2_transcript(
        &[&followed],
        &Limits::default(),
        &Config::default(),
        H2ResponseTiming::Never,
    );
    assert_eq!(found, again, "with more frames");
}
