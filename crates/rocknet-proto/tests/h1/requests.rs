//! Tests valid request heads, and every reason for a refusal.
//!
//! The expected events are the lines of a transcript. A request line has the method, the path, `?` with the query, and
//! `@` with the host. Then it has the form of the target unless it is a path, `1.0` for HTTP/1.0, the framing of the
//! body, and `expects` if the client waits for 100. The last line is the state of the connection.

use rocknet_proto::KnownField;
use rocknet_proto::RequestIndex;
use rocknet_proto::h1::{FieldError, FramingError, Refusal, ServerConnection, ServerEvent};

use super::check::{accepted, refused, server};

/// Returns a GET request with Host and these field lines.
fn get(fields: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
}

/// Returns a request with this request line and `Host: a`.
fn line(line: &str) -> String {
    format!("{line}\r\nHost: a\r\n\r\n")
}

#[test]
fn targets_have_four_forms() {
    accepted(
        "GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n",
        "GET / @127.0.0.1:8080",
    );
    accepted(line("GET /a/b?c=d?e HTTP/1.1"), "GET /a/b ?c=d?e @a");
    accepted(line("GET /? HTTP/1.1"), "GET / ? @a");
    accepted(line("GET //x//y/../%2e%2E/%00 HTTP/1.1"), "GET //x//y/../%2e%2E/%00 @a");
    accepted(
        line("GET /\"{|}~!$&'()*+,;=:@<>[]^`\\ HTTP/1.1"),
        "GET /\\\"{|}~!$&\\'()*+,;=:@<>[]^`\\\\ @a",
    );
    accepted(line("get / HTTP/1.1"), "get / @a");
    accepted(line("M-SEARCH /x HTTP/1.1"), "M-SEARCH /x @a");
    accepted(line("DELETE /x HTTP/1.1"), "DELETE /x @a");
    accepted(line("GET http://a HTTP/1.1"), "GET / @a Absolute");
    accepted(line("GET http://a?q HTTP/1.1"), "GET / ?q @a Absolute");
    accepted(line("GET HTTP://A:80/p/?q HTTP/1.1"), "GET /p/ ?q @A:80 Absolute");
    accepted(line("GET http://a/p?http://b HTTP/1.1"), "GET /p ?http://b @a Absolute");
    accepted(
        "GET https://a:443/ HTTP/1.1\r\nHost: A\r\n\r\n",
        "GET / @a:443 Absolute",
    );
    accepted(
        "GET http://[::1]:81/ HTTP/1.1\r\nHost: [::1]:81\r\n\r\n",
        "GET / @[::1]:81 Absolute",
    );
    accepted(line("OPTIONS * HTTP/1.1"), "OPTIONS * @a Asterisk");
    // The test responds with 200, which opens a tunnel.
    let connect = "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n";
    server(connect, &["CONNECT  @a:443 Authority None", "Upgrade"]);
}

