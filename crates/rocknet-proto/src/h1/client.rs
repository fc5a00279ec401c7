//! Client side of an HTTP/1 connection, for upstreams: one request at a time, and a strict parser of responses.
//!
//! The caller owns all bytes, as on the server side, and calls `receive` until it returns `More` or `Blocked`.
//!
//! ```text
//! sending:    Idle ──encode_request──► Body ──finish──► Done
//! receiving:  Idle ──encode_request──► Head ──Response──► Body ──End──► Idle
//!                                      Head ──Interim──► Head       Head ──Switched──► Closed
//! ```
//!
//! Without a body, the state `Body` is skipped. On a reused connection, `encode_request` leads from `Done` to `Body`.
//! An error and the end of the connection lead from every receiving state to `Closed`.

use memchr::memchr;

use super::authority;
use super::body_reader::{BodyError, BodyEvent, BodyReader};
use super::body_writer::BodyWriter;
use super::encode::{
    ConnectionField, EncodeError, Framing, Length, encode_fields, encode_framing, encode_request_line,
};
use super::framing::{self, BodyFraming, ConnectionOptions};
use super::lines::ParseError;
use super::response_error::ResponseError;
use super::response_head::read_head;
use crate::fields::{Field, Fields, KnownField};
use crate::limits::Limits;
use crate::method::Method;
use crate::refusal::FieldError;
use crate::request::Version;
use crate::response::ResponseIndex;
use crate::status::Status;

/// Maximum number of interim responses before the final response. It leaves room for 100, 102 and several 103; Go's
/// client has long allowed 5.
pub const MAX_INTERIM: u8 = 16;

/// Framing of a response body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResponseBodyFraming {
    /// No body; no `End` follows.
    None,
    /// A body of this many bytes; never 0.
    Length(u64),
    /// Chunks and then trailers.
    Chunked,
    /// The body ends with the connection; call [`ClientConnection::closed`] when the upstream closes it.
    UntilClose,
}

/// Event in the unread bytes. `consumed` is the number of bytes to drop from their front.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientEvent {
    /// The bytes are incomplete; read more from the upstream.
    More {
        /// Bytes to drop.
        consumed: usize,
    },
    /// The head of an interim response (1xx); the final head follows.
    Interim {
        /// Bytes to drop.
        consumed: usize,
    },
    /// The final head.
    Response {
        /// Bytes to drop.
        consumed: usize,
        /// Framing of the body.
        body: ResponseBodyFraming,
    },
    /// `unread[start..end]` is part of the body; drop everything up to `end`.
    Data {
        /// Position of the first byte of the data.
        start: usize,
        /// Position after the data; bytes to drop.
        end: usize,
    },
    /// Body and trailers are complete; [`ResponseIndex::trailers`] refers to the unread bytes of this call. The
    /// trailers can contain fields that [`is_allowed_trailer`](super::is_allowed_trailer) rejects, which must not be
    /// forwarded.
    End {
        /// Bytes to drop.
        consumed: usize,
    },
    /// 101, or 2xx to CONNECT: all bytes after the head belong to another protocol.
    Switched {
        /// Bytes to drop.
        consumed: usize,
    },
    /// No response is expected, or the connection reads nothing more.
    Blocked,
}

/// Request to be sent, without its fields.
#[derive(Clone, Copy, Debug)]
pub struct RequestLine<'a> {
    /// Method, a token.
    pub method: &'a [u8],
    /// Request target.
    pub target: &'a [u8],
    /// `host[:port]` for Host.
    pub host: &'a [u8],
    /// Length of the body.
    pub length: Length,
    /// Value of Upgrade, to switch protocols; `None` if no switch is requested.
    pub upgrade: Option<&'a [u8]>,
    /// True to send `Connection: close`.
    pub close: bool,
}

/// Progress of the current request, as in the diagram of this module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SendState {
    Idle,
    Body,
    Done,
}

/// Progress of the current response, as in the diagram of this module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReceiveState {
    Idle,
    Head,
    Body,
    Closed,
}

