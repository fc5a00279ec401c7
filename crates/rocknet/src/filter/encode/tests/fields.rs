//! Tests of the header fields of coded responses, and of responses that remain unchanged.
//!
//! The constants `TYPE`, `VARY` and `BR` are header fields: the type of an HTML page, `Vary: Accept-Encoding` and
//! `Content-Encoding: br`. `text` returns compressible bytes. `conditions` returns the conditions of a request with
//! this `Accept-Encoding`, `filtered` applies the filter, and `content` returns the bytes of a body. `check_fields`
//! asserts that a response has exactly the given fields.

use super::super::*;
use super::support::*;

#[test]
fn coded_responses_have_changed_fields() {
    type Fields<'a> = &'a [(&'a str, &'a str)];
    // Status, `Accept-Encoding` of the request, fields before the filter, and fields after it.
    let rows: &[(u16, &str, Fields<'_>, Fields<'_>)] = &[
        (200, "br, gzip", &[TYPE], &[TYPE, VARY, BR]),
        (200, "gzip", &[TYPE], &[TYPE, VARY, ("Content-Encoding", "gzip")]),
        (200, "zstd", &[TYPE], &[TYPE, VARY, ("Content-Encoding", "zstd")]),
        (404, "br", &[TYPE], &[TYPE, VARY, BR]),
        (500, "br", &[TYPE], &[TYPE, VARY, BR]),
        (
            201,
            "br",
            &[("content-type", "application/problem+json")],
            &[("content-type", "application/problem+json"), VARY, BR],
        ),
        (
            200,
            "br",
            &[TYPE, ("Vary", "Cookie, Origin")],
            &[TYPE, ("Vary", "Cookie, Origin, Accept-Encoding"), BR],
        ),
        (
            200,
            "br",
            &[TYPE, ("Vary", "Cookie"), ("vary", "Origin")],
            &[TYPE, ("Vary", "Cookie, Origin, Accept-Encoding"), BR],
        ),
        (
            200,
            "br",
            &[TYPE, ("Vary", "Cookie, accept-encoding")],
            &[TYPE, ("Vary", "Cookie, accept-encoding"), BR],
        ),
        (200, "br", &[TYPE, ("Vary", "*")], &[TYPE, ("Vary", "*"), BR]),
        (200, "br", &[TYPE, ("Vary", "")], &[TYPE, VARY, BR]),
        (
            200,
            "br",
            &[TYPE, ("ETag", "\"a\"")],
            &[TYPE, ("ETag", "W/\"a\""), VARY, BR],
        ),
        (
            200,
            "br",
            &[TYPE, ("ETag", "W/\"a\"")],
            &[TYPE, ("ETag", "W/\"a\""), VARY, BR],
        ),
        // A malformed tag is removed.
        (200, "br", &[TYPE, ("ETag", "a")], &[TYPE, VARY, BR]),
        // Fields that describe the uncoded body are removed. `Unencoded-Digest` remains valid with any coding.
        (
            200,
            "br",
            &[
                ("Accept-Ranges", "bytes"),
                ("Content-Length", "9"),
                TYPE,
                ("Content-MD5", "x"),
                ("Digest", "md5=x"),
                ("Content-Digest", "sha-256=:x:"),
                ("Repr-Digest", "sha-256=:x:"),
                ("Unencoded-Digest", "sha-256=:x:"),
                ("Cache-Control", "public, max-age=60"),
            ],
            &[
                TYPE,
                ("Unencoded-Digest", "sha-256=:x:"),
                ("Cache-Control", "public, max-age=60"),
                VARY,
                BR,
            ],
        ),
    ];
    for &(status, accept, given, expected) in rows {
        let name = format!("{status} {accept} {given:?}");
        let plain = text(4000);
        let response = filtered(&conditions(accept), response(status, given, plain.clone()));
        let found: Vec<_> = response.fields.iter().collect();
        assert_eq!(found, expected, "{name}");
        let coding = CODINGS
            .into_iter()
            .find(|coding| found.contains(&("Content-Encoding", coding.name())));
        let length = response.body.length().expect("a length");
        assert!(length < 4000, "{name}: {length}");
        assert_eq!(
            decode(coding.expect("a coding"), &content(response.body)),
            (plain, true),
            "{name}"
        );
    }
}

