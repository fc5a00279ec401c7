//! Server side of an HTTP/2 connection without a socket (RFC 9113).
//!
//! [`ServerConnection`] parses unread bytes, returns one event per call, and appends frames to the caller's buffer.
//!
//! It writes only whole frames, except for DATA: there it writes the frame header, and the caller must append the
//! payload immediately.
//!
//! ```text
//! reading:   Preface ──► Settings ──► Frames
//!            any ──error, close──► Closed
//! draining:  Active ──begin_drain──► Announced ──PING acknowledged──► Final
//!            any ──finish_drain, error, close──► Final
//! ```

mod control;
mod drain;
mod drain_state;
mod field_blocks;
mod open_block;
mod open_data_frame;
mod push;
mod reading;
mod request_body;
mod response_body;
mod responses;

use super::error::{ConnectionError, ErrorCode, StreamError};
use super::flow::{INITIAL_WINDOW, ReceiveWindow, SendWindow, WINDOW_MAX};
use super::frame;
use super::settings::{self, ClientSettings};
use super::streams::{STREAMS_CEILING, StreamId, Streams};
use crate::h1::Refusal;
use crate::hpack::{Decoder, Encoder};
use crate::limits::Limits;
use crate::multiplexed::{Budget, DecodedHead, Flood, Priority};
use drain_state::DrainState;
use open_block::OpenBlock;
use open_data_frame::OpenDataFrame;

pub use push::PushRequest;
pub use response_body::DataGrant;
pub use responses::BodyDelivery;

/// First 24 bytes of a client's connection preface; a SETTINGS frame ends the preface (RFC 9113 §3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Default maximum number of concurrent streams of a client. nginx has the same default, and Apache and HAProxy have
/// 100, the minimum that RFC 9113 §6.5.2 recommends.
pub const MAX_STREAMS: u32 = 128;

/// Default flow-control window of a stream, in bytes. It allows 2.6 MB/s at a round trip of 100 ms. The 128 streams of
/// a connection cannot multiply this memory, because the connection's own window bounds them together.
pub const STREAM_WINDOW: u32 = 256 * 1024;

/// Default flow-control window of a connection, in bytes, shared by all its streams. Four streams can use their whole
/// windows at the same time.
pub const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// Size of the decoder's dynamic table in bytes. It equals the initial value (RFC 9113 §6.5.2), so that nothing needs
/// to be negotiated. It also bounds the memory of an idle connection.
const TABLE_SIZE: u32 = 4096;

/// Largest DATA payload sent, in bytes, even if the client accepts larger frames. Other streams can send between two
/// frames, and above this size the nine bytes of the frame header no longer matter.
const DATA_MAX: u32 = 64 * 1024;

/// Bytes that HTTP/2 counts per field in addition to its name and value (RFC 9113 §6.5.2).
const FIELD_OVERHEAD: usize = 32;

/// Limits that a connection announces to its client (RFC 9113 §6.5.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Maximum number of concurrent streams of the client, and separately of concurrent pushes. Values above 4096 are
    /// lowered to 4096.
    pub streams: u32,
    /// Flow-control window of each stream, in bytes. Raised to 65,535 if smaller, because clients may send that much
    /// before they receive SETTINGS. Lowered to 2^31-1 if larger.
    pub stream_window: u32,
    /// Flow-control window of the connection, in bytes. The bounds of `stream_window` apply.
    pub connection_window: u32,
    /// True to accept extended CONNECT (RFC 8441 §3).
    pub connect_protocol: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            streams: MAX_STREAMS,
            stream_window: STREAM_WINDOW,
            connection_window: CONNECTION_WINDOW,
            connect_protocol: false,
        }
    }
}

/// Result of [`ServerConnection::receive`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceivedEvent {
    /// Number of bytes at the start of the unread bytes that the caller must drop.
    pub consumed: usize,
    /// Event to act on.
    pub event: ConnectionEvent,
}

