//! State of one request stream, and the table of the open request streams.

use super::frame::FrameHeaderReader;
use crate::multiplexed::Priority;

/// Number of a request stream. Client-initiated bidirectional streams have multiples of 4 (RFC 9000 §2.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct StreamId(u64);

impl StreamId {
    /// Converts a QUIC stream ID.
    pub const fn new(number: u64) -> StreamId {
        StreamId(number)
    }

    /// Returns the QUIC stream ID.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// Part of the request that the client sends next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// The head.
    Head,
    /// The body, or the data of a tunnel.
    Body,
    /// Only unknown frames may follow the trailers.
    AfterTrailers,
    /// The client has ended its side.
    Ended,
}

/// Frame whose payload is being received. `remaining` is the number of payload bytes that have not arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OpenFrame {
    None,
    Headers { remaining: usize },
    Data { remaining: u64 },
    Skipped { remaining: u64 },
}

/// State of one request stream.
#[derive(Debug)]
pub(super) struct RequestStream {
    pub phase: Phase,
    pub header: FrameHeaderReader,
    pub frame: OpenFrame,
    /// Field section that has arrived in part, or that waits for the dynamic table.
    pub section: Vec<u8>,
    /// True if the section is complete and waits for the dynamic table.
    pub is_blocked: bool,
    /// True once a Stream Cancellation is queued although the stream is still read. No further section of the stream is
    /// decoded, because the client would not expect its acknowledgment (RFC 9204 §4.4.1).
    pub is_cancelled: bool,
    /// Content-Length less the lengths of the DATA frames that have begun; `None` without Content-Length.
    pub remaining_length: Option<u64>,
    /// Number of bytes of the body that the limit allows after the DATA frames that have begun.
    pub remaining_limit: u64,
    /// True if the rest of the request body is dropped.
    pub discards_body: bool,
    /// True if the request was HEAD.
    pub is_head: bool,
    /// True if the request was CONNECT, after which only DATA may follow (RFC 9114 §4.4).
    pub is_connect: bool,
    /// True if the stream carries a tunnel, whose two directions end separately.
    pub is_tunnel: bool,
    /// True if the request, or its refusal, was reported.
    pub is_reported: bool,
    /// True once the final head is written.
    pub head_sent: bool,
    /// True once the response has ended.
    pub response_ended: bool,
    pub priority: Priority,
    /// True if PRIORITY_UPDATE has set the priority. It then replaces that in the Priority field, although it may
    /// arrive first (RFC 9218 §7).
    pub has_updated_priority: bool,
}

impl RequestStream {
    /// Creates the state of a new stream. `early` is the priority that PRIORITY_UPDATE set before the stream opened.
    pub fn new(early: Option<Priority>) -> RequestStream {
        RequestStream {
            phase: Phase::Head,
            header: FrameHeaderReader::default(),
            frame: OpenFrame::None,
            section: Vec::new(),
            is_blocked: false,
            is_cancelled: false,
            remaining_length: None,
            remaining_limit: u64::MAX,
            discards_body: false,
            is_head: false,
            is_connect: false,
            is_tunnel: false,
            is_reported: false,
            head_sent: false,
            response_ended: false,
            priority: early.unwrap_or(Priority::DEFAULT),
            has_updated_priority: early.is_some(),
        }
    }

    /// Returns whether the request, or its refusal, was reported and the response has not ended.
    pub fn is_pending(&self) -> bool {
        self.is_reported && !self.response_ended
    }
}

/// Open request streams. The stream numbers are adjacent in memory, so that a lookup reads few cache lines. By default
/// the transport permits at most 128 streams at once.
#[derive(Debug, Default)]
pub(super) struct Streams {
    numbers: Vec<u64>,
    /// State of each stream, at the same position as its number.
    streams: Vec<RequestStream>,
}

impl Streams {
    /// Returns the number of open streams.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    #[inline]
    fn position(&self, id: StreamId) -> Option<usize> {
        // Recently opened streams are usually near the end.
        self.numbers.iter().rposition(|&number| number == id.0)
    }

    #[inline]
    pub fn get(&self, id: StreamId) -> Option<&RequestStream> {
        self.position(id).map(|position| &self.streams[position])
    }

    #[inline]
    pub fn get_mut(&mut self, id: StreamId) -> Option<&mut RequestStream> {
        self.position(id).map(|position| &mut self.streams[position])
    }

    pub fn insert(&mut self, id: StreamId, stream: RequestStream) {
        debug_assert!(self.get(id).is_none());
        self.numbers.push(id.0);
        self.streams.push(stream);
    }

    pub fn remove(&mut self, id: StreamId) -> Option<RequestStream> {
        let position = self.position(id)?;
        self.numbers.swap_remove(position);
        Some(self.streams.swap_remove(position))
    }

    pub fn iter(&self) -> impl Iterator<Item = (StreamId, &RequestStream)> {
        self.numbers.iter().map(|&number| StreamId(number)).zip(&self.streams)
    }

    /// Returns the number of streams whose request was reported and whose response has not ended.
    pub fn pending_responses(&self) -> usize {
        self.streams.iter().filter(|stream| stream.is_pending()).count()
    }

    /// Returns the memory used, in bytes.
    pub fn memory(&self) -> usize {
        let sections: usize = self.streams.iter().map(|stream| stream.section.capacity()).sum();
        self.numbers.capacity() * size_of::<u64>() + self.streams.capacity() * size_of::<RequestStream>() + sections
    }

    /// Frees memory if no stream is open.
    pub fn trim(&mut self) {
        if self.numbers.is_empty() {
            *self = Streams::default();
        }
    }
}
