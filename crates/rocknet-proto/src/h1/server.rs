//! Server side of an HTTP/1 connection, without a socket: parses one event of the unread bytes per call.
//!
//! The caller owns all bytes. It passes the unread bytes to `receive`, drops the consumed bytes, and calls again until
//! it gets `More` (read from the client first) or `Blocked` (respond first). After a request with a body it calls
//! `receive` even without unread bytes, because `End` may consume no bytes. For each `Request` it calls `respond` and
//! `finish`, or `respond_complete`.
//!
//! ```text
//! reading:  Head ──Request──► Body ──End──► AwaitingResponse ──finish──► Head (keep-alive) or Closed
//!             └──Request without body──────────┘
//!           any ──refusal, upgrade, close──► Closed
//! writing:  Idle ──Request, refusal──► Pending ──respond──► Started ──finish──► Idle
//! ```
//!
//! If the response is finished before the body and the connection persists, `End` leads from `Body` to `Head`.

use memchr::memchr;

use super::body_reader::{BodyError, BodyEvent, BodyReader};
use super::body_writer::BodyWriter;
use super::encode::{ConnectionField, EncodeError, Framing, Length};
use super::framing::BodyFraming;
use super::lines::ParseError;
use super::request_head::read_head;
use crate::limits::Limits;
use crate::method::Method;
use crate::refusal::{FieldError, Refusal};
use crate::request::{RequestIndex, Version};
use crate::status::Status;

/// Event in the unread bytes. `consumed` is the number of bytes to drop from their front.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerEvent {
    /// The bytes are incomplete; read more from the client.
    More {
        /// Bytes to drop, such as the line with the size of a chunk.
        consumed: usize,
    },
    /// The head of a request, described by the index. No `End` follows if there is no body.
    Request {
        /// Bytes to drop.
        consumed: usize,
        /// Framing of the body.
        body: BodyFraming,
    },
    /// `unread[start..end]` is part of the body; drop everything up to `end`.
    Data {
        /// Position of the first byte of the data.
        start: usize,
        /// Position after the data; bytes to drop.
        end: usize,
    },
    /// Body and trailers are complete; [`RequestIndex::trailers`] refers to the unread bytes of this call.
    End {
        /// Bytes to drop.
        consumed: usize,
    },
    /// A response must be sent first, or the connection reads nothing more.
    Blocked,
}

/// State of the connection after a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterResponse {
    /// The next request may follow; it may be in the unread bytes already.
    KeepAlive,
    /// The request body is not read completely. `receive` continues to return the body, which must be discarded. The
    /// next request follows after `End`. A caller that has discarded too many bytes can proceed as with `Linger`.
    Drain,
    /// Close after the response is sent.
    Close,
    /// Send the response, shut down the sending side, read and discard a bounded amount, and then close. Closing
    /// immediately would reset the connection and might discard the response before the client reads it.
    Linger,
    /// All unread and further bytes belong to the new protocol.
    Upgrade,
}

/// Progress of the current request, as in the diagram of this module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReadState {
    Head,
    Body,
    AwaitingResponse,
    Closed,
}

/// Progress of the current response, as in the diagram of this module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WriteState {
    Idle,
    Pending,
    Started,
}

/// State of one connection. It has no buffers, so an idle connection needs only the few bytes of this struct.
#[derive(Debug)]
pub struct ServerConnection {
    request_body: BodyReader,
    response_body: BodyWriter,
    /// Bytes of an incomplete head that were searched for a line end already.
    scanned: u32,
    reading: ReadState,
    writing: WriteState,
    /// Method of the current request.
    method: Method,
    /// Version of the current request.
    version: Version,
    /// False if the connection closes after the response to the current request.
    persists: bool,
    /// True while the client waits for 100 before it sends the body.
    expects_continue: bool,
    /// True if the client offers an upgrade that 101 may accept.
    wants_upgrade: bool,
    /// True once a response has started after which the connection carries another protocol.
    upgraded: bool,
}

impl Default for ServerConnection {
    fn default() -> Self {
        Self::new()
    }
}

impl ServerConnection {
    /// Creates the state of a new connection.
    pub const fn new() -> Self {
        Self {
            request_body: BodyReader::for_requests(),
            response_body: BodyWriter::empty(),
            scanned: 0,
            reading: ReadState::Head,
            writing: WriteState::Idle,
            method: Method::Get,
            version: Version::Http11,
            persists: true,
            expects_continue: false,
            wants_upgrade: false,
            upgraded: false,
        }
    }

