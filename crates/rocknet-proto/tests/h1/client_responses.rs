//! Tests the parsing of valid and invalid responses from upstreams.
//!
//! The expected events are the lines of a transcript. A response line has the status, the framing of the body and the
//! fields; lines for data and for the end of the body follow. The last line is the state of the connection.

use rocknet_proto::Limits;
use rocknet_proto::h1::{ChunkError, FieldError, FramingError, ResponseError};

use super::check::{client, client_with, rejected};

/// Returns a response of status 200 with these field lines and this encoded body.
fn ok(fields: &str, content: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{fields}\r\n{content}")
}

#[test]
fn responses_end_by_length_chunks_or_close() {
    let length = "Content-Length: 2\r\n";
    client(
        "GET",
        ok(length, "hi"),
        &["200 Length(2) Content-Length=2", "data hi", "end", "reusable"],
    );
    client(
        "GET",
        ok("Content-Length: 0\r\n", ""),
        &["200 None Content-Length=0", "reusable"],
    );
    let chunked = "Transfer-Encoding: chunked\r\n";
    let line = "200 Chunked Transfer-Encoding=chunked";
    client(
        "GET",
        ok(chunked, "2\r\nhi\r\n0\r\n\r\n"),
        &[line, "data hi", "end", "reusable"],
    );
    client(
        "GET",
        ok(chunked, "2\r\nhi\r\n0\r\nX: y\r\n\r\n"),
        &[line, "data hi", "end X=y", "reusable"],
    );
    // Forbidden trailer fields do not invalidate the response; the caller drops them.
    client(
        "GET",
        ok(
            chunked,
            "2\r\nhi\r\n0\r\nContent-Length: 9\r\nX: y\r\nTransfer-Encoding: gzip\r\n\r\n",
        ),
        &[
            line,
            "data hi",
            "end Content-Length=9 X=y Transfer-Encoding=gzip",
            "reusable",
        ],
    );
    client("GET", ok("", "hi"), &["200 UntilClose", "data hi", "end by close"]);
    client("GET", ok("", ""), &["200 UntilClose", "end by close"]);
    client(
        "GET",
        "HTTP/1.0 200\r\n\r\nhi",
        &["200 UntilClose", "data hi", "end by close"],
    );
    client(
        "GET",
        ok(length, "h"),
        &["200 Length(2) Content-Length=2", "data h", "error Truncated"],
    );
    client(
        "GET",
        ok(chunked, "2\r\nhi\r\n0\r\n"),
        &[line, "data hi", "error Truncated"],
    );
    client("GET", "HTTP/1.1 200 OK\r\n", &["error Truncated"]);
    client("GET", "", &["error Truncated"]);
}

#[test]
fn some_responses_have_no_body() {
    let length = "Content-Length: 9\r\n";
    client("HEAD", ok(length, ""), &["200 None Content-Length=9", "reusable"]);
    client(
        "HEAD",
        ok("Transfer-Encoding: chunked\r\n", ""),
        &["200 None Transfer-Encoding=chunked", "reusable"],
    );
    client(
        "GET",
        format!("HTTP/1.1 204 No Content\r\n{length}\r\n"),
        &["204 None Content-Length=9", "reusable"],
    );
    client(
        "GET",
        format!("HTTP/1.1 304 Not Modified\r\n{length}\r\n"),
        &["304 None Content-Length=9", "reusable"],
    );
    // Bytes after the end of a response are unsolicited.
    client("HEAD", ok("", "hi"), &["200 None", "error Unsolicited"]);
    client(
        "GET",
        ok("Content-Length: 1\r\n", "xy"),
        &["200 Length(1) Content-Length=1", "data x", "end", "error Unsolicited"],
    );
}

#[test]
fn connections_are_reused_only_if_both_sides_keep_them_open() {
    // Version, value of Connection, and the expected state of the connection.
    for (version, connection, state) in [
        ("1.1", "x", "reusable"),
        ("1.1", "close", "not reusable"),
        ("1.1", "keep-alive, Close", "not reusable"),
        ("1.0", "x", "not reusable"),
        ("1.0", "keep-alive", "reusable"),
    ] {
        let head = format!("HTTP/{version} 204 No Content\r\nConnection: {connection}\r\n\r\n");
        client("GET", head, &[&format!("204 None Connection={connection}"), state]);
    }
}

#[test]
fn interim_responses_precede_the_final_one() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let last = "HTTP/1.1 204 No Content\r\n\r\n";
    client(
        "GET",
        format!("{interim}{last}"),
        &["interim 100", "interim 103", "204 None", "reusable"],
    );
    // At most 16 interim responses are accepted.
    let hints = "HTTP/1.1 103 Early Hints\r\n\r\n";
    let mut expected = vec!["interim 103"; 16];
    expected.extend(["204 None", "reusable"]);
    client("GET", hints.repeat(16) + last, &expected);
    expected.truncate(16);
    expected.push("error TooManyInterim");
    client("GET", hints.repeat(17) + last, &expected);
}

