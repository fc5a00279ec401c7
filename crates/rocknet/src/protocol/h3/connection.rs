//! HTTP/3 connection: a future that ends with the connection.
//!
//! ```text
//! Handshaking ──connected, or early data──▶ Serving ──error, deadline, orderly end, or client gone──▶ Closing
//!      └──failed──▶ Closing
//! ```
//! The orderly end is the exchange of GOAWAY frames and the completion of all responses; see `drain.rs`. In the state
//! `Closing`, the future ends once the draining period of QUIC is over (RFC 9000 §10.2), or at once if the server
//! stops.
//!
//! Serving proceeds in rounds. A round handles what has arrived, polls the exchanges in progress, and writes the bodies
//! that the windows allow. Everything is sent together after the last round of a poll.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use rocknet_config::model::Limits;
use rocknet_io::wheel::Tick;
use rocknet_proto::h3::{Config, Critical, ErrorCode, ServerConnection, StreamId};
use rocknet_quic::{Dir, Event, StreamEvent};

use super::hq::HqConnection;
use super::send_order::SendOrder;
use super::streams::StreamTable;
use crate::certificates::{HQ_INTEROP, HTTP_3, TlsPolicy};
use crate::exchange::Client;
use crate::handshake::Handshake;
use crate::lifecycle::connection_info::ConnectionInfo;
use crate::lifecycle::deadlines::{Deadlines, Wait};
use crate::lifecycle::seen_targets::SeenTargets;
use crate::worker::{OpenConnection, Worker, head_limits};

/// Maximum number of rounds in one poll, before other connections are served.
const ROUNDS_PER_POLL: u32 = 8;

/// Maximum number of bytes that wait on one stream of [`CRITICAL`] because the client grants no flow-control credit.
/// With more bytes, the connection is closed.
const UNSENT_BOUND: usize = 64 * 1024;

/// Settings of the engine. They are sent before the requested site is known, so they always permit extended CONNECT; a
/// route that does not accept tunnels responds with 501.
const ENGINE_CONFIG: Config = Config { connect_protocol: true };

/// Streams of the server without which the connection cannot continue, in the order in which they are opened.
const CRITICAL: [Critical; 3] = [Critical::Control, Critical::Encoder, Critical::Decoder];

/// Returns the settings that a client remembers for early data, as a server with these limits announces them in HTTP/3
/// and QUIC. The returned bytes serve only for comparison. A server must not accept early data of a session with other
/// settings (RFC 9114 §7.2.4.2).
pub fn remembered_settings(limits: &Limits) -> Vec<u8> {
    // The time of the creation (0) does not appear in the settings.
    let mut engine = ServerConnection::new(&ENGINE_CONFIG, &head_limits(limits), 0);
    let mut settings = rocknet_quic::remembered_parameters();
    settings.append(&mut engine.take_output(Critical::Control));
    settings
}

/// Server side of an HTTP/3 connection.
pub struct Connection {
    pub(super) open: OpenConnection,
    pub(super) quic: rocknet_quic::Connection,
    pub(super) engine: ServerConnection,
    pub(super) state: State,
    pub(super) info: ConnectionInfo,
    pub(super) deadlines: Deadlines,
    /// Tick of the wheel at which the connection was accepted.
    pub(super) born: Tick,
    /// Streams of [`CRITICAL`], with bytes that the transport has not taken.
    critical: Vec<(rocknet_quic::StreamId, Bytes)>,
    /// Unidirectional streams of the client that are read.
    pub(super) unidirectional: Vec<rocknet_quic::StreamId>,
    /// Bytes that wait for the dynamic table of QPACK, with their stream. The flag is true if the stream ends after
    /// them.
    pub(super) blocked: Vec<(StreamId, Bytes, bool)>,
    /// Streams whose response has ended before their request, with the number of bytes that were discarded since.
    pub(super) discarding: Vec<(StreamId, usize)>,
    /// Streams whose request head has not arrived completely, with the tick at which they were opened.
    pub(super) heads: Vec<(StreamId, Tick)>,
    /// Deadline of the oldest head in `heads`.
    pub(super) head_deadlines: Deadlines,
    /// Number of ACK frames that had been received when progress of the client was last checked.
    pub(super) acknowledgements: u64,
    /// Tick of the last check during the orderly end that found new ACK frames.
    pub(super) acknowledged_at: Tick,
    /// Tick at which the wait for the acknowledgement of complete responses began.
    pub(super) unacknowledged_since: Tick,
    /// Tick at which the client last acknowledged the end of a response; `None` before the first one.
    pub(super) last_delivered: Option<Tick>,
    /// Tick of the first GOAWAY, with which the orderly end begins; `None` before it.
    pub(super) drain_began: Option<Tick>,
    /// Tick of the last GOAWAY; `None` before it. From then on, the connection accepts no requests.
    pub(super) drain_finished: Option<Tick>,
    /// Bytes that all streams have sent in this round.
    pub(super) round_bytes: u64,
    /// Bytes that wait for the transport on all streams but the one that is polled.
    pub(super) held_bytes: u64,
    /// Streams whose end the client has not acknowledged.
    pub(super) unacknowledged: Vec<StreamId>,
    /// Order in which the responses are written.
    pub(super) send_order: SendOrder,
    /// Targets that the client has requested, or that a `103 Early Hints` response has announced. They are not
    /// announced again. `None` until the first page with resources.
    pub(super) seen: Option<Box<SeenTargets>>,
    /// Exchanges that are not complete.
    pub(super) streams: StreamTable,
    /// Set if the client speaks `hq-interop` (HTTP/0.9 over QUIC, for interoperability tests) in place of HTTP/3.
    pub(super) hq: Option<Box<HqConnection>>,
}

