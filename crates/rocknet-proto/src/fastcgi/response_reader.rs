//! Parses the records of a FastCGI response with a state machine that buffers at most eight bytes: an incomplete record
//! header or FCGI_END_REQUEST, but no output of the application.

use std::fmt;
use std::ops::Range;

use super::record::{HEADER_SIZE, MANAGEMENT_ID, REQUEST_ID, VERSION, kind};

/// Size of the content of FCGI_END_REQUEST in bytes.
const END_REQUEST_SIZE: usize = 8;

/// Parser of the records of one response. Each event refers to positions in the bytes of the current call, so the
/// caller can drop the consumed bytes after handling the event.
///
/// ```text
/// Header ──8 bytes──▶ Content ──▶ Padding ──▶ Header …
///                                 Padding ──▶ Ended (after FCGI_END_REQUEST)
/// ```
#[derive(Clone, Debug, Default)]
pub struct ResponseReader {
    state: ReaderState,
    /// Bytes of an incomplete header, or of the incomplete content of FCGI_END_REQUEST.
    partial: [u8; HEADER_SIZE],
    /// Number of bytes in `partial`.
    filled: usize,
    /// Content of FCGI_END_REQUEST, until the padding of the record has been skipped.
    end: Option<EndRequest>,
}

/// State of the parser, as in the diagram of [`ResponseReader`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ReaderState {
    #[default]
    Header,
    Content {
        stream: RecordStream,
        /// Number of content bytes that have not been received. For `RecordStream::End` it keeps its first value,
        /// because `filled` counts the received bytes.
        left: u16,
        /// Number of padding bytes that follow the content.
        padding: u8,
    },
    /// The number of padding bytes that have not been received.
    Padding(u8),
    Ended,
}

/// Use of the content of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordStream {
    /// FCGI_STDOUT.
    Stdout,
    /// FCGI_STDERR.
    Stderr,
    /// FCGI_END_REQUEST.
    End,
    /// A management record. It is skipped, because the server sends no management requests.
    Skipped,
}

/// Content of FCGI_END_REQUEST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndRequest {
    /// Exit status of the application.
    pub app_status: u32,
    /// 0: request complete; 1: multiplexing is not supported; 2: overloaded; 3: unknown role.
    pub protocol_status: u8,
}

/// Result of parsing a part of the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordEvent {
    /// Position of a part of the response (head or body) in the received bytes.
    Stdout(Range<usize>),
    /// Position of a part of the standard error output in the received bytes.
    Stderr(Range<usize>),
    /// End of the request, reported once; no record may follow.
    End(EndRequest),
    /// All bytes are consumed, and the caller must read more from the application.
    More,
}

/// Result of [`ResponseReader::receive`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordProgress {
    /// Number of bytes that the caller must drop from the front after handling the event.
    pub consumed: usize,
    /// The event.
    pub event: RecordEvent,
}

/// Error in the records of an application; the connection must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// A version other than 1: most likely the peer does not speak FastCGI.
    Version,
    /// A record of a request that was not sent.
    RequestId,
    /// A record type that only web servers send, or an unknown type.
    RecordType,
    /// An FCGI_END_REQUEST of a wrong length.
    EndLength,
    /// Bytes after the end of the request.
    AfterEnd,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RecordError::Version => "the peer does not speak FastCGI",
            RecordError::RequestId => "a record belongs to a request that was not sent",
            RecordError::RecordType => "a record has a type that applications do not send",
            RecordError::EndLength => "the record that ends a request has a wrong length",
            RecordError::AfterEnd => "records follow the end of the request",
        })
    }
}

impl std::error::Error for RecordError {}

impl ResponseReader {
    /// Creates the parser of one response.
    pub fn new() -> ResponseReader {
        ResponseReader::default()
    }

    /// Returns true if the request has ended, so that the connection may carry another request.
    pub fn is_ended(&self) -> bool {
        self.state == ReaderState::Ended
    }

    /// Parses the next event in `bytes`. The bytes must follow the bytes consumed by earlier calls.
    ///
    /// # Errors
    ///
    /// Fails if the records are invalid. The connection must then be closed.
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
                        // `End` does not occur here: the arm above handles it.
                        RecordStream::Skipped | RecordStream::End => continue,
                    };
                    return Ok(RecordProgress { consumed: at, event });
                }
                // Does not occur here: the check after the `match` leaves this state at once.
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

    /// Fills the eight-byte buffer `partial` from `bytes` and returns the number of bytes copied.
    fn fill(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(HEADER_SIZE - self.filled);
        self.partial[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
        self.filled += taken;
        taken
    }
}

/// Returns the state after a complete header, or the error in the header.
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

// `partial` buffers both a header and the content of FCGI_END_REQUEST.
const _: () = assert!(END_REQUEST_SIZE == HEADER_SIZE);