#[test]
fn responses_that_do_not_qualify_are_unchanged() {
    // Status and fields of the response.
    let rows: &[(u16, &[(&str, &str)])] = &[
        (200, &[]),
        (200, &[("Content-Type", "image/png")]),
        (200, &[("Content-Type", "text/event-stream")]),
        (200, &[TYPE, ("Content-Encoding", "gzip")]),
        (200, &[TYPE, ("Content-Range", "bytes 0-3999/8000")]),
        (200, &[TYPE, ("Cache-Control", "public, No-Transform")]),
        (
            200,
            &[TYPE, ("Cache-Control", "public"), ("cache-control", "no-transform")],
        ),
        (200, &[TYPE, ("Signature-Input", "sig=(\"content-digest\")")]),
        (204, &[TYPE]),
        (205, &[TYPE]),
        (206, &[TYPE]),
        (304, &[TYPE, ("ETag", "\"a\"")]),
    ];
    for &(status, fields) in rows {
        let response = filtered(&conditions("br"), response(status, fields, text(4000)));
        check_fields(&response, fields);
        assert!(content(response.body) == text(4000), "{status} {fields:?}");
    }
    // `compress` is off, or the body is shorter than 1 KiB.
    let fields = [TYPE, ("ETag", "\"a\"")];
    let off = Conditions {
        compress: false,
        ..conditions("br")
    };
    check_fields(&filtered(&off, response(200, &fields, text(4000))), &fields);
    check_fields(
        &filtered(&conditions("br"), response(200, &fields, text(1023))),
        &fields,
    );
    check_fields(&filtered(&conditions("br"), response(200, &fields, "")), &fields);
}

#[test]
fn a_client_that_accepts_no_coding_gets_vary() {
    for accept in ["", "identity", "br;q=0", "deflate"] {
        let fields = [TYPE, ("ETag", "\"a\""), ("Accept-Ranges", "bytes")];
        let response = filtered(&conditions(accept), response(200, &fields, text(1024)));
        check_fields(&response, &[TYPE, ("ETag", "\"a\""), ("Accept-Ranges", "bytes"), VARY]);
        assert!(content(response.body) == text(1024));
    }
    let none = Conditions {
        accept_encoding: None,
        ..conditions("")
    };
    check_fields(&filtered(&none, response(200, &[TYPE], text(1024))), &[TYPE, VARY]);
}

#[test]
fn a_head_request_gets_the_fields_of_a_get() {
    let head = Conditions {
        is_head: true,
        ..conditions("br")
    };
    // A stream without pieces that announces a length.
    let unsent = |length| {
        Body::Stream(Box::new(Script {
            length,
            ..Script::default()
        }))
    };
    for body in [Body::from(text(4000)), unsent(None), unsent(Some(4000))] {
        let given = [TYPE, ("Content-Length", "4000"), ("ETag", "\"a\"")];
        let response = filtered(&head, response(200, &given, body));
        check_fields(&response, &[TYPE, ("ETag", "W/\"a\""), VARY, BR]);
        assert_eq!(response.body.length(), None);
        assert!(content(response.body).is_empty());
    }
    // A body that is shorter than 1 KiB does not qualify.
    let short = filtered(&head, response(200, &[TYPE], unsent(Some(1000))));
    check_fields(&short, &[TYPE]);
    assert_eq!(short.body.length(), Some(1000));
}

#[test]
fn a_304_has_the_tag_that_the_client_has() {
    // `If-None-Match` of the request, tag before the filter, tag after it, and true if the filter adds `Vary`.
    let rows = [
        (Some("W/\"a\""), "\"a\"", "W/\"a\"", true),
        (Some("\"b\", W/\"a\""), "\"a\"", "W/\"a\"", true),
        (Some("\"a\""), "\"a\"", "\"a\"", false),
        (Some("W/\"a\", \"a\""), "\"a\"", "\"a\"", false),
        (Some("W/\"b\""), "\"a\"", "\"a\"", false),
        (Some("*"), "\"a\"", "\"a\"", false),
        (Some("W/\"a\""), "W/\"a\"", "W/\"a\"", false),
        (None, "\"a\"", "\"a\"", false),
    ];
    for (if_none_match, given, expected, varies) in rows {
        let if_none_match = if_none_match.map(str::as_bytes);
        let conditions = Conditions {
            if_none_match,
            ..conditions("br")
        };
        let response = filtered(&conditions, response(304, &[("ETag", given)], Body::Empty));
        assert_eq!(response.fields.value("ETag"), Some(expected), "{given}");
        assert_eq!(response.fields.value("Vary").is_some(), varies, "{given}");
    }
}
