//! Scripted streams, bodies and conditions for the tests of the filter.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::{self, Read};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use super::super::*;
use crate::response::FieldList;

/// Codings that the tests cover.
pub const CODINGS: [Coding; 3] = PREFERRED_CODINGS;

/// Waker that unparks a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls `future` on this thread until it is ready.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// A step of a scripted stream.
pub enum Event {
    /// The stream returns a piece.
    Piece(Bytes),
    /// The stream is pending once, and wakes its task.
    Pause,
    /// The stream returns an error.
    Error,
}

/// A stream that follows a script. A test fails if a pending call of `next` is dropped, because the stream of a handler
/// would then lose data.
#[derive(Default)]
pub struct Script {
    /// Events that have not happened yet.
    pub events: VecDeque<Event>,
    /// Length that the stream announces.
    pub length: Option<u64>,
    /// Trailer fields after the last event.
    pub trailers: Option<FieldList>,
}

/// True while a call of `next` is pending. Dropping a true value fails the test.
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

/// Returns the event of a piece.
pub fn piece(content: impl Into<Vec<u8>>) -> Event {
    Event::Piece(content.into().into())
}

/// Returns a stream that follows these events, and announces neither a length nor trailers.
pub fn script(events: impl IntoIterator<Item = Event>) -> Script {
    Script {
        events: events.into_iter().collect(),
        ..Script::default()
    }
}

/// Returns the stream that encodes `source`.
pub fn coded(coding: Coding, source: Script, pool: &Pool) -> CodedStream {
    let coded = CodedStream::new(
        coding,
        Box::new(source),
        &Encoders::default(),
        pool.clone(),
        Priority::Normal,
    );
    coded.unwrap_or_else(|_| panic!("no encoder"))
}

/// Returns all pieces of a stream, and its error.
pub fn drain(stream: &mut dyn Stream) -> (Vec<Bytes>, Option<io::Error>) {
    let mut pieces = Vec::new();
    loop {
        match block_on(stream.next()) {
            Some(Ok(piece)) => pieces.push(piece),
            Some(Err(error)) => return (pieces, Some(error)),
            None => return (pieces, None),
        }
    }
}

/// Decodes as much as possible. Returns the decoded data, and true if it is complete.
pub fn decode(coding: Coding, mut encoded: &[u8]) -> (Vec<u8>, bool) {
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

/// Returns `length` bytes of compressible text. The multiplication by a prime varies the numbers of the lines.
pub fn text(length: usize) -> Vec<u8> {
    (0u64..)
        .flat_map(|n| format!("line {} of the text\n", n * 7919 % 1000).into_bytes())
        .take(length)
        .collect()
}

/// Returns `length` incompressible bytes from a xorshift generator with a fixed seed.
pub fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..).flat_map(|_: u32| next()).take(length).collect()
}

/// Returns the conditions of a GET request with this `Accept-Encoding`.
pub fn conditions(accept: &str) -> Conditions<'_> {
    Conditions {
        compress: true,
        accept_encoding: Some(accept.as_bytes()),
        if_none_match: None,
        is_head: false,
        priority: Priority::Normal,
    }
}

/// Returns a response with these header fields.
pub fn response(status: u16, fields: &[(&str, &str)], body: impl Into<Body>) -> Response {
    let response = Response::new(Status::new(status).expect("a status")).body(body);
    fields
        .iter()
        .fold(response, |response, (name, value)| response.with(name, value))
}

/// Applies the filter to a response, and waits until the response is complete.
pub fn filtered(conditions: &Conditions<'_>, mut response: Response) -> Response {
    let pool = Pool::new(1);
    if let Some(pending) = apply(conditions, &pool, &Encoders::default(), &mut response) {
        block_on(pending.finish(&mut response));
    }
    response
}

/// Returns all bytes of a body in memory or of a stream.
pub fn content(body: Body) -> Vec<u8> {
    match body {
        Body::Bytes(bytes) => bytes.to_vec(),
        Body::Stream(mut stream) => match drain(&mut *stream) {
            (pieces, None) => pieces.concat(),
            (_, Some(error)) => panic!("{error}"),
        },
        _ => Vec::new(),
    }
}

/// Asserts that a response has exactly these header fields, in this order.
#[track_caller]
pub fn check_fields(response: &Response, expected: &[(&str, &str)]) {
    assert_eq!(response.fields.iter().collect::<Vec<_>>(), expected);
}

// Header fields of responses.
pub const TYPE: (&str, &str) = ("Content-Type", "text/html; charset=utf-8");
pub const VARY: (&str, &str) = ("Vary", "Accept-Encoding");
pub const BR: (&str, &str) = ("Content-Encoding", "br");
