//! HTTP/3 client of the simulation. Each request refers to an entry of the dynamic table that the client inserts for
//! it, so that sections arrive before and after their entries.

use std::collections::BTreeMap;

use bytes::Bytes;
use quinn_proto::{Connection, ConnectionError, Dir, Event, StreamId};

use crate::stream::{ReadOutcome, read, write};

/// Maximum number of concurrent requests, equal to the number of streams that the server permits to be blocked.
const CONCURRENT: usize = 16;

/// State of the client and its requests.
pub struct Client {
    /// Control stream and encoder stream, each with the bytes that were not written yet. Empty before the handshake is
    /// complete.
    own: Vec<(StreamId, Vec<Bytes>)>,
    /// Requests in progress.
    requests: BTreeMap<StreamId, Request>,
    /// Number of the next request.
    next: usize,
    /// Number of requests to send.
    count: usize,
    /// Numbers of the requests whose response was complete and correct.
    pub completed: Vec<usize>,
    /// Set once the connection has ended.
    pub lost: Option<ConnectionError>,
}

/// Request in progress.
struct Request {
    number: usize,
    /// Bytes of the request that were not written yet.
    output: Vec<Bytes>,
    /// Received bytes of the response.
    response: Vec<u8>,
}

impl Client {
    /// Creates a client that sends `count` requests, at most 200, because an insert count is written in one byte.
    pub fn new(count: usize) -> Client {
        Client {
            own: Vec::new(),
            requests: BTreeMap::new(),
            next: 0,
            count,
            completed: Vec::new(),
            lost: None,
        }
    }

    /// Returns true once all requests are complete.
    pub fn is_done(&self) -> bool {
        self.completed.len() == self.count
    }

    /// Handles the events of the connection, begins requests, and writes and reads as much as possible.
    pub fn run(&mut self, quic: &mut Connection) {
        while let Some(event) = quic.poll() {
            match event {
                Event::Connected => {
                    // The control stream has the type 0 (RFC 9114 §6.2.1) and begins with an empty SETTINGS frame. The
                    // encoder stream has the type 2 (RFC 9204 §4.2) and begins with a table capacity of 4,096 bytes.
                    for first in [&[0, 4, 0][..], &[2, 0x3f, 0xe1, 0x1f]] {
                        let stream = quic.streams().open(Dir::Uni).expect("a stream");
                        self.own.push((stream, vec![Bytes::copy_from_slice(first)]));
                    }
                }
                Event::ConnectionLost { reason } => self.lost = Some(reason),
                _ => {}
            }
        }
        if self.own.is_empty() || self.lost.is_some() {
            return;
        }
        while self.next < self.count && self.requests.len() < CONCURRENT {
            self.begin(quic);
        }
        for (stream, output) in &mut self.own {
            write(quic, *stream, output).expect("the server reads its streams");
            output.retain(|bytes| !bytes.is_empty());
        }
        let ids: Vec<StreamId> = self.requests.keys().copied().collect();
        for id in ids {
            self.exchange(quic, id);
        }
    }

    /// Begins the next request.
    fn begin(&mut self, quic: &mut Connection) {
        let number = self.next;
        self.next += 1;
        let value = number.to_string();
        // Insert with a literal name (RFC 9204 §4.3.3).
        let insertion = [b"\x48x-number", &[value.len() as u8][..], value.as_bytes()].concat();
        // Encoded Required Insert Count and Base; method, scheme and path of the static table; the authority `a`; and
        // the newest entry of the dynamic table (RFC 9204 §4.5). The section needs `number` + 1 insertions, and the
        // encoded count is one larger.
        let mut section = vec![number as u8 + 2, 0, 0xd4, 0xd7, 0xc1, 0x50, 1, b'a', 0x80];
        let body = body(number);
        if body.is_empty() {
            // GET instead of POST.
            section[2] = 0xd1;
        }
        let mut head = vec![1, section.len() as u8];
        head.append(&mut section);
        if !body.is_empty() {
            // DATA, with its length as an integer of four bytes.
            head.push(0);
            head.extend_from_slice(&(0x8000_0000 | body.len() as u32).to_be_bytes());
        }
        let stream = quic.streams().open(Dir::Bi).expect("a stream");
        let mut request = Request {
            number,
            output: vec![head.into(), body],
            response: Vec::new(),
        };
        request.output.retain(|bytes| !bytes.is_empty());
        // The request is written before the insertion of its entry.
        send(quic, stream, &mut request);
        self.own[1].1.push(insertion.into());
        self.requests.insert(stream, request);
    }

    /// Writes what is left of a request, and reads its response. Removes the request once its response is complete.
    fn exchange(&mut self, quic: &mut Connection, id: StreamId) {
        let request = self.requests.get_mut(&id).expect("a request in progress");
        if !request.output.is_empty() {
            send(quic, id, request);
        }
        loop {
            match read(quic, id) {
                ReadOutcome::Bytes { bytes, is_last } => {
                    request.response.extend_from_slice(&bytes);
                    if is_last {
                        break;
                    }
                }
                ReadOutcome::Blocked => return,
                ReadOutcome::End => break,
                other => panic!("request {}: {other:?}", request.number),
            }
        }
        check(request);
        self.completed.push(request.number);
        self.requests.remove(&id);
    }
}

/// Writes as much of a request as possible, and ends its stream after the last byte.
fn send(quic: &mut Connection, stream: StreamId, request: &mut Request) {
    write(quic, stream, &mut request.output).expect("the server reads to the end");
    request.output.retain(|bytes| !bytes.is_empty());
    if request.output.is_empty() {
        quic.send_stream(stream).finish().expect("an open stream");
    }
}

/// Returns the body of a request, whose length is 997 bytes multiplied by the number of the request. Every third
/// request has none.
fn body(number: usize) -> Bytes {
    if number.is_multiple_of(3) {
        return Bytes::new();
    }
    (0..number * 997).map(|at| (at * 31 + number) as u8).collect()
}

/// Checks a response: one HEADERS frame with status 200, and one DATA frame with the body of the request.
fn check(request: &Request) {
    let (number, response) = (request.number, &request.response[..]);
    assert_eq!(response[0], 1, "request {number} begins with HEADERS");
    let section = usize::from(response[1]);
    assert!(section < 64, "request {number}: the length has one byte");
    // The section has a prefix of two bytes, and then `:status` 200, which has the index 25 of the static table.
    assert_eq!(response[4], 0xc0 | 25, "request {number}");
    let (data, body) = (&response[2 + section..], body(number));
    if body.is_empty() {
        assert!(data.is_empty(), "request {number} has no body");
        return;
    }
    // Size of the length of the DATA frame.
    let size = match data[1] >> 6 {
        0 => 1,
        1 => 2,
        _ => 4,
    };
    assert_eq!(data[0], 0, "request {number}: DATA");
    assert!(data[1 + size..] == body, "request {number}: another body");
}
