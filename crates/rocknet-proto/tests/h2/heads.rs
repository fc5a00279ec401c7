//! Request heads (RFC 9113 §8) that are accepted, refused with a status, or answered by a reset of the stream.
//!
//! The expected lines are a transcript: events, the state of the connection, and the sent frames after `>`. The state
//! is `more` while a request, a response or a frame is incomplete, and `idle` otherwise. A request line has the path,
//! `?` with the query, `@` with the host, and the fields. It also has `:` with the protocol of an extended CONNECT,
//! `end` if no body follows, and `expects` if the client waits for 100. The test server responds to each complete
//! request with the field `x-a: b` and a body of 5 bytes.

use super::check::*;
use rocknet_proto::Limits;
use rocknet_proto::fuzzing::H2ResponseTiming;
use rocknet_proto::h2::Config;

const CONNECT: &[(&str, &str)] = &[(":method", "CONNECT"), (":authority", "a:1")];

/// Checks that a head is accepted and that its request has this line in the transcript.
fn accepted(fields: &[(&str, &str)], line: &str) {
    let expected = format!("request 1 {line} end");
    let block = frame(HEADERS, END_STREAM | END_HEADERS, 1, block(fields));
    server(
        &[block],
        &[&expected, "idle", "> head 1 :status=200 x-a=b", "> data 1 5 end"],
    );
}

/// Checks that a head leads to a reset of its stream and that the connection persists.
fn reset(fields: &[(&str, &str)], error: &str) {
    let block = frame(HEADERS, END_STREAM | END_HEADERS, 1, block(fields));
    server(
        &[block, get(3)],
        &[
            &format!("rejected Malformed({error})"),
            "request 3 GET / @a end",
            "idle",
            "> reset 1 PROTOCOL_ERROR",
            "> head 3 :status=200 x-a=b",
            "> data 3 5 end",
        ],
    );
}

/// Checks that a head is refused with a status.
fn refused(fields: &[(&str, &str)], refusal: &str, status: u16) {
    refused_with(&Limits::default(), fields, refusal, status);
}

/// Checks like [`refused`], with other limits.
fn refused_with(limits: &Limits, fields: &[(&str, &str)], refusal: &str, status: u16) {
    let block = frame(HEADERS, END_STREAM | END_HEADERS, 1, block(fields));
    server_with(
        limits,
        &Config::default(),
        H2ResponseTiming::AfterBody,
        &[block, get(3)],
        &[
            &format!("refused 1 {refusal}"),
            "request 3 GET / @a end",
            "idle",
            &format!("> head 1 :status={status} content-length=0 end"),
            "> head 3 :status=200 x-a=b",
            "> data 3 5 end",
        ],
    );
}

/// Returns [`GET_FIELDS`] with one field changed or, without a value, removed.
fn with(name: &'static str, value: Option<&'static str>) -> Vec<(&'static str, &'static str)> {
    let fields = GET_FIELDS.iter().copied();
    fields
        .filter_map(|(known, old)| {
            if known == name {
                value.map(|value| (name, value))
            } else {
                Some((known, old))
            }
        })
        .collect()
}

/// Returns [`GET_FIELDS`] followed by `fields`.
fn and<'a>(fields: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [GET_FIELDS, fields].concat()
}

#[test]
fn valid_heads_are_accepted() {
    accepted(GET_FIELDS, "GET / @a");
    accepted(&with(":path", Some("/a/b?c?d")), "GET /a/b ?c?d @a");
    accepted(&with(":path", Some("/?")), "GET / ? @a");
    accepted(&with(":method", Some("BREW")), "BREW / @a");
    accepted(&with(":scheme", Some("HTTPS")), "GET / @a");
    accepted(
        &and(&[("x", "1"), ("accept", ""), ("x", "2")]),
        "GET / @a x=1 accept= x=2",
    );
    accepted(&and(&[("te", "trailers")]), "GET / @a te=trailers");
    accepted(&and(&[("content-length", "0")]), "GET / @a content-length=0");
    accepted(
        &[
            (":method", "OPTIONS"),
            (":scheme", "http"),
            (":path", "*"),
            (":authority", "a"),
        ],
        "OPTIONS * @a",
    );
    // The path of a CONNECT request is empty.
    accepted(CONNECT, "CONNECT  @a:1");
}

