//! Frames between the server and the process of an isolated library, for one request on a byte stream.
//!
//! ```text
//! frame:  kind (1 byte)  size (4 bytes, little endian)  payload
//!
//! server ─▶ Begin, Content ─▶ process      one call of `answer`
//!        ◀─ Log …, Continue | Head, Body … | Failed | NoStatus | Refused
//! server ─▶ Piece | End ─▶ process         one call of `take`
//!        ◀─ as after `answer`
//! server ─▶ Give ─▶ process                one call of `give`
//!        ◀─ Log …, Body (empty: the end) | Failed
//! ```
//! Each side waits for the other, so no frames accumulate between them. Both sides are the same program, so the format
//! has one version. A library may corrupt the memory of its process, so the server checks every length and does not
//! rely on the order of frames.

mod request;

use std::fmt;
use std::ops::Range;

use crate::request::{Level, Refused};

pub use self::request::{ReceivedRequest, encode_request};

/// Maximum size of a payload in bytes. A request body that a controller gets as a whole has at most 1 MiB. A request
/// head exceeds the maximum only with a target of several hundred KiB, because an encoded request contains the path
/// three times. The limits permit such a target only if they are raised.
pub const MAX_FRAME: usize = 2 * 1024 * 1024;
/// Maximum size of a body frame in bytes, large enough that the cost of a frame is small per byte.
pub const MAX_BODY: usize = 64 * 1024;
/// Size of the header of a frame in bytes: kind and size.
const HEADER: usize = 5;
/// Number of bytes to read if the size of the next frame is not known.
const READ_SIZE: usize = 4 * 1024;
/// Maximum size in bytes of a buffer that is kept while no frame is expected.
const MAX_KEPT: usize = 64 * 1024;

/// Message from the server to the process.
#[derive(Debug, PartialEq, Eq)]
pub enum ServerMessage<'a> {
    /// Index of a controller in its library, and a request from [`encode_request`].
    Begin(u16, &'a [u8]),
    /// Whole request body; empty for a controller that takes it in pieces.
    Content(&'a [u8]),
    /// Piece of the request body.
    Piece(&'a [u8]),
    /// End of the request body.
    End,
    /// Request for the next piece of the response body.
    Give,
}

/// Message from the process to the server.
#[derive(Debug, PartialEq, Eq)]
pub enum ProcessMessage<'a> {
    /// Line for the log.
    Log(Level, &'a [u8]),
    /// The controller needs more of the request body.
    Continue,
    /// Head of the response.
    Head(ResponseHead<'a>),
    /// Piece of the response body; empty at the end of a body that is given in pieces.
    Body(&'a [u8]),
    /// The controller failed with this value.
    Failed(i64),
    /// The controller set no status.
    NoStatus,
    /// The controller set something that cannot be sent.
    Refused(Refused),
}

/// Response without its body.
#[derive(Debug, PartialEq, Eq)]
pub struct ResponseHead<'a> {
    /// Status, not yet checked.
    pub status: u32,
    /// Number of bytes of the response body that follow immediately.
    pub size: u32,
    /// Header fields, not yet parsed.
    fields: &'a [u8],
}

/// Error for a frame that violates the format or is too large to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidFrame;

impl fmt::Display for InvalidFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("invalid frame")
    }
}

impl std::error::Error for InvalidFrame {}

// Kinds of frames. The server sends the first five, and the process sends the others.
const BEGIN: u8 = 1;
const CONTENT: u8 = 2;
const PIECE: u8 = 3;
const END: u8 = 4;
const GIVE: u8 = 5;
const LOG: u8 = 6;
const CONTINUE: u8 = 7;
const HEAD: u8 = 8;
const BODY: u8 = 9;
const FAILED: u8 = 10;
const NO_STATUS: u8 = 11;
const REFUSED: u8 = 12;

impl ServerMessage<'_> {
    /// Appends the message as a frame.
    ///
    /// # Errors
    ///
    /// Returns an error and appends nothing if the payload exceeds [`MAX_FRAME`].
    pub fn write(&self, to: &mut Vec<u8>) -> Result<(), InvalidFrame> {
        match self {
            ServerMessage::Begin(number, request) => frame(to, BEGIN, &[&number.to_le_bytes(), request]),
            ServerMessage::Content(bytes) => frame(to, CONTENT, &[bytes]),
            ServerMessage::Piece(bytes) => frame(to, PIECE, &[bytes]),
            ServerMessage::End => frame(to, END, &[]),
            ServerMessage::Give => frame(to, GIVE, &[]),
        }
    }
}

