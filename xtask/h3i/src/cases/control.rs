//! Frames on the control stream: SETTINGS, GOAWAY, push IDs and priorities.

use crate::actions::{
    CANCEL_PUSH, CONTROL, DATA, FRAMES_OF_HTTP2, GOAWAY, HEADERS, MAX_PUSH_ID, PRIORITY_UPDATE_PUSH,
    PRIORITY_UPDATE_REQUEST, PUSH_PROMISE, REQUEST, RESERVED, SETTINGS, frame, get, integer, open, settings,
};
use crate::case::{Case, Expected, UNEXPECTED};
use crate::error_code::ErrorCode;
use h3i::HTTP3_CONTROL_STREAM_TYPE_ID;
use h3i::actions::h3::Action;

const ID_ERROR: Expected = Expected::ConnectionError(ErrorCode::IdError);
const FRAME_ERROR: Expected = Expected::ConnectionError(ErrorCode::FrameError);
const SETTINGS_ERROR: Expected = Expected::ConnectionError(ErrorCode::SettingsError);

pub fn cases() -> Vec<Case> {
    let mut cases = after_settings();
    cases.extend(first_frames());
    cases.extend(ignored());
    cases
}

/// Errors after SETTINGS.
fn after_settings() -> Vec<Case> {
    let integer = |kind, value| integer(CONTROL, kind, value);
    let frame = |kind, payload| frame(CONTROL, kind, payload);
    let rows: Vec<(&str, &str, Vec<Action>, Expected)> = vec![
        (
            "DATA on the control stream",
            "RFC 9114 §7.2.1",
            vec![frame(DATA, b"data")],
            UNEXPECTED,
        ),
        (
            "HEADERS on the control stream",
            "RFC 9114 §7.2.2",
            vec![frame(HEADERS, b"\0\0\xd1")],
            UNEXPECTED,
        ),
        (
            "a second SETTINGS frame",
            "RFC 9114 §7.2.4",
            vec![settings(&[])],
            UNEXPECTED,
        ),
        (
            "PUSH_PROMISE on the control stream",
            "RFC 9114 §7.2.5",
            vec![frame(PUSH_PROMISE, b"\0\0\0")],
            UNEXPECTED,
        ),
        (
            "CANCEL_PUSH of a push without promise",
            "RFC 9114 §7.2.3",
            vec![integer(CANCEL_PUSH, 0)],
            ID_ERROR,
        ),
        (
            "CANCEL_PUSH of a permitted push ID without promise",
            "RFC 9114 §7.2.3",
            vec![integer(MAX_PUSH_ID, 8), integer(CANCEL_PUSH, 0)],
            ID_ERROR,
        ),
        (
            "MAX_PUSH_ID that decreases",
            "RFC 9114 §7.2.7",
            vec![integer(MAX_PUSH_ID, 8), integer(MAX_PUSH_ID, 7)],
            ID_ERROR,
        ),
        (
            "GOAWAY that increases",
            "RFC 9114 §5.2",
            vec![integer(GOAWAY, 4), integer(GOAWAY, 8)],
            ID_ERROR,
        ),
        (
            "CANCEL_PUSH of two numbers",
            "RFC 9114 §7.1",
            vec![frame(CANCEL_PUSH, b"\0\0")],
            FRAME_ERROR,
        ),
        (
            "GOAWAY of two numbers",
            "RFC 9114 §7.1",
            vec![frame(GOAWAY, b"\0\0")],
            FRAME_ERROR,
        ),
        (
            "MAX_PUSH_ID of two numbers",
            "RFC 9114 §7.1",
            vec![frame(MAX_PUSH_ID, b"\0\0")],
            FRAME_ERROR,
        ),
        (
            "an empty GOAWAY",
            "RFC 9114 §7.1",
            vec![frame(GOAWAY, b"")],
            FRAME_ERROR,
        ),
        (
            "an empty MAX_PUSH_ID",
            "RFC 9114 §7.1",
            vec![frame(MAX_PUSH_ID, b"")],
            FRAME_ERROR,
        ),
        (
            "MAX_PUSH_ID that is cut off",
            "RFC 9114 §7.1",
            vec![frame(MAX_PUSH_ID, b"\x40")],
            FRAME_ERROR,
        ),
        (
            "PRIORITY_UPDATE of a unidirectional stream",
            "RFC 9218 §7.2",
            vec![frame(PRIORITY_UPDATE_REQUEST, b"\x02u=1")],
            ID_ERROR,
        ),
        (
            "PRIORITY_UPDATE of a stream of the server",
            "RFC 9218 §7.2",
            vec![frame(PRIORITY_UPDATE_REQUEST, b"\x01u=1")],
            ID_ERROR,
        ),
        (
            "PRIORITY_UPDATE of a push without promise",
            "RFC 9218 §7.2",
            vec![frame(PRIORITY_UPDATE_PUSH, b"\0u=1")],
            ID_ERROR,
        ),
    ];
    let cases = rows
        .into_iter()
        .map(|(name, rule, actions, expected)| Case::new(name, rule, actions, expected));
    let of_http2 =
        FRAMES_OF_HTTP2.map(|(name, kind)| Case::new(name, "RFC 9114 §7.2.8", vec![frame(kind, &[0; 5])], UNEXPECTED));
    cases.chain(of_http2).collect()
}