#[test]
fn protocols_switch_only_on_request() {
    let limits = Limits::default();
    let switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    let unsolicited = ["error UnsolicitedUpgrade"];
    client_with(&limits, "GET", Some("websocket"), switch, &["switched"]);
    client_with(
        &limits,
        "GET",
        Some("websocket"),
        format!("{switch}\x01\x02"),
        &["switched"],
    );
    client_with(&limits, "GET", None, switch, &unsolicited);
    client_with(
        &limits,
        "GET",
        Some("websocket"),
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        &unsolicited,
    );
    client_with(&limits, "GET", Some("x"), switch.replace("1.1", "1.0"), &unsolicited);
    client("CONNECT", "HTTP/1.1 200 OK\r\n\r\n\x01\x02", &["switched"]);
    let refused = "HTTP/1.1 403 Forbidden\r\nContent-Length: 1\r\n\r\nx";
    client(
        "CONNECT",
        refused,
        &["403 Length(1) Content-Length=1", "data x", "end", "reusable"],
    );
}

#[test]
fn status_lines_are_validated() {
    for good in [
        "HTTP/1.1 204 No Content",
        "HTTP/1.1 204 ",
        "HTTP/1.1 204",
        "HTTP/1.1 204 \u{e9} a\tb",
    ] {
        client("GET", format!("{good}\r\n\r\n"), &["204 None", "reusable"]);
    }
    client("HEAD", "HTTP/1.1 999 What\r\n\r\n", &["999 None", "reusable"]);
    for (line, error) in [
        ("", ResponseError::StatusLine),
        ("200 OK", ResponseError::StatusLine),
        ("ICY 200 OK", ResponseError::StatusLine),
        ("SSH-2.0-OpenSSH_9.2", ResponseError::StatusLine),
        ("HTTP/1.1", ResponseError::StatusLine),
        ("HTTP/1.1 20", ResponseError::StatusLine),
        ("HTTP/1.1 099 x", ResponseError::StatusLine),
        ("HTTP/1.1 2000 OK", ResponseError::StatusLine),
        ("HTTP/1.1 20x OK", ResponseError::StatusLine),
        ("HTTP/1.1 +20 OK", ResponseError::StatusLine),
        ("HTTP/1.1  200 OK", ResponseError::StatusLine),
        ("HTTP/1.1\t200 OK", ResponseError::StatusLine),
        ("HTTP/1.1 200\tOK", ResponseError::StatusLine),
        ("http/1.1 200 OK", ResponseError::StatusLine),
        (" HTTP/1.1 200 OK", ResponseError::StatusLine),
        ("HTTP/1.1 200 O\0K", ResponseError::StatusLine),
        ("HTTP/1.1 200 O\rK", ResponseError::StatusLineEnd),
        ("HTTP/2.0 200 OK", ResponseError::Version),
        ("HTTP/1.2 200 OK", ResponseError::Version),
        ("HTTP/0.9 200 OK", ResponseError::Version),
    ] {
        rejected(format!("{line}\r\n\r\n"), error);
    }
    rejected("HTTP/1.1 200 OK\n\n", ResponseError::StatusLineEnd);
}

#[test]
fn invalid_heads_are_rejected() {
    for (fields, error) in [
        (
            "Content-Length: 5\r\nContent-Length: 5\r\n",
            ResponseError::Framing(FramingError::LengthRepeated),
        ),
        (
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            ResponseError::Framing(FramingError::LengthRepeated),
        ),
        (
            "Content-Length: 5, 5\r\n",
            ResponseError::Framing(FramingError::LengthInvalid),
        ),
        (
            "Content-Length: -1\r\n",
            ResponseError::Framing(FramingError::LengthInvalid),
        ),
        (
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            ResponseError::Framing(FramingError::LengthAndCoding),
        ),
        (
            "Transfer-Encoding: gzip\r\n",
            ResponseError::Framing(FramingError::CodingInvalid),
        ),
        (
            "Transfer-Encoding: gzip, chunked\r\n",
            ResponseError::Framing(FramingError::CodingUnknown),
        ),
        ("NoColon\r\n", ResponseError::Field(FieldError::MissingColon)),
        ("X : y\r\n", ResponseError::Field(FieldError::SpaceBeforeColon)),
        ("X: y\r\n z\r\n", ResponseError::Field(FieldError::Folded)),
        ("X: y\n", ResponseError::Field(FieldError::BareLf)),
        ("X: \0\r\n", ResponseError::Field(FieldError::ControlInValue)),
    ] {
        rejected(ok(fields, ""), error);
        client("HEAD", ok(fields, ""), &[&format!("error {error:?}")]);
    }
    rejected(
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        ResponseError::Framing(FramingError::CodingInHttp10),
    );
    // Chunk sizes whose sum exceeds 64 bits.
    let chunked = ok("Transfer-Encoding: chunked\r\n", "1\r\nx\r\nffffffffffffffff\r\n");
    let error = format!("error {:?}", ResponseError::Chunk(ChunkError::SizeTooLong));
    client(
        "GET",
        chunked,
        &["200 Chunked Transfer-Encoding=chunked", "data x", &error],
    );
    let chunked = ok("Transfer-Encoding: chunked\r\n", "5 \r\n");
    let error = format!("error {:?}", ResponseError::Chunk(ChunkError::AfterSize));
    client("GET", chunked, &["200 Chunked Transfer-Encoding=chunked", &error]);
}
