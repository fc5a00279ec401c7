//! Tests server responses: their framing, their bytes, and the state of the connection after them.

use rocknet_proto::h1::{
    AfterResponse, BodyFraming, ConnectionField, EncodeError, Framing, Length, Refusal, ServerConnection, ServerEvent,
    encode_head,
};
use rocknet_proto::{Limits, RequestIndex, Status};

const NO_FIELDS: [(&[u8], &[u8]); 0] = [];

/// Returns a connection that has received this request without its body.
fn connection_with_request(line: &str, fields: &str) -> ServerConnection {
    let mut connection = ServerConnection::new();
    let head = format!("{line}\r\nHost: a:1\r\n{fields}\r\n");
    let received = connection.receive(&Limits::default(), head.as_bytes(), &mut RequestIndex::default());
    assert!(
        matches!(received, Ok(ServerEvent::Request { .. })),
        "{head}: {received:?}"
    );
    connection
}

/// Sends `hi` with the framing of the connection; returns all bytes and the state after the response.
fn respond(mut connection: ServerConnection, status: Status, length: Length, close: bool) -> (String, AfterResponse) {
    let framing = connection.respond(status, length, close);
    let mut out = Vec::new();
    assert_eq!(encode_head(&mut out, framing, status, NO_FIELDS), Ok(()));
    // The data is longer than an announced length of 2. A body of unknown length accepts it; the output is discarded.
    let long_data = connection.encode_data(b"more than two", &mut Vec::new());
    if framing.has_body {
        let expected = if framing.content_length.is_some() {
            Err(EncodeError::BodyTooLong)
        } else {
            Ok(())
        };
        assert_eq!(long_data, expected);
        assert_eq!(connection.encode_data(b"hi", &mut out), Ok(()));
        assert_eq!(connection.encode_data(b"", &mut out), Ok(()));
    } else {
        assert_eq!(long_data, Err(EncodeError::BodyForbidden));
    }
    let next = connection.finish(&mut out);
    (String::from_utf8(out).expect("heads in these rows are ASCII"), next)
}

/// Checks the response to a request with this request line and these fields. `status`, `length` and `close` describe
/// the response, as for [`ServerConnection::respond`]. `wire` has the bytes that follow the status line, and `next` is
/// the state after the response.
fn check(line: &str, fields: &str, status: u16, length: Length, close: bool, wire: &str, next: AfterResponse) {
    let status = Status::new(status).expect("each row has a valid status");
    let shown = format!("{line} {fields:?} {status} {length:?} {close}");
    let (written, after) = respond(connection_with_request(line, fields), status, length, close);
    let (first, rest) = written.split_once("\r\n").expect("a status line is written");
    assert!(first.starts_with(&format!("HTTP/1.1 {status} ")), "{shown}: {first}");
    assert_eq!((rest, after), (wire, next), "{shown}");
    // The combined call must return the same framing and state.
    let mut connection = connection_with_request(line, fields);
    let (framing, after) = connection.respond_complete(status, length, close);
    assert_eq!(
        (framing, after),
        (
            connection_with_request(line, fields).respond(status, length, close),
            next
        ),
        "{shown}"
    );
}

