//! Tests of the filter: which responses are coded, what their fields are then, and what arrives when.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::{self, Read, Write};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use proptest::prelude::*;

use super::*;
use crate::open_file::OpenFile;
use crate::response::{FieldList, FilePart, Part};

const CODINGS: [Coding; 3] = ENCODED;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// One thing that a scripted stream does.
enum Event {
    Piece(Bytes),
    Pause,
    Error,
}

/// A stream that does what is written. It panics if a call of `next` is dropped while it pauses, because streams of
/// handlers lose content then.
#[derive(Default)]
struct Script {
    events: VecDeque<Event>,
    length: Option<u64>,
    trailers: Option<FieldList>,
}

struct Unfinished(bool);

impl Drop for Unfinished {
    fn drop(&mut self) {
        assert!(
            !self.0 || thread::panicking(),
            "a call of `next` was dropped while it paused"
        );
    }
}

impl Stream for Script {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        let mut paused = Unfinished(false);
        Box::pin(poll_fn(move |context| {
            let event = self.events.pop_front();
            let paused = &mut paused;
            paused.0 = matches!(event, Some(Event::Pause));
            match event {
                Some(Event::Piece(piece)) => Poll::Ready(Some(Ok(piece))),
                Some(Event::Error) => Poll::Ready(Some(Err(io::Error::other("the source broke")))),
                Some(Event::Pause) => {
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
                None => Poll::Ready(None),
            }
        }))
    }

    fn length(&self) -> Option<u64> {
        self.length
    }

    fn trailers(&mut self) -> Option<FieldList> {
        self.trailers.take()
    }
}

fn piece(content: impl Into<Vec<u8>>) -> Event {
    Event::Piece(content.into().into())
}

fn script(events: impl IntoIterator<Item = Event>) -> Script {
    Script {
        events: events.into_iter().collect(),
        ..Script::default()
    }
}

fn coded(coding: Coding, source: Script, pool: &Pool) -> CodedStream {
    let coded = CodedStream::new(
        coding,
        Box::new(source),
        &Encoders::default(),
        pool.clone(),
        Priority::Normal,
    );
    coded.unwrap_or_else(|_| panic!("no encoder"))
}

/// All pieces of a stream, and its error.
fn drain(stream: &mut dyn Stream) -> (Vec<Bytes>, Option<io::Error>) {
    let mut pieces = Vec::new();
    loop {
        match block_on(stream.next()) {
            Some(Ok(piece)) => pieces.push(piece),
            Some(Err(error)) => return (pieces, Some(error)),
            None => return (pieces, None),
        }
    }
}

/// As much of the content as can be decoded, and whether that is all of it.
fn decode(coding: Coding, mut encoded: &[u8]) -> (Vec<u8>, bool) {
    let mut reader: Box<dyn Read + '_> = match coding {
        Coding::Br => Box::new(brotli::Decompressor::new(&mut encoded, 4096)),
        Coding::Zstd => Box::new(zstd::stream::read::Decoder::new(&mut encoded).expect("a decoder")),
        Coding::Gzip => Box::new(flate2::read::GzDecoder::new(&mut encoded)),
        Coding::Identity => Box::new(&mut encoded),
    };
    let (mut content, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return (content, true),
            Ok(length) => content.extend_from_slice(&buffer[..length]),
            Err(_) => return (content, false),
        }
    }
}

/// Text that shrinks.
fn text(length: usize) -> Vec<u8> {
    (0u64..)
        .flat_map(|n| format!("line {} of the text\n", n * 7919 % 1000).into_bytes())
        .take(length)
        .collect()
}

/// Bytes that do not shrink.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..).flat_map(|_: u32| next()).take(length).collect()
}

fn conditions(accept: &str) -> Conditions<'_> {
    Conditions {
        compress: true,
        accept_encoding: Some(accept.as_bytes()),
        if_none_match: None,
        is_head: false,
        priority: Priority::Normal,
    }
}

