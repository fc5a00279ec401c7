//! Tests messages at each limit and just above it, in every split.
//!
//! The expected events are the lines of a transcript; the last line is the state of the connection. Closures with a
//! size return a part of a message that is filled with `x` up to this size. The number that they subtract is the size
//! of the part without the filler.

use rocknet_proto::Limits;
use rocknet_proto::h1::{ChunkError, FieldError, Refusal};

use super::check::{client_with, refused_with, server_with};

/// Checks that one request without a body is accepted and that the connection persists.
fn accepted_with(limits: &Limits, bytes: &str, line: &str) {
    server_with(limits, None, bytes, &[&format!("{line} None"), "idle"]);
}

#[test]
fn targets_are_limited() {
    let limits = Limits {
        target_size: 10,
        ..Limits::default()
    };
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
    accepted_with(&limits, &get("/123456789"), "GET /123456789 @a");
    accepted_with(&limits, &get("/1234?6789"), "GET /1234 ?6789 @a");
    refused_with(&limits, get("/1234567890"), Refusal::TargetTooLong);
    refused_with(&limits, get("http://a/12"), Refusal::TargetTooLong);
    assert_eq!(Refusal::TargetTooLong.status().code(), 414);
}

#[test]
fn heads_are_limited() {
    let limits = Limits {
        head_size: 100,
        target_size: 1000,
        ..Limits::default()
    };
    let head = |size: usize| {
        let empty = "GET / HTTP/1.1\r\nHost: follower.example\r\nX: \r\n\r\n";
        empty.replace("X: ", &format!("X: {}", "x".repeat(size - empty.len())))
    };
    assert_eq!(head(100).len(), 100);
    accepted_with(&limits, &head(99), "GET / @follower.example");
    accepted_with(&limits, &head(100), "GET / @follower.example");
    let too_large = FieldError::TooLarge;
    // The limit is exceeded by one byte, by the empty line, within the last field line, by a head without an end, and
    // by additional field lines.
    refused_with(&limits, head(101), too_large);
    refused_with(&limits, head(102), too_large);
    refused_with(&limits, head(150), too_large);
    refused_with(&limits, &head(150)[..100], too_large);
    refused_with(&limits, head(90).replace("X: ", "Y: y\r\nYY: y\r\nX: "), too_large);
    server_with(&limits, None, &head(150)[..99], &["more"]);
    // Empty lines before the request count, too.
    accepted_with(&limits, &format!("\r\n{}", head(98)), "GET / @follower.example");
    refused_with(&limits, format!("\r\n{}", head(99)), too_large);
    // The request line alone fills the head.
    let line = |size: usize| format!("GET /{} HTTP/1.1\r\n", "x".repeat(size - 16));
    refused_with(&limits, line(101), Refusal::TargetTooLong);
    refused_with(&limits, "G".repeat(100), Refusal::TargetTooLong);
    refused_with(&limits, line(100) + "Host: a\r\n\r\n", too_large);
    server_with(&limits, None, "G".repeat(99), &["more"]);
    assert_eq!(Refusal::Field(too_large).status().code(), 431);
}

#[test]
fn field_lines_are_limited() {
    let limits = Limits {
        fields: 5,
        ..Limits::default()
    };
    let head = |n: usize| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(n - 1));
    accepted_with(&limits, &head(4), "GET / @a");
    accepted_with(&limits, &head(5), "GET / @a");
    refused_with(&limits, head(6), FieldError::TooMany);
    refused_with(&Limits::default(), head(2000), FieldError::TooMany);
    assert_eq!(Refusal::Field(FieldError::TooMany).status().code(), 431);
}

#[test]
fn defaults_match_the_documentation() {
    let limits = Limits::default();
    let head = |size: usize| format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(size - 32));
    let fill = head(16 * 1024);
    assert_eq!(fill.len(), 16 * 1024);
    let last_line = |bytes: &str| {
        let pieces = [bytes.as_bytes()];
        let timing = rocknet_proto::fuzzing::ResponseTiming::AfterBody;
        rocknet_proto::fuzzing::server_transcript(&pieces, &limits, None, timing).pop()
    };
    assert_eq!(last_line(&fill).as_deref(), Some("idle"));
    assert_eq!(
        last_line(&head(16 * 1024 + 1)).as_deref(),
        Some("refused Field(TooLarge)")
    );
    let target = |size: usize| format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(size - 1));
    assert_eq!(last_line(&target(8 * 1024)).as_deref(), Some("idle"));
    assert_eq!(
        last_line(&target(8 * 1024 + 1)).as_deref(),
        Some("refused TargetTooLong")
    );
    let fields = |n: usize| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(n - 1));
    assert_eq!(last_line(&fields(100)).as_deref(), Some("idle"));
    assert_eq!(last_line(&fields(101)).as_deref(), Some("refused Field(TooMany)"));
}

