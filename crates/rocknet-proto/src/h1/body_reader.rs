//! Reads request and response bodies: by length, chunked with trailers, or until close (RFC 9112 §6.3, §7.1).

use memchr::memchr;

use super::framing::BodyFraming;
use super::lines::{ParseError, read_fields};
use crate::bytes::{VALUE, all};
use crate::fields::{FieldIndex, KnownField, KnownFieldSet};
use crate::limits::Limits;
use crate::refusal::{ChunkError, FieldError};

/// Result of one call of [`BodyReader::read`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BodyEvent {
    /// More bytes are needed. The first `consumed` unread bytes can be dropped.
    More { consumed: usize },
    /// The unread bytes from `start` to `end` are body data. All bytes up to `end` can be dropped.
    Data { start: usize, end: usize },
    /// The body and its trailers are complete. They end after `consumed` unread bytes.
    End { consumed: usize },
}

/// Error in a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BodyError {
    /// A chunk or the trailer section is invalid.
    Chunk(ChunkError),
    /// The body exceeds the limit that was passed to [`BodyReader::start`] or [`BodyReader::set_limit`].
    TooLarge,
}

/// Part of the body that the next unread byte belongs to.
///
/// ```text
///   Length ──► Done
///   ChunkSize ──► ChunkData ──► ChunkEnd ──► ChunkSize … size 0 ──► Trailers ──► Done
///   UntilClose (ends with the connection)
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BodyState {
    Done,
    Length,
    ChunkSize,
    ChunkData,
    ChunkEnd,
    Trailers,
    UntilClose,
}

/// Reader of the current body of one connection.
#[derive(Debug)]
pub(crate) struct BodyReader {
    /// Unread bytes of a body with a length, or of the current chunk.
    left: u64,
    /// Bytes of the body that the limit still allows.
    allowed: u64,
    /// Bytes of chunk extensions received so far.
    extensions: u32,
    /// Bytes of an incomplete trailer section that were searched for a line end already.
    scanned: u32,
    state: BodyState,
    /// If true, forbidden trailers stay in the index and the caller drops them; if false, they are an error.
    keeps_forbidden_trailers: bool,
}

/// Maximum number of digits of a chunk size: sixteen fill 64 bits.
const MAX_SIZE_DIGITS: usize = 16;

/// Trailer fields that would change the meaning of the message if they were merged into its head (RFC 9110 §6.5.1):
/// framing, routing, request modifiers, response controls, credentials and content processing.
pub(crate) const FORBIDDEN_TRAILERS: KnownFieldSet = KnownFieldSet::of(&[
    KnownField::Host,
    KnownField::Connection,
    KnownField::ContentLength,
    KnownField::TransferEncoding,
    KnownField::Expect,
    KnownField::Upgrade,
    KnownField::Te,
    KnownField::Trailer,
    KnownField::KeepAlive,
    KnownField::ProxyConnection,
    KnownField::Authorization,
    KnownField::ProxyAuthorization,
    KnownField::WwwAuthenticate,
    KnownField::Cookie,
    KnownField::SetCookie,
    KnownField::ContentEncoding,
    KnownField::ContentRange,
    KnownField::ContentType,
    KnownField::CacheControl,
    KnownField::MaxForwards,
    KnownField::Range,
    KnownField::IfRange,
    KnownField::IfMatch,
    KnownField::IfNoneMatch,
    KnownField::IfModifiedSince,
    KnownField::IfUnmodifiedSince,
    KnownField::Location,
    KnownField::Vary,
    KnownField::Forwarded,
    KnownField::XForwardedFor,
    KnownField::XForwardedHost,
    KnownField::XForwardedProto,
]);

/// Returns true if a field with this name is allowed in trailers (RFC 9110 §6.5.1).
pub fn is_allowed_trailer(name: &[u8]) -> bool {
    KnownField::from_name(name).is_none_or(|known| !FORBIDDEN_TRAILERS.contains(known))
}

impl BodyReader {
    /// Creates a reader for requests. It refuses forbidden trailers, because a client that sends them attacks back ends
    /// that merge trailers.
    pub(crate) const fn for_requests() -> Self {
        Self {
            left: 0,
            allowed: 0,
            extensions: 0,
            scanned: 0,
            state: BodyState::Done,
            keeps_forbidden_trailers: false,
        }
    }

