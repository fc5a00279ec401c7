//! The server's side of an HTTP/2 connection, without a socket: unread bytes go in, one event at a time comes out, and
//! frames are written behind each other into the caller's buffer.
//!
//! The caller owns all bytes. It calls `open` once, then `receive` with what is unread, drops what was consumed, and calls
//! again until it gets `Event::More`. In between it answers what it can: `respond_prepared` for heads rendered beforehand,
//! else `respond`, then `offer` for content as it becomes ready. Content leaves when `next_data` grants it: after every round
//! of receiving or offering the caller takes grants until there are none, or its queue is full, and puts exactly the
//! granted bytes behind the frame header that was written for them. Everything the engine writes is a whole frame, or a
//! frame header whose data the caller puts behind it at once.
//!
//! ```text
//! reading:  Preface ──► Settings ──► Frames ──fault──► Closed
//! leaving:  Staying ──begin_drain──► Announced ──PING answered, or finish_drain──► Final
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

use super::budget::{Budget, Flood};
use super::error::{ConnectionError, ErrorCode, StreamError};
use super::flow::{INITIAL_WINDOW, ReceiveWindow, SendWindow, WINDOW_MAX};
use super::frame;
use super::head::DecodedHead;
use super::hpack::{Decoder, Encoder};
use super::priority::Priority;
use super::settings::{self, ClientSettings};
use super::streams::{STREAMS_CEILING, StreamId, Streams};
use crate::h1::Refusal;
use crate::limits::Limits;
use drain_state::DrainState;
use open_block::OpenBlock;
use open_data_frame::OpenDataFrame;

pub use push::PushRequest;
pub use response_body::DataGrant;
pub use responses::{BodyDelivery, SendError};

/// What a client begins with (RFC 9113 §3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Streams a client may have open at once: what browsers and servers have settled on, and RFC 9113 §6.5.2 asks for 100.
pub const MAX_STREAMS: u32 = 128;

/// Content a client may send on one stream ahead of its reader: 2 MB/s at 100 ms of way, in memory that 128 streams of one
/// connection cannot make much of, since its own window bounds them together.
pub const STREAM_WINDOW: u32 = 256 * 1024;

/// Content a client may send on all streams ahead of their readers.
pub const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// Table for the client's fields: the size that holds until SETTINGS says otherwise (RFC 9113 §6.5.2), so that nothing is to
/// be renegotiated, and an idle connection has at most so much of it in memory.
const TABLE_SIZE: u32 = 4096;

/// Largest data frame we send to a client that would take larger ones: between two of them another stream gets its turn,
/// and above this the nine bytes in front no longer count.
const DATA_MAX: u32 = 64 * 1024;

/// Counted by limits of heads in HTTP/2 beside the bytes of each field (RFC 9113 §6.5.2).
const FIELD_OVERHEAD: usize = 32;

/// What a connection allows its client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Streams at once.
    pub streams: u32,
    /// Content ahead of its reader, for each stream; never below 65,535, which clients may send before they hear of it.
    pub stream_window: u32,
    /// Content ahead of its readers, for all streams; never below 65,535 either.
    pub connection_window: u32,
    /// Whether CONNECT may ask for another protocol (RFC 8441).
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

/// One event, and how much of the unread bytes is done with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceivedEvent {
    pub consumed: usize,
    pub event: ConnectionEvent,
}

/// What the unread bytes turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionEvent {
    /// No further event until more bytes come.
    More,
    /// A request; its head stands in the `Head`. With `end` no content follows.
    Request {
        stream: StreamId,
        end: bool,
        expects_continue: bool,
    },
    /// A request that is to be answered with the status of the refusal; content it brings is passed over.
    Refused { stream: StreamId, refusal: Refusal },
    /// `unread[start..end]` is content; empty only with `last`, which ends the request.
    Data {
        stream: StreamId,
        start: usize,
        end: usize,
        last: bool,
    },
    /// The request ends with these trailers, in the index of the `Head`.
    Trailers { stream: StreamId },
    /// The exchange is over before its answer was: by the client, or because of a fault of the client.
    Reset {
        stream: StreamId,
        code: ErrorCode,
        error: Option<StreamError>,
    },
    /// A request was turned away before it was one; the client is told.
    Rejected { error: StreamError },
    /// The client goes, or says why it must: it opens no more streams, and nothing may be pushed.
    GoAway { code: ErrorCode },
    /// The client answered `ping`.
    Pong { opaque: [u8; 8] },
    /// The connection is at its end: GOAWAY is written, to be sent before the link is closed.
    Closed { error: ConnectionError },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReadState {
    Preface,
    Settings,
    Frames,
    Closed,
}

/// One connection; what it holds beside its tables is a few hundred bytes, and tables come with use.
#[derive(Debug)]
pub struct ServerConnection {
    config: Config,
    client: ClientSettings,
    read_state: ReadState,
    drain_state: DrainState,
    /// The client sent GOAWAY.
    client_is_leaving: bool,
    streams: Streams,
    send_window: SendWindow,
    receive_window: ReceiveWindow,
    decoder: Decoder,
    encoder: Encoder,
    budget: Budget,
    /// Content that is under way within a frame.
    open_data: OpenDataFrame,
    /// Bytes of a payload that are passed over as they come.
    skip: u32,
    /// A field block that goes on in CONTINUATION.
    block: Option<Box<OpenBlock>>,
    /// Priorities that came before their streams.
    early_priorities: Vec<(u32, Priority)>,
    /// Streams whose last frame of data has been begun, and whose content nobody wants: one for each stream at most, until the next
    /// frame.
    ending: Vec<StreamId>,
    /// The last stream the client opened.
    last_client_stream: u32,
    /// The next stream we may promise.
    next_push_stream: u32,
}

