//! Field sections and instructions of QPACK. They are written as bytes, because quiche has no dynamic table.

use crate::actions::{FILE_CONTENT, HEADERS, REQUEST, SECOND, bytes, get, last_frame, open, pause};
use crate::case::{Case, Expected};
use crate::error_code::ErrorCode;
use h3i::actions::h3::Action;
use h3i::{QPACK_DECODER_STREAM_TYPE_ID, QPACK_ENCODER_STREAM_TYPE_ID};

/// Set Dynamic Table Capacity of 220 bytes, and Insert with Literal Name of `cookie: a=1`.
const INSERTION: &[u8] = b"\x3f\xbd\x01\x46cookie\x03a=1";
/// Field section of a GET with Required Insert Count 1. Its last field is the first entry of the dynamic table.
const REFERENCE: &[u8] = b"\x02\x00\xd1\xd7\x50\x09localhost\x51\x12/app/fields/cookie\x80";

pub fn cases() -> Vec<Case> {
    let mut cases = sections();
    cases.extend(encoder_streams());
    cases.extend(decoder_streams());
    cases
}

fn sections() -> Vec<Case> {
    let failed = || Expected::ConnectionError(ErrorCode::QpackDecompressionFailed);
    let rows: [(&str, &str, &[u8]); 12] = [
        ("an index outside of the static table", "RFC 9204 §3.1", b"\0\0\xff\x24"),
        ("a name outside of the static table", "RFC 9204 §3.1", b"\0\0\x5f\x54\0"),
        ("an entry of the empty dynamic table", "RFC 9204 §2.2.3", b"\0\0\x80"),
        ("a name of the empty dynamic table", "RFC 9204 §2.2.3", b"\0\0\x40\0"),
        (
            "an entry after the base of the empty dynamic table",
            "RFC 9204 §2.2.3",
            b"\0\0\x10",
        ),
        (
            "a Required Insert Count out of range",
            "RFC 9204 §4.5.1.1",
            b"\xff\xff\xff\x07\0\xd1",
        ),
        (
            "a Required Insert Count above the announced table",
            "RFC 9204 §4.5.1.1",
            b"\xc8\0\xd1",
        ),
        (
            "an encoded Required Insert Count of zero",
            "RFC 9204 §4.5.1.1",
            b"\x01\0\xd1",
        ),
        ("a base below zero", "RFC 9204 §4.5.1.2", b"\0\x80\xd1"),
        ("a name that is cut off", "RFC 9204 §4.5.6", b"\0\0\x23a"),
        // A stream error, but each may be treated as a connection error (RFC 9114 §8).
        (
            "an index that is too large",
            "RFC 9204 §7.4",
            b"\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        ),
        (
            "Huffman coding with too much padding",
            "RFC 9204 §4.1.2",
            b"\0\0\x50\x82\xff\xff",
        ),
    ];
    let case = |(name, rule, section)| Case::new(name, rule, vec![last_frame(REQUEST, HEADERS, section)], failed());
    rows.map(case).into()
}

fn encoder_streams() -> Vec<Case> {
    let failed = || Expected::ConnectionError(ErrorCode::QpackEncoderStreamError);
    let encoder = |instructions: &[u8]| [open(SECOND, QPACK_ENCODER_STREAM_TYPE_ID), bytes(SECOND, instructions)];
    let rows: [(&str, &str, &[u8]); 5] = [
        (
            "a capacity above the announced one",
            "RFC 9204 §4.3.1",
            b"\x3f\xff\xff\xff\x0f",
        ),
        (
            "an inserted name outside of the static table",
            "RFC 9204 §3.1",
            b"\x3f\xbd\x01\xff\x24\0",
        ),
        (
            "an inserted name of the empty dynamic table",
            "RFC 9204 §4.3.2",
            b"\x3f\xbd\x01\x80\0",
        ),
        ("a duplicate of a missing entry", "RFC 9204 §4.3.4", b"\x3f\xbd\x01\0"),
        ("an entry above the capacity", "RFC 9204 §3.2.2", b"\x41a\x01b"),
    ];
    let case = |(name, rule, instructions)| Case::new(name, rule, encoder(instructions).into(), failed());
    let mut cases: Vec<_> = rows.map(case).into();
    let request = || last_frame(REQUEST, HEADERS, REFERENCE);
    let cookie = || Expected::body("a=1");
    let inserted_first: Vec<Action> = [&encoder(INSERTION)[..], &[request()]].concat();
    let inserted_last: Vec<Action> = [&[request(), pause()], &encoder(INSERTION)[..]].concat();
    cases.push(Case::new(
        "an entry of the dynamic table",
        "RFC 9204 §3.2",
        inserted_first,
        cookie(),
    ));
    cases.push(Case::new(
        "a field section before its entry",
        "RFC 9204 §2.1.2",
        inserted_last,
        cookie(),
    ));
    cases
}

fn decoder_streams() -> Vec<Case> {
    let failed = || Expected::ConnectionError(ErrorCode::QpackDecoderStreamError);
    let decoder = |instructions: &[u8]| vec![open(SECOND, QPACK_DECODER_STREAM_TYPE_ID), bytes(SECOND, instructions)];
    let cancellation = [decoder(b"\x40"), vec![get(REQUEST)]].concat();
    vec![
        Case::new("an increment of 0", "RFC 9204 §4.4.3", decoder(b"\0"), failed()),
        Case::new(
            "an increment without insertions",
            "RFC 9204 §4.4.3",
            decoder(b"\x01"),
            failed(),
        ),
        Case::new(
            "an acknowledgment of no section",
            "RFC 9204 §4.4.1",
            decoder(b"\x80"),
            failed(),
        ),
        Case::new(
            "a cancellation of a stream without references",
            "RFC 9204 §4.4.2",
            cancellation,
            Expected::body(FILE_CONTENT),
        ),
    ]
}