    /// Creates a reader for responses. The caller must drop forbidden trailers; the response stays valid (RFC 9110
    /// §6.5.1).
    pub(crate) const fn for_responses() -> Self {
        Self {
            keeps_forbidden_trailers: true,
            ..Self::for_requests()
        }
    }

    /// Begins a body of at most `limit` bytes. The length is checked only in `read`, because
    /// [`set_limit`](Self::set_limit) can still raise the limit before the first `read`.
    pub(crate) fn start(&mut self, framing: BodyFraming, limit: u64) {
        (self.state, self.left) = match framing {
            BodyFraming::None => (BodyState::Done, 0),
            BodyFraming::Length(length) => (BodyState::Length, length),
            BodyFraming::Chunked => (BodyState::ChunkSize, 0),
        };
        (self.allowed, self.extensions, self.scanned) = (limit, 0, 0);
    }

    /// Begins a body that ends with the connection; it has no limit.
    pub(crate) fn start_until_close(&mut self) {
        (self.state, self.allowed) = (BodyState::UntilClose, u64::MAX);
    }

    /// Sets the limit for the unread part of the body, in bytes. Returns false if the unread part of an announced
    /// length exceeds the limit.
    pub(crate) fn set_limit(&mut self, limit: u64) -> bool {
        self.allowed = limit;
        self.state != BodyState::Length || self.left <= limit
    }

    pub(crate) fn is_until_close(&self) -> bool {
        self.state == BodyState::UntilClose
    }

    /// Reads one event from the front of the unread bytes. At the end of the body, `trailers` refers to these bytes.
    pub(crate) fn read(
        &mut self,
        limits: &Limits,
        unread: &[u8],
        trailers: &mut FieldIndex,
    ) -> Result<BodyEvent, BodyError> {
        let mut at = 0;
        loop {
            let rest = &unread[at..];
            match self.state {
                BodyState::Done => return Ok(BodyEvent::End { consumed: at }),
                BodyState::Length => {
                    if self.left > self.allowed {
                        return Err(BodyError::TooLarge);
                    }
                    if self.left == 0 {
                        self.state = BodyState::Done;
                        // A body with a length has no trailers. Since the head, the caller may have used the index for
                        // another connection, whose trailers would still be in it.
                        trailers.clear();
                        continue;
                    }
                    // `at` is 0, because no other state leads to `Length`. The same holds for `UntilClose`.
                    let end = self.take(rest.len());
                    self.allowed -= end as u64;
                    return Ok(data_or_more(0, end));
                }
                BodyState::UntilClose => return Ok(data_or_more(0, rest.len())),
                BodyState::ChunkSize => match self.read_size(limits, rest).map_err(BodyError::Chunk)? {
                    None => return Ok(BodyEvent::More { consumed: at }),
                    Some((size, length)) => {
                        if size > self.allowed {
                            return Err(BodyError::TooLarge);
                        }
                        self.allowed -= size;
                        self.left = size;
                        self.state = if size == 0 {
                            BodyState::Trailers
                        } else {
                            BodyState::ChunkData
                        };
                        at += length;
                    }
                },
                BodyState::ChunkData => {
                    let end = at + self.take(rest.len());
                    if self.left == 0 {
                        self.state = BodyState::ChunkEnd;
                    }
                    return Ok(data_or_more(at, end));
                }
                BodyState::ChunkEnd => match rest {
                    [b'\r', b'\n', ..] => {
                        self.state = BodyState::ChunkSize;
                        at += 2;
                    }
                    [] | [b'\r'] => return Ok(BodyEvent::More { consumed: at }),
                    _ => return Err(BodyError::Chunk(ChunkError::End)),
                },
                BodyState::Trailers => {
                    let end = self
                        .read_trailers(limits, unread, at, trailers)
                        .map_err(BodyError::Chunk)?;
                    let Some(end) = end else {
                        return Ok(BodyEvent::More { consumed: at });
                    };
                    self.state = BodyState::Done;
                    at = end;
                }
            }
        }
    }

    /// Consumes up to `available` bytes of the body or chunk and returns their number.
    fn take(&mut self, available: usize) -> usize {
        let taken = self.left.min(available as u64);
        self.left -= taken;
        taken as usize
    }

