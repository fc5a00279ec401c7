//! Heads that are malformed because of their fields.

use crate::actions::{
    FILE, Field, HEADERS, REQUEST, get_after, get_replaced, get_with, get_without, head, last_frame, last_headers,
};
use crate::case::{Case, Expected, MALFORMED};

/// Name, section of RFC 9114, head, and reaction.
type Row = (&'static str, &'static str, Vec<Field>, Expected);

pub fn cases() -> Vec<Case> {
    let case = |(name, rule, fields, expected): Row| Case::new(name, rule, vec![last_headers(&fields)], expected);
    let mut rows = pseudo_header_fields();
    rows.extend(regular_fields());
    let mut cases: Vec<_> = rows.into_iter().map(case).collect();
    // h3i cannot encode an empty field section.
    let empty = vec![last_frame(REQUEST, HEADERS, b"\0\0")];
    cases.push(Case::new("no field", "RFC 9114 §4.3.1", empty, MALFORMED));
    cases
}

fn pseudo_header_fields() -> Vec<Row> {
    let refused = Expected::status(400);
    let first_regular = get_after(("accept", "*/*"));
    vec![
        ("no :method", "RFC 9114 §4.3.1", get_without(":method"), MALFORMED),
        ("no :scheme", "RFC 9114 §4.3.1", get_without(":scheme"), MALFORMED),
        ("no :path", "RFC 9114 §4.3.1", get_without(":path"), MALFORMED),
        (
            "an empty :path",
            "RFC 9114 §4.3.1",
            get_replaced(":path", ""),
            MALFORMED,
        ),
        // A malformed request may get a response instead of a reset (RFC 9114 §4.1.2).
        (
            ":path without a slash",
            "RFC 9114 §4.3.1",
            get_replaced(":path", "small.txt"),
            refused.clone(),
        ),
        (
            "neither :authority nor Host",
            "RFC 9114 §4.3.1",
            get_without(":authority"),
            refused.clone(),
        ),
        (
            "an empty :authority",
            "RFC 9114 §4.3.1",
            get_replaced(":authority", ""),
            refused.clone(),
        ),
        (
            "a user in :authority",
            "RFC 9114 §4.3.1",
            get_replaced(":authority", "me@localhost"),
            refused.clone(),
        ),
        (
            "Host other than :authority",
            "RFC 9114 §4.3.1",
            get_with(&[("host", "other.test")]),
            refused,
        ),
        (
            "a method with a space",
            "RFC 9110 §9.1",
            get_replaced(":method", "GE T"),
            MALFORMED,
        ),
        (
            "a second :method",
            "RFC 9114 §4.3.1",
            get_after((":method", "GET")),
            MALFORMED,
        ),
        (
            "a second :path",
            "RFC 9114 §4.3.1",
            get_with(&[(":path", "/")]),
            MALFORMED,
        ),
        (
            "pseudo-header fields after a regular one",
            "RFC 9114 §4.3",
            first_regular,
            MALFORMED,
        ),
        (
            "an undefined pseudo-header field",
            "RFC 9114 §4.3",
            get_after((":example", "1")),
            MALFORMED,
        ),
        (
            ":status in a request",
            "RFC 9114 §4.3",
            get_after((":status", "200")),
            MALFORMED,
        ),
        (
            ":protocol without CONNECT",
            "RFC 9220 §3",
            get_after((":protocol", "websocket")),
            MALFORMED,
        ),
        ("CONNECT with :path", "RFC 9114 §4.4", head("CONNECT", FILE), MALFORMED),
        (
            "CONNECT without :authority",
            "RFC 9114 §4.4",
            vec![(":method", "CONNECT")],
            MALFORMED,
        ),
    ]
}

fn regular_fields() -> Vec<Row> {
    let row = |name, rule, field: Field| (name, rule, get_with(&[field]), MALFORMED);
    vec![
        row("a name in upper case", "RFC 9114 §4.2", ("Accept", "*/*")),
        row("a name with one upper-case letter", "RFC 9114 §4.2", ("x-tesT", "1")),
        row("an empty name", "RFC 9114 §10.3", ("", "1")),
        row("a space in a name", "RFC 9114 §10.3", ("x a", "1")),
        row("a colon in a name", "RFC 9114 §10.3", ("x:a", "1")),
        row("a line break in a name", "RFC 9114 §10.3", ("x\r\na", "1")),
        row("a NUL in a value", "RFC 9114 §10.3", ("x-test", "a\0b")),
        row("a CR in a value", "RFC 9114 §10.3", ("x-test", "a\rb")),
        row("a LF in a value", "RFC 9114 §10.3", ("x-test", "a\nb")),
        row("Connection", "RFC 9114 §4.2", ("connection", "close")),
        row("Keep-Alive", "RFC 9114 §4.2", ("keep-alive", "timeout=5")),
        row("Proxy-Connection", "RFC 9114 §4.2", ("proxy-connection", "keep-alive")),
        row("Transfer-Encoding", "RFC 9114 §4.2", ("transfer-encoding", "chunked")),
        row("Upgrade", "RFC 9114 §4.2", ("upgrade", "websocket")),
        row("TE other than trailers", "RFC 9114 §4.2", ("te", "gzip")),
    ]
}
