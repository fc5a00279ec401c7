//! Reads content of either role: by length, in chunks with trailers, or until the peer closes (RFC 9112 §6.3, §7.1).

use memchr::memchr;

use super::framing::BodyFraming;
use super::lines::{ParseError, read_fields};
use crate::bytes::{VALUE, all};
use crate::fields::{FieldIndex, Known, KnownSet};
use crate::limits::Limits;
use crate::refusal::{ChunkError, FieldError};

/// One step through the content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BodyEvent {
    More { consumed: usize },
    Data { start: usize, end: usize },
    End { consumed: usize },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BodyError {
    Chunk(ChunkError),
    TooLarge,
}

/// Where in the content the next unread byte stands.
///
/// ```text
///   Length ──────────────────────────────► Done
///   Size ─► Data ─► DataEnd ─► Size … Size 0 ─► Trailers ─► Done
///   UntilClose (ends with the connection)
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BodyState {
    Done,
    Length,
    Size,
    Data,
    DataEnd,
    Trailers,
    UntilClose,
}

#[derive(Debug)]
pub(crate) struct BodyReader {
    /// Bytes still to come of the content by length, or of the current chunk.
    left: u64,
    /// Bytes of content that the limit still allows; of content by length all are taken off at the start.
    allowed: u64,
    /// Bytes of chunk extensions so far.
    extensions: u32,
    /// Bytes of the trailer section known to hold no line beyond those already looked at.
    scanned: u32,
    state: BodyState,
    /// Trailers that may not be merged into a head are left in the index, rather than refused.
    keeps_forbidden_trailers: bool,
}

/// Most digits of a chunk size: sixteen fill 64 bits.
const MAX_SIZE_DIGITS: usize = 16;

/// Trailers that would change what the message was if they were merged into its head (RFC 9110 §6.5.1): framing, routing,
/// modifiers, credentials and how to process the content.
pub(crate) const FORBIDDEN_TRAILERS: KnownSet = KnownSet::of(&[
    Known::Host,
    Known::Connection,
    Known::ContentLength,
    Known::TransferEncoding,
    Known::Expect,
    Known::Upgrade,
    Known::Te,
    Known::Trailer,
    Known::KeepAlive,
    Known::ProxyConnection,
    Known::Authorization,
    Known::ProxyAuthorization,
    Known::WwwAuthenticate,
    Known::Cookie,
    Known::SetCookie,
    Known::ContentEncoding,
    Known::ContentRange,
    Known::ContentType,
    Known::CacheControl,
    Known::MaxForwards,
    Known::Range,
    Known::IfRange,
    Known::IfMatch,
    Known::IfNoneMatch,
    Known::IfModifiedSince,
    Known::IfUnmodifiedSince,
    Known::Location,
    Known::Vary,
    Known::Forwarded,
    Known::XForwardedFor,
    Known::XForwardedHost,
    Known::XForwardedProto,
]);

/// Whether a field of that name may stand behind content.
pub fn is_allowed_trailer(name: &[u8]) -> bool {
    Known::from_name(name).is_none_or(|known| !FORBIDDEN_TRAILERS.contains(known))
}

impl BodyReader {
    /// For requests. A client that sends forbidden trailers wants something of whoever merges them, so they are refused.
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

    /// For responses: forbidden trailers are the caller's to leave out, and the response stays good (RFC 9110 §6.5.1).
    pub(crate) const fn for_responses() -> Self {
        Self {
            keeps_forbidden_trailers: true,
            ..Self::for_requests()
        }
    }

    /// Begins new content; nothing is judged before `read`, so that the limit may still be changed.
    pub(crate) fn start(&mut self, framing: BodyFraming, limit: u64) {
        (self.state, self.left) = match framing {
            BodyFraming::None => (BodyState::Done, 0),
            BodyFraming::Length(length) => (BodyState::Length, length),
            BodyFraming::Chunked => (BodyState::Size, 0),
        };
        (self.allowed, self.extensions, self.scanned) = (limit, 0, 0);
    }

    pub(crate) fn start_until_close(&mut self) {
        (self.state, self.allowed) = (BodyState::UntilClose, u64::MAX);
    }

    /// Sets how many bytes may still come; false when more are announced already.
    pub(crate) fn limit(&mut self, limit: u64) -> bool {
        self.allowed = limit;
        self.state != BodyState::Length || self.left <= limit
    }

    pub(crate) fn is_until_close(&self) -> bool {
        self.state == BodyState::UntilClose
    }

    /// Reads from the front of the unread bytes. Trailers are left in the index, beside these unread bytes, when the
    /// content ends.
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
                        trailers.clear();
                        continue;
                    }
                    let end = self.take(rest.len());
                    self.allowed -= end as u64;
                    return Ok(data_or_more(0, end));
                }
                BodyState::UntilClose => return Ok(data_or_more(0, rest.len())),
                BodyState::Size => match self.read_size(limits, rest).map_err(BodyError::Chunk)? {
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
                            BodyState::Data
                        };
                        at += length;
                    }
                },
                BodyState::Data => {
                    let end = at + self.take(rest.len());
                    if self.left == 0 {
                        self.state = BodyState::DataEnd;
                    }
                    return Ok(data_or_more(at, end));
                }
                BodyState::DataEnd => match rest {
                    [b'\r', b'\n', ..] => {
                        self.state = BodyState::Size;
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

    fn take(&mut self, available: usize) -> usize {
        let taken = self.left.min(available as u64);
        self.left -= taken;
        taken as usize
    }

    /// The size and the length of its line; `None` while the line is incomplete.
    ///
    /// ```text
    /// chunk-size [ chunk-ext ] CRLF          chunk-ext = ";" …, without the BWS that RFC 9112 §7.1.1 calls bad itself
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

    #[cold]
    fn read_uncommon_size(
        &mut self,
        limits: &Limits,
        rest: &[u8],
        size: u64,
        digits: usize,
    ) -> Result<Option<(u64, usize)>, ChunkError> {
        let extensions_left = limits.chunk_extension.saturating_sub(self.extensions as usize);
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

    /// Where the trailer section that begins at `at` ends; `None` while it is incomplete.
    fn read_trailers(
        &mut self,
        limits: &Limits,
        unread: &[u8],
        at: usize,
        trailers: &mut FieldIndex,
    ) -> Result<Option<usize>, ChunkError> {
        let window = limits.trailer_window(unread, at);
        let is_full = unread.len() - at >= limits.trailer_ceiling();
        let new = unread[at..].get(self.scanned as usize..).unwrap_or(&unread[at..]);
        if self.scanned > 0 && !is_full && memchr(b'\n', new).is_none() {
            self.scanned += new.len() as u32;
            return Ok(None);
        }
        trailers.clear();
        match read_fields(window, at, trailers, limits.fields) {
            Ok(_) if !self.keeps_forbidden_trailers && trailers.any(FORBIDDEN_TRAILERS) => {
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

/// The number that up to sixteen hexadecimal digits spell, and how many there are.
#[inline]
fn hexadecimal(bytes: &[u8]) -> (u64, usize) {
    let mut number = 0;
    for (place, byte) in bytes.iter().take(MAX_SIZE_DIGITS).enumerate() {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ => return (number, place),
        };
        number = number << 4 | u64::from(digit);
    }
    (number, bytes.len().min(MAX_SIZE_DIGITS))
}

fn data_or_more(start: usize, end: usize) -> BodyEvent {
    if start == end {
        BodyEvent::More { consumed: start }
    } else {
        BodyEvent::Data { start, end }
    }
}
