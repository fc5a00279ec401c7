//! Bodies that differ from Content-Length, and trailers that are malformed.

use crate::actions::{DIGEST, Field, data, head, headers, last_data, last_headers};
use crate::case::{Case, MALFORMED};
use h3i::actions::h3::Action;

/// The upstream responds only after it has received the body. The server must not respond earlier either, because it
/// would then not read the rest.
fn post(fields: &[Field]) -> Action {
    headers(&[&head("POST", DIGEST)[..], fields].concat())
}

fn post_of(length: &'static str) -> Action {
    post(&[("content-length", length)])
}

pub fn cases() -> Vec<Case> {
    let without_body = [head("POST", DIGEST), vec![("content-length", "4")]].concat();
    let lengths: [(&str, &str, Vec<Action>); 9] = [
        (
            "Content-Length above the body",
            "RFC 9114 §4.1.2",
            vec![post_of("5"), last_data("test")],
        ),
        (
            "Content-Length below the body",
            "RFC 9114 §4.1.2",
            vec![post_of("3"), last_data("test")],
        ),
        (
            "Content-Length below a body in pieces",
            "RFC 9114 §4.1.2",
            vec![post_of("3"), data("te"), last_data("st")],
        ),
        (
            "Content-Length without a body",
            "RFC 9114 §4.1.2",
            vec![last_headers(&without_body)],
        ),
        (
            "a body with Content-Length 0",
            "RFC 9114 §4.1.2",
            vec![post_of("0"), last_data("test")],
        ),
        (
            "Content-Length above the body before trailers",
            "RFC 9114 §4.1.2",
            vec![post_of("5"), data("test"), last_headers(&[("x-trailer", "1")])],
        ),
        (
            "Content-Length that is no number",
            "RFC 9110 §8.6",
            vec![post_of("four"), last_data("test")],
        ),
        (
            "Content-Length with a sign",
            "RFC 9110 §8.6",
            vec![post_of("+4"), last_data("test")],
        ),
        (
            "two different Content-Length fields",
            "RFC 9110 §8.6",
            vec![
                post(&[("content-length", "4"), ("content-length", "5")]),
                last_data("test"),
            ],
        ),
    ];
    let trailers: [(&str, &str, Field); 5] = [
        ("a pseudo-header field in trailers", "RFC 9114 §4.3", (":path", "/")),
        (
            "an undefined pseudo-header field in trailers",
            "RFC 9114 §4.3",
            (":example", "1"),
        ),
        ("a name in upper case in trailers", "RFC 9114 §4.2", ("X-Trailer", "1")),
        ("Connection in trailers", "RFC 9114 §4.2", ("connection", "close")),
        ("a NUL in trailers", "RFC 9114 §10.3", ("x-trailer", "a\0b")),
    ];
    let trailers =
        trailers.map(|(name, rule, field)| (name, rule, vec![post(&[]), data("test"), last_headers(&[field])]));
    let all = lengths.into_iter().chain(trailers);
    all.map(|(name, rule, actions)| Case::new(name, rule, actions, MALFORMED))
        .collect()
}
