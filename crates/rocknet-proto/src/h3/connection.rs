//! Server side of an HTTP/3 connection without a transport (RFC 9114).
//!
//! The caller passes the bytes of each stream and gets one event at a time. The connection appends frames to the
//! caller's buffer, and the caller writes them to the stream. QUIC provides flow control. The caller uses
//! [`priority`](ServerConnection::priority) to decide which stream sends first.
//!
//! ```text
//! request stream:   Head ──HEADERS──► Body ──HEADERS──► AfterTrailers ──end──► Ended
//! draining:         Active ──begin_drain──► Announced ──finish_drain──► Final
//! ```
//!
//! Without trailers, the end of the stream leads from `Body` to `Ended`, or from `Head` if there is no body either.
//! `finish_drain` also leads from `Active` to `Final`.

mod reading;
mod request_body;
mod responses;
mod unidirectional;

use super::error::{ConnectionError, StreamError};
use super::frame;
use super::settings::{ClientSettings, ServerSettings};
use super::stream::{Phase, RequestStream, StreamId, Streams};
use super::unidirectional::{self as uni, Critical, Unidirectional};
use super::varint;
use crate::limits::Limits;
use crate::multiplexed::{Budget, Flood, Priority};
use crate::qpack::{Decoder, Encoder};
use crate::refusal::Refusal;

/// Default maximum number of concurrent request streams, the same as for HTTP/2.
pub const MAX_STREAMS: u64 = 128;

/// Capacity of the decoder's dynamic table in bytes. Browsers use no more, and it bounds the memory of a connection.
const TABLE_CAPACITY: usize = 4096;

/// Maximum number of streams that may wait for insertions into the dynamic table at once. Each of these streams holds
/// one field section, so the number bounds memory.
const BLOCKED_STREAMS: usize = 16;

/// Bytes that HTTP/3 counts per field in addition to its name and value (RFC 9114 §4.2.2).
const FIELD_OVERHEAD: usize = 32;

/// Maximum number of priorities kept for streams that have not arrived: one for each stream that a client may open by
/// default. At most this many changed priorities wait for [`ServerConnection::take_reprioritized`].
const EARLY_PRIORITIES: usize = 128;

/// Identifier of the first GOAWAY: the largest ID of a request stream, 2^62-4, so that no request is rejected yet
/// (RFC 9114 §5.2).
const GOAWAY_ANNOUNCEMENT: u64 = varint::MAX - 3;

/// Settings of the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Config {
    /// True to accept extended CONNECT (RFC 9220).
    pub connect_protocol: bool,
}

/// Result of [`ServerConnection::receive`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceivedEvent {
    /// Number of bytes at the start of the passed bytes that were read.
    pub consumed: usize,
    /// Event to act on.
    pub event: ConnectionEvent,
}

/// Event on a request stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionEvent {
    /// There is no further event until more bytes arrive on this stream.
    More,
    /// The field section waits for the dynamic table. [`ServerConnection::next_unblocked`] returns the stream later;
    /// until then the caller keeps the bytes that follow.
    Blocked,
    /// A request head arrived (RFC 9114 §4.1); it is in the [`DecodedHead`](crate::DecodedHead).
    Request {
        /// Set if the request has neither a body nor trailers.
        end: bool,
        /// Set if the client waits for 100 (Continue) (RFC 9110 §10.1.1).
        expects_continue: bool,
    },
    /// The caller must respond to the request with the status of the refusal. The request body, if any, is discarded.
    Refused {
        /// Reason, which determines the status of the response.
        refusal: Refusal,
        /// True if the method is HEAD, because the response then has no body (RFC 9110 §9.3.2). False if the field
        /// section was too large to receive, because the method is then unknown.
        is_head: bool,
    },
    /// `bytes[start..end]` is a piece of the request body. It is empty only if `last` is set.
    Data {
        /// Offset of the first byte in the passed bytes.
        start: usize,
        /// Offset after the last byte.
        end: usize,
        /// Set if this piece ends the request.
        last: bool,
    },
    /// The request ended with trailers, which are in the index of the [`DecodedHead`](crate::DecodedHead).
    Trailers,
    /// The stream must be reset in both directions, because of the client's error.
    Reset {
        /// Error of the client, which determines the code.
        error: StreamError,
        /// Set if a request of this stream was reported and its response has not ended.
        is_pending: bool,
    },
    /// The connection must be closed with the code of the error.
    Closed {
        /// Error of the client.
        error: ConnectionError,
    },
}