/// State of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Handshaking,
    Serving,
    /// Closed by either side.
    Closing,
}

impl Connection {
    /// Creates a connection whose handshake is in progress. `local`: local IP address of the connection, set only if
    /// sites are selected by it.
    pub fn new(open: OpenConnection, quic: rocknet_quic::Connection, local: Option<IpAddr>) -> Connection {
        let worker = Rc::clone(open.worker());
        let config = worker.config();
        let mut deadlines = Deadlines::new(&worker.wheel);
        deadlines.begin(Wait::FirstByte, config.ticks.header);
        // This is the address from which the client began the handshake. The handshake completes only if the client
        // receives at this address. A later address of the connection is ignored here, because it may be forged until
        // QUIC has validated the path.
        let address = quic.remote_address();
        let client = Client::Ip {
            address: address.ip(),
            port: address.port(),
        };
        Connection {
            engine: ServerConnection::new(&ENGINE_CONFIG, &config.head_limits, worker.clock.uptime_ms()),
            open,
            quic,
            state: State::Handshaking,
            info: ConnectionInfo::of_handshake(client, local.map(Box::new)),
            deadlines,
            born: worker.wheel.now(),
            critical: Vec::new(),
            unidirectional: Vec::new(),
            blocked: Vec::new(),
            discarding: Vec::new(),
            heads: Vec::new(),
            head_deadlines: Deadlines::new(&worker.wheel),
            acknowledgements: 0,
            acknowledged_at: worker.wheel.now(),
            unacknowledged_since: worker.wheel.now(),
            last_delivered: None,
            drain_began: None,
            drain_finished: None,
            round_bytes: 0,
            held_bytes: 0,
            unacknowledged: Vec::new(),
            send_order: SendOrder::default(),
            seen: None,
            streams: StreamTable::default(),
            hq: None,
        }
    }

    /// Begins to serve: after the handshake, or as soon as the client's early data can be served.
    fn connected(&mut self) {
        let info = self.quic.handshake_info();
        let Some(info) = info else {
            return self.close(ErrorCode::NoError);
        };
        // `transport/quic.rs` has passed the TLS policy of the site as the context of the handshake.
        let Ok(policy) = Arc::clone(&info.context).downcast::<TlsPolicy>() else {
            return self.close(ErrorCode::InternalError);
        };
        self.open.worker().counters.handshakes.count(info.resumed);
        self.open.speaks(3);
        self.info.secure = Some(Rc::new(Handshake::of_quic(policy, &info)));
        self.state = State::Serving;
        match info.alpn.as_deref() {
            Some(HTTP_3) => {}
            Some(HQ_INTEROP) => {
                let local = self.quic.local_ip();
                self.hq = Some(Box::new(HqConnection::new(info.server_name, local)));
                return;
            }
            _ => return self.close(ErrorCode::NoError),
        }
        for _ in CRITICAL {
            match self.quic.open_unidirectional() {
                Some(stream) => self.critical.push((stream, Bytes::new())),
                // A client has to permit at least three unidirectional streams (RFC 9114 §6.2).
                None => return self.close(ErrorCode::StreamCreationError),
            }
        }
        // These streams are the most urgent, because control frames and QPACK instructions must not wait until the data
        // of a response has been sent.
        for (stream, _) in &self.critical {
            self.quic.set_priority(*stream, i32::MAX);
        }
    }