/// Errors of the first frame.
fn first_frames() -> Vec<Case> {
    let missing = || Expected::ConnectionError(ErrorCode::MissingSettings);
    let first = |kind, payload| frame(CONTROL, kind, payload);
    let rows: Vec<(&str, &str, Action, Expected)> = vec![
        (
            "GOAWAY before SETTINGS",
            "RFC 9114 §6.2.1",
            first(GOAWAY, b"\0"),
            missing(),
        ),
        (
            "MAX_PUSH_ID before SETTINGS",
            "RFC 9114 §6.2.1",
            first(MAX_PUSH_ID, b"\0"),
            missing(),
        ),
        (
            "a reserved frame before SETTINGS",
            "RFC 9114 §6.2.1",
            first(RESERVED[0], b""),
            missing(),
        ),
        ("setting 0x00", "RFC 9114 §11.2.2", settings(&[[0, 9]]), SETTINGS_ERROR),
        (
            "setting 0x02 of HTTP/2",
            "RFC 9114 §7.2.4.1",
            settings(&[[2, 0]]),
            SETTINGS_ERROR,
        ),
        (
            "setting 0x03 of HTTP/2",
            "RFC 9114 §7.2.4.1",
            settings(&[[3, 9]]),
            SETTINGS_ERROR,
        ),
        (
            "setting 0x04 of HTTP/2",
            "RFC 9114 §7.2.4.1",
            settings(&[[4, 9]]),
            SETTINGS_ERROR,
        ),
        (
            "setting 0x05 of HTTP/2",
            "RFC 9114 §7.2.4.1",
            settings(&[[5, 9]]),
            SETTINGS_ERROR,
        ),
        (
            "a repeated setting",
            "RFC 9114 §7.2.4",
            settings(&[[6, 9], [6, 9]]),
            SETTINGS_ERROR,
        ),
        (
            "a setting without a value",
            "RFC 9114 §7.1",
            first(SETTINGS, b"\x06"),
            FRAME_ERROR,
        ),
        (
            "a setting that is cut off",
            "RFC 9114 §7.1",
            first(SETTINGS, b"\x06\x40"),
            FRAME_ERROR,
        ),
    ];
    let case = |(name, rule, action, expected)| {
        let actions = vec![open(CONTROL, HTTP3_CONTROL_STREAM_TYPE_ID), action];
        Case::without_control_stream(name, rule, actions, expected)
    };
    rows.into_iter().map(case).collect()
}

/// Unusual uses that the server has to accept.
fn ignored() -> Vec<Case> {
    let file = || Expected::body(crate::actions::FILE_CONTENT);
    let integer = |kind, value| integer(CONTROL, kind, value);
    let reserved = RESERVED.map(|kind| frame(CONTROL, kind, b"ignored"));
    let settings = settings(&[[0x21, 7], [6, 63], [1, 0], [7, 0]]);
    vec![
        Case::new(
            "MAX_PUSH_ID that increases",
            "RFC 9114 §7.2.7",
            vec![integer(MAX_PUSH_ID, 4), integer(MAX_PUSH_ID, 8), get(REQUEST)],
            file(),
        ),
        Case::new(
            "GOAWAY that decreases",
            "RFC 9114 §5.2",
            vec![integer(GOAWAY, 8), integer(GOAWAY, 4), get(REQUEST)],
            file(),
        ),
        Case::new(
            "PRIORITY_UPDATE before its request",
            "RFC 9218 §7.2",
            vec![frame(CONTROL, PRIORITY_UPDATE_REQUEST, b"\0u=1, i"), get(REQUEST)],
            file(),
        ),
        Case::new(
            "PRIORITY_UPDATE with an urgency out of range",
            "RFC 9218 §4",
            vec![frame(CONTROL, PRIORITY_UPDATE_REQUEST, b"\0u=9"), get(REQUEST)],
            file(),
        ),
        Case::new(
            "reserved frames on the control stream",
            "RFC 9114 §7.2.8",
            [&reserved[..], &[get(REQUEST)]].concat(),
            file(),
        ),
        Case::without_control_stream(
            "a reserved setting and others",
            "RFC 9114 §7.2.4.1",
            vec![open(CONTROL, HTTP3_CONTROL_STREAM_TYPE_ID), settings, get(REQUEST)],
            file(),
        ),
    ]
}
