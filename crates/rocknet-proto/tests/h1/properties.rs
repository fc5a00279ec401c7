//! Property tests of messages: splits do not change events, and client and server can parse each other's output.

use proptest::prelude::*;
use rocknet_proto::fields::Field;
use rocknet_proto::fuzzing::{ResponseTiming, client_transcript, server_transcript};
use rocknet_proto::h1::{
    AfterResponse, ClientConnection, ClientEvent, Length, RequestLine, ServerConnection, ServerEvent, encode_head,
};
use rocknet_proto::{Limits, RequestIndex, ResponseIndex, Status};

/// Valid and invalid parts of messages, so that random sequences of them reach most states.
const PARTS: &[&str] = &[
    "GET / HTTP/1.1\r\n",
    "POST /x?y HTTP/1.1\r\n",
    "HEAD * HTTP/1.0\r\n",
    "Host: a\r\n",
    "Host: b:1\r\n",
    "\r\n",
    "\n",
    "\r",
    "Content-Length: 5\r\n",
    "Content-Length: 3\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Expect: 100-continue\r\n",
    "Connection: keep-alive\r\n",
    "Connection: close\r\n",
    "X: y\r\n",
    "X : y\r\n",
    " z\r\n",
    "hello",
    "5\r\nhello\r\n",
    "3;x\r\nabc\r\n",
    "0\r\n\r\n",
    "0\r\nT: u\r\n\r\n",
    "\0",
    ":",
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.0 304 \r\n",
    "HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
];

/// Mostly valid beginnings of messages, so that random sequences reach the states after a head.
const BEGINNINGS: &[&str] = &[
    "",
    "GET / HTTP/1.1\r\nHost: a\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    "HTTP/1.1 200 OK\r\n",
];

/// Generates a beginning and random parts. In one case of five, one byte is replaced by a random byte.
fn messages() -> impl Strategy<Value = Vec<u8>> {
    let beginning = prop::sample::select(BEGINNINGS);
    let parts = prop::collection::vec(prop::sample::select(PARTS), 0..12);
    let noise = prop::option::weighted(0.2, (any::<prop::sample::Index>(), any::<u8>()));
    (beginning, parts, noise).prop_map(|(beginning, parts, noise)| {
        let mut bytes = [beginning.as_bytes(), parts.concat().as_bytes()].concat();
        if let Some((position, byte)) = noise
            && !bytes.is_empty()
        {
            let position = position.index(bytes.len());
            bytes[position] = byte;
        }
        bytes
    })
}

/// Splits bytes into pieces of the lengths in `cuts`, and a last piece with the remaining bytes.
fn pieces(mut bytes: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    for &cut in cuts {
        let (piece, rest) = bytes.split_at(cut.min(bytes.len()));
        pieces.push(piece.to_vec());
        bytes = rest;
    }
    pieces.push(bytes.to_vec());
    pieces
}

/// Pattern of a token.
const TCHAR: &str = "[!#$%&'*+.^_`|~0-9A-Za-z-]{1,20}";

/// Generates fields whose names begin with `x-`, so that they are neither framing fields nor set by the encoder.
fn fields() -> impl Strategy<Value = Vec<(String, Vec<u8>)>> {
    let value = prop::collection::vec(prop_oneof![0x21..0x7fu8, 0x80..=0xffu8, Just(b' '), Just(b'\t')], 0..40)
        .prop_map(|value| value.trim_ascii().to_vec());
    prop::collection::vec((TCHAR.prop_map(|name| format!("x-{name}")), value), 0..12)
}

fn borrowed(fields: &[(String, Vec<u8>)]) -> impl Iterator<Item = (&[u8], &[u8])> {
    fields.iter().map(|(name, value)| (name.as_bytes(), value.as_slice()))
}

/// Copies the fields whose names begin with `x-`, which [`fields`] generates.
fn collected<'a>(fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Vec<(String, Vec<u8>)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    fields
        .map(|(name, value)| (text(name), value.to_vec()))
        .filter(|(name, _)| name.starts_with("x-"))
        .collect()
}

/// Generates a body as a list of pieces, and true if its length is announced.
fn bodies() -> impl Strategy<Value = (Vec<Vec<u8>>, bool)> {
    (
        prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 0..5),
        any::<bool>(),
    )
}

