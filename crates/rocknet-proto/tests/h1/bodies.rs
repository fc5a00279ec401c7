//! Tests request bodies: by length and chunked, with chunk extensions and trailers.
//!
//! The expected events are the lines of a transcript. A request line has the host after `@` and the framing of the
//! body; lines for data and for the end of the body follow. The last line is the state of the connection: `idle` if the
//! next request may follow, `more` if the message is incomplete, or `refused` with the reason.

use rocknet_proto::Limits;
use rocknet_proto::fuzzing::{ResponseTiming, server_transcript};
use rocknet_proto::h1::{ChunkError, FieldError, Refusal};

use super::check::{client, server, server_with};

const CHUNKED: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Checks the same chunks in a request and in a response, because both roles share the parser. `events` has the lines
/// after the head for the request; the last line is the state of the connection.
fn chunked(content: &str, events: &[&str]) {
    let mut expected = vec!["POST / @a Chunked"];
    expected.extend(events);
    server([CHUNKED.as_bytes(), content.as_bytes()].concat(), &expected);

    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let Some((state, events)) = events.split_last() else {
        return;
    };
    let state = match *state {
        "idle" => "reusable".to_owned(),
        "more" => "error Truncated".to_owned(),
        // A client does not limit the body.
        "refused ContentTooLarge" => return,
        state => state.replace("refused", "error"),
    };
    let mut expected = vec!["200 Chunked Transfer-Encoding=chunked"];
    expected.extend(events);
    expected.push(&state);
    client("GET", [head.as_bytes(), content.as_bytes()].concat(), &expected);
}

/// Checks chunks that cause these events and are then refused.
fn chunked_refused(content: &str, events: &[&str], refusal: impl Into<Refusal>) {
    let state = format!("refused {:?}", refusal.into());
    let mut events = events.to_vec();
    events.push(&state);
    chunked(content, &events);
}

#[test]
fn bodies_end_after_their_length() {
    let post = |length: &str, content: &str| {
        format!("POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{content}")
    };
    server(post("0", ""), &["POST /p @a None", "idle"]);
    server(
        post("5", "hello"),
        &["POST /p @a Length(5)", "data hello", "end", "idle"],
    );
    server(
        post("0005", "hello"),
        &["POST /p @a Length(5)", "data hello", "end", "idle"],
    );
    server(
        post("5", "\r\n\r\n\0"),
        &["POST /p @a Length(5)", "data \\r\\n\\r\\n\\x00", "end", "idle"],
    );
    server(post("5", "hell"), &["POST /p @a Length(5)", "data hell", "more"]);
    server(post("5", ""), &["POST /p @a Length(5)", "more"]);
    let two = post("2", "hi") + &post("1", "x");
    server(
        two,
        &[
            "POST /p @a Length(2)",
            "data hi",
            "end",
            "POST /p @a Length(1)",
            "data x",
            "end",
            "idle",
        ],
    );
    let get = "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx";
    server(get, &["GET / @a Length(1)", "data x", "end", "idle"]);
}

#[test]
fn chunked_bodies_are_decoded() {
    chunked("0\r\n\r\n", &["end", "idle"]);
    chunked("000\r\n\r\n", &["end", "idle"]);
    chunked("5\r\nhello\r\n0\r\n\r\n", &["data hello", "end", "idle"]);
    chunked("3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", &["data hello", "end", "idle"]);
    chunked(
        "a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n",
        &["data 01234567890123456789", "end", "idle"],
    );
    chunked("0000000000000001\r\nx\r\n0\r\n\r\n", &["data x", "end", "idle"]);
    chunked("2\r\n\r\n\r\n0\r\n\r\n", &["data \\r\\n", "end", "idle"]);
    chunked("1;a\r\nx\r\n0;b=\"c;d\"\r\n\r\n", &["data x", "end", "idle"]);
    chunked("1;\r\nx\r\n0\r\n\r\n", &["data x", "end", "idle"]);
    chunked("5\r\nhel", &["data hel", "more"]);
    chunked("5", &["more"]);
    chunked("0\r\n", &["more"]);
    let coding = "POST / HTTP/1.1\r\nHost: a\r\ntransfer-ENCODING:\t CHUNKED \r\n\r\n0\r\n\r\n";
    server(coding, &["POST / @a Chunked", "end", "idle"]);
}

#[test]
fn trailers_are_read() {
    chunked("0\r\nDigest: x\r\nX-B:\r\n\r\n", &["end Digest=x X-B=", "idle"]);
    chunked(
        "1\r\ny\r\n0\r\nServer-Timing: a;dur=1\r\n\r\n",
        &["data y", "end Server-Timing=a;dur=1", "idle"],
    );
    let trailer = |error: FieldError| ChunkError::Trailer(error);
    for (lines, error) in [
        ("A: b\n\r\n", trailer(FieldError::BareLf)),
        ("\n", trailer(FieldError::BareLf)),
        ("A: b\rc\r\n\r\n", trailer(FieldError::BareCr)),
        ("A: \0\r\n\r\n", trailer(FieldError::ControlInValue)),
        (" A: b\r\n\r\n", trailer(FieldError::Folded)),
        ("A\r\n\r\n", trailer(FieldError::MissingColon)),
        ("A : b\r\n\r\n", trailer(FieldError::SpaceBeforeColon)),
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", trailer(FieldError::MissingColon)),
    ] {
        chunked_refused(&format!("0\r\n{lines}"), &[], error);
    }
}

