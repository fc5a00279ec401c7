//! Reading what an application answers: a state machine over records that holds a header's bytes and no content.

use std::fmt;
use std::ops::Range;

use super::record::{HEADER_SIZE, MANAGEMENT_ID, REQUEST_ID, VERSION, kind};

/// Content of the record that ends a request.
const END_REQUEST_SIZE: usize = 8;

/// The records of one request. What it is given need not be kept: it says which of the bytes are whose.
///
/// ```text
/// Header ──8 bytes──▶ Content ──▶ Padding ──▶ Header …      END_REQUEST: Over, behind its padding
/// ```
#[derive(Clone, Debug, Default)]
pub struct ResponseReader {
    state: ReaderState,
    /// Bytes of a header, or of the end's content, as far as they have come.
    partial: [u8; HEADER_SIZE],
    filled: usize,
    end: Option<EndRequest>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ReaderState {
    #[default]
    Header,
    Content {
        stream: RecordStream,
        left: u16,
        padding: u8,
    },
    Padding(u8),
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordStream {
    Stdout,
    Stderr,
    End,
    /// Speaks of the connection; nothing was asked of it.
    Skipped,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndRequest {
    /// What the program would have returned to a shell.
    pub app_status: u32,
    /// 0: complete; 2: overloaded; 1 and 3: asked for what it does not know.
    pub protocol_status: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordEvent {
    /// Where in the given bytes a piece of the answer stands.
    Stdout(Range<usize>),
    /// Where a piece of a complaint stands.
    Stderr(Range<usize>),
    /// Told once; nothing may follow.
    End(EndRequest),
    /// All bytes are taken, and more are needed.
    More,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordProgress {
    /// Bytes from the front that are done with when the event is dealt with.
    pub consumed: usize,
    pub event: RecordEvent,
}

/// What no application may send: the connection is of no use any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// Not version 1: most likely not FastCGI at all.
    Version,
    /// Speaks of a request that nobody sent.
    RequestId,
    /// A type that only web servers send, or that nobody knows.
    RecordType,
    /// An end of another length than ends have.
    EndLength,
    /// More behind the end.
    AfterEnd,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RecordError::Version => "what answers does not speak FastCGI",
            RecordError::RequestId => "a record belongs to a request that was not sent",
            RecordError::RecordType => "a record has a type that no application sends",
            RecordError::EndLength => "the record that ends a request has a wrong length",
            RecordError::AfterEnd => "records follow the end of the request",
        })
    }
}

impl std::error::Error for RecordError {}

impl ResponseReader {
    pub fn new() -> ResponseReader {
        ResponseReader::default()
    }

    /// Whether the request has ended, so that the connection may carry another one.
    pub fn is_ended(&self) -> bool {
        self.state == ReaderState::Ended
    }

    /// The next event in `bytes`, which follow those consumed before.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<RecordProgress, RecordError> {
        let mut at = 0;
        while at < bytes.len() {
            match self.state {
                ReaderState::Header => {
                    at += self.fill(&bytes[at..]);
                    if self.filled == HEADER_SIZE {
                        self.filled = 0;
                        self.state = state_after_header(&self.partial)?;
                    }
                }
                ReaderState::Content { left: 0, padding, .. } => self.state = ReaderState::Padding(padding),
                ReaderState::Content {
                    stream: RecordStream::End,
                    padding,
                    ..
                } => {
                    at += self.fill(&bytes[at..]);
                    if self.filled == END_REQUEST_SIZE {
                        self.filled = 0;
                        let [a, b, c, d, protocol_status, ..] = self.partial;
                        self.end = Some(EndRequest {
                            app_status: u32::from_be_bytes([a, b, c, d]),
                            protocol_status,
                        });
                        self.state = ReaderState::Padding(padding);
                    }
                }
                ReaderState::Content { stream, left, padding } => {
                    let piece = at..bytes.len().min(at + usize::from(left));
                    at = piece.end;
                    self.state = ReaderState::Content {
                        stream,
                        left: left - piece.len() as u16,
                        padding,
                    };
                    let event = match stream {
                        RecordStream::Stdout => RecordEvent::Stdout(piece),
                        RecordStream::Stderr => RecordEvent::Stderr(piece),
                        RecordStream::Skipped | RecordStream::End => continue,
                    };
                    return Ok(RecordProgress { consumed: at, event });
                }
                ReaderState::Padding(0) => {}
                ReaderState::Padding(left) => {
                    let skipped = (bytes.len() - at).min(usize::from(left));
                    at += skipped;
                    self.state = ReaderState::Padding(left - skipped as u8);
                }
                ReaderState::Ended => return Err(RecordError::AfterEnd),
            }
            if self.state == ReaderState::Padding(0) {
                self.state = ReaderState::Header;
                if let Some(end) = self.end.take() {
                    self.state = ReaderState::Ended;
                    return Ok(RecordProgress {
                        consumed: at,
                        event: RecordEvent::End(end),
                    });
                }
            }
        }
        Ok(RecordProgress {
            consumed: at,
            event: RecordEvent::More,
        })
    }

    /// Takes as many of `bytes` as the eight that are collected still lack.
    fn fill(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(HEADER_SIZE - self.filled);
        self.partial[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
        self.filled += taken;
        taken
    }
}

/// The state behind a header.
fn state_after_header(header: &[u8; HEADER_SIZE]) -> Result<ReaderState, RecordError> {
    let &[version, kind, id_high, id_low, high, low, padding, _] = header;
    if version != VERSION {
        return Err(RecordError::Version);
    }
    let (id, left) = (u16::from_be_bytes([id_high, id_low]), u16::from_be_bytes([high, low]));
    let stream = match (id, kind) {
        (MANAGEMENT_ID, _) => RecordStream::Skipped,
        (REQUEST_ID, kind::STDOUT) => RecordStream::Stdout,
        (REQUEST_ID, kind::STDERR) => RecordStream::Stderr,
        (REQUEST_ID, kind::END_REQUEST) if usize::from(left) == END_REQUEST_SIZE => RecordStream::End,
        (REQUEST_ID, kind::END_REQUEST) => return Err(RecordError::EndLength),
        (REQUEST_ID, _) => return Err(RecordError::RecordType),
        _ => return Err(RecordError::RequestId),
    };
    Ok(ReaderState::Content { stream, left, padding })
}

// What is collected is one or the other.
const _: () = assert!(END_REQUEST_SIZE == HEADER_SIZE);