/// Arguments of [`ServerConnection::receive`] that reading a frame needs.
struct Context<'a> {
    limits: &'a Limits,
    /// Milliseconds since an arbitrary start.
    now: u64,
    /// Buffer for a decoded head or trailer section.
    head: &'a mut crate::DecodedHead,
    /// True if the stream ends after the passed bytes.
    fin: bool,
}

/// Progress of a graceful shutdown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DrainState {
    /// No shutdown has begun.
    Active,
    /// The first GOAWAY is written; it announces that the connection will end.
    Announced,
    /// The last GOAWAY is written. Requests on streams from the number `first_rejected` on are rejected.
    Final { first_rejected: u64 },
}

/// Server side of one HTTP/3 connection.
///
/// The caller works in this order:
///
/// 1. It opens three unidirectional streams. Immediately, and each time it has received bytes or responded, it writes
///    to each of these streams the bytes returned by [`take_output`](Self::take_output).
/// 2. It [opens](Self::open) each request stream that the client has opened.
/// 3. It passes the bytes of the client's unidirectional streams to
///    [`receive_unidirectional`](Self::receive_unidirectional). It passes the bytes of request streams to
///    [`receive`](Self::receive), until `receive` returns [`ConnectionEvent::More`], [`ConnectionEvent::Blocked`], or
///    an event that ends the stream or the connection.
/// 4. It responds with [`respond_prepared`](Self::respond_prepared) or [`respond`](Self::respond), announces body bytes
///    with [`begin_data`](Self::begin_data), and ends with [`end_response`](Self::end_response).
///
/// ```
/// use rocknet_proto::h3::{Config, ConnectionEvent, Critical, ServerConnection, StreamId};
/// use rocknet_proto::{DecodedHead, Limits, Status};
///
/// let (limits, mut head, mut out) = (Limits::default(), DecodedHead::default(), Vec::new());
/// // The last argument is the time in milliseconds.
/// let mut connection = ServerConnection::new(&Config::default(), &limits, 0);
/// // Stream type and SETTINGS, for the first unidirectional stream of the server.
/// assert!(connection.take_output(Critical::Control).starts_with(&[0, 4]));
///
/// // GET https://a/ in a HEADERS frame, with fields of the static table.
/// let request = [1, 8, 0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a'];
/// let stream = StreamId::new(0);
/// connection.open(stream)?;
/// // The second argument is the time. `true` marks the end of the stream.
/// let received = connection.receive(&limits, 0, stream, &request, true, &mut head);
/// assert_eq!(received.event, ConnectionEvent::Request { end: true, expects_continue: false });
/// assert_eq!(head.request().path, b"/");
///
/// // The head has no Content-Length and no fields.
/// connection.respond(stream, Status::NO_CONTENT, None, [], &mut out)?;
/// connection.end_response(stream);
/// // `out` is written to the stream, which is then finished.
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ServerConnection {
    config: Config,
    drain_state: DrainState,
    streams: Streams,
    unidirectional: Unidirectional,
    /// Bytes to write to the control stream: its type, then frames.
    control: Vec<u8>,
    decoder: Decoder,
    encoder: Encoder,
    /// Counters of frames that cost the server more than the client.
    budget: Budget,
    /// Priorities received before their streams, by stream number.
    early_priorities: Vec<(u64, Priority)>,
    /// Streams whose priority has changed after their request.
    reprioritized: Vec<(StreamId, Priority)>,
    /// Stream number that follows the last request stream.
    next_stream: u64,
}

impl ServerConnection {
    /// Creates a connection. `limits` determine the announced size of field sections. `now` is in milliseconds since an
    /// arbitrary start, the same as for later calls.
    pub fn new(config: &Config, limits: &Limits, now: u64) -> ServerConnection {
        let mut budget = Budget::new();
        budget.start(now);
        let section_size = limits.max_head_size() + limits.fields.saturating_mul(FIELD_OVERHEAD);
        // Initial capacity in bytes, enough for the stream type and SETTINGS.
        let mut control = Vec::with_capacity(32);
        varint::encode(uni::CONTROL, &mut control);
        ServerSettings {
            table_capacity: TABLE_CAPACITY as u64,
            blocked_streams: BLOCKED_STREAMS as u64,
            field_section_size: section_size as u64,
            connect_protocol: config.connect_protocol,
        }
        .write(&mut control);
        let (mut decoder, mut encoder) = (Decoder::new(TABLE_CAPACITY, BLOCKED_STREAMS), Encoder::new());
        varint::encode(uni::ENCODER, encoder.output());
        varint::encode(uni::DECODER, decoder.output());
        ServerConnection {
            config: *config,
            drain_state: DrainState::Active,
            streams: Streams::default(),
            unidirectional: Unidirectional::default(),
            control,
            decoder,
            encoder,
            budget,
            early_priorities: Vec::new(),
            reprioritized: Vec::new(),
            next_stream: 0,
        }
    }