/// §8.3.1: the host is `:authority`, or Host if `:authority` is missing.
#[test]
fn the_host_is_authority_or_host() {
    let without = with(":authority", None);
    accepted(
        &[&without[..], &[("host", "b:8080")]].concat(),
        "GET / @b:8080 host=b:8080",
    );
    accepted(&and(&[("host", "A")]), "GET / @a host=A");
    accepted(&and(&[("host", "a:80")]), "GET / @a host=a:80");
    refused(&without, "HostMissing", 400);
    refused(&with(":authority", Some("")), "HostMissing", 400);
    refused(&and(&[("host", "b")]), "HostMismatch", 400);
    refused(&and(&[("host", "a:443")]), "HostMismatch", 400);
    refused(&and(&[("host", "a"), ("host", "a")]), "HostRepeated", 400);
    refused(&with(":authority", Some("user@a")), "HostInvalid", 400);
    refused(&with(":authority", Some("a/b")), "HostInvalid", 400);
}

/// §8.2.3: split cookies are joined to one field, which follows the other fields.
#[test]
fn split_cookies_are_joined() {
    accepted(
        &and(&[("cookie", "a=1"), ("x", "y"), ("cookie", "b=2"), ("cookie", "c=3")]),
        "GET / @a x=y cookie=a=1; b=2; c=3",
    );
    accepted(&and(&[("cookie", "a=1; b=2")]), "GET / @a cookie=a=1; b=2");
}

/// §8.2.1: malformed names and values.
#[test]
fn malformed_fields_reset_the_stream() {
    for name in ["X-a", "", "a b", "a:b", ":a", "\u{e4}", "a\0", "connectioN", ":Path"] {
        reset(&and(&[(name, "v")]), "FieldName");
    }
    for value in [" a", "a ", "\ta", "a\r", "a\nb: c", "\0", "\x7f", "a\x01"] {
        reset(&and(&[("x", value)]), "FieldValue");
    }
    reset(&with(":path", Some("/ ")), "FieldValue");
}

/// §8.2.2: connection-specific fields of HTTP/1.
#[test]
fn connection_fields_reset_the_stream() {
    for name in [
        "connection",
        "keep-alive",
        "proxy-connection",
        "transfer-encoding",
        "upgrade",
    ] {
        reset(&and(&[(name, "x")]), "ConnectionField");
    }
    reset(&and(&[("te", "trailers, deflate")]), "Te");
    reset(&and(&[("te", "trailers"), ("te", "gzip")]), "Te");
}

/// §8.3: pseudo-header fields.
#[test]
fn invalid_pseudo_fields_are_reset_or_refused() {
    for name in [":method", ":scheme", ":path"] {
        reset(&with(name, None), "PseudoMissing");
    }
    reset(&and(&[(":path", "/")]), "PseudoRepeated");
    reset(&and(&[(":status", "200")]), "PseudoOfResponse");
    reset(&[&[("a", "b")][..], GET_FIELDS].concat(), "PseudoAfterFields");
    reset(
        &[&GET_FIELDS[..3], &[("cookie", "a"), (":authority", "a")]].concat(),
        "PseudoAfterFields",
    );
    reset(&with(":path", Some("")), "PathEmpty");
    reset(&with(":method", Some("G T")), "Method");
    reset(&with(":method", Some("")), "Method");
    refused(&with(":path", Some("a")), "TargetForm", 400);
    refused(&with(":path", Some("*")), "TargetForm", 400);
    refused(&with(":path", Some("/a#b")), "TargetFragment", 400);
    refused(&with(":path", Some("/a b")), "TargetByte", 400);
    refused(&with(":path", Some("/\u{e4}")), "TargetByte", 400);
    refused(&with(":scheme", Some("ftp")), "TargetScheme", 400);
}