    /// Parses one event from the front of the unread bytes.
    ///
    /// # Errors
    ///
    /// Fails if the request is refused. The connection then reads nothing more. The caller should send the status of
    /// the refusal if both [`may_respond`](Self::may_respond) and [`Refusal::may_respond`] return true.
    #[inline]
    pub fn receive(
        &mut self,
        limits: &Limits,
        unread: &[u8],
        request: &mut RequestIndex,
    ) -> Result<ServerEvent, Refusal> {
        match self.reading {
            ReadState::Head => self.receive_head(limits, unread, request),
            ReadState::Body => self.receive_body(limits, unread, request),
            ReadState::AwaitingResponse | ReadState::Closed => Ok(ServerEvent::Blocked),
        }
    }

    #[inline]
    fn receive_head(
        &mut self,
        limits: &Limits,
        unread: &[u8],
        request: &mut RequestIndex,
    ) -> Result<ServerEvent, Refusal> {
        let window = limits.head_window(unread);
        if self.scanned > 0 && window.len() < limits.max_head_size() {
            // Without a new line end nothing can change until the window is full, so a client that sends single bytes
            // costs one search of each byte.
            let new = window.get(self.scanned as usize..).unwrap_or(window);
            if memchr(b'\n', new).is_none() {
                self.scanned = window.len() as u32;
                return Ok(ServerEvent::More { consumed: 0 });
            }
        }
        match read_head(window, limits, request) {
            Ok(head) => {
                self.scanned = 0;
                self.method = request.method;
                self.version = request.version;
                self.persists = head.persists;
                self.expects_continue = head.expects_continue;
                self.wants_upgrade = head.wants_upgrade;
                self.writing = WriteState::Pending;
                self.reading = ReadState::AwaitingResponse;
                if head.body != BodyFraming::None {
                    self.reading = ReadState::Body;
                    self.request_body.start(head.body, limits.body_size);
                }
                Ok(ServerEvent::Request {
                    consumed: head.end,
                    body: head.body,
                })
            }
            Err(error) => self.incomplete_or_refused(error, window, limits),
        }
    }

    /// Handles a head that could not be parsed. Returns `More` if it is incomplete and may still grow, and otherwise
    /// the refusal.
    #[cold]
    fn incomplete_or_refused(
        &mut self,
        error: ParseError<Refusal>,
        window: &[u8],
        limits: &Limits,
    ) -> Result<ServerEvent, Refusal> {
        let refusal = match error {
            ParseError::Invalid(refusal) => refusal,
            ParseError::Incomplete if window.len() < limits.max_head_size() => {
                self.scanned = window.len() as u32;
                return Ok(ServerEvent::More { consumed: 0 });
            }
            ParseError::Incomplete => {
                let mut lines = window;
                while let [b'\r', b'\n', rest @ ..] = lines {
                    lines = rest;
                }
                // Without a line end after the empty lines, the request line itself is too long.
                match memchr(b'\n', lines) {
                    None => Refusal::TargetTooLong,
                    Some(_) => Refusal::Field(FieldError::TooLarge),
                }
            }
        };
        // No part of the invalid head may affect the framing of the refusal.
        (self.method, self.version) = (Method::Get, Version::Http11);
        (self.expects_continue, self.wants_upgrade) = (false, false);
        self.writing = WriteState::Pending;
        Err(self.refuse(refusal))
    }

    fn receive_body(
        &mut self,
        limits: &Limits,
        unread: &[u8],
        request: &mut RequestIndex,
    ) -> Result<ServerEvent, Refusal> {
        match self.request_body.read(limits, unread, &mut request.trailers) {
            Ok(BodyEvent::More { consumed }) => Ok(ServerEvent::More { consumed }),
            Ok(BodyEvent::Data { start, end }) => {
                // A client that sends its body does not wait for 100 (RFC 9110 §10.1.1).
                self.expects_continue = false;
                Ok(ServerEvent::Data { start, end })
            }
            Ok(BodyEvent::End { consumed }) => {
                self.expects_continue = false;
                self.reading = if self.writing == WriteState::Idle {
                    ReadState::Head
                } else {
                    ReadState::AwaitingResponse
                };
                Ok(ServerEvent::End { consumed })
            }
            Err(BodyError::Chunk(error)) => Err(self.refuse(Refusal::Chunk(error))),
            Err(BodyError::TooLarge) => Err(self.refuse(Refusal::ContentTooLarge)),
        }
    }

    /// Stops reading, so that the connection closes after the response. Returns `refusal` for the caller's `Err`.
    fn refuse(&mut self, refusal: Refusal) -> Refusal {
        self.reading = ReadState::Closed;
        self.persists = false;
        refusal
    }