#[test]
fn invalid_request_lines_are_refused() {
    for (row, refusal) in [
        ("GET / HTTP/1.1 ", Refusal::RequestLine),
        (" GET / HTTP/1.1", Refusal::RequestLine),
        ("GET  / HTTP/1.1", Refusal::RequestLine),
        ("GET /  HTTP/1.1", Refusal::RequestLine),
        ("GET  HTTP/1.1", Refusal::RequestLine),
        ("GET /a b HTTP/1.1", Refusal::RequestLine),
        ("GET", Refusal::RequestLine),
        ("G\tT / HTTP/1.1", Refusal::MethodNotToken),
        ("GET\t/ HTTP/1.1", Refusal::MethodNotToken),
        ("G(T / HTTP/1.1", Refusal::MethodNotToken),
        ("G\u{e9}T / HTTP/1.1", Refusal::MethodNotToken),
        ("\0 / HTTP/1.1", Refusal::MethodNotToken),
        ("GET /", Refusal::Http09),
        ("get /index.html", Refusal::Http09),
        ("PRI * HTTP/2.0", Refusal::Http2Preface),
        ("GET / HTTP/2.0", Refusal::Version),
        ("GET / HTTP/1.2", Refusal::Version),
        ("GET / HTTP/0.9", Refusal::Version),
        ("GET / HTTP/9.9", Refusal::Version),
        ("GET / http/1.1", Refusal::VersionSyntax),
        ("GET / HTTP/1.10", Refusal::VersionSyntax),
        ("GET / HTTP/1.", Refusal::VersionSyntax),
        ("GET / HTTP/11", Refusal::VersionSyntax),
        ("GET / HTTP 1.1", Refusal::RequestLine),
        ("GET / HTCPCP/1.0", Refusal::VersionSyntax),
        ("GET /\t HTTP/1.1", Refusal::TargetByte),
        ("GET /\0 HTTP/1.1", Refusal::TargetByte),
        ("GET /\x7f HTTP/1.1", Refusal::TargetByte),
        ("GET /\x1b[2J HTTP/1.1", Refusal::TargetByte),
        ("GET /\u{e9} HTTP/1.1", Refusal::TargetByte),
        // Longer than the eight bytes that the check reads at once.
        ("GET /long-enough-for-words\x01 HTTP/1.1", Refusal::TargetByte),
        ("GET /# HTTP/1.1", Refusal::TargetFragment),
        ("GET /a?b#c HTTP/1.1", Refusal::TargetFragment),
        ("GET a HTTP/1.1", Refusal::TargetForm),
        ("GET ?a HTTP/1.1", Refusal::TargetForm),
        ("GET * HTTP/1.1", Refusal::TargetForm),
        ("OPTIONS ** HTTP/1.1", Refusal::TargetForm),
        ("GET a:80 HTTP/1.1", Refusal::TargetForm),
        ("CONNECT / HTTP/1.1", Refusal::TargetForm),
        ("CONNECT a HTTP/1.1", Refusal::TargetForm),
        ("CONNECT a: HTTP/1.1", Refusal::TargetForm),
        ("CONNECT http://a/ HTTP/1.1", Refusal::TargetForm),
        ("CONNECT [::1] HTTP/1.1", Refusal::TargetForm),
        ("GET ftp://a/ HTTP/1.1", Refusal::TargetScheme),
        ("GET ://a/ HTTP/1.1", Refusal::TargetScheme),
        ("GET /a HTTP/1.1\r", Refusal::RequestLineEnd),
        ("GET /\r HTTP/1.1", Refusal::RequestLineEnd),
        ("GET http:///p HTTP/1.1", Refusal::HostInvalid),
        ("GET http://u@a/ HTTP/1.1", Refusal::HostInvalid),
        ("GET http://u:p@a/ HTTP/1.1", Refusal::HostInvalid),
        ("GET http://a:b/ HTTP/1.1", Refusal::HostInvalid),
        ("GET http://a\\@b/ HTTP/1.1", Refusal::HostInvalid),
        ("GET http://b/ HTTP/1.1", Refusal::HostMismatch),
        ("GET http://a:81/ HTTP/1.1", Refusal::HostMismatch),
        ("GET https://a:80/ HTTP/1.1", Refusal::HostMismatch),
        ("CONNECT b:1 HTTP/1.1", Refusal::HostMismatch),
    ] {
        refused(line(row), refusal);
    }
    refused("GET / HTTP/1.1\nHost: a\r\n\r\n", Refusal::RequestLineEnd);
    refused("GET /\n", Refusal::RequestLineEnd);
    refused("\n", Refusal::RequestLineEnd);
    refused("\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::RequestLineEnd);
    refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Refusal::Http2Preface);
    refused(line(&format!("{} / HTTP/1.1", "M".repeat(33))), Refusal::MethodTooLong);
    accepted(
        line(&format!("{} / HTTP/1.1", "M".repeat(32))),
        &format!("{} / @a", "M".repeat(32)),
    );
}