/// Forbidden trailer fields are refused only in requests; the proxy drops them from responses.
#[test]
fn forbidden_trailers_of_requests_are_refused() {
    let refused = format!("refused {:?}", Refusal::from(ChunkError::ForbiddenTrailer));
    for (lines, shown) in [
        ("Content-Length: 5", "Content-Length=5"),
        ("X: y\r\ntransfer-encoding: chunked", "X=y transfer-encoding=chunked"),
        ("Host: b", "Host=b"),
        ("Authorization: x", "Authorization=x"),
        ("X-Forwarded-For: ::1", "X-Forwarded-For=::1"),
    ] {
        let content = format!("0\r\n{lines}\r\n\r\n");
        server(format!("{CHUNKED}{content}"), &["POST / @a Chunked", &refused]);
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let end = format!("end {shown}");
        let events = ["200 Chunked Transfer-Encoding=chunked", &end, "reusable"];
        client("GET", format!("{head}{content}"), &events);
    }
}

#[test]
fn invalid_chunks_are_refused() {
    for (content, error) in [
        ("\r\n", ChunkError::Size),
        ("x\r\n", ChunkError::Size),
        (" 5\r\nhello\r\n", ChunkError::Size),
        ("+5\r\nhello\r\n", ChunkError::Size),
        ("-5\r\nhello\r\n", ChunkError::Size),
        (";a\r\nhello\r\n", ChunkError::Size),
        ("0x5\r\nhello\r\n", ChunkError::AfterSize),
        ("5 \r\nhello\r\n", ChunkError::AfterSize),
        ("5 ;a\r\nhello\r\n", ChunkError::AfterSize),
        ("5\t\r\nhello\r\n", ChunkError::AfterSize),
        ("5_0\r\nhello\r\n", ChunkError::AfterSize),
        ("5\r\r\nhello\r\n", ChunkError::AfterSize),
        ("5\nhello\r\n", ChunkError::BareLf),
        ("5;a\nhello\r\n", ChunkError::BareLf),
        ("\n", ChunkError::BareLf),
        ("5;a\rb\r\nhello\r\n", ChunkError::Extension),
        ("5;a=\0\r\nhello\r\n", ChunkError::Extension),
        ("5;a\x7f\r\nhello\r\n", ChunkError::Extension),
        ("00000000000000005\r\nhello\r\n", ChunkError::SizeTooLong),
        ("10000000000000005\r\nhello\r\n", ChunkError::SizeTooLong),
    ] {
        chunked_refused(content, &[], error);
    }
    chunked_refused("5\r\nhelloX\r\n", &["data hello"], ChunkError::End);
    chunked_refused("5\r\nhello\n", &["data hello"], ChunkError::End);
    chunked_refused("5\r\nhello\rX", &["data hello"], ChunkError::End);
    chunked_refused("5\r\nhello0\r\n\r\n", &["data hello"], ChunkError::End);
    chunked_refused("ffffffffffffffff\r\n", &[], Refusal::ContentTooLarge);
    chunked_refused("1\r\nx\r\nffffffffffffffff\r\n", &["data x"], Refusal::ContentTooLarge);
}

#[test]
fn the_body_limit_of_a_site_applies_to_both_framings() {
    let limits = Limits {
        body_size: 3,
        ..Limits::default()
    };
    let sized = |n: usize| {
        format!(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {n}\r\n\r\n{}",
            "x".repeat(n)
        )
    };
    let too_large = "refused ContentTooLarge";
    // The limit of the site replaces the limit of the connection, whether it is greater or smaller. Each row has the
    // limit of the site, the length of the body, and true if the body is accepted.
    for (site, length, fits) in [
        (Some(4), 4, true),
        (Some(4), 5, false),
        (Some(2), 2, true),
        (Some(2), 3, false),
        (None, 3, true),
        (None, 4, false),
    ] {
        let head = format!("POST / @a Length({length})");
        let data = format!("data {}", "x".repeat(length));
        let accepted = [head.as_str(), &data, "end", "idle"];
        let refused = [head.as_str(), too_large];
        server_with(&limits, site, sized(length), if fits { &accepted } else { &refused });
        let chunked = format!(
            "{CHUNKED}1\r\nx\r\n{:x}\r\n{}\r\n0\r\n\r\n",
            length - 1,
            "x".repeat(length - 1)
        );
        let accepted = ["POST / @a Chunked", &data, "end", "idle"];
        let refused = ["POST / @a Chunked", "data x", too_large];
        server_with(&limits, site, chunked, if fits { &accepted } else { &refused });
    }
    assert_eq!(Refusal::ContentTooLarge.status().code(), 413);
}

/// After an early response, the rest of the body is parsed so that the caller can discard it. The next request on the
/// connection is parsed after the body.
#[test]
fn a_body_is_parsed_after_an_early_response() {
    let next = "GET /next HTTP/1.1\r\nHost: a\r\n\r\n";
    // Framing field, encoded body, and the expected data event.
    for (head, content, data) in [
        ("Content-Length: 5\r\n", "hello", "data hello"),
        (
            "Transfer-Encoding: chunked\r\n",
            "5\r\nhello\r\n0\r\n\r\n",
            "data hello",
        ),
    ] {
        let bytes = format!("POST / HTTP/1.1\r\nHost: a\r\n{head}\r\n{content}{next}");
        let lines = server_transcript(&[bytes.as_bytes()], &Limits::default(), None, ResponseTiming::AfterHead);
        assert_eq!(lines[1..], [data, "end", "GET /next @a None", "idle"], "{head}");
    }
}