/// §8.5 and RFC 8441: CONNECT and extended CONNECT.
#[test]
fn connect_has_its_own_pseudo_fields() {
    reset(
        &[&CONNECT[..1], &[(":authority", "a:1"), (":path", "/")]].concat(),
        "Connect",
    );
    reset(
        &[&CONNECT[..1], &[(":scheme", "http"), (":authority", "a:1")]].concat(),
        "Connect",
    );
    reset(&CONNECT[..1], "Connect");
    refused(&[(":method", "CONNECT"), (":authority", "a")], "TargetForm", 400);
    let extended = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":path", "/chat"),
        (":authority", "a"),
    ];
    reset(&extended, "Protocol");
    reset(&and(&[(":protocol", "websocket")]), "Protocol");
    let config = Config {
        connect_protocol: true,
        ..Config::default()
    };
    let open = frame(HEADERS, END_HEADERS, 1, block(&extended));
    server_with(
        &Limits::default(),
        &config,
        H2ResponseTiming::AfterBody,
        &[open, data(1, "ping")],
        &["request 1 CONNECT /chat @a :websocket", "data 1 ping", "more"],
    );
}

/// §8.1.1: Content-Length of a request that ends with its head.
#[test]
fn a_wrong_content_length_resets_the_stream() {
    for value in ["1", "x", "-1", "", "1, 1", "+0", "99999999999999999999"] {
        reset(&and(&[("content-length", value)]), "ContentLength");
    }
    reset(
        &and(&[("content-length", "0"), ("content-length", "0")]),
        "ContentLength",
    );
}

#[test]
fn only_100_continue_may_be_expected() {
    server(
        &[post_with(1, &[("expect", "100-continue")])],
        &["request 1 POST / @a expect=100-continue expects", "more"],
    );
    refused(&and(&[("expect", "the unexpected")]), "Expectation", 417);
}

/// Heads at their limits and just above them. A refused head leaves the connection and its HPACK table intact.
#[test]
fn heads_above_a_limit_are_refused() {
    let bytes: usize = GET_FIELDS.iter().map(|(name, value)| name.len() + value.len()).sum();
    let limits = Limits {
        head_size: bytes + 10,
        fields: 6,
        target_size: 4,
        ..Limits::default()
    };
    let fits = |fields: &[(&str, &str)], line: &str| {
        let block = frame(HEADERS, END_STREAM | END_HEADERS, 1, block(fields));
        let line = format!("request 1 GET {line} end");
        server_with(
            &limits,
            &Config::default(),
            H2ResponseTiming::AfterBody,
            &[block],
            &[&line, "idle", "> head 1 :status=200 x-a=b", "> data 1 5 end"],
        );
    };
    fits(&and(&[("x", "123456789")]), "/ @a x=123456789");
    refused_with(&limits, &and(&[("x", "1234567890")]), "Field(TooLarge)", 431);
    fits(&and(&[("x", "1"), ("x", "1")]), "/ @a x=1 x=1");
    refused_with(
        &limits,
        &and(&[("x", "1"), ("x", "1"), ("x", "1")]),
        "Field(TooMany)",
        431,
    );
    // Each part of a split cookie counts as a field.
    let wide = Limits {
        head_size: 1000,
        ..limits
    };
    refused_with(
        &wide,
        &and(&[("cookie", ""), ("cookie", ""), ("cookie", "")]),
        "Field(TooMany)",
        431,
    );
    fits(&with(":path", Some("/abc")), "/abc @a");
    refused_with(&limits, &with(":path", Some("/abcd")), "TargetTooLong", 414);
    // Both the path and the head exceed their limits. The status reports the path.
    refused_with(
        &limits,
        &with(":path", Some("/far beyond the size of any head")),
        "TargetTooLong",
        414,
    );
    let many: Vec<(&str, &str)> = std::iter::repeat_n(("x", "y"), 1000).collect();
    refused(&and(&many), "Field(TooMany)", 431);
}