/// Where a step of reading gets and puts things.
struct Context<'a> {
    limits: &'a Limits,
    now: u64,
    head: &'a mut DecodedHead,
    out: &'a mut Vec<u8>,
}

/// What a frame led to.
type FrameResult = Result<Option<ConnectionEvent>, ConnectionError>;

impl ServerConnection {
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

    /// Writes the server's preface: SETTINGS, and the window of the connection. To be sent at once, before anything comes.
    pub fn write_preface(&mut self, limits: &Limits, out: &mut Vec<u8>) {
        let head = limits.head_ceiling() + limits.fields.saturating_mul(FIELD_OVERHEAD);
        let values = [
            (settings::MAX_CONCURRENT_STREAMS, self.config.streams),
            (settings::INITIAL_WINDOW_SIZE, self.config.stream_window),
            (settings::MAX_HEADER_LIST_SIZE, u32::try_from(head).unwrap_or(u32::MAX)),
            (settings::NO_RFC7540_PRIORITIES, 1),
            (settings::ENABLE_CONNECT_PROTOCOL, 1),
        ];
        let count = if self.config.connect_protocol { 5 } else { 4 };
        frame::settings(&values[..count], out);
        if self.config.connection_window > INITIAL_WINDOW {
            frame::window_update(0, self.config.connection_window - INITIAL_WINDOW, out);
        }
    }

    /// Takes unread bytes and gives one event. `now` is in milliseconds from any beginning; seconds are fine enough.
    ///
    /// Of the unread bytes those of an incomplete frame stay: never more than 16 KiB and a frame header.
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

    /// Ends the connection: GOAWAY, and nothing further is read or written.
    #[cold]
    fn fail(&mut self, code: ErrorCode, out: &mut Vec<u8>) {
        if self.read_state != ReadState::Closed {
            frame::go_away(self.last_client_stream, code, out);
        }
        self.read_state = ReadState::Closed;
        self.drain_state = DrainState::Final { last: 0 };
        self.block = None;
        self.open_data = OpenDataFrame::NONE;
        self.streams = Streams::new();
    }

    /// Gives up on the connection with a code: for a deadline that has passed, say. To be sent before the link is closed.
    pub fn close(&mut self, code: ErrorCode, out: &mut Vec<u8>) {
        self.fail(code, out);
    }

    /// Resets a stream for a fault of the client's, and books it: making us reset streams is a way to make us work.
    #[cold]
    fn reject(&mut self, context: &mut Context<'_>, number: u32, error: StreamError) -> FrameResult {
        self.budget.spend(Flood::Resets, context.now)?;
        frame::rst_stream(number, error.code(), context.out);
        self.streams.remember_reset(number);
        let Some(stream) = self.streams.find(number) else {
            return Ok(Some(ConnectionEvent::Rejected { error }));
        };
        let is_pending = self.streams.get(stream).is_some_and(|open| open.state.can_send());
        self.remove(stream, context.out);
        // Whoever has answered is done with the stream.
        Ok(is_pending.then_some(ConnectionEvent::Reset {
            stream,
            code: error.code(),
            error: Some(error),
        }))
    }

    /// Takes a stream out of the table; what it had of the connection's window goes back.
    #[inline]
    fn remove(&mut self, stream: StreamId, out: &mut Vec<u8>) {
        let unreleased = self.streams.remove(stream);
        if unreleased > 0 {
            self.credit(unreleased, out);
        }
    }

    /// So much content has been used up, or nobody wanted it.
    #[inline]
    fn credit(&mut self, size: u32, out: &mut Vec<u8>) {
        if let Some(grant) = self.receive_window.release(size) {
            frame::window_update(0, grant, out);
        }
    }

    /// Nothing is owed to the client, and nothing of it is half read.
    pub fn is_idle(&self) -> bool {
        self.streams.pending_responses() == 0 && self.block.is_none() && !self.open_data.is_under_way()
    }

    /// A field block has begun and goes on in frames that have not come.
    pub fn is_mid_block(&self) -> bool {
        self.block.is_some()
    }

    /// Streams whose answers are not yet ended.
    pub fn pending_responses(&self) -> usize {
        self.streams.pending_responses()
    }

    /// A fault or `close` has ended the connection.
    pub fn is_closed(&self) -> bool {
        self.read_state == ReadState::Closed
    }

    /// Gives back memory that an idle connection does not need.
    pub fn trim(&mut self) {
        self.streams.trim();
        if self.early_priorities.is_empty() {
            self.early_priorities = Vec::new();
        }
    }

    /// Memory it takes, its own size and tables together.
    pub fn memory(&self) -> usize {
        let block = self.block.as_ref().map_or(0, |block| block.memory());
        let early = self.early_priorities.capacity() * size_of::<(u32, Priority)>();
        size_of::<Self>() + self.streams.memory() + self.decoder.memory() + self.encoder.memory() + block + early
    }
}

// Beside its tables; SPEC allows an idle connection 4 KB with all it has.
const _: () = assert!(size_of::<ServerConnection>() <= 768);