#[test]
fn chunk_extensions_are_limited_in_total() {
    let limits = Limits {
        chunk_extension: 20,
        ..Limits::default()
    };
    let post = |content: &str| format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{content}");
    let extension = |n: usize| format!(";{}", "e".repeat(n - 1));
    let good = ["POST / @a Chunked", "data x", "end", "idle"];
    let too_large = format!("refused {:?}", Refusal::Chunk(ChunkError::ExtensionsTooLarge));
    let bad_first = ["POST / @a Chunked", &too_large];
    let bad_last = ["POST / @a Chunked", "data x", &too_large];
    // Sizes of the extensions of the first and the last chunk in bytes, and the expected events.
    for (first, last, expected) in [
        (20, 0, good.as_slice()),
        (10, 10, &good),
        (21, 0, &bad_first),
        (500, 0, &bad_first),
        (10, 11, &bad_last),
        (20, 1, &bad_last),
    ] {
        let of = |n: usize| if n == 0 { String::new() } else { extension(n) };
        let content = format!("1{}\r\nx\r\n0{}\r\n\r\n", of(first), of(last));
        server_with(&limits, None, post(&content), expected);
    }
    // A line without an end is refused as soon as a complete line no longer fits.
    let endless = post(&format!("1;{}", "e".repeat(200)));
    server_with(&limits, None, endless, &bad_first);
    assert_eq!(Refusal::Chunk(ChunkError::ExtensionsTooLarge).status().code(), 413);
}

#[test]
fn trailer_sections_are_limited() {
    let limits = Limits {
        trailer_size: 30,
        fields: 3,
        ..Limits::default()
    };
    let post =
        |trailers: &str| format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n{trailers}\r\n");
    let trailer = |size: usize| format!("X: {}\r\n", "x".repeat(size - 7));
    let refused = |error: FieldError| format!("refused {:?}", Refusal::Chunk(ChunkError::Trailer(error)));
    let good = |shown: &str| vec!["POST / @a Chunked".to_owned(), format!("end{shown}"), "idle".to_owned()];
    let check = |trailers: &str, expected: Vec<String>| {
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        server_with(&limits, None, post(trailers), &expected);
    };
    let bad = |error| vec!["POST / @a Chunked".to_owned(), refused(error)];
    check(&trailer(30), good(&format!(" X={}", "x".repeat(23))));
    check(&trailer(31), bad(FieldError::TooLarge));
    check(&trailer(300), bad(FieldError::TooLarge));
    // A section without an end is refused as soon as it is full, but not earlier.
    let unfinished = |size: usize, state: &str| {
        let bytes = post("")
            .strip_suffix("\r\n")
            .expect("the empty line is last")
            .to_owned()
            + &"X".repeat(size);
        server_with(&limits, None, bytes, &["POST / @a Chunked", state]);
    };
    unfinished(29, "more");
    unfinished(30, &refused(FieldError::TooLarge));
    unfinished(40, &refused(FieldError::TooLarge));
    check(&"X: y\r\n".repeat(3), good(" X=y X=y X=y"));
    check(&"X: y\r\n".repeat(4), bad(FieldError::TooMany));
}

#[test]
fn response_heads_are_limited() {
    let limits = Limits {
        head_size: 60,
        fields: 3,
        ..Limits::default()
    };
    let head = |size: usize| format!("HTTP/1.1 204 No Content\r\nX: {}\r\n\r\n", "x".repeat(size - 32));
    let check = |bytes: String, state: &str| {
        let shown = format!("204 None X={}", "x".repeat(60 - 32));
        let expected = if state == "reusable" {
            vec![shown.as_str(), state]
        } else {
            vec![state]
        };
        client_with(&limits, "GET", None, bytes, &expected);
    };
    check(head(60), "reusable");
    check(head(61), "error Field(TooLarge)");
    check(head(600), "error Field(TooLarge)");
    check("H".repeat(60), "error Field(TooLarge)");
    let many = format!("HTTP/1.1 204 \r\n{}\r\n", "X: y\r\n".repeat(4));
    client_with(&limits, "GET", None, many, &["error Field(TooMany)"]);
}

#[test]
fn chunked_responses_are_limited() {
    let limits = Limits {
        chunk_extension: 20,
        trailer_size: 30,
        fields: 3,
        ..Limits::default()
    };
    let check = |content: String, events: &[&str]| {
        let bytes = format!("HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n{content}");
        let mut expected = vec!["200 Chunked Transfer-Encoding=chunked"];
        expected.extend(events);
        client_with(&limits, "GET", None, bytes, &expected);
    };
    let extended = |n: usize| format!("1;{}\r\nx\r\n0\r\n\r\n", "e".repeat(n - 1));
    check(extended(20), &["data x", "end", "reusable"]);
    check(extended(21), &["error Chunk(ExtensionsTooLarge)"]);
    let trailer = |size: usize| format!("0\r\nX: {}\r\n\r\n", "x".repeat(size - 7));
    let shown = format!("end X={}", "x".repeat(30 - 7));
    check(trailer(30), &[&shown, "reusable"]);
    check(trailer(31), &["error Chunk(Trailer(TooLarge))"]);
    let lines = |count: usize| format!("0\r\n{}\r\n", "X: y\r\n".repeat(count));
    check(lines(3), &["end X=y X=y X=y", "reusable"]);
    check(lines(4), &["error Chunk(Trailer(TooMany))"]);
}