    /// Sets the limit of the request body in bytes, once the site of the request is known. `receive` refuses a chunked
    /// body above the limit. Bytes and chunk sizes that were read before this call do not count.
    ///
    /// # Errors
    ///
    /// [`Refusal::ContentTooLarge`] if the unread part of the announced length exceeds the limit. The connection then
    /// reads nothing more.
    pub fn set_body_limit(&mut self, limit: u64) -> Result<(), Refusal> {
        if self.reading == ReadState::Body && !self.request_body.set_limit(limit) {
            return Err(self.refuse(Refusal::ContentTooLarge));
        }
        Ok(())
    }

    /// Returns true if the client waits for [`CONTINUE`](super::CONTINUE) before it sends its body. The caller should
    /// write `CONTINUE` when the handler reads the body. A final response without 100 closes the connection, because
    /// the client can then send the body or omit it.
    pub fn wants_continue(&self) -> bool {
        self.expects_continue && self.writing == WriteState::Pending && self.reading == ReadState::Body
    }

    /// Records that [`CONTINUE`](super::CONTINUE) was written.
    pub fn continue_sent(&mut self) {
        self.expects_continue = false;
    }

    /// Returns true if a response may be started: for a request, or for a refusal before any response.
    pub fn may_respond(&self) -> bool {
        self.writing == WriteState::Pending
    }

    /// Returns true if interim responses (103) may be written: the client uses HTTP/1.1, the request is not refused,
    /// and the response is not started.
    pub fn may_send_interim(&self) -> bool {
        self.writing == WriteState::Pending && self.version != Version::Http10 && self.reading != ReadState::Closed
    }

    /// Returns true if the client requested an upgrade that 101 may accept.
    pub fn may_upgrade(&self) -> bool {
        self.wants_upgrade && self.writing == WriteState::Pending
    }

    /// Returns true before the first request and between two requests. If `receive` has returned `More`, closing the
    /// connection discards at most an incomplete head.
    pub fn is_idle(&self) -> bool {
        self.reading == ReadState::Head && self.writing == WriteState::Idle
    }

    /// Returns true if the body of the current request is incomplete.
    pub fn is_receiving_body(&self) -> bool {
        self.reading == ReadState::Body
    }

    /// Starts the response and returns its framing. If `close` is true, the connection closes after the response. It
    /// also closes if the request did not keep it open or was refused, if the client still waits for 100, or if only
    /// the close can end the body.
    ///
    /// An interim response (1xx except 101) has no body and changes no state. 101 closes the connection unless
    /// `may_upgrade` returned true. Any response without a request, such as 408 for an incomplete head, closes the
    /// connection.
    #[inline]
    pub fn respond(&mut self, status: Status, length: Length, close: bool) -> Framing {
        if self.writing != WriteState::Pending {
            // There is no request, and the previous request must not affect the framing.
            (self.persists, self.reading) = (false, ReadState::Closed);
            (self.method, self.version, self.wants_upgrade) = (Method::Get, Version::Http11, false);
        }
        if (status.is_informational() || self.method == Method::Connect)
            && let Some(framing) = self.respond_interim_or_switch(status)
        {
            return framing;
        }
        // A client that waited for 100 and got a final response can send its body or omit it, so it is unknown where
        // the next head begins.
        if close || self.expects_continue {
            self.persists = false;
        }
        let mut framing = Framing {
            connection: ConnectionField::None,
            chunked: false,
            content_length: None,
            has_body: false,
        };
        (self.writing, self.response_body) = (WriteState::Started, BodyWriter::empty());
        if status.allows_body() {
            match length {
                // 205 has no body (RFC 9110 §15.3.6).
                _ if status == Status::RESET_CONTENT => framing.content_length = Some(0),
                Length::Unknown if self.method == Method::Head => {}
                Length::Unknown if self.version == Version::Http10 => {
                    (self.persists, framing.has_body) = (false, true);
                    self.response_body = BodyWriter::until_close();
                }
                Length::Unknown => {
                    (framing.chunked, framing.has_body) = (true, true);
                    self.response_body = BodyWriter::chunked();
                }
                Length::None | Length::Exact(_) => {
                    let length = if let Length::Exact(length) = length { length } else { 0 };
                    framing.content_length = Some(length);
                    if self.method != Method::Head {
                        framing.has_body = true;
                        self.response_body = BodyWriter::exact(length);
                    }
                }
            }
        }
        framing.connection = match (self.persists, self.version) {
            (true, Version::Http10) => ConnectionField::KeepAlive,
            (true, _) => ConnectionField::None,
            (false, _) => ConnectionField::Close,
        };
        framing
    }

