//! HTTP/3 server of the simulation: the protocol state of `rocknet-proto`, and a handler that returns each request
//! body. The protocol state always gets the time 0.

use std::collections::BTreeMap;

use bytes::Bytes;
use quinn_proto::{Connection, ConnectionError, Dir, Event, StreamEvent};
use rocknet_proto::h3::{Config, ConnectionEvent, Critical, PreparedHead, ServerConnection, StreamId};
use rocknet_proto::{DecodedHead, Limits, Status};

use crate::config::SEND_WINDOW;
use crate::connection::send_window;
use crate::stream::{ReadOutcome, read, stream_id, write};

/// Value of the `date` field of all responses.
const DATE: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";

/// State of the server and of its exchanges.
pub struct Server {
    engine: ServerConnection,
    limits: Limits,
    /// Head of the last request; reused for each request.
    head: DecodedHead,
    /// Streams that the server has opened, in the order of [`CRITICAL`].
    own: Vec<quinn_proto::StreamId>,
    exchanges: BTreeMap<StreamId, Exchange>,
    /// Values of `x-number` of all requests, in the order of their arrival.
    pub requests: Vec<String>,
    /// Number of sections that were blocked.
    pub blocked: usize,
    /// Set once the connection has ended.
    pub lost: Option<ConnectionError>,
}

/// Unidirectional streams that the server opens.
const CRITICAL: [Critical; 3] = [Critical::Control, Critical::Encoder, Critical::Decoder];

/// Request and its response.
#[derive(Default)]
struct Exchange {
    /// Received bytes that wait for the dynamic table.
    waiting: Vec<u8>,
    /// True while the section of the request waits for insertions into the dynamic table.
    is_blocked: bool,
    /// True once the client has ended its side of the stream.
    is_ended: bool,
    /// Body of the request.
    body: Vec<u8>,
    /// Bytes of the response that were not written yet.
    output: Vec<Bytes>,
    /// True once the whole request was decoded.
    is_complete: bool,
}

impl Server {
    pub fn new() -> Server {
        let limits = Limits::default();
        Server {
            engine: ServerConnection::new(&Config::default(), &limits, 0),
            limits,
            head: DecodedHead::default(),
            own: Vec::new(),
            exchanges: BTreeMap::new(),
            requests: Vec::new(),
            blocked: 0,
            lost: None,
        }
    }

    /// Handles the events of the connection, and writes responses and the bytes of the server's own streams.
    pub fn run(&mut self, quic: &mut Connection) {
        quic.set_send_window(send_window(quic.congestion_state().window()));
        while let Some(event) = quic.poll() {
            match event {
                Event::Connected => self.own = CRITICAL.iter().filter_map(|_| quic.streams().open(Dir::Uni)).collect(),
                Event::ConnectionLost { reason } => self.lost = Some(reason),
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(stream) = quic.streams().accept(dir) {
                        if dir == Dir::Bi {
                            let id = StreamId::new(stream.into());
                            self.engine.open(id).expect("not draining");
                            self.exchanges.insert(id, Exchange::default());
                        }
                        self.read(quic, stream);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => self.read(quic, id),
                _ => {}
            }
        }
        for (&id, exchange) in &mut self.exchanges {
            let stream = stream_id(id.number());
            if !exchange.output.is_empty() {
                write(quic, stream, &mut exchange.output).expect("the client reads to the end");
                exchange.output.retain(|bytes| !bytes.is_empty());
                if exchange.output.is_empty() {
                    quic.send_stream(stream).finish().expect("an open stream");
                }
            }
        }
        // Control streams are written without the limit for stream data, as in `Connection::write_control`.
        quic.set_send_window(*SEND_WINDOW.end());
        for (stream, critical) in self.own.iter().zip(CRITICAL) {
            let bytes = Bytes::from(self.engine.take_output(critical));
            let length = bytes.len();
            assert_eq!(write(quic, *stream, &mut [bytes]), Some(length));
        }
    }

    /// Reads all bytes of a stream that have arrived.
    fn read(&mut self, quic: &mut Connection, stream: quinn_proto::StreamId) {
        let number = u64::from(stream);
        loop {
            let (bytes, fin) = match read(quic, stream) {
                ReadOutcome::Bytes { bytes, is_last } => (bytes, is_last),
                ReadOutcome::End => (Bytes::new(), true),
                ReadOutcome::Blocked | ReadOutcome::Gone => return,
                ReadOutcome::Reset(code) => panic!("stream {number} was reset with {code}"),
            };
            if stream.dir() == Dir::Uni {
                self.engine
                    .receive_unidirectional(number, 0, &bytes, fin)
                    .expect("valid bytes of a unidirectional stream");
                self.resume();
            } else {
                self.receive(StreamId::new(number), &bytes, fin);
            }
            if fin {
                return;
            }
        }
    }

    /// Decodes the sections that were blocked and whose insertions have arrived.
    fn resume(&mut self) {
        while let Some(id) = self.engine.next_unblocked() {
            let exchange = self.exchanges.get_mut(&id).expect("an open stream");
            exchange.is_blocked = false;
            let (waiting, fin) = (std::mem::take(&mut exchange.waiting), exchange.is_ended);
            self.receive(id, &waiting, fin);
        }
    }

    /// Decodes bytes of a request, and prepares the response once the request is complete. `fin` is true if the client
    /// has ended its side after these bytes.
    fn receive(&mut self, id: StreamId, bytes: &[u8], fin: bool) {
        let exchange = self.exchanges.get_mut(&id).expect("an open stream");
        exchange.is_ended |= fin;
        if exchange.is_blocked {
            exchange.waiting.extend_from_slice(bytes);
            return;
        }
        let mut rest = bytes;
        while !exchange.is_complete {
            let received = self
                .engine
                .receive(&self.limits, 0, id, rest, exchange.is_ended, &mut self.head);
            match received.event {
                ConnectionEvent::More => return,
                ConnectionEvent::Blocked => {
                    self.blocked += 1;
                    exchange.is_blocked = true;
                    exchange.waiting.extend_from_slice(&rest[received.consumed..]);
                    return;
                }
                ConnectionEvent::Request { end, .. } => {
                    let request = self.head.request();
                    let number = request.fields.by_name(b"x-number").next().expect("the field");
                    self.requests.push(String::from_utf8_lossy(number).into_owned());
                    exchange.is_complete = end;
                }
                ConnectionEvent::Data { start, end, last } => {
                    exchange.body.extend_from_slice(&rest[start..end]);
                    exchange.is_complete = last;
                }
                other => panic!("{id:?}: {other:?}"),
            }
            rest = &rest[received.consumed..];
        }
        let body = Bytes::from(std::mem::take(&mut exchange.body));
        let (mut out, length) = (Vec::new(), body.len() as u64);
        let head = PreparedHead::bare(Status::OK, Some(length));
        self.engine
            .respond_prepared(id, &head, DATE, length, &mut out)
            .expect("an open stream");
        self.engine.end_response(id);
        exchange.output = vec![out.into(), body];
    }
}