impl ProcessMessage<'_> {
    /// Appends the message as a frame. [`write_head`] appends a head whose fields come from an iterator.
    ///
    /// # Errors
    ///
    /// Returns an error and appends nothing if the payload exceeds [`MAX_FRAME`].
    pub fn write(&self, to: &mut Vec<u8>) -> Result<(), InvalidFrame> {
        match self {
            ProcessMessage::Log(level, line) => frame(to, LOG, &[&[level_number(*level)], line]),
            ProcessMessage::Continue => frame(to, CONTINUE, &[]),
            ProcessMessage::Head(ResponseHead { status, size, fields }) => {
                frame(to, HEAD, &[&status.to_le_bytes(), &size.to_le_bytes(), fields])
            }
            ProcessMessage::Body(bytes) => frame(to, BODY, &[bytes]),
            ProcessMessage::Failed(code) => frame(to, FAILED, &[&code.to_le_bytes()]),
            ProcessMessage::NoStatus => frame(to, NO_STATUS, &[]),
            ProcessMessage::Refused(reason) => frame(to, REFUSED, &[&[refused_number(*reason)]]),
        }
    }
}

/// Appends the head of a response. `size` bytes of the response body have to follow immediately.
///
/// # Errors
///
/// Returns an error and appends nothing if the payload exceeds [`MAX_FRAME`].
pub fn write_head<'f>(
    to: &mut Vec<u8>,
    status: u32,
    size: u32,
    fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
) -> Result<(), InvalidFrame> {
    let mut all = Vec::new();
    for (name, value) in fields {
        write_pair(&mut all, name, value);
    }
    let fields = &all[..];
    ProcessMessage::Head(ResponseHead { status, size, fields }).write(to)
}

impl<'a> ResponseHead<'a> {
    /// Returns the header fields. An incomplete field yields an error and ends the iteration.
    pub fn fields(&self) -> impl Iterator<Item = Result<(&'a [u8], &'a [u8]), InvalidFrame>> + use<'a> {
        read_pairs(self.fields)
    }
}

/// Appends a frame whose payload is the concatenation of these parts.
fn frame(to: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) -> Result<(), InvalidFrame> {
    let size: usize = parts.iter().map(|part| part.len()).sum();
    let stated = u32::try_from(size)
        .ok()
        .filter(|_| size <= MAX_FRAME)
        .ok_or(InvalidFrame)?;
    to.reserve(HEADER + size);
    to.push(kind);
    to.extend_from_slice(&stated.to_le_bytes());
    for part in parts {
        to.extend_from_slice(part);
    }
    Ok(())
}

/// Appends two texts, each preceded by its size.
fn write_pair(to: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    for text in [name, value] {
        // A text above 4 GiB exceeds a frame, so writing the frame fails.
        to.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
        to.extend_from_slice(text);
    }
}

/// Reads pairs from [`write_pair`].
fn read_pairs(mut bytes: &[u8]) -> impl Iterator<Item = Result<(&[u8], &[u8]), InvalidFrame>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let read = read_text(&mut bytes).and_then(|name| Some((name, read_text(&mut bytes)?)));
        if read.is_none() {
            bytes = &[];
        }
        Some(read.ok_or(InvalidFrame))
    })
}

/// Removes the first text with its size from `bytes`; `None` if the text is incomplete.
fn read_text<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (size, remaining) = bytes.split_first_chunk::<4>()?;
    let (text, remaining) = remaining.split_at_checked(u32::from_le_bytes(*size) as usize)?;
    *bytes = remaining;
    Some(text)
}

/// Buffer of received bytes from which frames are parsed one by one.
#[derive(Debug, Default)]
pub struct FrameReader {
    bytes: Vec<u8>,
    /// Start of the next frame.
    start: usize,
    /// End of the received bytes. The rest of the buffer is free.
    end: usize,
}

impl FrameReader {
    /// Returns the free part of the buffer for the next read. It is never empty.
    pub fn spare(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        let needed = self.missing().max(READ_SIZE);
        if self.bytes.len() - self.end < needed {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if self.bytes.len() - self.end < needed {
                self.bytes.resize(self.end + needed, 0);
            }
        }
        &mut self.bytes[self.end..]
    }

    /// Adds `size` bytes of the free part to the received ones.
    pub fn advance(&mut self, size: usize) {
        self.end = (self.end + size).min(self.bytes.len());
    }

    /// Frees the memory of a large frame. Call it when no frame is expected for a while.
    pub fn shrink(&mut self) {
        if self.is_empty() && self.bytes.len() > MAX_KEPT {
            *self = FrameReader::default();
        }
    }