    /// Frames interim responses, and the two responses after which the connection no longer carries HTTP: 101, and 2xx
    /// to CONNECT (RFC 9110 §9.3.6). Returns `None` for other responses, and for 2xx to a CONNECT with an unread body,
    /// because bytes of the body and of the tunnel could not be distinguished.
    #[cold]
    fn respond_interim_or_switch(&mut self, status: Status) -> Option<Framing> {
        let mut framing = Framing {
            connection: ConnectionField::None,
            chunked: false,
            content_length: None,
            has_body: false,
        };
        if status == Status::SWITCHING_PROTOCOLS {
            self.upgraded = self.wants_upgrade;
            self.persists &= self.wants_upgrade;
            let (upgrade, close) = (ConnectionField::Upgrade, ConnectionField::Close);
            framing.connection = if self.wants_upgrade { upgrade } else { close };
        } else if status.is_informational() {
            return Some(framing);
        } else if status.is_success() && self.reading == ReadState::AwaitingResponse {
            self.upgraded = true;
        } else {
            return None;
        }
        (self.writing, self.response_body) = (WriteState::Started, BodyWriter::empty());
        Some(framing)
    }

    /// Combines `respond` and `finish`, for a final response whose body the caller sends as a whole: `length` is not
    /// [`Length::Unknown`], and the bytes are not announced by `begin_data`.
    #[inline]
    pub fn respond_complete(&mut self, status: Status, length: Length, close: bool) -> (Framing, AfterResponse) {
        let framing = self.respond(status, length, close);
        if self.writing == WriteState::Started {
            // Otherwise the bytes, which are not accounted for, would count as missing.
            self.response_body = BodyWriter::empty();
        }
        (framing, self.after_response())
    }

    /// Accounts for `size` bytes of the response body that the caller is about to send. If the body is chunked and
    /// `size` is not 0, writes the chunk header before them.
    ///
    /// # Errors
    ///
    /// Fails if the body is longer than announced, or if the response has no body.
    pub fn begin_data(&mut self, size: u64, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.response_body.begin(size, out)
    }

    /// Returns the bytes to send after the data of `begin_data`; do not send them after empty data.
    pub fn data_end(&self) -> &'static [u8] {
        self.response_body.data_end()
    }

    /// Writes framed data of the response body.
    ///
    /// # Errors
    ///
    /// Fails if the body is longer than announced, or if the response has no body.
    pub fn encode_data(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.response_body.write(data, out)
    }

    /// Ends the response. A body shorter than announced closes the connection, which is the only way to signal the
    /// error.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> AfterResponse {
        self.response_body.finish(out);
        self.after_response()
    }

    /// Ends the response with trailers, which are dropped if the body is not chunked.
    ///
    /// # Errors
    ///
    /// Fails if a trailer field is invalid or not allowed. The response is then not ended.
    pub fn finish_with_trailers<'a>(
        &mut self,
        trailers: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        out: &mut Vec<u8>,
    ) -> Result<AfterResponse, EncodeError> {
        self.response_body.finish_with_trailers(trailers, out)?;
        Ok(self.after_response())
    }

    /// Aborts a started response. The client detects this, because the connection closes before the announced end of
    /// the body. Only an HTTP/1.0 response of unknown length announces no end, so it looks complete.
    pub fn abort(&mut self) -> AfterResponse {
        (self.persists, self.reading, self.writing) = (false, ReadState::Closed, WriteState::Idle);
        self.response_body = BodyWriter::empty();
        AfterResponse::Close
    }

    /// Ends the response and returns the state of the connection after it.
    #[inline]
    fn after_response(&mut self) -> AfterResponse {
        // The response was never started, or its body is shorter than announced.
        if self.writing != WriteState::Started || self.response_body.is_short() {
            return self.abort();
        }
        (self.writing, self.response_body) = (WriteState::Idle, BodyWriter::empty());
        if self.reading == ReadState::AwaitingResponse && self.persists && !self.upgraded {
            self.reading = ReadState::Head;
            return AfterResponse::KeepAlive;
        }
        if self.reading == ReadState::Body && self.persists {
            return AfterResponse::Drain;
        }
        let previous = std::mem::replace(&mut self.reading, ReadState::Closed);
        match previous {
            _ if self.upgraded => AfterResponse::Upgrade,
            // The whole request is read, so no part of it is left whose arrival would reset the connection.
            ReadState::AwaitingResponse => AfterResponse::Close,
            ReadState::Head | ReadState::Body | ReadState::Closed => AfterResponse::Linger,
        }
    }
}

// An idle connection must use less than 1 KB of heap in total, not counting its socket. This state may use 64 bytes of
// that heap.
const _: () = assert!(size_of::<ServerConnection>() <= 64);
