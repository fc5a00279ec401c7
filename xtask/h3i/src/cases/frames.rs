//! Frames on request streams: their order, types and layout.

use crate::actions::{
    CANCEL_PUSH, DATA, DIGEST, FRAMES_OF_HTTP2, GOAWAY, HEADERS, MAX_PUSH_ID, PRIORITY_UPDATE_PUSH,
    PRIORITY_UPDATE_REQUEST, PUSH_PROMISE, REQUEST, RESERVED, SETTINGS, bytes, data, frame, head, headers, last_bytes,
    last_data, last_frame, last_headers,
};
use crate::case::{Case, Expected, UNEXPECTED};
use crate::error_code::ErrorCode;
use h3i::actions::h3::Action;

/// Frames that belong to the control stream, and PUSH_PROMISE, which only servers send. Their payloads are valid.
const FORBIDDEN: [(&str, &str, u64, &[u8]); 7] = [
    ("CANCEL_PUSH in a request", "RFC 9114 §7.2.3", CANCEL_PUSH, b"\0"),
    ("SETTINGS in a request", "RFC 9114 §7.2.4", SETTINGS, b""),
    ("PUSH_PROMISE of a client", "RFC 9114 §7.2.5", PUSH_PROMISE, b"\0\0\0"),
    ("GOAWAY in a request", "RFC 9114 §7.2.6", GOAWAY, b"\0"),
    ("MAX_PUSH_ID in a request", "RFC 9114 §7.2.7", MAX_PUSH_ID, b"\0"),
    (
        "PRIORITY_UPDATE in a request",
        "RFC 9218 §7.2",
        PRIORITY_UPDATE_REQUEST,
        b"\0u=1",
    ),
    (
        "PRIORITY_UPDATE of a push in a request",
        "RFC 9218 §7.2",
        PRIORITY_UPDATE_PUSH,
        b"\0u=1",
    ),
];

pub fn cases() -> Vec<Case> {
    let mut cases = order();
    cases.extend(layout());
    for (name, rule, kind, payload) in FORBIDDEN {
        let first = vec![last_frame(REQUEST, kind, payload)];
        cases.push(Case::new(name, rule, first, UNEXPECTED));
    }
    for (name, kind) in FRAMES_OF_HTTP2 {
        let after_head = vec![post(), frame(REQUEST, kind, &[0; 5])];
        cases.push(Case::new(name, "RFC 9114 §7.2.8", after_head, UNEXPECTED));
    }
    cases
}

fn post() -> Action {
    headers(&head("POST", DIGEST))
}

fn order() -> Vec<Case> {
    let rule = "RFC 9114 §4.1";
    let incomplete = Expected::StreamError(ErrorCode::RequestIncomplete);
    let trailers = || headers(&[("x-trailer", "1")]);
    vec![
        Case::new("DATA before HEADERS", rule, vec![last_data("early")], UNEXPECTED),
        Case::new(
            "DATA after trailers",
            rule,
            vec![post(), trailers(), last_data("late")],
            UNEXPECTED,
        ),
        Case::new(
            "HEADERS after trailers",
            rule,
            vec![post(), trailers(), last_headers(&[("x-trailer", "1")])],
            UNEXPECTED,
        ),
        Case::new(
            "an empty request stream",
            rule,
            vec![last_bytes(REQUEST, b"")],
            incomplete.clone(),
        ),
        Case::new(
            "a request stream with a reserved frame only",
            rule,
            vec![last_frame(REQUEST, RESERVED[0], b"ignored")],
            incomplete,
        ),
    ]
}

fn layout() -> Vec<Case> {
    let rule = "RFC 9114 §7.1";
    let error = || Expected::ConnectionError(ErrorCode::FrameError);
    vec![
        Case::new(
            "a HEADERS frame that is cut off",
            rule,
            vec![last_bytes(REQUEST, b"\x01\x20\0\0")],
            error(),
        ),
        Case::new(
            "a DATA frame that is cut off",
            rule,
            vec![post(), data("te"), last_bytes(REQUEST, b"\0\x09st")],
            error(),
        ),
        Case::new(
            "a frame header that is cut off",
            rule,
            vec![post(), bytes(REQUEST, &[DATA as u8]), last_bytes(REQUEST, b"\x40")],
            error(),
        ),
        Case::new(
            "a frame type that is cut off",
            rule,
            vec![post(), last_bytes(REQUEST, b"\xc0")],
            error(),
        ),
        Case::new(
            "a reserved frame that is cut off",
            rule,
            vec![post(), last_bytes(REQUEST, b"\x21\x09ign")],
            error(),
        ),
        Case::new(
            "a HEADERS frame without a payload",
            "RFC 9204 §4.5.1",
            vec![last_frame(REQUEST, HEADERS, b"")],
            Expected::ConnectionError(ErrorCode::QpackDecompressionFailed),
        ),
    ]
}