#[test]
fn two_empty_lines_before_a_request_are_ignored() {
    accepted("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / @a");
    accepted("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / @a");
    refused("\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::EmptyLines);
    server("\r\n", &["more"]);
    server("", &["idle"]);
}

#[test]
fn invalid_field_lines_are_refused() {
    for (fields, error) in [
        ("A: b\n", FieldError::BareLf),
        ("\n", FieldError::BareLf),
        ("A: b\nContent-Length: 5\r\n", FieldError::BareLf),
        ("A: b\rc\r\n", FieldError::BareCr),
        ("A: b\r\r\n", FieldError::BareCr),
        ("A\r: b\r\n", FieldError::BareCr),
        ("Content\rLength: 1\r\n", FieldError::BareCr),
        ("A: b\0\r\n", FieldError::ControlInValue),
        ("A: some more than eight \x08 bytes\r\n", FieldError::ControlInValue),
        ("A: \x7f\r\n", FieldError::ControlInValue),
        ("A: b\r\n c\r\n", FieldError::Folded),
        ("A: b\r\n\tc\r\n", FieldError::Folded),
        (" \r\n", FieldError::Folded),
        ("A b\r\n", FieldError::MissingColon),
        ("GET / HTTP/1.1\r\n", FieldError::MissingColon),
        (": b\r\n", FieldError::EmptyName),
        ("A : b\r\n", FieldError::SpaceBeforeColon),
        ("Transfer-Encoding\t: chunked\r\n", FieldError::SpaceBeforeColon),
        ("Content-Length : 5\r\n", FieldError::SpaceBeforeColon),
        ("A B: c\r\n", FieldError::NameNotToken),
        ("\"A\": c\r\n", FieldError::NameNotToken),
        ("\0A: c\r\n", FieldError::NameNotToken),
        ("\x0bContent-Length: 5\r\n", FieldError::NameNotToken),
        ("Content-L\u{eb}ngth: 5\r\n", FieldError::NameNotToken),
    ] {
        refused(get(fields), error);
    }
    refused("GET / HTTP/1.1\r\n Host: a\r\n\r\n", FieldError::Folded);
}

#[test]
fn hosts_are_required_and_validated() {
    for good in [
        "a",
        "A.example",
        "a:",
        "a:80",
        "[::1]",
        "[::1]:8080",
        "a%20b",
        "xn--bcher-kva.de.",
        "a_b",
    ] {
        accepted(
            format!("GET / HTTP/1.1\r\nhOST:{good}\r\n\r\n"),
            &format!("GET / @{good}"),
        );
    }
    for bad in [
        "", " ", "a b", "a/b", "u@a", "a:b", "a:1:2", "a:65536", "[::1", "::1", "a,b c", "a\\b", "a?b", "a#b", "<a>",
    ] {
        refused(format!("GET / HTTP/1.1\r\nHost: {bad}\r\n\r\n"), Refusal::HostInvalid);
    }
    refused("GET / HTTP/1.1\r\n\r\n", Refusal::HostMissing);
    refused("GET http://a/ HTTP/1.1\r\n\r\n", Refusal::HostMissing);
    refused("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", Refusal::HostRepeated);
    refused(
        "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\nhost: b\r\n\r\n",
        Refusal::HostRepeated,
    );
    refused("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", Refusal::HostRepeated);
    refused("GET / HTTP/1.0\r\nHost: a b\r\n\r\n", Refusal::HostInvalid);
    server("GET / HTTP/1.0\r\n\r\n", &["GET / @ 1.0 None", "Close"]);
    server(
        "GET http://a/ HTTP/1.0\r\n\r\n",
        &["GET / @a Absolute 1.0 None", "Close"],
    );
}

#[test]
fn invalid_content_lengths_and_codings_are_refused() {
    use FramingError::*;
    for (fields, error) in [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", LengthAndCoding),
        ("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n", LengthAndCoding),
        ("Transfer-Encoding: gzip\r\nContent-Length: 0\r\n", LengthAndCoding),
        ("Content-Length: 5\r\nContent-Length: 5\r\n", LengthRepeated),
        ("Content-Length: 5\r\ncontent-length: 6\r\n", LengthRepeated),
        ("Content-Length: 0\r\nX: y\r\nContent-Length: 0\r\n", LengthRepeated),
        ("Content-Length: 5, 5\r\n", LengthInvalid),
        ("Content-Length: +5\r\n", LengthInvalid),
        ("Content-Length: -5\r\n", LengthInvalid),
        ("Content-Length: 5 5\r\n", LengthInvalid),
        ("Content-Length: 0x5\r\n", LengthInvalid),
        ("Content-Length: 5_0\r\n", LengthInvalid),
        ("Content-Length: 5.0\r\n", LengthInvalid),
        ("Content-Length:\r\n", LengthInvalid),
        ("Content-Length: \u{0665}\r\n", LengthInvalid),
        ("Content-Length: 18446744073709551616\r\n", LengthInvalid),
        ("Content-Length: 99999999999999999999999\r\n", LengthInvalid),
        ("Transfer-Encoding:\r\n", CodingInvalid),
        ("Transfer-Encoding: identity\r\n", CodingInvalid),
        ("Transfer-Encoding: gzip\r\n", CodingInvalid),
        ("Transfer-Encoding: chunked, gzip\r\n", CodingInvalid),
        ("Transfer-Encoding: chunked, chunked\r\n", CodingInvalid),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            CodingInvalid,
        ),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
            CodingInvalid,
        ),
        ("Transfer-Encoding: ,chunked\r\n", CodingInvalid),
        ("Transfer-Encoding: chunked,\r\n", CodingInvalid),
        ("Transfer-Encoding: xchunked\r\n", CodingInvalid),
        ("Transfer-Encoding: \"chunked\"\r\n", CodingInvalid),
        ("Transfer-Encoding: chunked;q=1\r\n", CodingInvalid),
        ("Transfer-Encoding: chunked foo\r\n", CodingInvalid),
        ("Transfer-Encoding: gzip, chunked\r\n", CodingUnknown),
        (
            "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
            CodingUnknown,
        ),
        ("Transfer-Encoding: cow, chunked\r\n", CodingUnknown),
        ("Transfer-Encoding: identity, chunked\r\n", CodingUnknown),
    ] {
        refused(format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"), error);
    }
    refused(
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        CodingInHttp10,
    );
    refused(get("Transfer-Encoding: cow\r\nContent-Length: 5\r\n"), LengthAndCoding);
    assert_eq!(Refusal::from(CodingUnknown).status().code(), 501);
    assert_eq!(Refusal::from(CodingInvalid).status().code(), 400);
}

