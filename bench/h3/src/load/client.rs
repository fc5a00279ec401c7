//! Requests of the load on its connections.

use super::histogram::Histogram;
use crate::arguments::Options;
use crate::event_loop::Program;
use crate::response::Response;
use crate::varint::CONTROL_STREAM;
use bytes::Bytes;
use quinn_proto::{Chunks, Connection, Dir, Event, ReadError, StreamEvent, StreamId, VarInt};
use std::time::Instant;

/// Code H3_NO_ERROR (RFC 9114 §8.1).
const NO_ERROR: VarInt = VarInt::from_u32(0x100);

/// Stage of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Each connection is opened and sends one request.
    Opening,
    /// No requests.
    Idle,
    /// Requests are sent and counted.
    Running,
    /// Connections are closed.
    Closing,
}

/// Counts since the last [`Load::reset`].
#[derive(Default)]
pub struct Counts {
    /// Complete responses with status 2xx and the expected length.
    pub requests: u64,
    /// Bytes of bodies, also of incomplete responses.
    pub bytes: u64,
    /// Lost connections, reset streams, and responses that are malformed or have a wrong length.
    pub failures: u64,
    /// Complete responses with another status.
    pub refused: u64,
}

/// Load on all connections.
pub struct Load {
    pub stage: Stage,
    pub counts: Counts,
    pub latencies: Histogram,
    /// Number of connections that have had a response, or ended without one.
    pub opened: u32,
    /// Number of connections of a load of handshakes that have been closed after their only request, or were lost. Each
    /// is replaced by a new one.
    pub closed: u32,
    /// Number of requests that may still begin.
    pub left: u64,
    /// Reason of the last failure.
    pub reason: Option<String>,
    /// Status and length of the last response.
    pub last: Option<(u16, u64)>,
    request: Bytes,
    first_request: Bytes,
    streams: usize,
    length: Option<u64>,
    /// True if each connection is closed after its first response.
    handshakes: bool,
}

/// State of a connection.
pub struct ClientState {
    begun: Instant,
    is_connected: bool,
    has_opened: bool,
    is_over: bool,
    exchanges: Vec<Exchange>,
}

struct Exchange {
    stream: StreamId,
    begun: Instant,
    response: Response,
}

impl ClientState {
    pub fn new() -> Self {
        Self {
            begun: Instant::now(),
            is_connected: false,
            has_opened: false,
            is_over: false,
            exchanges: Vec::new(),
        }
    }
}

impl Load {
    /// Makes a load. With `handshakes`, each connection is closed after its first response.
    pub fn new(options: &Options, handshakes: bool) -> Self {
        Self {
            stage: Stage::Opening,
            counts: Counts::default(),
            latencies: Histogram::new(),
            opened: 0,
            closed: 0,
            left: u64::MAX,
            reason: None,
            last: None,
            request: options.request.clone().into(),
            first_request: options.first_request.clone().into(),
            streams: options.streams as usize,
            length: options.length,
            handshakes,
        }
    }

    /// Starts to count from zero, with at most `left` further requests.
    pub fn reset(&mut self, left: u64) {
        self.counts = Counts::default();
        self.latencies = Histogram::new();
        self.left = left;
    }

    fn fail(&mut self, reason: impl Into<String>) {
        self.counts.failures += 1;
        self.reason = Some(reason.into());
    }

    /// Counts the connection as opened at its first response or failure.
    fn count_opened(&mut self, client: &mut ClientState) {
        if !std::mem::replace(&mut client.has_opened, true) {
            self.opened += 1;
        }
    }

    fn connected(&mut self, connection: &mut Connection, client: &mut ClientState) {
        client.is_connected = true;
        let control = connection.streams().open(Dir::Uni);
        let written = control.map(|stream| connection.send_stream(stream).write(CONTROL_STREAM));
        if !matches!(written, Some(Ok(_))) {
            self.fail("the server permits no control stream");
        }
    }

    fn lost(&mut self, client: &mut ClientState, reason: &str) {
        client.is_over = true;
        client.exchanges.clear();
        if self.stage != Stage::Closing {
            self.fail(format!("a connection was lost: {reason}"));
            self.count_opened(client);
            self.closed += u32::from(self.handshakes);
        }
    }