/// Event found in the received bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionEvent {
    /// No further event until more bytes arrive.
    More,
    /// A request head arrived (RFC 9113 §8.1); it is in the [`DecodedHead`].
    Request {
        /// Stream of the request.
        stream: StreamId,
        /// Set if the request has neither a body nor trailers.
        end: bool,
        /// Set if the client waits for 100 (Continue) (RFC 9110 §10.1.1).
        expects_continue: bool,
    },
    /// The caller must respond to the request with the status of the refusal. The request body, if any, is discarded.
    /// The event replaces [`Request`](Self::Request), or follows it if the body exceeds its limit.
    Refused {
        /// Stream of the request.
        stream: StreamId,
        /// Reason, which determines the status of the response.
        refusal: Refusal,
        /// Set if the method is HEAD, so that the response has no body (RFC 9110 §9.3.2).
        is_head: bool,
    },
    /// `unread[start..end]` is a piece of the request body. It is empty only if `last` is set.
    Data {
        /// Stream of the request.
        stream: StreamId,
        /// Offset of the first byte in the unread bytes.
        start: usize,
        /// Offset after the last byte.
        end: usize,
        /// Set if this piece ends the request.
        last: bool,
    },
    /// The request ended with trailers (RFC 9113 §8.1), which are in the index of the [`DecodedHead`].
    Trailers {
        /// Stream of the request.
        stream: StreamId,
    },
    /// The stream was reset before its response ended: by the client, or by the server because of an error of the
    /// client or a request body above its limit.
    Reset {
        /// Stream that no longer exists.
        stream: StreamId,
        /// Code received or sent in RST_STREAM.
        code: ErrorCode,
        /// Error of the client; `None` if the client reset the stream, or if its request body exceeds the limit after
        /// the response has started.
        error: Option<StreamError>,
    },
    /// A stream was reset before its request was accepted. RST_STREAM is written.
    Rejected {
        /// Error of the client.
        error: StreamError,
    },
    /// The client sent GOAWAY (RFC 9113 §6.8): it is about to close the connection, and pushes are no longer allowed.
    GoAway {
        /// Reason given by the client.
        code: ErrorCode,
    },
    /// The client sent the acknowledgement of a PING (RFC 9113 §6.7): of [`ServerConnection::ping`], or of a PING that
    /// was never sent.
    Pong {
        /// Payload of the acknowledgement.
        opaque: [u8; 8],
    },
    /// The connection ended with an error. GOAWAY is written and must be sent before the transport is closed.
    Closed {
        /// Error of the client.
        error: ConnectionError,
    },
}

/// Part of the connection that is read next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReadState {
    Preface,
    Settings,
    Frames,
    Closed,
}

/// Server side of one HTTP/2 connection. It occupies a few hundred bytes, plus its tables, which grow with use.
///
/// The caller owns all bytes and works in this order:
///
/// 1. It calls [`write_preface`](Self::write_preface) once.
/// 2. It calls [`receive`](Self::receive) with the unread bytes, drops the consumed bytes, and repeats until it gets
///    [`ConnectionEvent::More`] or [`ConnectionEvent::Closed`].
/// 3. It responds with [`respond_prepared`](Self::respond_prepared) if the head was encoded in advance, else with
///    [`respond`](Self::respond). It announces body bytes with [`queue_body`](Self::queue_body) as they become ready.
/// 4. Each time it has received bytes or queued body bytes, it calls [`next_data`](Self::next_data) until the result is
///    `None` or its own send queue is full. It appends exactly the granted bytes after each frame header.
///
/// ```
/// use rocknet_proto::h2::{Config, ConnectionEvent, DecodedHead, PREFACE, SendError, ServerConnection};
/// use rocknet_proto::{Limits, Status};
///
/// let (limits, mut head, mut out) = (Limits::default(), DecodedHead::default(), Vec::new());
/// let mut connection = ServerConnection::new(&Config::default());
/// connection.write_preface(&limits, &mut out);
///
/// // The client's preface with empty SETTINGS, and GET http://a/ in HEADERS on stream 1.
/// let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
/// let headers = [0, 0, 6, 1, 5, 0, 0, 0, 1, 0x82, 0x86, 0x84, 0x41, 1, b'a'];
/// let unread = [PREFACE.as_slice(), &settings, &headers].concat();
///
/// // The second argument is the time in milliseconds.
/// let received = connection.receive(&limits, 0, &unread, &mut head, &mut out);
/// assert_eq!(received.consumed, unread.len());
/// let ConnectionEvent::Request { stream, end: true, .. } = received.event else {
///     panic!("not a request");
/// };
/// assert_eq!(head.request().path, b"/");
///
/// // The head has no Content-Length and no fields, and ends the response.
/// connection.respond(stream, Status::NO_CONTENT, None, [], true, &mut out)?;
/// assert!(connection.is_idle());
/// // `out` is sent now.
/// # Ok::<(), SendError>(())
/// ```
#[derive(Debug)]
pub struct ServerConnection {
    config: Config,
    /// Settings that the client has sent.
    client: ClientSettings,
    read_state: ReadState,
    drain_state: DrainState,
    /// Set once the client has sent GOAWAY.
    client_is_leaving: bool,
    streams: Streams,
    /// Bytes that may still be sent to the client, on all streams together.
    send_window: SendWindow,
    /// Bytes that the client may still send, on all streams together.
    receive_window: ReceiveWindow,
    decoder: Decoder,
    encoder: Encoder,
    /// Counters of frames that cost the server more than the client.
    budget: Budget,
    /// DATA frame that has arrived in part.
    open_data: OpenDataFrame,
    /// Number of payload bytes still to be skipped: padding, discarded data, or a frame of an unknown type.
    skip: u32,
    /// Field block that continues in CONTINUATION frames.
    block: Option<Box<OpenBlock>>,
    /// Priorities received before their streams were opened, by stream number.
    early_priorities: Vec<(u32, Priority)>,
    /// Streams whose last DATA frame header is written and whose request body is discarded. A reset must wait until
    /// the payload of that frame is written, so the next call of [`next_data`](Self::next_data) passes each stream to
    /// [`reset_discarding`](Self::reset_discarding). Each stream is listed at most once.
    ending: Vec<StreamId>,
    /// Number of the last stream that the client opened.
    last_client_stream: u32,
    /// Number of the next pushed stream.
    next_push_stream: u32,
}