#[test]
fn only_100_continue_may_be_expected() {
    let post = |expect: &str| format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: {expect}\r\n\r\nhi");
    server(
        post("100-continue"),
        &["POST / @a Length(2) expects", "data hi", "end", "idle"],
    );
    server(
        post("100-Continue\r\nExpect: 100-CONTINUE"),
        &["POST / @a Length(2) expects", "data hi", "end", "idle"],
    );
    refused(post("200-ok"), Refusal::Expectation);
    refused(post("100-continue, x"), Refusal::Expectation);
    refused(post("100-continue\r\nExpect: x"), Refusal::Expectation);
    refused(post(""), Refusal::Expectation);
    accepted(get("Expect: 100-continue\r\n"), "GET / @a");
    let old = "POST / HTTP/1.0\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nhi";
    server(old, &["POST / @ 1.0 Length(2)", "data hi", "end", "Close"]);
    assert_eq!(Refusal::Expectation.status().code(), 417);
}

#[test]
fn connections_persist_or_close() {
    // Version, value of Connection, and the expected state of the connection.
    for (version, connection, state) in [
        ("1.1", "", "idle"),
        ("1.1", "keep-alive", "idle"),
        ("1.1", "x, ,y", "idle"),
        ("1.1", "closed", "idle"),
        ("1.1", "close", "Close"),
        ("1.1", "CLOSE", "Close"),
        ("1.1", "keep-alive,close", "Close"),
        ("1.1", "x\t, Close ,y", "Close"),
        ("1.1", "keep-alive\r\nConnection: close", "Close"),
        ("1.0", "", "Close"),
        ("1.0", "x", "Close"),
        ("1.0", "Keep-Alive", "idle"),
        ("1.0", "keep-alive, close", "Close"),
        ("1.0", "x\r\nConnection: keep-alive", "idle"),
    ] {
        let line = if version == "1.0" {
            "GET / @a 1.0 None"
        } else {
            "GET / @a None"
        };
        server(
            format!("GET / HTTP/{version}\r\nHost: a\r\nConnection: {connection}\r\n\r\n"),
            &[line, state],
        );
    }
}

#[test]
fn upgrades_are_offered_only_where_possible() {
    let upgrade = "Connection: Upgrade, x\r\nUpgrade: websocket\r\n";
    server(get(upgrade), &["GET / @a None", "Upgrade"]);
    server(get("Connection: upgrade\r\n"), &["GET / @a None", "idle"]);
    server(get("Upgrade: websocket\r\n"), &["GET / @a None", "idle"]);
    server(
        format!("GET / HTTP/1.0\r\n{upgrade}\r\n"),
        &["GET / @ 1.0 None", "Close"],
    );
    let post = format!("POST / HTTP/1.1\r\nHost: a\r\n{upgrade}Content-Length: 2\r\n\r\nhi");
    server(post, &["POST / @a Length(2)", "data hi", "end", "idle"]);
}

/// Bytes of the new protocol remain unread, even if they look like a request.
#[test]
fn nothing_is_read_after_an_upgrade() {
    let bytes = get("Connection: upgrade\r\nUpgrade: x\r\n") + "\x01\x05hello GET / HTTP/1.1\r\n\r\n";
    server(bytes, &["GET / @a None", "Upgrade"]);
}

#[test]
fn fields_are_found_by_name() {
    let bytes = get("accept: a\r\nX-Thing:  one \r\nACCEPT:b\t\r\nIf-Range: x\r\n");
    let (mut connection, mut index) = (ServerConnection::new(), RequestIndex::default());
    let received = connection.receive(&Default::default(), bytes.as_bytes(), &mut index);
    assert!(matches!(received, Ok(ServerEvent::Request { consumed, .. }) if consumed == bytes.len()));
    let request = index.view(bytes.as_bytes());
    assert_eq!(request.fields.get(KnownField::Accept), Some(b"a".as_slice()));
    assert!(request.fields.is_repeated(KnownField::Accept));
    assert_eq!(
        request.fields.get_all(KnownField::Accept).collect::<Vec<_>>(),
        [b"a", b"b"]
    );
    assert_eq!(request.fields.by_name(b"x-thing").next(), Some(b"one".as_slice()));
    assert_eq!(request.target, b"/");
    let owned = rocknet_proto::OwnedRequest::copy(&[bytes.as_bytes(), b"content"].concat(), &index);
    assert_eq!(owned.view().fields.get(KnownField::Host), Some(b"a".as_slice()));
    assert_eq!(owned.view().fields.iter().len(), 5);
}
