//! The server's side of an HTTP/1 connection, without a socket: unread bytes go in, one event at a time comes out.
//!
//! The caller owns all bytes. It calls `receive` with what is unread, drops what the event says is consumed, and calls again
//! until it gets `More` (read from the peer first) or `Blocked` (answer first); with content, also when nothing is left
//! unread, since `End` takes no bytes. For each `Request` it calls `respond` and `finish`, or `respond_complete`.
//!
//! ```text
//! reading:  Head ──Request──► Content ──End──► Waiting        Waiting ──finish──► Head (keep-alive) or Closed
//!             └──Request without content──────────┘           any ──refusal, upgrade, close──► Closed
//! writing:  Idle ──Request──► Owed ──respond──► Begun ──finish──► Idle
//! ```

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

/// What the unread bytes turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerEvent {
    /// Not enough for an event; the consumed bytes were between others (sizes of chunks).
    More { consumed: usize },
    /// A head; its index is filled. Without content no `End` follows.
    Request { consumed: usize, body: BodyFraming },
    /// `unread[start..end]` is content; everything up to `end` is consumed.
    Data { start: usize, end: usize },
    /// Content and trailers are complete; `RequestIndex::trailers` points into these unread bytes.
    End { consumed: usize },
    /// An answer is owed, or the connection reads no further.
    Blocked,
}