    fn begin_requests(&mut self, connection: &mut Connection, client: &mut ClientState, now: Instant) {
        if !client.is_connected || client.is_over {
            return;
        }
        let most = match self.stage {
            Stage::Running if !self.handshakes => self.streams,
            Stage::Opening | Stage::Running => usize::from(!client.has_opened),
            Stage::Idle | Stage::Closing => 0,
        };
        let request = if client.has_opened {
            &self.request
        } else {
            &self.first_request
        };
        while client.exchanges.len() < most && self.left > 0 {
            // The server permits further streams when earlier ones have ended.
            let Some(stream) = connection.streams().open(Dir::Bi) else {
                return;
            };
            self.left -= 1;
            let mut sender = connection.send_stream(stream);
            let written = sender.write_chunks(&mut [request.clone()]);
            let is_whole = written.is_ok_and(|written| written.bytes == request.len());
            if !is_whole || sender.finish().is_err() {
                self.counts.failures += 1;
                self.reason = Some("a request was not sent as a whole".into());
            }
            client.exchanges.push(Exchange {
                stream,
                begun: now,
                response: Response::default(),
            });
        }
    }

    /// Reads a response as far as it has arrived.
    fn read(&mut self, connection: &mut Connection, client: &mut ClientState, stream: StreamId, now: Instant) {
        let mut receiver = connection.recv_stream(stream);
        let Ok(mut chunks) = receiver.read(true) else {
            return;
        };
        let Some(position) = client.exchanges.iter().position(|exchange| exchange.stream == stream) else {
            // A stream of the server, or of an abandoned exchange.
            while let Ok(Some(_)) = chunks.next(usize::MAX) {}
            let _ = chunks.finalize();
            return;
        };
        let response = &mut client.exchanges[position].response;
        let before = response.length;
        let end = receive(&mut chunks, response);
        let _ = chunks.finalize();
        self.counts.bytes += response.length - before;
        let Some(outcome) = end else {
            return;
        };
        let exchange = client.exchanges.swap_remove(position);
        match outcome {
            Ok(()) => self.count(
                &exchange,
                if self.handshakes { client.begun } else { exchange.begun },
                now,
            ),
            Err(reason) => self.fail(reason),
        }
        self.count_opened(client);
        if self.handshakes {
            client.is_over = true;
            self.closed += 1;
            connection.close(now, NO_ERROR, Bytes::new());
        }
    }

    /// Counts a response. `begun`: start of the request, or of the connection in a load of handshakes.
    fn count(&mut self, exchange: &Exchange, begun: Instant, now: Instant) {
        let is_measured = self.stage == Stage::Running;
        let response = &exchange.response;
        let Some(status) = response.status.filter(|_| response.is_complete()) else {
            return self.fail("a response is incomplete");
        };
        self.last = Some((status, response.length));
        if !(200..300).contains(&status) {
            self.counts.refused += 1;
        } else if is_measured && self.length.is_some_and(|length| length != response.length) {
            self.fail(format!("a response has {} bytes", response.length));
        } else {
            self.counts.requests += 1;
            self.latencies
                .add(now.saturating_duration_since(begun).as_micros() as u64);
        }
    }
}

/// Reads the chunks that have arrived. Returns the outcome if the stream has ended.
fn receive(chunks: &mut Chunks<'_>, response: &mut Response) -> Option<Result<(), String>> {
    loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => {
                if response.receive(&chunk.bytes).is_err() {
                    return Some(Err("a response is malformed".into()));
                }
            }
            Ok(None) => return Some(Ok(())),
            Err(ReadError::Blocked) => return None,
            Err(ReadError::Reset(code)) => return Some(Err(format!("a stream was reset with code {code}"))),
        }
    }
}

impl Program for Load {
    type State = ClientState;

    fn accept(&mut self) -> ClientState {
        ClientState::new()
    }

    fn process(&mut self, connection: &mut Connection, client: &mut ClientState, now: Instant) {
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.connected(connection, client),
                Event::ConnectionLost { reason } if !client.is_over => self.lost(client, &reason.to_string()),
                Event::Stream(StreamEvent::Readable { id }) => self.read(connection, client, id, now),
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(stream) = connection.streams().accept(dir) {
                        self.read(connection, client, stream, now);
                    }
                }
                _ => {}
            }
        }
        if self.stage == Stage::Closing && !connection.is_closed() {
            connection.close(now, NO_ERROR, Bytes::new());
        }
        self.begin_requests(connection, client, now);
    }
}
