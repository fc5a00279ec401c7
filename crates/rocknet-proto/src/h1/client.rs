//! The client's side of an HTTP/1 connection, for talking to upstreams: one request at a time, answers read strictly.
//!
//! As on the server's side the caller owns all bytes, and calls `receive` until it gets `More` or `Blocked`.
//!
//! ```text
//! sending:    Idle ──encode_request──► Content ──finish──► Done
//! receiving:  Idle ──encode_request──► Head ──Response──► Content ──End──► Idle
//!                                      Head ──Interim──► Head       Head ──Switched──► Closed
//! ```

use memchr::memchr;

use super::authority;
use super::content::{BodyError, ContentReader, Piece};
use super::content_writer::ContentWriter;
use super::encode::{
    ConnectionField, EncodeError, Framing, Length, encode_fields, encode_framing, encode_request_line,
};
use super::framing::{self, ConnectionOptions, Content};
use super::lines::Stop;
use super::response_error::ResponseError;
use super::response_head::read_head;
use crate::fields::{Field, Fields, Known};
use crate::limits::Limits;
use crate::method::Method;
use crate::refusal::FieldError;
use crate::request::Version;
use crate::response::ResponseIndex;
use crate::status::Status;

/// Interim responses borne before the final one: 100, 102 and some 103; curl stops at a like number.
pub const INTERIM_MAX: u8 = 16;

/// How the content of a response ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResponseContent {
    /// There is none; no `End` follows.
    None,
    Length(u64),
    Chunked,
    /// With the connection: `closed` is to be called then.
    UntilClose,
}

/// What the unread bytes turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answered {
    More {
        consumed: usize,
    },
    /// A 1xx head; the final one is still to come.
    Interim {
        consumed: usize,
    },
    /// The final head.
    Response {
        consumed: usize,
        content: ResponseContent,
    },
    /// `unread[start..end]` is content; everything up to `end` is consumed.
    Data {
        start: usize,
        end: usize,
    },
    /// Content and trailers are complete; `ResponseIndex::trailers` points into these unread bytes. Those that
    /// [`may_trail`](super::may_trail) does not allow are among them, and are not to be passed on.
    End {
        consumed: usize,
    },
    /// 101, or 2xx to CONNECT: all bytes behind the head belong to another protocol.
    Switched {
        consumed: usize,
    },
    /// No answer is awaited, or the connection reads no further.
    Blocked,
}