/// What becomes of the connection after an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterResponse {
    /// The next request may follow, or stand in the unread bytes already.
    KeepAlive,
    /// Content of the request is still unread. `receive` goes on giving it, to be thrown away; after `End` the next
    /// request follows. When that is too much to bear, treat it as `Linger`.
    Drain,
    /// Close after the answer has gone out.
    Close,
    /// Send the answer, stop writing, read and drop a bounded amount, then close: closing at once would reset the
    /// connection and might destroy the answer on its way.
    Linger,
    /// All unread and coming bytes belong to the protocol that was agreed upon.
    Upgrade,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReadState {
    Head,
    Body,
    AwaitingResponse,
    Closed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WriteState {
    Idle,
    Pending,
    Started,
}

/// One connection; it holds no buffer, so an idle one costs these few bytes.
#[derive(Debug)]
pub struct ServerConnection {
    request_body: BodyReader,
    response_body: BodyWriter,
    /// Bytes of an incomplete head that hold no line end beyond those already looked at.
    scanned: u32,
    reading: ReadState,
    writing: WriteState,
    method: Method,
    version: Version,
    persists: bool,
    expects_continue: bool,
    wants_upgrade: bool,
    upgraded: bool,
}

impl Default for ServerConnection {
    fn default() -> Self {
        Self::new()
    }
}

impl ServerConnection {
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

    /// Takes unread bytes and gives one event. After a refusal the connection reads no further.
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
        if self.scanned > 0 && window.len() < limits.head_ceiling() {
            // Without a new line end nothing can change: a peer that sends byte by byte costs one look at each byte.
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

    #[cold]
    fn incomplete_or_refused(
        &mut self,
        error: ParseError<Refusal>,
        window: &[u8],
        limits: &Limits,
    ) -> Result<ServerEvent, Refusal> {
        let refusal = match error {
            ParseError::Invalid(refusal) => refusal,
            ParseError::Incomplete if window.len() < limits.head_ceiling() => {
                self.scanned = window.len() as u32;
                return Ok(ServerEvent::More { consumed: 0 });
            }
            ParseError::Incomplete => {
                let mut lines = window;
                while let [b'\r', b'\n', rest @ ..] = lines {
                    lines = rest;
                }
                match memchr(b'\n', lines) {
                    None => Refusal::TargetTooLong,
                    Some(_) => Refusal::Field(FieldError::TooLarge),
                }
            }
        };
        // Nothing that was read of this head may decide how the refusal is framed.
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
                // Whoever sends content does not wait for 100 (RFC 9110 §10.1.1).
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

    fn refuse(&mut self, refusal: Refusal) -> Refusal {
        self.reading = ReadState::Closed;
        self.persists = false;
        refusal
    }

    /// Sets how much content this request may bring, known once its site is. Content announced above it is refused here,
    /// chunked content when it gets there.
    pub fn set_body_limit(&mut self, limit: u64) -> Result<(), Refusal> {
        if self.reading == ReadState::Body && !self.request_body.limit(limit) {
            return Err(self.refuse(Refusal::ContentTooLarge));
        }
        Ok(())
    }

    /// The client waits for `CONTINUE` before it sends its content: to be written when somebody wants the content, before
    /// the answer. Answering without it closes the connection, as nobody knows then whether the content still comes.
    pub fn wants_continue(&self) -> bool {
        self.expects_continue && self.writing == WriteState::Pending && self.reading == ReadState::Body
    }

    pub fn continue_sent(&mut self) {
        self.expects_continue = false;
    }

    /// An answer may be begun: a request waits for one, or a refusal that came before any answer.
    pub fn may_respond(&self) -> bool {
        self.writing == WriteState::Pending
    }

    /// Interim answers (103) may be written: the client speaks HTTP/1.1 and its answer is not begun.
    pub fn may_send_interim(&self) -> bool {
        self.writing == WriteState::Pending && self.version != Version::Http10 && self.reading != ReadState::Closed
    }

    /// The client asked for another protocol in a way that 101 may answer.
    pub fn may_upgrade(&self) -> bool {
        self.wants_upgrade && self.writing == WriteState::Pending
    }

    /// Between two requests: a connection that closes now cuts off nothing but bytes of a request not yet complete.
    pub fn is_idle(&self) -> bool {
        self.reading == ReadState::Head && self.writing == WriteState::Idle
    }

    /// Content of the current request is still to come.
    pub fn is_receiving_body(&self) -> bool {
        self.reading == ReadState::Body
    }

    /// Begins the answer and says how it is framed; `close` ends the connection after it.
    ///
    /// 1xx but 101 is no answer: it is framed without content and changes nothing. 101 without `may_upgrade` closes.
    /// Without a request (408 for a head that never came whole) the connection closes after the answer.
    #[inline]
    pub fn respond(&mut self, status: Status, length: Length, close: bool) -> Framing {
        if self.writing != WriteState::Pending {
            // No request: nothing of the one before may decide how this is framed.
            (self.persists, self.reading) = (false, ReadState::Closed);
            (self.method, self.version, self.wants_upgrade) = (Method::Get, Version::Http11, false);
        }
        if (status.is_informational() || self.method == Method::Connect)
            && let Some(framing) = self.respond_interim_or_switch(status)
        {
            return framing;
        }
        // Nobody knows whether content comes that waited for 100 and got an answer instead.
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
                // 205 asks to reset the form and has no content (RFC 9110 §15.3.6).
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

    /// Interim answers, and the two after which no HTTP follows: 101, and 2xx to CONNECT (RFC 9110 §9.3.6).
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

    /// `respond` and `finish` at once, for an answer that is sent whole.
    #[inline]
    pub fn respond_complete(&mut self, status: Status, length: Length, close: bool) -> (Framing, AfterResponse) {
        let framing = self.respond(status, length, close);
        if self.writing == WriteState::Started {
            self.response_body = BodyWriter::empty();
        }
        (framing, self.after_response())
    }

    /// Accounts for data of the answer that is about to be sent, and writes what must stand before it.
    pub fn begin_data(&mut self, size: u64, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.response_body.begin(size, out)
    }

    /// What must stand behind the data announced with `begin_data`; nothing for data of no bytes.
    pub fn data_end(&self) -> &'static [u8] {
        self.response_body.end()
    }

    /// Writes data of the answer, framed.
    pub fn encode_data(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.response_body.write(data, out)
    }

    /// Ends the answer. One that is shorter than announced can only be told by closing.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> AfterResponse {
        self.response_body.finish(out);
        self.after_response()
    }

    /// As `finish`; trailers are dropped where the answer is not chunked. On an error the answer is not ended.
    pub fn finish_with_trailers<'a>(
        &mut self,
        trailers: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        out: &mut Vec<u8>,
    ) -> Result<AfterResponse, EncodeError> {
        self.response_body.finish_with_trailers(trailers, out)?;
        Ok(self.after_response())
    }

    /// Gives up an answer that was begun: the client learns it from the close, as the content does not end as announced.
    pub fn abort(&mut self) -> AfterResponse {
        (self.persists, self.reading, self.writing) = (false, ReadState::Closed, WriteState::Idle);
        self.response_body = BodyWriter::empty();
        AfterResponse::Close
    }

    #[inline]
    fn after_response(&mut self) -> AfterResponse {
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
        let was = std::mem::replace(&mut self.reading, ReadState::Closed);
        match was {
            _ if self.upgraded => AfterResponse::Upgrade,
            ReadState::AwaitingResponse => AfterResponse::Close,
            ReadState::Head | ReadState::Body | ReadState::Closed => AfterResponse::Linger,
        }
    }
}

// Part of what an idle connection costs beside its socket; all of it together is to stay below 1 KB of heap.
const _: () = assert!(size_of::<ServerConnection>() <= 64);