    /// Returns true if all received bytes were parsed.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Returns the kind of the next frame, and the range of its payload in `bytes`; `None` if the frame is incomplete.
    fn next(&mut self) -> Result<Option<(u8, Range<usize>)>, InvalidFrame> {
        let Some((kind, size)) = self.header()? else {
            return Ok(None);
        };
        let payload = self.start + HEADER..self.start + HEADER + size;
        if payload.end > self.end {
            return Ok(None);
        }
        self.start = payload.end;
        Ok(Some((kind, payload)))
    }

    /// Returns the kind of the next frame and the size of its payload; `None` if its header is incomplete.
    fn header(&self) -> Result<Option<(u8, usize)>, InvalidFrame> {
        let Some((&[kind, size @ ..], _)) = self.bytes[self.start..self.end].split_first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let size = u32::from_le_bytes(size) as usize;
        if size > MAX_FRAME {
            return Err(InvalidFrame);
        }
        Ok(Some((kind, size)))
    }

    /// Returns the number of bytes that the next frame still needs; 0 if its size is not known.
    fn missing(&self) -> usize {
        match self.header() {
            Ok(Some((_, size))) => (HEADER + size).saturating_sub(self.end - self.start),
            _ => 0,
        }
    }

    /// Returns the next message of the server, or `None` if it is incomplete.
    ///
    /// # Errors
    ///
    /// Returns an error for an invalid frame, and for a message of a process.
    pub fn next_server_message(&mut self) -> Result<Option<ServerMessage<'_>>, InvalidFrame> {
        let Some((kind, payload)) = self.next()? else {
            return Ok(None);
        };
        let payload = &self.bytes[payload];
        Ok(Some(match (kind, payload) {
            (BEGIN, [low, high, request @ ..]) => ServerMessage::Begin(u16::from_le_bytes([*low, *high]), request),
            (CONTENT, content) => ServerMessage::Content(content),
            (PIECE, piece) => ServerMessage::Piece(piece),
            (END, []) => ServerMessage::End,
            (GIVE, []) => ServerMessage::Give,
            _ => return Err(InvalidFrame),
        }))
    }

    /// Returns the next message of the process, or `None` if it is incomplete.
    ///
    /// # Errors
    ///
    /// Returns an error for an invalid frame, and for a message of a server.
    pub fn next_process_message(&mut self) -> Result<Option<ProcessMessage<'_>>, InvalidFrame> {
        let Some((kind, payload)) = self.next()? else {
            return Ok(None);
        };
        let payload = &self.bytes[payload];
        Ok(Some(match (kind, payload) {
            (LOG, [level, line @ ..]) => ProcessMessage::Log(level_of(*level), line),
            (CONTINUE, []) => ProcessMessage::Continue,
            (HEAD, head) => {
                let (status, remaining) = head.split_first_chunk::<4>().ok_or(InvalidFrame)?;
                let (size, fields) = remaining.split_first_chunk::<4>().ok_or(InvalidFrame)?;
                ProcessMessage::Head(ResponseHead {
                    status: u32::from_le_bytes(*status),
                    size: u32::from_le_bytes(*size),
                    fields,
                })
            }
            (BODY, body) => ProcessMessage::Body(body),
            (FAILED, code) => ProcessMessage::Failed(i64::from_le_bytes(code.try_into().map_err(|_| InvalidFrame)?)),
            (NO_STATUS, []) => ProcessMessage::NoStatus,
            (REFUSED, [reason]) => ProcessMessage::Refused(refused_of(*reason)),
            _ => return Err(InvalidFrame),
        }))
    }
}

fn level_number(level: Level) -> u8 {
    match level {
        Level::Error => 1,
        Level::Warn => 2,
        Level::Info => 3,
        Level::Debug => 4,
    }
}

/// Returns the level of a number. A number that no level has counts as `Info`.
fn level_of(number: u8) -> Level {
    match number {
        1 => Level::Error,
        2 => Level::Warn,
        4 => Level::Debug,
        _ => Level::Info,
    }
}

fn refused_number(refused: Refused) -> u8 {
    match refused {
        Refused::Late => 1,
        Refused::Invalid => 2,
        Refused::TooMuch => 3,
        Refused::NotYours => 4,
        Refused::Unknown => 5,
    }
}

/// Returns the reason of a number. A number that no reason has counts as `Invalid`.
fn refused_of(number: u8) -> Refused {
    match number {
        1 => Refused::Late,
        3 => Refused::TooMuch,
        4 => Refused::NotYours,
        5 => Refused::Unknown,
        _ => Refused::Invalid,
    }
}

#[cfg(test)]
mod tests;