    /// Handles the events of the transport. Returns true if there was an event.
    fn handle_events(&mut self, worker: &Rc<Worker>) -> bool {
        let mut progressed = false;
        while let Some(event) = self.quic.next_event() {
            progressed = true;
            match event {
                Event::Connected => {
                    // The complete handshake proves that the client receives at its address.
                    self.info.is_validated = true;
                    if self.state == State::Handshaking {
                        self.connected();
                    }
                }
                // Early data is served before the handshake is complete.
                Event::HandshakeDataReady if self.quic.is_early() => self.connected(),
                Event::ConnectionLost { reason } => {
                    tracing::debug!(client = %self.info.client, "a connection ended: {reason}");
                    self.record_cuts();
                    self.state = State::Closing;
                }
                Event::Stream(StreamEvent::Opened { dir }) => self.accept_streams(worker, dir),
                Event::Stream(StreamEvent::Readable { id }) => self.read(worker, id),
                Event::Stream(StreamEvent::Stopped { id, .. }) => self.client_stopped(worker, id),
                Event::Stream(StreamEvent::Finished { id }) => {
                    let stream = StreamId::new(id.into());
                    if let Some(position) = self.unacknowledged.iter().position(|known| *known == stream) {
                        self.unacknowledged.swap_remove(position);
                        self.last_delivered = Some(worker.wheel.now());
                    }
                }
                // Only a flag is set here, because every round writes to the streams that have output.
                Event::Stream(StreamEvent::Writable { id }) => {
                    if let Some(entry) = self.streams.get_mut(StreamId::new(id.into())) {
                        entry.awaits_turn = true;
                    }
                }
                Event::Stream(StreamEvent::Available { .. })
                | Event::HandshakeDataReady
                | Event::DatagramReceived
                | Event::DatagramsUnblocked => {}
            }
        }
        progressed
    }

    /// Accepts the streams that the client has opened, and reads what has arrived on them.
    fn accept_streams(&mut self, worker: &Rc<Worker>, direction: Dir) {
        while let Some(id) = self.quic.accept(direction) {
            match direction {
                // `hq-interop` has no unidirectional streams.
                Dir::Uni if self.hq.is_some() => {
                    self.quic.stop_receiving(id, ErrorCode::StreamCreationError.number());
                }
                Dir::Uni => {
                    self.unidirectional.push(id);
                    self.read(worker, id);
                }
                Dir::Bi => {
                    let stream = StreamId::new(id.into());
                    if let Err(error) = self.engine.open(stream) {
                        self.quic.reset(id, error.code().number());
                        self.quic.stop_receiving(id, error.code().number());
                        continue;
                    }
                    self.read(worker, id);
                    self.await_head(worker, stream);
                }
            }
        }
    }

    /// Runs one round. Returns true if another round may follow.
    fn serve(&mut self, context: &mut Context<'_>, worker: &Rc<Worker>) -> bool {
        let mut progressed = self.handle_events(worker);
        if self.state != State::Serving {
            return progressed;
        }
        let config = worker.config();
        progressed |= self.advance_drain(worker, &config);
        progressed |= self.resume_blocked(worker);
        progressed |= self.poll_exchanges(context, worker, &config);
        self.write_critical();
        // The orderly end is complete.
        if self.is_drained(&config) {
            self.close(ErrorCode::NoError);
            progressed = true;
        }
        progressed
    }

    /// Writes the output of the engine to the streams of the server.
    fn write_critical(&mut self) {
        if self.hq.is_some() {
            // A client that speaks `hq-interop` cannot use the output of the engine, so it is discarded.
            for critical in CRITICAL {
                self.engine.take_output(critical);
            }
            return;
        }
        let mut is_excessive = false;
        for ((stream, unsent), critical) in self.critical.iter_mut().zip(CRITICAL) {
            let output = self.engine.take_output(critical);
            if !output.is_empty() {
                *unsent = if unsent.is_empty() {
                    output.into()
                } else {
                    [&unsent[..], &output].concat().into()
                };
            }
            if !unsent.is_empty() {
                self.quic.write_control(*stream, std::slice::from_mut(unsent));
            }
            is_excessive |= unsent.len() > UNSENT_BOUND;
        }
        if is_excessive {
            tracing::debug!(client = %self.info.client, "a client takes no control frames; the connection is closed");
            self.close(ErrorCode::ExcessiveLoad);
        }
    }
}

impl Future for Connection {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let connection = self.get_mut();
        let worker = Rc::clone(connection.open.worker());
        connection.quic.begin(context);
        let mut rounds = 0;
        loop {
            while connection.serve(context, &worker) {
                rounds += 1;
                if rounds >= ROUNDS_PER_POLL {
                    context.waker().wake_by_ref();
                    break;
                }
            }
            if !connection.poll_deadlines(context, &worker) {
                break;
            }
        }
        connection.quic.flush(context);
        // Here, drained means that the draining period of QUIC is over.
        let is_over = connection.quic.is_drained() || connection.state == State::Closing && worker.is_stopping();
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    }
}