#[test]
fn responses_are_framed_by_status_and_length() {
    // `None` is a length in this test.
    use Length::*;
    let get = "GET / HTTP/1.1";
    let old = "GET / HTTP/1.0";
    let head = "HEAD / HTTP/1.1";
    let two = Exact(2);
    check(
        get,
        "",
        200,
        two,
        false,
        "Content-Length: 2\r\n\r\nhi",
        AfterResponse::KeepAlive,
    );
    check(
        get,
        "",
        200,
        two,
        true,
        "Content-Length: 2\r\nConnection: close\r\n\r\nhi",
        AfterResponse::Close,
    );
    check(
        get,
        "",
        200,
        Unknown,
        false,
        "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        AfterResponse::KeepAlive,
    );
    let close = "Connection: close\r\n";
    check(
        get,
        close,
        200,
        two,
        false,
        "Content-Length: 2\r\nConnection: close\r\n\r\nhi",
        AfterResponse::Close,
    );
    check(
        old,
        "",
        200,
        two,
        false,
        "Content-Length: 2\r\nConnection: close\r\n\r\nhi",
        AfterResponse::Close,
    );
    check(
        old,
        "",
        200,
        Unknown,
        false,
        "Connection: close\r\n\r\nhi",
        AfterResponse::Close,
    );
    let keep = "Connection: keep-alive\r\n";
    check(
        old,
        keep,
        200,
        two,
        false,
        "Content-Length: 2\r\nConnection: keep-alive\r\n\r\nhi",
        AfterResponse::KeepAlive,
    );
    check(
        old,
        keep,
        200,
        Unknown,
        false,
        "Connection: close\r\n\r\nhi",
        AfterResponse::Close,
    );
    check(
        old,
        keep,
        204,
        None,
        false,
        "Connection: keep-alive\r\n\r\n",
        AfterResponse::KeepAlive,
    );
    check(
        head,
        "",
        200,
        two,
        false,
        "Content-Length: 2\r\n\r\n",
        AfterResponse::KeepAlive,
    );
    check(head, "", 200, Unknown, false, "\r\n", AfterResponse::KeepAlive);
    check(
        "HEAD / HTTP/1.0",
        keep,
        200,
        Unknown,
        false,
        "Connection: keep-alive\r\n\r\n",
        AfterResponse::KeepAlive,
    );
    check(head, "", 304, two, false, "\r\n", AfterResponse::KeepAlive);
    for bare in [204, 304] {
        for length in [None, two, Unknown] {
            check(get, "", bare, length, false, "\r\n", AfterResponse::KeepAlive);
        }
    }
    check(
        get,
        "",
        205,
        two,
        false,
        "Content-Length: 0\r\n\r\n",
        AfterResponse::KeepAlive,
    );
    // The server discards an unread request body to keep the connection (`Drain`). If the response closes the
    // connection, or if the client waits for a 100, the connection does not persist (`Linger`).
    let length = "Content-Length: 5\r\n";
    let post = "POST / HTTP/1.1";
    check(
        post,
        length,
        404,
        two,
        false,
        "Content-Length: 2\r\n\r\nhi",
        AfterResponse::Drain,
    );
    check(
        post,
        length,
        404,
        two,
        true,
        "Content-Length: 2\r\nConnection: close\r\n\r\nhi",
        AfterResponse::Linger,
    );
    let expect = "Content-Length: 5\r\nExpect: 100-continue\r\n";
    check(
        post,
        expect,
        404,
        two,
        false,
        "Content-Length: 2\r\nConnection: close\r\n\r\nhi",
        AfterResponse::Linger,
    );
    // Upgrades and tunnels.
    let upgrade = "Connection: upgrade\r\nUpgrade: x\r\n";
    check(
        get,
        upgrade,
        101,
        None,
        false,
        "Connection: upgrade\r\n\r\n",
        AfterResponse::Upgrade,
    );
    check(
        get,
        upgrade,
        200,
        two,
        false,
        "Content-Length: 2\r\n\r\nhi",
        AfterResponse::KeepAlive,
    );
    check(
        get,
        "",
        101,
        None,
        false,
        "Connection: close\r\n\r\n",
        AfterResponse::Close,
    );
    check(
        "CONNECT a:1 HTTP/1.1",
        "",
        200,
        None,
        false,
        "\r\n",
        AfterResponse::Upgrade,
    );
    check(
        "CONNECT a:1 HTTP/1.1",
        "",
        405,
        two,
        false,
        "Content-Length: 2\r\n\r\nhi",
        AfterResponse::KeepAlive,
    );
}

#[test]
fn responses_without_body_have_length_zero() {
    for status in [200, 301, 404, 500] {
        let mut connection = connection_with_request("GET / HTTP/1.1", "");
        let status = Status::new(status).expect("each row has a valid status");
        let (framing, next) = connection.respond_complete(status, Length::None, false);
        assert_eq!((framing.content_length, next), (Some(0), AfterResponse::KeepAlive));
    }
}