    /// Returns the chunk size and the length of its line; `None` if the line is incomplete.
    ///
    /// ```text
    /// chunk-size [ chunk-ext ] CRLF          chunk-ext = ";" …, without the "bad whitespace" of RFC 9112 §7.1.1
    /// ```
    #[inline]
    fn read_size(&mut self, limits: &Limits, rest: &[u8]) -> Result<Option<(u64, usize)>, ChunkError> {
        let (size, digits) = hexadecimal(rest);
        if digits > 0
            && let Some(b"\r\n") = rest.get(digits..digits + 2)
        {
            return Ok(Some((size, digits + 2)));
        }
        self.read_uncommon_size(limits, rest, size, digits)
    }

    /// Does the work of [`read_size`](Self::read_size) for a line that has extensions, is incomplete or is invalid.
    /// `size` and `digits` are the result of [`hexadecimal`] for `rest`.
    #[cold]
    fn read_uncommon_size(
        &mut self,
        limits: &Limits,
        rest: &[u8],
        size: u64,
        digits: usize,
    ) -> Result<Option<(u64, usize)>, ChunkError> {
        let extensions_left = limits.chunk_extension.saturating_sub(self.extensions as usize);
        // Length of the longest valid line: digits, extensions and CRLF.
        let longest = extensions_left.saturating_add(MAX_SIZE_DIGITS + 2);
        let Some(end) = memchr(b'\n', &rest[..rest.len().min(longest)]) else {
            return if rest.len() < longest {
                Ok(None)
            } else {
                Err(ChunkError::ExtensionsTooLarge)
            };
        };
        let Some((b'\r', line)) = rest[..end].split_last() else {
            return Err(ChunkError::BareLf);
        };
        if digits == 0 {
            return Err(ChunkError::Size);
        }
        let extension = &line[digits..];
        match extension.first() {
            Some(b';') if !all(extension, VALUE) => Err(ChunkError::Extension),
            Some(b';') if extension.len() > extensions_left => Err(ChunkError::ExtensionsTooLarge),
            Some(b';') => {
                self.extensions += extension.len() as u32;
                Ok(Some((size, end + 1)))
            }
            Some(byte) if byte.is_ascii_hexdigit() => Err(ChunkError::SizeTooLong),
            _ => Err(ChunkError::AfterSize),
        }
    }

    /// Returns the end of the trailer section that begins at `at`; `None` if it is incomplete.
    fn read_trailers(
        &mut self,
        limits: &Limits,
        unread: &[u8],
        at: usize,
        trailers: &mut FieldIndex,
    ) -> Result<Option<usize>, ChunkError> {
        let window = limits.trailer_window(unread, at);
        // True if the section has reached its size limit, so that waiting for more bytes would not help.
        let is_full = unread.len() - at >= limits.max_trailer_size();
        // Bytes that were not searched for a line end yet.
        let new = unread[at..].get(self.scanned as usize..).unwrap_or(&unread[at..]);
        if self.scanned > 0 && !is_full && memchr(b'\n', new).is_none() {
            self.scanned += new.len() as u32;
            return Ok(None);
        }
        trailers.clear();
        match read_fields(window, at, trailers, limits.fields) {
            Ok(_) if !self.keeps_forbidden_trailers && trailers.contains_any(FORBIDDEN_TRAILERS) => {
                Err(ChunkError::ForbiddenTrailer)
            }
            Ok(end) => Ok(Some(end)),
            Err(ParseError::Invalid(error)) => Err(ChunkError::Trailer(error)),
            Err(ParseError::Incomplete) if is_full => Err(ChunkError::Trailer(FieldError::TooLarge)),
            Err(ParseError::Incomplete) => {
                self.scanned = (unread.len() - at) as u32;
                Ok(None)
            }
        }
    }
}

/// Returns the value of up to sixteen leading hexadecimal digits, and the number of digits.
#[inline]
fn hexadecimal(bytes: &[u8]) -> (u64, usize) {
    let mut number = 0;
    for (position, byte) in bytes.iter().take(MAX_SIZE_DIGITS).enumerate() {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ => return (number, position),
        };
        number = number << 4 | u64::from(digit);
    }
    (number, bytes.len().min(MAX_SIZE_DIGITS))
}

/// Returns `Data` for the bytes from `start` to `end`, or `More` if `start` is `end`.
fn data_or_more(start: usize, end: usize) -> BodyEvent {
    if start == end {
        BodyEvent::More { consumed: start }
    } else {
        BodyEvent::Data { start, end }
    }
}