    /// Applies the settings of the client.
    pub(super) fn apply_settings(&mut self, settings: ClientSettings) {
        self.encoder
            .set_client_settings(settings.table_capacity, settings.blocked_streams);
    }

    /// Applies PRIORITY_UPDATE (RFC 9218 §7.2).
    pub(super) fn update_priority(&mut self, number: u64, priority: Priority) -> Result<(), ConnectionError> {
        // The IDs of request streams are multiples of 4 (RFC 9000 §2.1).
        if !number.is_multiple_of(4) {
            return Err(ConnectionError::InvalidId);
        }
        let id = StreamId::new(number);
        if let Some(stream) = self.streams.get_mut(id) {
            (stream.priority, stream.has_updated_priority) = (priority, true);
            // Before its request, the stream has no response to send.
            if stream.is_reported {
                self.report_priority(id, priority);
            }
        } else if number < self.next_stream {
            // The response has ended, but its bytes may wait for the transport.
            self.report_priority(id, priority);
        } else {
            let has_room = self.early_priorities.len() < EARLY_PRIORITIES;
            match self.early_priorities.iter_mut().find(|(known, _)| *known == number) {
                Some((_, known)) => *known = priority,
                // A priority is advice, so the excess is ignored.
                None if has_room => self.early_priorities.push((number, priority)),
                None => {}
            }
        }
        Ok(())
    }

    /// Queues a changed priority for [`take_reprioritized`](Self::take_reprioritized). If the queue is full, the
    /// change is dropped, because a priority is only advice.
    fn report_priority(&mut self, id: StreamId, priority: Priority) {
        let has_room = self.reprioritized.len() < EARLY_PRIORITIES;
        match self.reprioritized.iter_mut().find(|(known, _)| *known == id) {
            Some((_, known)) => *known = priority,
            None if has_room => self.reprioritized.push((id, priority)),
            None => {}
        }
    }

    /// Returns a stream whose priority the client has changed after its request, with the new priority. Its response
    /// may have been sent already. Call this after each [`receive_unidirectional`](Self::receive_unidirectional), until
    /// it returns `None`.
    pub fn take_reprioritized(&mut self) -> Option<(StreamId, Priority)> {
        self.reprioritized.pop()
    }

    /// Opens a request stream. Must be called once for each stream, in the order of the stream numbers. QUIC opens
    /// streams in this order, even if their data arrives in another order.
    ///
    /// # Errors
    ///
    /// [`StreamError::Rejected`] if no more requests are accepted. The caller resets the stream.
    pub fn open(&mut self, id: StreamId) -> Result<(), StreamError> {
        if let DrainState::Final { first_rejected } = self.drain_state
            && id.number() >= first_rejected
        {
            // The field sections of the stream will not be decoded, as in `remove`.
            self.decoder.cancel(id.number());
            return Err(StreamError::Rejected);
        }
        let number = id.number();
        self.next_stream = number + 4;
        let early = self.early_priorities.iter().position(|(known, _)| *known == number);
        let early = early.map(|position| self.early_priorities.swap_remove(position).1);
        self.streams.insert(id, RequestStream::new(early));
        Ok(())
    }

    /// Removes a stream. If field sections of the stream may still arrive, a Stream Cancellation is queued: they will
    /// not be decoded, so the client's dynamic table must not wait for them (RFC 9204 §2.2.2.2).
    fn remove(&mut self, id: StreamId) -> Option<RequestStream> {
        let stream = self.streams.remove(id)?;
        let has_read_all = matches!(stream.phase, Phase::Ended | Phase::AfterTrailers);
        if !has_read_all || stream.is_blocked {
            self.decoder.cancel(id.number());
        }
        Some(stream)
    }