#[test]
fn interim_responses_change_no_state() {
    let mut connection = connection_with_request("GET / HTTP/1.1", "");
    assert!(connection.may_send_interim());
    let framing = connection.respond(Status::EARLY_HINTS, Length::None, false);
    let mut out = Vec::new();
    assert_eq!(encode_head(&mut out, framing, Status::EARLY_HINTS, NO_FIELDS), Ok(()));
    assert_eq!(out, b"HTTP/1.1 103 Early Hints\r\n\r\n");
    assert!(connection.may_respond());
    assert_eq!(
        connection.respond_complete(Status::OK, Length::None, false).1,
        AfterResponse::KeepAlive
    );
    assert!(!connection_with_request("GET / HTTP/1.0", "").may_send_interim());
}

#[test]
fn a_truncated_response_closes_the_connection() {
    let mut connection = connection_with_request("GET / HTTP/1.1", "");
    connection.respond(Status::OK, Length::Exact(3), false);
    let mut out = Vec::new();
    assert_eq!(connection.encode_data(b"hi", &mut out), Ok(()));
    assert_eq!(
        (connection.finish(&mut out), out.as_slice()),
        (AfterResponse::Close, b"hi".as_slice())
    );
    let mut connection = connection_with_request("GET / HTTP/1.1", "");
    connection.respond(Status::OK, Length::Unknown, false);
    assert_eq!(connection.abort(), AfterResponse::Close);
    let received = connection.receive(&Limits::default(), b"GET / HTTP/1.1\r\n", &mut RequestIndex::default());
    assert_eq!(received, Ok(ServerEvent::Blocked));
}

#[test]
fn data_can_be_framed_without_copying() {
    let mut connection = connection_with_request("GET / HTTP/1.1", "");
    connection.respond(Status::OK, Length::Unknown, false);
    let mut out = Vec::new();
    assert_eq!(connection.begin_data(0x1234, &mut out), Ok(()));
    assert_eq!(
        (out.as_slice(), connection.data_end()),
        (b"1234\r\n".as_slice(), b"\r\n".as_slice())
    );
    out.clear();
    let trailers = [(b"Digest".as_slice(), b"x".as_slice())];
    assert_eq!(
        connection.finish_with_trailers(trailers, &mut out),
        Ok(AfterResponse::KeepAlive)
    );
    assert_eq!(out, b"0\r\nDigest: x\r\n\r\n");
    let mut connection = connection_with_request("GET / HTTP/1.1", "");
    connection.respond(Status::OK, Length::Exact(4), false);
    assert_eq!(connection.begin_data(4, &mut out), Ok(()));
    assert_eq!(connection.begin_data(1, &mut out), Err(EncodeError::BodyTooLong));
    assert_eq!(
        (connection.data_end(), connection.finish(&mut out)),
        (b"".as_slice(), AfterResponse::KeepAlive)
    );
}

/// The next request is not parsed before the response to the previous request ends.
#[test]
fn pipelined_requests_are_blocked_until_the_response_ends() {
    let limits = Limits::default();
    let mut index = RequestIndex::default();
    // Two requests of 28 bytes each.
    let bytes = b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut connection = ServerConnection::new();
    let first = connection.receive(&limits, bytes, &mut index);
    assert_eq!(
        first,
        Ok(ServerEvent::Request {
            consumed: 28,
            body: BodyFraming::None
        })
    );
    assert_eq!(
        connection.receive(&limits, &bytes[28..], &mut index),
        Ok(ServerEvent::Blocked)
    );
    connection.respond(Status::OK, Length::Exact(0), false);
    assert_eq!(
        connection.receive(&limits, &bytes[28..], &mut index),
        Ok(ServerEvent::Blocked)
    );
    assert_eq!(index.view(&bytes[..28]).path, b"/1");
    assert_eq!(connection.finish(&mut Vec::new()), AfterResponse::KeepAlive);
    let second = connection.receive(&limits, &bytes[28..], &mut index);
    assert_eq!(
        second,
        Ok(ServerEvent::Request {
            consumed: 28,
            body: BodyFraming::None
        })
    );
}