/// A request to be sent, but for its fields.
#[derive(Clone, Copy, Debug)]
pub struct RequestLine<'a> {
    pub method: &'a [u8],
    pub target: &'a [u8],
    /// `host[:port]` for Host.
    pub host: &'a [u8],
    pub length: Length,
    /// The protocols to ask for in Upgrade.
    pub upgrade: Option<&'a [u8]>,
    /// Ask the peer to close after its answer.
    pub close: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sending {
    Idle,
    Content,
    Done,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Receiving {
    Idle,
    Head,
    Content,
    Closed,
}

/// One connection to an upstream; it holds no buffer.
#[derive(Debug)]
pub struct ClientConnection {
    content: ContentReader,
    request: ContentWriter,
    /// Bytes of an incomplete head that hold no line end beyond those already looked at.
    scanned: u32,
    sending: Sending,
    receiving: Receiving,
    method: Method,
    interim: u8,
    persists: bool,
    asked_upgrade: bool,
}

impl Default for ClientConnection {
    fn default() -> Self {
        Self::new()
    }
}

impl ClientConnection {
    pub const fn new() -> Self {
        Self {
            content: ContentReader::of_responses(),
            request: ContentWriter::bare(),
            scanned: 0,
            sending: Sending::Idle,
            receiving: Receiving::Idle,
            method: Method::Get,
            interim: 0,
            persists: true,
            asked_upgrade: false,
        }
    }

    /// The connection may carry another request: the last exchange is complete both ways and neither side closes.
    pub fn is_reusable(&self) -> bool {
        self.persists && self.receiving == Receiving::Idle && self.sending != Sending::Content
    }

    /// Writes the head of a request. Host, Upgrade and the framing fields come from `line` and may not be among `fields`.
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
                // Methods that have a meaning for content say that there is none (RFC 9110 §8.6).
                Length::None if matches!(method, Method::Post | Method::Put | Method::Patch) => Some(0),
                Length::None | Length::Unknown => None,
            },
            content: line.length != Length::None,
        };
        if let Err(error) = encode_head(out, line, framing, fields) {
            out.truncate(start);
            return Err(error);
        }
        self.request = match line.length {
            Length::None => ContentWriter::bare(),
            Length::Exact(length) => ContentWriter::exact(length),
            Length::Unknown => ContentWriter::chunked(),
        };
        self.sending = if line.length == Length::None {
            Sending::Done
        } else {
            Sending::Content
        };
        self.receiving = Receiving::Head;
        (self.method, self.interim, self.scanned) = (method, 0, 0);
        (self.persists, self.asked_upgrade) = (!line.close, line.upgrade.is_some());
        Ok(())
    }

    /// Accounts for data of the request that is about to be sent, and writes what must stand before it.
    pub fn begin_data(&mut self, size: u64, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.request.begin(size, out)
    }

    /// What must stand behind the data announced with `begin_data`; nothing for data of no bytes.
    pub fn data_end(&self) -> &'static [u8] {
        self.request.end()
    }

    /// Writes data of the request, framed.
    pub fn encode_data(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.request.write(data, out)
    }

    /// Ends the content of the request; false when it is shorter than announced, and the connection can only be closed.
    pub fn finish<'a>(
        &mut self,
        trailers: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        out: &mut Vec<u8>,
    ) -> Result<bool, EncodeError> {
        if self.sending == Sending::Content {
            self.request.finish_with_trailers(trailers, out)?;
            self.sending = Sending::Done;
        }
        let is_whole = !self.request.is_short();
        self.persists &= is_whole;
        self.request = ContentWriter::bare();
        Ok(is_whole)
    }

    /// Takes unread bytes and gives one event. After a fault the connection reads no further and is to be closed.
    pub fn receive(
        &mut self,
        limits: &Limits,
        unread: &[u8],
        response: &mut ResponseIndex,
    ) -> Result<Answered, ResponseError> {
        let received = match self.receiving {
            Receiving::Head => self.receive_head(limits, unread, response),
            Receiving::Content => self.receive_content(limits, unread, response),
            Receiving::Idle if !unread.is_empty() => Err(ResponseError::Unsolicited),
            Receiving::Idle | Receiving::Closed => Ok(Answered::Blocked),
        };
        if received.is_err() {
            self.give_up();
        }
        received
    }

    /// To be called when the peer has closed and all it sent was given to `receive`: true when that ends the response.
    pub fn closed(&mut self) -> Result<bool, ResponseError> {
        let ended = match self.receiving {
            Receiving::Content if self.content.is_until_close() => Ok(true),
            Receiving::Head | Receiving::Content => Err(ResponseError::Truncated),
            Receiving::Idle | Receiving::Closed => Ok(false),
        };
        self.give_up();
        ended
    }

    fn give_up(&mut self) {
        (self.receiving, self.persists) = (Receiving::Closed, false);
    }

    fn receive_head(
        &mut self,
        limits: &Limits,
        unread: &[u8],
        response: &mut ResponseIndex,
    ) -> Result<Answered, ResponseError> {
        let window = limits.head_window(unread);
        let is_full = window.len() == limits.head_ceiling();
        let new = window.get(self.scanned as usize..).unwrap_or(window);
        if self.scanned > 0 && !is_full && memchr(b'\n', new).is_none() {
            self.scanned = window.len() as u32;
            return Ok(Answered::More { consumed: 0 });
        }
        match read_head(window, limits, response) {
            Ok(consumed) => {
                self.scanned = 0;
                self.judge_head(
                    consumed,
                    response.status,
                    response.version,
                    response.fields.view(window),
                )
            }
            Err(Stop::Bad(error)) => Err(error),
            Err(Stop::Incomplete) if is_full => Err(ResponseError::Field(FieldError::TooLarge)),
            Err(Stop::Incomplete) => {
                self.scanned = window.len() as u32;
                Ok(Answered::More { consumed: 0 })
            }
        }
    }

    /// Decides what follows the head (RFC 9112 §6.3). Bad framing fields are a fault even where they would not count: a
    /// proxy passes them on.
    fn judge_head(
        &mut self,
        consumed: usize,
        status: Status,
        version: Version,
        fields: Fields<'_>,
    ) -> Result<Answered, ResponseError> {
        let declared = framing::declared(fields, version).map_err(ResponseError::Framing)?;
        let options = ConnectionOptions::read(fields);
        if status == Status::SWITCHING_PROTOCOLS {
            if !self.asked_upgrade || !options.upgrade || !fields.contains(Known::Upgrade) || version == Version::Http10
            {
                return Err(ResponseError::UnsolicitedUpgrade);
            }
            self.give_up();
            return Ok(Answered::Switched { consumed });
        }
        if status.is_informational() {
            self.interim += 1;
            return if self.interim > INTERIM_MAX {
                Err(ResponseError::TooManyInterim)
            } else {
                Ok(Answered::Interim { consumed })
            };
        }
        if self.method == Method::Connect && status.is_success() {
            self.give_up();
            return Ok(Answered::Switched { consumed });
        }
        self.persists &= options.persists(version);
        let content = if self.method == Method::Head || !status.allows_content() {
            ResponseContent::None
        } else {
            match declared {
                Some(Content::None) => ResponseContent::None,
                Some(Content::Length(length)) => ResponseContent::Length(length),
                Some(Content::Chunked) => ResponseContent::Chunked,
                None => ResponseContent::UntilClose,
            }
        };
        self.receiving = Receiving::Content;
        match content {
            ResponseContent::None => self.receiving = Receiving::Idle,
            ResponseContent::Length(length) => self.content.start(Content::Length(length), u64::MAX),
            ResponseContent::Chunked => self.content.start(Content::Chunked, u64::MAX),
            ResponseContent::UntilClose => self.content.start_until_close(),
        }
        Ok(Answered::Response { consumed, content })
    }

    fn receive_content(
        &mut self,
        limits: &Limits,
        unread: &[u8],
        response: &mut ResponseIndex,
    ) -> Result<Answered, ResponseError> {
        match self.content.read(limits, unread, &mut response.trailers) {
            Ok(Piece::More { consumed }) => Ok(Answered::More { consumed }),
            Ok(Piece::Data { start, end }) => Ok(Answered::Data { start, end }),
            Ok(Piece::End { consumed }) => {
                self.receiving = Receiving::Idle;
                Ok(Answered::End { consumed })
            }
            Err(BodyError::Chunk(error)) => Err(ResponseError::Chunk(error)),
            // Only sums of sizes beyond 64 bits come here: the role sets no limit of its own.
            Err(BodyError::TooLarge) => Err(ResponseError::Chunk(crate::refusal::ChunkError::SizeTooLong)),
        }
    }
}

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
    let mut twice = false;
    let fields = fields.into_iter().inspect(|field| {
        twice |= matches!(field.known, Some(Known::Host | Known::Upgrade));
    });
    encode_fields(out, fields)?;
    if twice {
        return Err(EncodeError::FramingField);
    }
    encode_framing(out, framing, line.upgrade.is_some());
    Ok(())
}
