//! Valid requests, some of them unusual.

use crate::actions::{
    COOKIES, DIGEST, FILE, FILE_CONTENT, Field, REQUEST, RESERVED, bytes, data, frame, get, get_with, get_without,
    head, headers, last_bytes, last_data, last_frame, last_headers,
};
use crate::case::{Case, Expected};

/// Length and SHA-256 of `test`.
const DIGEST_OF_TEST: &str = "4 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
/// Number of cookies, each in its own field.
const CRUMBS: usize = 50;

pub fn cases() -> Vec<Case> {
    let file = || Expected::body(FILE_CONTENT);
    let digest = || Expected::body(DIGEST_OF_TEST);
    let post = |more: &[Field]| headers(&[&head("POST", DIGEST)[..], more].concat());
    let crumbs = [head("GET", COOKIES), vec![("cookie", "a=1"); CRUMBS]].concat();
    let joined = vec!["a=1"; CRUMBS].join("; ");
    let host = [get_without(":authority"), vec![("host", "localhost")]].concat();
    let reserved = || RESERVED.map(|kind| frame(REQUEST, kind, b"ignored"));
    let mut around = reserved().to_vec();
    around.push(post(&[]));
    around.extend(reserved());
    around.push(data("te"));
    around.extend(reserved());
    around.push(data("st"));
    around.extend(reserved());
    around.push(last_frame(REQUEST, RESERVED[0], b""));
    vec![
        Case::new("GET", "RFC 9114 §4.1", vec![get(REQUEST)], file()),
        Case::without_control_stream(
            "GET without a control stream",
            "RFC 9114 §6.2.1",
            vec![get(REQUEST)],
            file(),
        ),
        Case::new(
            "HEAD",
            "RFC 9114 §4.1",
            vec![last_headers(&head("HEAD", FILE))],
            Expected::body(""),
        ),
        Case::new(
            "a path without a file",
            "RFC 9110 §15.5.5",
            vec![last_headers(&head("GET", "/nowhere"))],
            Expected::status(404),
        ),
        Case::new(
            "Host instead of :authority",
            "RFC 9114 §4.3.1",
            vec![last_headers(&host)],
            file(),
        ),
        Case::new(
            "Host equal to :authority",
            "RFC 9114 §4.3.1",
            vec![last_headers(&get_with(&[("host", "localhost")]))],
            file(),
        ),
        Case::new(
            "TE with trailers",
            "RFC 9114 §4.2",
            vec![last_headers(&get_with(&[("te", "trailers")]))],
            file(),
        ),
        Case::new(
            "many Cookie fields, which upstreams get as one",
            "RFC 9114 §4.2.1",
            vec![last_headers(&crumbs)],
            Expected::body(joined),
        ),
        Case::new(
            "a body in pieces with an empty one",
            "RFC 9114 §7.2.1",
            vec![
                post(&[("content-length", "4")]),
                data("t"),
                data(""),
                data("es"),
                last_data("t"),
            ],
            digest(),
        ),
        Case::new(
            "a body without Content-Length",
            "RFC 9114 §4.1",
            vec![post(&[]), data("test"), last_bytes(REQUEST, b"")],
            digest(),
        ),
        Case::new(
            "trailers",
            "RFC 9114 §4.1",
            vec![post(&[]), data("test"), last_headers(&[("x-trailer", "1")])],
            digest(),
        ),
        Case::new(
            "Expect, with the body sent at once",
            "RFC 9110 §10.1.1",
            vec![
                post(&[("expect", "100-continue"), ("content-length", "4")]),
                last_data("test"),
            ],
            digest(),
        ),
        Case::new("reserved frames around all others", "RFC 9114 §7.2.8", around, digest()),
        Case::new(
            "a DATA frame whose type and length have more bytes than necessary",
            "RFC 9000 §16",
            vec![
                post(&[]),
                bytes(REQUEST, &[0x40, 0x00, 0xc0, 0, 0, 0, 0, 0, 0, 4]),
                last_bytes(REQUEST, b"test"),
            ],
            digest(),
        ),
    ]
}