/// State of one connection to an upstream, without buffers.
#[derive(Debug)]
pub struct ClientConnection {
    response_body: BodyReader,
    request_body: BodyWriter,
    /// Bytes of an incomplete head that were searched for a line end already.
    scanned: u32,
    sending: SendState,
    receiving: ReceiveState,
    /// Method of the current request. It decides whether the response has a body.
    method: Method,
    /// Number of interim responses to the current request.
    interim: u8,
    /// False if the connection must close after the current exchange, or has closed.
    persists: bool,
    /// True if the current request has an Upgrade field, so that 101 is a valid response.
    requested_upgrade: bool,
}

impl Default for ClientConnection {
    fn default() -> Self {
        Self::new()
    }
}

impl ClientConnection {
    /// Creates the state of a new connection.
    pub const fn new() -> Self {
        Self {
            response_body: BodyReader::for_responses(),
            request_body: BodyWriter::empty(),
            scanned: 0,
            sending: SendState::Idle,
            receiving: ReceiveState::Idle,
            method: Method::Get,
            interim: 0,
            persists: true,
            requested_upgrade: false,
        }
    }

    /// Returns true if the connection may carry another request: the last exchange is complete in both directions, and
    /// neither side closes.
    pub fn is_reusable(&self) -> bool {
        self.persists && self.receiving == ReceiveState::Idle && self.sending != SendState::Body
    }