/// The search position in a head that arrived slowly must not be applied to the next head.
#[test]
fn a_slow_head_does_not_delay_the_next_request() {
    let (limits, mut index, mut connection) = (Limits::default(), RequestIndex::default(), ServerConnection::new());
    let slow = b"GET /slow HTTP/1.1\r\nHost: a\r\nX: some fifty bytes and no end\r\n\r\n";
    let part = connection.receive(&limits, &slow[..slow.len() - 4], &mut index);
    assert_eq!(part, Ok(ServerEvent::More { consumed: 0 }));
    assert!(matches!(
        connection.receive(&limits, slow, &mut index),
        Ok(ServerEvent::Request { .. })
    ));
    assert_eq!(
        connection.respond_complete(Status::OK, Length::None, false).1,
        AfterResponse::KeepAlive
    );
    let quick = b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2-without-any-end-of-line-up-to-now HTTP/1.1";
    let received = connection.receive(&limits, quick, &mut index);
    assert_eq!(
        received,
        Ok(ServerEvent::Request {
            consumed: 28,
            body: BodyFraming::None
        })
    );
}

/// A 408 after a timeout within a head is framed independently of the previous request.
#[test]
fn an_incomplete_head_can_be_answered_with_408() {
    let limits = Limits::default();
    let mut connection = connection_with_request("HEAD / HTTP/1.0", "Connection: keep-alive\r\n");
    assert_eq!(
        connection.respond_complete(Status::OK, Length::Exact(1), false).1,
        AfterResponse::KeepAlive
    );
    let received = connection.receive(&limits, b"GET / HT", &mut RequestIndex::default());
    assert_eq!(received, Ok(ServerEvent::More { consumed: 0 }));
    let (framing, next) = connection.respond_complete(Status::REQUEST_TIMEOUT, Length::Exact(7), false);
    let expected = Framing {
        connection: ConnectionField::Close,
        chunked: false,
        content_length: Some(7),
        has_body: true,
    };
    assert_eq!((framing, next), (expected, AfterResponse::Linger));
    let received = connection.receive(&limits, b"GET / HTTP/1.1\r\n", &mut RequestIndex::default());
    assert_eq!(received, Ok(ServerEvent::Blocked));
}

#[test]
fn refusals_in_a_body_are_answered_unless_a_response_has_started() {
    for begun in [false, true] {
        let mut connection = connection_with_request("POST / HTTP/1.1", "Transfer-Encoding: chunked\r\n");
        if begun {
            connection.respond(Status::OK, Length::Unknown, false);
        }
        let received = connection.receive(&Limits::default(), b"x\r\n", &mut RequestIndex::default());
        assert!(matches!(received, Err(Refusal::Chunk(_))));
        assert_eq!(connection.may_respond(), !begun);
        if !begun {
            let framing = connection.respond(Status::BAD_REQUEST, Length::None, false);
            assert_eq!(framing.connection, ConnectionField::Close);
        }
        assert_eq!(connection.finish(&mut Vec::new()), AfterResponse::Linger);
    }
}

#[test]
fn a_later_body_limit_replaces_the_first() {
    let mut connection = connection_with_request("POST / HTTP/1.1", "Content-Length: 5\r\n");
    assert_eq!(connection.set_body_limit(5), Ok(()));
    assert_eq!(connection.set_body_limit(4), Err(Refusal::ContentTooLarge));
    assert!(connection.may_respond() && !connection.is_receiving_body());
    let mut connection = connection_with_request("GET / HTTP/1.1", "");
    assert_eq!(connection.set_body_limit(0), Ok(()));
}

#[test]
fn continue_is_wanted_until_body_data_or_a_response() {
    let expecting = || connection_with_request("POST / HTTP/1.1", "Content-Length: 5\r\nExpect: 100-continue\r\n");
    let mut connection = expecting();
    assert!(connection.wants_continue());
    connection.continue_sent();
    assert!(!connection.wants_continue());
    assert_eq!(
        connection.respond_complete(Status::OK, Length::None, false).1,
        AfterResponse::Drain
    );
    let mut connection = expecting();
    let data = connection.receive(&Limits::default(), b"h", &mut RequestIndex::default());
    assert_eq!(data, Ok(ServerEvent::Data { start: 0, end: 1 }));
    assert!(!connection.wants_continue());
    let mut connection = expecting();
    connection.respond(Status::OK, Length::None, false);
    assert!(!connection.wants_continue());
}