/// Arguments of [`ServerConnection::receive`] that are passed to the reader of each frame.
struct Context<'a> {
    limits: &'a Limits,
    /// Milliseconds since an arbitrary start.
    now: u64,
    /// Buffer for a decoded head or trailer section.
    head: &'a mut DecodedHead,
    /// Buffer for the frames to send.
    out: &'a mut Vec<u8>,
}

/// Result of reading one frame; `None` if the frame causes no event.
type FrameResult = Result<Option<ConnectionEvent>, ConnectionError>;

impl ServerConnection {
    /// Creates a connection that expects the client's preface. Values outside the bounds given in [`Config`] are
    /// clamped.
    pub fn new(config: &Config) -> Self {
        let config = Config {
            streams: config.streams.min(STREAMS_CEILING as u32),
            stream_window: config.stream_window.clamp(INITIAL_WINDOW, WINDOW_MAX),
            connection_window: config.connection_window.clamp(INITIAL_WINDOW, WINDOW_MAX),
            ..*config
        };
        Self {
            client: ClientSettings::INITIAL,
            read_state: ReadState::Preface,
            drain_state: DrainState::Active,
            client_is_leaving: false,
            streams: Streams::new(),
            send_window: SendWindow::new(INITIAL_WINDOW),
            receive_window: ReceiveWindow::new(config.connection_window),
            decoder: Decoder::new(TABLE_SIZE as usize),
            encoder: Encoder::new(),
            budget: Budget::new(),
            open_data: OpenDataFrame::NONE,
            skip: 0,
            block: None,
            early_priorities: Vec::new(),
            ending: Vec::new(),
            last_client_stream: 0,
            next_push_stream: 2,
            config,
        }
    }

    /// Writes the server's preface: SETTINGS and, if needed, a WINDOW_UPDATE for the connection (RFC 9113 §3.4). The
    /// caller sends it immediately, without waiting for bytes from the client.
    pub fn write_preface(&mut self, limits: &Limits, out: &mut Vec<u8>) {
        let list_size = limits.max_head_size() + limits.fields.saturating_mul(FIELD_OVERHEAD);
        let values = [
            (settings::MAX_CONCURRENT_STREAMS, self.config.streams),
            (settings::INITIAL_WINDOW_SIZE, self.config.stream_window),
            (
                settings::MAX_HEADER_LIST_SIZE,
                u32::try_from(list_size).unwrap_or(u32::MAX),
            ),
            (settings::NO_RFC7540_PRIORITIES, 1),
            (settings::ENABLE_CONNECT_PROTOCOL, 1),
        ];
        // The last value is sent only if extended CONNECT is accepted.
        let count = if self.config.connect_protocol { 5 } else { 4 };
        frame::settings(&values[..count], out);
        if self.config.connection_window > INITIAL_WINDOW {
            frame::window_update(0, self.config.connection_window - INITIAL_WINDOW, out);
        }
    }

    /// Reads unread bytes and returns one event. `now` is in milliseconds since an arbitrary start; a resolution of
    /// seconds suffices.
    ///
    /// Bytes of an incomplete frame are not consumed; they are at most 16 KiB and a frame header. Payloads of DATA and
    /// of frames of unknown types are the exception: they are consumed as they arrive.
    pub fn receive(
        &mut self,
        limits: &Limits,
        now: u64,
        unread: &[u8],
        head: &mut DecodedHead,
        out: &mut Vec<u8>,
    ) -> ReceivedEvent {
        let mut context = Context { limits, now, head, out };
        let mut at = 0;
        let step = self.read_event(&mut context, unread, &mut at);
        match step {
            Ok(event) => ReceivedEvent { consumed: at, event },
            Err(error) => {
                self.fail(error.code(), context.out);
                ReceivedEvent {
                    consumed: unread.len(),
                    event: ConnectionEvent::Closed { error },
                }
            }
        }
    }