fn response(status: u16, fields: &[(&str, &str)], body: impl Into<Body>) -> Response {
    let response = Response::new(Status::new(status).expect("a status")).body(body);
    fields
        .iter()
        .fold(response, |response, (name, value)| response.with(name, value))
}

/// Applies the filter and waits for it.
fn filtered(conditions: &Conditions<'_>, mut response: Response) -> Response {
    let pool = Pool::new(1);
    if let Some(pending) = apply(conditions, &pool, &Encoders::default(), &mut response) {
        block_on(pending.complete(&mut response));
    }
    response
}

fn content(body: Body) -> Vec<u8> {
    match body {
        Body::Bytes(bytes) => bytes.to_vec(),
        Body::Stream(mut stream) => match drain(&mut *stream) {
            (pieces, None) => pieces.concat(),
            (_, Some(error)) => panic!("{error}"),
        },
        _ => Vec::new(),
    }
}

#[track_caller]
fn check_fields(response: &Response, expected: &[(&str, &str)]) {
    assert_eq!(response.fields.iter().collect::<Vec<_>>(), expected);
}

const TYPE: (&str, &str) = ("Content-Type", "text/html; charset=utf-8");
const VARY: (&str, &str) = ("Vary", "Accept-Encoding");
const BR: (&str, &str) = ("Content-Encoding", "br");

