//! Reading what an application answers: a state machine over records that holds a header's bytes and no content.

use std::fmt;
use std::ops::Range;

use super::record::{HEADER, MANAGEMENT, REQUEST, VERSION, kind};

/// Content of the record that ends a request.
const END_CONTENT: usize = 8;

/// The records of one request. What it is given need not be kept: it says which of the bytes are whose.
///
/// ```text
/// Header ──8 bytes──▶ Content ──▶ Padding ──▶ Header …      END_REQUEST: Over, behind its padding
/// ```
#[derive(Clone, Debug, Default)]
pub struct Response {
    state: State,
    /// Bytes of a header, or of the end's content, as far as they have come.
    partial: [u8; HEADER],
    have: usize,
    end: Option<End>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Header,
    Content {
        stream: Stream,
        left: u16,
        padding: u8,
    },
    Padding(u8),
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Stdout,
    Stderr,
    End,
    /// Speaks of the connection; nothing was asked of it.
    Skipped,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// What the program would have returned to a shell.
    pub application: u32,
    /// 0: complete; 2: overloaded; 1 and 3: asked for what it does not know.
    pub protocol: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Where in the given bytes a piece of the answer stands.
    Stdout(Range<usize>),
    /// Where a piece of a complaint stands.
    Stderr(Range<usize>),
    /// Told once; nothing may follow.
    End(End),
    /// All bytes are taken, and more are needed.
    More,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Bytes from the front that are done with when the event is dealt with.
    pub consumed: usize,
    pub event: Event,
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

impl Response {
    pub fn new() -> Response {
        Response::default()
    }

    /// Whether the request has ended, so that the connection may carry another one.
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// The next event in `bytes`, which follow those consumed before.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Received, RecordError> {
        let mut at = 0;
        while at < bytes.len() {
            match self.state {
                State::Header => {
                    at += self.fill(&bytes[at..]);
                    if self.have == HEADER {
                        self.have = 0;
                        self.state = begun(&self.partial)?;
                    }
                }
                State::Content { left: 0, padding, .. } => self.state = State::Padding(padding),
                State::Content {
                    stream: Stream::End,
                    padding,
                    ..
                } => {
                    at += self.fill(&bytes[at..]);
                    if self.have == END_CONTENT {
                        self.have = 0;
                        let [a, b, c, d, protocol, ..] = self.partial;
                        self.end = Some(End {
                            application: u32::from_be_bytes([a, b, c, d]),
                            protocol,
                        });
                        self.state = State::Padding(padding);
                    }
                }
                State::Content { stream, left, padding } => {
                    let piece = at..bytes.len().min(at + usize::from(left));
                    at = piece.end;
                    self.state = State::Content {
                        stream,
                        left: left - piece.len() as u16,
                        padding,
                    };
                    let event = match stream {
                        Stream::Stdout => Event::Stdout(piece),
                        Stream::Stderr => Event::Stderr(piece),
                        Stream::Skipped | Stream::End => continue,
                    };
                    return Ok(Received { consumed: at, event });
                }
                State::Padding(0) => {}
                State::Padding(left) => {
                    let skipped = (bytes.len() - at).min(usize::from(left));
                    at += skipped;
                    self.state = State::Padding(left - skipped as u8);
                }
                State::Over => return Err(RecordError::AfterEnd),
            }
            if self.state == State::Padding(0) {
                self.state = State::Header;
                if let Some(end) = self.end.take() {
                    self.state = State::Over;
                    return Ok(Received {
                        consumed: at,
                        event: Event::End(end),
                    });
                }
            }
        }
        Ok(Received {
            consumed: at,
            event: Event::More,
        })
    }

    /// Takes as many of `bytes` as the eight that are collected still lack.
    fn fill(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(HEADER - self.have);
        self.partial[self.have..self.have + taken].copy_from_slice(&bytes[..taken]);
        self.have += taken;
        taken
    }
}

/// The state behind a header.
fn begun(header: &[u8; HEADER]) -> Result<State, RecordError> {
    let &[version, kind, id_high, id_low, high, low, padding, _] = header;
    if version != VERSION {
        return Err(RecordError::Version);
    }
    let (id, left) = (u16::from_be_bytes([id_high, id_low]), u16::from_be_bytes([high, low]));
    let stream = match (id, kind) {
        (MANAGEMENT, _) => Stream::Skipped,
        (REQUEST, kind::STDOUT) => Stream::Stdout,
        (REQUEST, kind::STDERR) => Stream::Stderr,
        (REQUEST, kind::END_REQUEST) if usize::from(left) == END_CONTENT => Stream::End,
        (REQUEST, kind::END_REQUEST) => return Err(RecordError::EndLength),
        (REQUEST, _) => return Err(RecordError::RecordType),
        _ => return Err(RecordError::RequestId),
    };
    Ok(State::Content { stream, left, padding })
}

// What is collected is one or the other.
const _: () = assert!(END_CONTENT == HEADER);