    /// Ends the connection: writes GOAWAY, unless the connection has already ended, and drops all streams.
    #[cold]
    fn fail(&mut self, code: ErrorCode, out: &mut Vec<u8>) {
        if self.read_state != ReadState::Closed {
            frame::go_away(self.last_client_stream, code, out);
        }
        self.read_state = ReadState::Closed;
        // `last` has no effect here, because no further frame is read.
        self.drain_state = DrainState::Final { last: 0 };
        self.block = None;
        self.open_data = OpenDataFrame::NONE;
        self.streams = Streams::new();
    }

    /// Ends the connection with `code` and writes GOAWAY (RFC 9113 §6.8), for example after a deadline has passed. The
    /// frame must be sent before the transport is closed. All streams are dropped without an event. If the connection
    /// has already ended, nothing is written.
    pub fn close(&mut self, code: ErrorCode, out: &mut Vec<u8>) {
        self.fail(code, out);
    }

    /// Resets a stream because of the client's error. The reset counts against the budget, because a client that
    /// provokes resets can start more requests than its stream limit allows (CVE-2025-8671).
    ///
    /// # Errors
    ///
    /// [`Flood::Resets`] if the budget is exhausted.
    #[cold]
    fn reject(&mut self, context: &mut Context<'_>, number: u32, error: StreamError) -> FrameResult {
        self.budget.spend(Flood::Resets, context.now)?;
        frame::rst_stream(number, error.code(), context.out);
        self.streams.remember_reset(number);
        let Some(stream) = self.streams.find(number) else {
            return Ok(Some(ConnectionEvent::Rejected { error }));
        };
        let response_pending = self.streams.get(stream).is_some_and(|open| open.state.can_send());
        self.remove(stream, context.out);
        // If the response has already ended, the caller is done with the stream.
        Ok(response_pending.then_some(ConnectionEvent::Reset {
            stream,
            code: error.code(),
            error: Some(error),
        }))
    }

    /// Removes a stream from the table and gives its unreleased bytes back to the connection's window.
    #[inline]
    fn remove(&mut self, stream: StreamId, out: &mut Vec<u8>) {
        let unreleased = self.streams.remove(stream);
        if unreleased > 0 {
            self.credit(unreleased, out);
        }
    }

    /// Gives `size` bytes, which were consumed or discarded, back to the connection's window. Writes a WINDOW_UPDATE
    /// once enough bytes have accumulated.
    #[inline]
    fn credit(&mut self, size: u32, out: &mut Vec<u8>) {
        if let Some(grant) = self.receive_window.release(size) {
            frame::window_update(0, grant, out);
        }
    }

    /// Returns whether no response is pending, no field block waits for CONTINUATION, and no DATA frame has arrived in
    /// part. Bytes that [`receive`](Self::receive) has not consumed are not considered.
    pub fn is_idle(&self) -> bool {
        self.streams.pending_responses() == 0 && self.block.is_none() && !self.open_data.is_under_way()
    }

    /// Returns whether a field block has started and its last frame has not arrived (RFC 9113 §4.3).
    pub fn is_mid_block(&self) -> bool {
        self.block.is_some()
    }

    /// Returns the number of streams whose responses have not ended.
    pub fn pending_responses(&self) -> usize {
        self.streams.pending_responses()
    }

    /// Returns whether an error or [`close`](Self::close) has ended the connection.
    pub fn is_closed(&self) -> bool {
        self.read_state == ReadState::Closed
    }

    /// Frees memory that an idle connection does not need.
    pub fn trim(&mut self) {
        self.streams.trim();
        if self.early_priorities.is_empty() && self.early_priorities.capacity() > 0 {
            self.early_priorities = Vec::new();
        }
        if self.ending.is_empty() && self.ending.capacity() > 0 {
            self.ending = Vec::new();
        }
    }

    /// Returns the memory used in bytes, tables included.
    pub fn memory(&self) -> usize {
        let block = self.block.as_ref().map_or(0, |block| block.memory());
        let early = self.early_priorities.capacity() * size_of::<(u32, Priority)>();
        let ending = self.ending.capacity() * size_of::<StreamId>();
        let tables = self.streams.memory() + self.decoder.memory() + self.encoder.memory();
        size_of::<Self>() + tables + block + early + ending
    }
}

// With its tables, an idle connection may use 4 KiB (`tests/h2/idle.rs`). The struct itself may use 768 bytes of that.
const _: () = assert!(size_of::<ServerConnection>() <= 768);