#[test]
fn the_fields_of_responses_that_are_coded() {
    type Fields<'a> = &'a [(&'a str, &'a str)];
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
        (200, "br", &[TYPE, ("ETag", "a")], &[TYPE, VARY, BR]),
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
fn responses_that_are_left_as_they_are() {
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
fn a_client_that_accepts_nothing_still_gets_vary() {
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
fn only_what_shrinks_is_used() {
    for length in [2000, ON_LOOP + 1] {
        let plain = noise(length);
        let response = filtered(
            &conditions("br"),
            response(200, &[TYPE, ("ETag", "\"a\"")], plain.clone()),
        );
        check_fields(&response, &[TYPE, ("ETag", "\"a\""), VARY]);
        assert!(content(response.body) == plain, "{length}");
    }
}

#[test]
fn content_in_memory_is_encoded_at_once_or_in_the_pool_or_while_it_is_sent() {
    let rows = [
        (ON_LOOP, false, true),
        (ON_LOOP + 1, true, true),
        (WHOLE, true, true),
        (WHOLE + 1, false, false),
    ];
    for (length, waits, has_length) in rows {
        for coding in CODINGS {
            let (pool, plain) = (Pool::new(1), text(length));
            let mut response = response(200, &[TYPE], plain.clone());
            let pending = apply(&conditions(coding.name()), &pool, &Encoders::default(), &mut response);
            assert_eq!(pending.is_some(), waits, "{length}");
            if let Some(pending) = pending {
                check_fields(&response, &[TYPE, VARY]);
                block_on(pending.complete(&mut response));
            }
            check_fields(&response, &[TYPE, VARY, ("Content-Encoding", coding.name())]);
            assert_eq!(response.body.length().is_some(), has_length, "{length}");
            assert!(
                decode(coding, &content(response.body)) == (plain, true),
                "{length} {coding:?}"
            );
        }
    }
}

#[test]
fn a_pool_without_room_leaves_content_plain_and_streams_coded() {
    let pool = Pool::new(0);
    let mut medium = response(200, &[TYPE], text(100_000));
    let pending = apply(&conditions("br"), &pool, &Encoders::default(), &mut medium).expect("a job");
    block_on(pending.complete(&mut medium));
    check_fields(&medium, &[TYPE, VARY]);
    assert!(content(medium.body) == text(100_000));

    for coding in CODINGS {
        let mut stream = coded(coding, script([piece(text(300_000))]), &pool);
        let (pieces, error) = drain(&mut stream);
        assert!(
            error.is_none() && decode(coding, &pieces.concat()) == (text(300_000), true),
            "{coding:?}"
        );
    }
}

#[test]
fn a_head_request_gets_the_fields_of_a_get() {
    let head = Conditions {
        is_head: true,
        ..conditions("br")
    };
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
    let short = filtered(&head, response(200, &[TYPE], unsent(Some(1000))));
    check_fields(&short, &[TYPE]);
    assert_eq!(short.body.length(), Some(1000));
}

#[test]
fn a_304_has_the_tag_that_the_client_has() {
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

#[test]
fn files_are_encoded_whole_or_not_at_all() {
    let file = || {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&text(300_000)).expect("room");
        Arc::new(OpenFile::new(file, 300_000))
    };
    let part = |offset| FilePart {
        file: file(),
        offset,
        length: 300_000 - offset,
    };
    let whole = Response {
        body: Body::File(part(0)),
        ..response(200, &[TYPE], "")
    };
    let whole = filtered(&conditions("gzip"), whole);
    check_fields(&whole, &[TYPE, VARY, ("Content-Encoding", "gzip")]);

    let negotiated = Response {
        body: Body::File(part(0)),
        ..response(200, &[TYPE, VARY], "")
    };
    let stretch = Response {
        body: Body::File(part(1)),
        ..response(200, &[TYPE, VARY], "")
    };
    let parts = Response {
        body: Body::Parts(vec![Part::File(part(0))]),
        ..response(200, &[TYPE, VARY], "")
    };
    for response in [negotiated, stretch, parts] {
        let length = response.body.length();
        let response = filtered(&conditions("gzip"), response);
        check_fields(&response, &[TYPE, VARY]);
        assert_eq!(response.body.length(), length);
    }
}

#[test]
fn a_stream_is_flushed_when_its_source_pauses() {
    for coding in CODINGS {
        let lines = [text(40), text(20_000), b"last".to_vec()];
        let pauses = lines
            .iter()
            .flat_map(|line| [piece(line.clone()), Event::Pause, Event::Pause]);
        let pool = Pool::new(1);
        let mut stream = coded(coding, script(pauses), &pool);
        let (mut encoded, mut sent) = (Vec::new(), Vec::new());
        for line in &lines {
            sent.extend_from_slice(line);
            encoded.extend_from_slice(&block_on(stream.next()).expect("a piece").expect("no error"));
            assert!(
                decode(coding, &encoded) == (sent.clone(), false),
                "{coding:?} after {}",
                sent.len()
            );
        }
        let (rest, error) = drain(&mut stream);
        encoded.extend(rest.concat());
        assert!(
            error.is_none() && decode(coding, &encoded) == (sent, true),
            "{coding:?}"
        );
    }
}

#[test]
fn a_source_that_has_nothing_is_not_flushed() {
    let pool = Pool::new(1);
    let events = [Event::Pause, piece("x"), Event::Pause, Event::Pause, Event::Pause];
    let mut stream = coded(Coding::Br, script(events), &pool);
    let poll = |stream: &mut CodedStream| {
        let mut next = stream.next();
        next.as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .map(|piece| piece.map(|piece| piece.is_ok()))
    };
    assert_eq!(poll(&mut stream), Poll::Pending, "nothing has come");
    assert_eq!(
        poll(&mut stream),
        Poll::Ready(Some(true)),
        "`x` is flushed at the second pause"
    );
    assert_eq!(poll(&mut stream), Poll::Pending, "the third pause has nothing new");
    assert!(drain(&mut stream).1.is_none());
}

#[test]
fn pieces_that_come_at_once_are_not_flushed_one_by_one() {
    for coding in CODINGS {
        let pool = Pool::new(1);
        let mut stream = coded(coding, script((0..1000).map(|_| piece(text(50)))), &pool);
        let (pieces, _) = drain(&mut stream);
        let encoded = pieces.concat();
        assert_eq!(decode(coding, &encoded), (text(50).repeat(1000), true));
        assert!(
            pieces.len() <= 3 && encoded.len() < 2000,
            "{coding:?}: {} in {}",
            encoded.len(),
            pieces.len()
        );
    }
}

#[test]
fn a_large_piece_is_encoded_bit_by_bit() {
    for coding in CODINGS {
        let (pool, plain) = (Pool::new(1), noise(3_000_000));
        let mut stream = coded(coding, script([piece(plain.clone())]), &pool);
        let (pieces, _) = drain(&mut stream);
        let longest = pieces.iter().map(Bytes::len).max();
        assert!(longest < Some(256 * 1024), "{coding:?}: {longest:?}");
        assert!(decode(coding, &pieces.concat()) == (plain, true), "{coding:?}");
    }
}

#[test]
fn an_error_follows_what_came_before_it() {
    for coding in CODINGS {
        let pool = Pool::new(1);
        let events = [piece(text(100)), piece(text(30_000)), Event::Error, piece("never")];
        let mut stream = coded(coding, script(events), &pool);
        let (pieces, error) = drain(&mut stream);
        let plain = [text(100), text(30_000)].concat();
        assert!(decode(coding, &pieces.concat()) == (plain, false), "{coding:?}");
        assert_eq!(
            error.map(|error| error.to_string()).as_deref(),
            Some("the source broke")
        );
        assert!(block_on(stream.next()).is_none(), "nothing follows an error");
    }
}

#[test]
fn a_source_that_gives_less_than_it_said_is_cut() {
    let pool = Pool::new(1);
    for (length, is_cut) in [(5000, false), (5001, true), (4999, true)] {
        let source = Script {
            length: Some(length),
            ..script([piece(text(5000))])
        };
        let (_, error) = drain(&mut coded(Coding::Gzip, source, &pool));
        assert_eq!(error.is_some(), is_cut, "{length}");
    }
}

#[test]
fn trailers_are_passed_on_without_digests() {
    let trailers = |fields: &[(&str, &str)]| {
        let mut trailers = FieldList::default();
        fields.iter().for_each(|(name, value)| trailers.add(name, value));
        Some(trailers)
    };
    let pool = Pool::new(1);
    let rows = [
        (
            trailers(&[("Server-Timing", "a"), ("Repr-Digest", "b")]),
            trailers(&[("Server-Timing", "a")]),
        ),
        (trailers(&[("content-digest", "b")]), None),
        (None, None),
    ];
    for (given, expected) in rows {
        let source = Script {
            trailers: given,
            ..script([piece(text(2000)), Event::Pause])
        };
        let mut stream = coded(Coding::Zstd, source, &pool);
        drain(&mut stream);
        assert_eq!(stream.trailers(), expected);
    }
}

#[test]
fn streams_beyond_the_memory_for_encoders_are_plain() {
    let (pool, encoders) = (Pool::new(1), Encoders::new(3 * 1024 * 1024));
    let start = || {
        let body = Body::Stream(Box::new(script([piece(text(5000))])));
        let mut response = response(200, &[TYPE], body);
        assert!(apply(&conditions("br"), &pool, &encoders, &mut response).is_none());
        response
    };
    let (first, second) = (start(), start());
    check_fields(&first, &[TYPE, VARY, BR]);
    check_fields(&second, &[TYPE, VARY]);
    assert!(content(second.body) == text(5000));
    assert!(decode(Coding::Br, &content(first.body)) == (text(5000), true));
    check_fields(&start(), &[TYPE, VARY, BR]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_split_of_pieces_is_decoded_to_the_same_content(
        pieces in proptest::collection::vec((0usize..90_000, any::<bool>(), any::<bool>()), 0..8),
    ) {
        let pool = Pool::new(1);
        for coding in CODINGS {
            let (mut plain, mut events) = (Vec::new(), Vec::new());
            for &(length, is_text, pauses) in &pieces {
                let content = if is_text { text(length) } else { noise(length) };
                plain.extend_from_slice(&content);
                events.push(piece(content));
                events.extend(pauses.then_some(Event::Pause));
            }
            let source = Script { length: Some(plain.len() as u64), ..script(events) };
            let (encoded, error) = drain(&mut coded(coding, source, &pool));
            prop_assert!(error.is_none());
            prop_assert!(encoded.iter().all(|piece| !piece.is_empty()), "an empty piece would end chunked content");
            prop_assert!(decode(coding, &encoded.concat()) == (plain, true), "{coding:?}");
        }
    }
}