    /// Removes and returns the bytes that have to be written to one of the server's own unidirectional streams.
    pub fn take_output(&mut self, stream: Critical) -> Vec<u8> {
        std::mem::take(match stream {
            Critical::Control => &mut self.control,
            Critical::Encoder => self.encoder.output(),
            Critical::Decoder => self.decoder.output(),
        })
    }

    /// Handles RESET_STREAM of the client. `now` is in milliseconds, as for [`new`](Self::new). Returns true if the
    /// stream was open and its response had not ended.
    ///
    /// # Errors
    ///
    /// [`Flood::Resets`] if the budget is exhausted (rapid reset, CVE-2023-44487).
    pub fn client_reset(&mut self, id: StreamId, now: u64) -> Result<bool, ConnectionError> {
        let Some(stream) = self.remove(id) else {
            return Ok(false);
        };
        self.budget.spend(Flood::Resets, now)?;
        Ok(!stream.response_ended)
    }

    /// Handles STOP_SENDING of the client like its RESET_STREAM: the stream is removed, and the rest of the request is
    /// ignored. Returns true if the stream was open and its response had not ended.
    ///
    /// # Errors
    ///
    /// [`Flood::Resets`] if the budget is exhausted.
    pub fn client_stopped(&mut self, id: StreamId, now: u64) -> Result<bool, ConnectionError> {
        self.client_reset(id, now)
    }

    /// Removes a stream that the caller resets in both directions.
    pub fn abandon(&mut self, id: StreamId) {
        self.remove(id);
    }

    /// Begins a graceful shutdown: writes a GOAWAY that rejects no request yet.
    pub fn begin_drain(&mut self) {
        if self.drain_state == DrainState::Active {
            self.drain_state = DrainState::Announced;
            frame::integer_frame(frame::GOAWAY, GOAWAY_ANNOUNCEMENT, &mut self.control);
        }
    }

    /// Rejects all further requests: writes the last GOAWAY. Returns false if the last GOAWAY had already been
    /// written.
    pub fn finish_drain(&mut self) -> bool {
        if matches!(self.drain_state, DrainState::Final { .. }) {
            return false;
        }
        let first_rejected = self.next_stream;
        self.drain_state = DrainState::Final { first_rejected };
        frame::integer_frame(frame::GOAWAY, first_rejected, &mut self.control);
        true
    }

    /// Returns whether the server has written a GOAWAY.
    pub fn is_draining(&self) -> bool {
        self.drain_state != DrainState::Active
    }

    /// Returns whether no request is accepted any more and all responses have ended.
    pub fn is_drained(&self) -> bool {
        matches!(self.drain_state, DrainState::Final { .. }) && self.streams.pending_responses() == 0
    }

    /// Returns whether no request stream is open: no response is pending, and no request has arrived in part.
    pub fn is_idle(&self) -> bool {
        self.streams.len() == 0
    }

    /// Returns whether the client has opened a request stream.
    pub fn has_had_requests(&self) -> bool {
        self.next_stream > 0
    }

    /// Returns whether the request head of an open stream has not been reported.
    pub fn awaits_request(&self, id: StreamId) -> bool {
        self.streams.get(id).is_some_and(|stream| stream.phase == Phase::Head)
    }

    /// Returns the priority of a stream; the default if the stream is not open.
    pub fn priority(&self, id: StreamId) -> Priority {
        self.streams.get(id).map_or(Priority::DEFAULT, |stream| stream.priority)
    }

    /// Frees memory that an idle connection does not need.
    pub fn trim(&mut self) {
        self.streams.trim();
        if self.early_priorities.is_empty() && self.early_priorities.capacity() > 0 {
            self.early_priorities = Vec::new();
        }
        if self.reprioritized.is_empty() && self.reprioritized.capacity() > 0 {
            self.reprioritized = Vec::new();
        }
    }

    /// Returns the memory used in bytes, tables included.
    pub fn memory(&self) -> usize {
        let early = self.early_priorities.capacity() * size_of::<(u64, Priority)>();
        let changed = self.reprioritized.capacity() * size_of::<(StreamId, Priority)>();
        let tables = self.decoder.memory() + self.encoder.memory() + self.streams.memory();
        size_of::<Self>() + tables + early + changed + self.control.capacity() + self.unidirectional.memory()
    }
}