/// Returns the length of a body if it is announced.
fn length_of(content: &[Vec<u8>], announced: bool) -> Length {
    if announced {
        Length::Exact(content.concat().len() as u64)
    } else {
        Length::Unknown
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_split_gives_the_same_events(bytes in messages(), cuts in prop::collection::vec(0usize..40, 0..12)) {
        let pieces = pieces(&bytes, &cuts);
        let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        let small = Limits { head_size: 60, fields: 3, target_size: 4, trailer_size: 9, chunk_extension: 3, body_size: 9 };
        for limits in [Limits::default(), small] {
            for timing in [ResponseTiming::AfterBody, ResponseTiming::AfterHead] {
                let whole = server_transcript(&[&bytes], &limits, None, timing);
                prop_assert_eq!(&whole, &server_transcript(&pieces, &limits, None, timing));
            }
            for method in ["GET", "HEAD"] {
                let whole = client_transcript(&[&bytes], &limits, method, Some("x"));
                prop_assert_eq!(&whole, &client_transcript(&pieces, &limits, method, Some("x")));
            }
        }
    }

    #[test]
    fn random_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        rocknet_proto::fuzzing::h1_request(&bytes);
        rocknet_proto::fuzzing::h1_body(&bytes);
        rocknet_proto::fuzzing::h1_response(&bytes);
    }

    #[test]
    fn written_requests_are_read_back(
        method in TCHAR.prop_filter("CONNECT has another form of target", |method| method != "CONNECT"),
        target in "/[!-\"$-~]{0,60}",
        fields in fields(),
        (content, announced) in bodies(),
        close in any::<bool>(),
    ) {
        let mut out = Vec::new();
        let mut client = ClientConnection::new();
        let line = RequestLine {
            method: method.as_bytes(),
            target: target.as_bytes(),
            host: b"example.com:81",
            length: length_of(&content, announced),
            upgrade: None,
            close,
        };
        prop_assert_eq!(client.encode_request(&mut out, &line, borrowed(&fields).map(|(name, value)| Field::new(name, value))), Ok(()));
        for piece in &content {
            prop_assert_eq!(client.encode_data(piece, &mut out), Ok(()));
        }
        prop_assert_eq!(client.finish([(b"T".as_slice(), b"u".as_slice())], &mut out), Ok(true));

        let (limits, mut index, mut server) = (Limits::default(), RequestIndex::default(), ServerConnection::new());
        let received = server.receive(&limits, &out, &mut index);
        let Ok(ServerEvent::Request { consumed, .. }) = received else { panic!("{received:?}") };
        let request = index.view(&out);
        prop_assert_eq!(request.method_name, method.as_bytes());
        prop_assert_eq!(request.target, target.as_bytes());
        prop_assert_eq!(request.authority, b"example.com:81");
        prop_assert_eq!(collected(request.fields.iter()), fields);
        let mut unread = &out[consumed..];
        let mut found = Vec::new();
        loop {
            match server.receive(&limits, unread, &mut index) {
                Ok(ServerEvent::Data { start, end }) => {
                    found.extend_from_slice(&unread[start..end]);
                    unread = &unread[end..];
                }
                Ok(ServerEvent::End { consumed }) => {
                    // Only a chunked body, whose length is not announced, can have the trailer field.
                    prop_assert_eq!(index.trailers.view(unread).len(), usize::from(!announced));
                    unread = &unread[consumed..];
                }
                Ok(ServerEvent::Blocked) => break,
                other => panic!("{other:?}"),
            }
        }
        prop_assert_eq!((found, unread.len()), (content.concat(), 0));
        // The second value is the state of the connection after the response.
        let next = server.respond_complete(Status::OK, Length::None, false).1;
        prop_assert_eq!(next, if close { AfterResponse::Close } else { AfterResponse::KeepAlive });
    }

    /// `old` is true for a request with HTTP/1.0.
    #[test]
    fn written_responses_are_read_back(
        status in (200u16..=999).prop_filter("responses with these statuses have no body", |status| ![204, 205, 304].contains(status)),
        fields in fields(),
        (content, announced) in bodies(),
        old in any::<bool>(),
    ) {
        let (limits, mut server, mut out) = (Limits::default(), ServerConnection::new(), Vec::new());
        let version = if old { "1.0" } else { "1.1" };
        let head = format!("GET / HTTP/{version}\r\nHost: a\r\n\r\n");
        let received = server.receive(&limits, head.as_bytes(), &mut RequestIndex::default());
        prop_assert!(received.is_ok());
        let status = Status::new(status).expect("three digits");
        let framing = server.respond(status, length_of(&content, announced), false);
        prop_assert_eq!(encode_head(&mut out, framing, status, borrowed(&fields)), Ok(()));
        for piece in &content {
            prop_assert_eq!(server.encode_data(piece, &mut out), Ok(()));
        }
        prop_assert_eq!(server.finish(&mut out), if old { AfterResponse::Close } else { AfterResponse::KeepAlive });

        let (mut client, mut index) = (ClientConnection::new(), ResponseIndex::default());
        let line = RequestLine {
            method: b"GET", target: b"/", host: b"a", length: Length::None, upgrade: None, close: false,
        };
        prop_assert_eq!(client.encode_request(&mut Vec::new(), &line, []), Ok(()));
        let received = client.receive(&limits, &out, &mut index);
        let Ok(ClientEvent::Response { consumed, .. }) = received else { panic!("{received:?}") };
        prop_assert_eq!(index.status, status);
        prop_assert_eq!(index.view(&out).reason, status.reason().as_bytes());
        prop_assert_eq!(collected(index.view(&out).fields.iter()), fields);
        let (mut unread, mut found) = (&out[consumed..], Vec::new());
        loop {
            match client.receive(&limits, unread, &mut index) {
                Ok(ClientEvent::Data { start, end }) => {
                    found.extend_from_slice(&unread[start..end]);
                    unread = &unread[end..];
                }
                Ok(ClientEvent::End { consumed }) => unread = &unread[consumed..],
                Ok(ClientEvent::Blocked | ClientEvent::More { .. }) => break,
                other => panic!("{other:?}"),
            }
        }
        prop_assert_eq!((found, unread.len()), (content.concat(), 0));
        // HTTP/1.0 has no chunks, so the end of the connection also ends a body of unannounced length. `closed`
        // returns true if the end of the connection ends the response.
        prop_assert_eq!(client.is_reusable(), !old);
        prop_assert_eq!(client.closed(), Ok(old && !announced));
    }
}