    /// Writes the head of a request. Host, Upgrade and the framing fields come from `line`.
    ///
    /// # Errors
    ///
    /// Fails if the connection is not reusable, if `line` or a field is invalid, or if `fields` contains Host, Upgrade
    /// or a framing field. `out` is then unchanged.
    pub fn encode_request<'a>(
        &mut self,
        out: &mut Vec<u8>,
        line: &RequestLine<'_>,
        fields: impl IntoIterator<Item = Field<'a>>,
    ) -> Result<(), EncodeError> {
        if !self.is_reusable() {
            return Err(EncodeError::Busy);
        }
        let start = out.len();
        let method = Method::from_bytes(line.method);
        let framing = Framing {
            connection: if line.close {
                ConnectionField::Close
            } else {
                ConnectionField::None
            },
            chunked: line.length == Length::Unknown,
            content_length: match line.length {
                Length::Exact(length) => Some(length),
                // Methods that define a meaning for a body announce an empty one (RFC 9110 §8.6).
                Length::None if matches!(method, Method::Post | Method::Put | Method::Patch) => Some(0),
                Length::None | Length::Unknown => None,
            },
            has_body: line.length != Length::None,
        };
        if let Err(error) = encode_head(out, line, framing, fields) {
            out.truncate(start);
            return Err(error);
        }
        self.request_body = match line.length {
            Length::None => BodyWriter::empty(),
            Length::Exact(length) => BodyWriter::exact(length),
            Length::Unknown => BodyWriter::chunked(),
        };
        self.sending = if line.length == Length::None {
            SendState::Done
        } else {
            SendState::Body
        };
        self.receiving = ReceiveState::Head;
        (self.method, self.interim, self.scanned) = (method, 0, 0);
        (self.persists, self.requested_upgrade) = (!line.close, line.upgrade.is_some());
        Ok(())
    }

    /// Accounts for `size` bytes of the request body that the caller is about to send. If the body is chunked and
    /// `size` is not 0, writes the chunk header before them.
    ///
    /// # Errors
    ///
    /// Fails if the body is longer than announced, or if the request has no body.
    pub fn begin_data(&mut self, size: u64, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.request_body.begin(size, out)
    }

    /// Returns the bytes to send after the data of `begin_data`; do not send them after empty data.
    pub fn data_end(&self) -> &'static [u8] {
        self.request_body.data_end()
    }

    /// Writes framed data of the request body.
    ///
    /// # Errors
    ///
    /// Fails if the body is longer than announced, or if the request has no body.
    pub fn encode_data(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.request_body.write(data, out)
    }

    /// Ends the request body. Returns false if it is shorter than announced, so that the connection can only be closed.
    ///
    /// # Errors
    ///
    /// Fails if a trailer field is invalid or not allowed. The body is then not ended.
    pub fn finish<'a>(
        &mut self,
        trailers: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        out: &mut Vec<u8>,
    ) -> Result<bool, EncodeError> {
        if self.sending == SendState::Body {
            self.request_body.finish_with_trailers(trailers, out)?;
            self.sending = SendState::Done;
        }
        let is_whole = !self.request_body.is_short();
        self.persists &= is_whole;
        self.request_body = BodyWriter::empty();
        Ok(is_whole)
    }

    /// Parses one event from the front of the unread bytes.
    ///
    /// # Errors
    ///
    /// Fails if the response is invalid. The connection then reads nothing more and must be closed.
    pub fn receive(
        &mut self,
        limits: &Limits,
        unread: &[u8],
        response: &mut ResponseIndex,
    ) -> Result<ClientEvent, ResponseError> {
        let received = match self.receiving {
            ReceiveState::Head => self.receive_head(limits, unread, response),
            ReceiveState::Body => self.receive_body(limits, unread, response),
            ReceiveState::Idle if !unread.is_empty() => Err(ResponseError::Unsolicited),
            ReceiveState::Idle | ReceiveState::Closed => Ok(ClientEvent::Blocked),
        };
        if received.is_err() {
            self.shut_down();
        }
        received
    }

    /// Handles the end of the connection, after all received bytes were passed to `receive`. Returns true if the close
    /// ends the response, and false if no response was expected or `receive` had stopped reading before.
    ///
    /// # Errors
    ///
    /// Fails with [`ResponseError::Truncated`] if the response is incomplete.
    pub fn closed(&mut self) -> Result<bool, ResponseError> {
        let ended = match self.receiving {
            ReceiveState::Body if self.response_body.is_until_close() => Ok(true),
            ReceiveState::Head | ReceiveState::Body => Err(ResponseError::Truncated),
            ReceiveState::Idle | ReceiveState::Closed => Ok(false),
        };
        self.shut_down();
        ended
    }

    /// Stops reading; the connection cannot be reused.
    fn shut_down(&mut self) {
        (self.receiving, self.persists) = (ReceiveState::Closed, false);
    }

    fn receive_head(
        &mut self,
        limits: &Limits,
        unread: &[u8],
        response: &mut ResponseIndex,
    ) -> Result<ClientEvent, ResponseError> {
        let window = limits.head_window(unread);
        // True if the head has reached its size limit, so that waiting for more bytes would not help.
        let is_full = window.len() == limits.max_head_size();
        // Bytes that were not searched for a line end yet.
        let new = window.get(self.scanned as usize..).unwrap_or(window);
        if self.scanned > 0 && !is_full && memchr(b'\n', new).is_none() {
            self.scanned = window.len() as u32;
            return Ok(ClientEvent::More { consumed: 0 });
        }
        match read_head(window, limits, response) {
            Ok(consumed) => {
                self.scanned = 0;
                self.accept_head(
                    consumed,
                    response.status,
                    response.version,
                    response.fields.view(window),
                )
            }
            Err(ParseError::Invalid(error)) => Err(error),
            Err(ParseError::Incomplete) if is_full => Err(ResponseError::Field(FieldError::TooLarge)),
            Err(ParseError::Incomplete) => {
                self.scanned = window.len() as u32;
                Ok(ClientEvent::More { consumed: 0 })
            }
        }
    }

    /// Determines the event of a head and the framing of the body (RFC 9112 §6.3). Invalid framing fields are an error
    /// even if they do not apply, as in the response to HEAD, because a proxy may forward them.
    fn accept_head(
        &mut self,
        consumed: usize,
        status: Status,
        version: Version,
        fields: Fields<'_>,
    ) -> Result<ClientEvent, ResponseError> {
        let declared_body = framing::declared_body(fields, version).map_err(ResponseError::Framing)?;
        let options = ConnectionOptions::read(fields);
        if status == Status::SWITCHING_PROTOCOLS {
            if !self.requested_upgrade
                || !options.upgrade
                || !fields.contains(KnownField::Upgrade)
                || version == Version::Http10
            {
                return Err(ResponseError::UnsolicitedUpgrade);
            }
            self.shut_down();
            return Ok(ClientEvent::Switched { consumed });
        }
        if status.is_informational() {
            self.interim += 1;
            return if self.interim > MAX_INTERIM {
                Err(ResponseError::TooManyInterim)
            } else {
                Ok(ClientEvent::Interim { consumed })
            };
        }
        if self.method == Method::Connect && status.is_success() {
            self.shut_down();
            return Ok(ClientEvent::Switched { consumed });
        }
        self.persists &= options.persists(version);
        let body = if self.method == Method::Head || !status.allows_body() {
            ResponseBodyFraming::None
        } else {
            match declared_body {
                Some(BodyFraming::None) => ResponseBodyFraming::None,
                Some(BodyFraming::Length(length)) => ResponseBodyFraming::Length(length),
                Some(BodyFraming::Chunked) => ResponseBodyFraming::Chunked,
                None => ResponseBodyFraming::UntilClose,
            }
        };
        self.receiving = ReceiveState::Body;
        match body {
            ResponseBodyFraming::None => self.receiving = ReceiveState::Idle,
            ResponseBodyFraming::Length(length) => self.response_body.start(BodyFraming::Length(length), u64::MAX),
            ResponseBodyFraming::Chunked => self.response_body.start(BodyFraming::Chunked, u64::MAX),
            ResponseBodyFraming::UntilClose => self.response_body.start_until_close(),
        }
        Ok(ClientEvent::Response { consumed, body })
    }

    fn receive_body(
        &mut self,
        limits: &Limits,
        unread: &[u8],
        response: &mut ResponseIndex,
    ) -> Result<ClientEvent, ResponseError> {
        match self.response_body.read(limits, unread, &mut response.trailers) {
            Ok(BodyEvent::More { consumed }) => Ok(ClientEvent::More { consumed }),
            Ok(BodyEvent::Data { start, end }) => Ok(ClientEvent::Data { start, end }),
            Ok(BodyEvent::End { consumed }) => {
                self.receiving = ReceiveState::Idle;
                Ok(ClientEvent::End { consumed })
            }
            Err(BodyError::Chunk(error)) => Err(ResponseError::Chunk(error)),
            // A client sets no limit, so the cause of this error is a sum of chunk sizes that exceeds 64 bits.
            Err(BodyError::TooLarge) => Err(ResponseError::Chunk(crate::refusal::ChunkError::SizeTooLong)),
        }
    }
}

/// Writes the request line, Host, Upgrade, `fields` and the framing fields. After an error, `out` ends with a part of
/// the head, which the caller removes.
fn encode_head<'a>(
    out: &mut Vec<u8>,
    line: &RequestLine<'_>,
    framing: Framing,
    fields: impl IntoIterator<Item = Field<'a>>,
) -> Result<(), EncodeError> {
    encode_request_line(out, line.method, line.target)?;
    if !authority::is_valid(line.host) {
        return Err(EncodeError::RequestLine);
    }
    out.extend_from_slice(b"Host: ");
    out.extend_from_slice(line.host);
    out.extend_from_slice(b"\r\n");
    if let Some(protocols) = line.upgrade {
        encode_fields(out, [Field::new(b"Upgrade", protocols)])?;
    }
    let mut duplicated = false;
    let fields = fields.into_iter().inspect(|field| {
        duplicated |= matches!(field.known, Some(KnownField::Host | KnownField::Upgrade));
    });
    encode_fields(out, fields)?;
    if duplicated {
        return Err(EncodeError::FramingField);
    }
    encode_framing(out, framing, line.upgrade.is_some());
    Ok(())
}
