//! Frames of request streams: heads and trailers here, bodies in `request_body`.

use super::{ConnectionEvent, Context, ReceivedEvent, ServerConnection};
use crate::DecodedHead;
use crate::h1::FieldError;
use crate::h3::error::{ConnectionError, StreamError};
use crate::h3::frame::{self, FrameHeader};
use crate::h3::stream::{OpenFrame, Phase, RequestStream, StreamId};
use crate::limits::Limits;
use crate::method::Method;
use crate::multiplexed::{BlockKind, Flood, Malformed, RequestHeadError};
use crate::qpack::SectionOutcome;
use crate::refusal::Refusal;
use crate::request::Version;

/// Number of unknown frames that each request refunds to the flood budget, because some clients send such frames with
/// every request, to keep servers tolerant of them (RFC 9114 §7.2.8). Two allow one before the head and one after it.
const UNKNOWN_PER_REQUEST: u16 = 2;

/// Result of reading from a stream. `None` means that there is no event, and that reading continues if bytes are left.
pub(super) type ReadResult = Result<Option<ConnectionEvent>, ConnectionError>;

impl ServerConnection {
    /// Reads bytes of a request stream and returns one event. `fin` is true if the stream ends after `bytes`. `now` is
    /// in milliseconds since an arbitrary start; a resolution of seconds suffices.
    ///
    /// The caller calls this function again with the bytes that were not consumed, until the event is
    /// [`ConnectionEvent::More`] or ends the stream. After [`ConnectionEvent::Blocked`] it keeps these bytes, and waits
    /// until [`ServerConnection::next_unblocked`] returns the stream.
    pub fn receive(
        &mut self,
        limits: &Limits,
        now: u64,
        id: StreamId,
        bytes: &[u8],
        fin: bool,
        head: &mut DecodedHead,
    ) -> ReceivedEvent {
        let mut context = Context { limits, now, head, fin };
        let mut at = 0;
        let event = match self.read_stream(&mut context, id, bytes, &mut at) {
            Ok(event) => event,
            Err(error) => ConnectionEvent::Closed { error },
        };
        ReceivedEvent { consumed: at, event }
    }

    /// Reads frames until one causes an event, or until all bytes are read. Advances `at` past the bytes read.
    fn read_stream(
        &mut self,
        context: &mut Context<'_>,
        id: StreamId,
        bytes: &[u8],
        at: &mut usize,
    ) -> Result<ConnectionEvent, ConnectionError> {
        if self.streams.get(id).is_none() {
            // The response has ended without the rest of the request, or the stream was reset.
            *at = bytes.len();
            return Ok(ConnectionEvent::More);
        }
        loop {
            let before = *at;
            if let Some(event) = self.read_frame(context, id, bytes, at)? {
                return Ok(event);
            }
            let Some(stream) = self.streams.get(id) else {
                return Ok(ConnectionEvent::More);
            };
            // All bytes are read, and another call of `read_frame` would neither change the state nor return an event:
            // either the last call read nothing, or no frame is open.
            if *at == bytes.len() && (*at == before || stream.frame == OpenFrame::None) {
                let is_between = stream.frame == OpenFrame::None && !stream.header.is_partial();
                return match (context.fin, is_between) {
                    (false, _) => Ok(ConnectionEvent::More),
                    (true, true) => Ok(self.end_stream(context, id)?.unwrap_or(ConnectionEvent::More)),
                    (true, false) => Err(ConnectionError::FrameError),
                };
            }
        }
    }

    /// Reads a part of a frame: its header or a piece of its payload.
    fn read_frame(&mut self, context: &mut Context<'_>, id: StreamId, bytes: &[u8], at: &mut usize) -> ReadResult {
        let Some(stream) = self.streams.get_mut(id) else {
            return Ok(None);
        };
        if stream.is_blocked {
            return self.read_section(context, id, &bytes[*at..]);
        }
        match stream.frame {
            OpenFrame::None => {
                let Some(header) = stream.header.read(bytes, at) else {
                    return Ok(None);
                };
                self.begin_frame(context, id, header, &bytes[*at..])
            }
            OpenFrame::Headers { remaining } => {
                let size = remaining.min(bytes.len() - *at);
                stream.section.extend_from_slice(&bytes[*at..*at + size]);
                *at += size;
                stream.frame = OpenFrame::Headers {
                    remaining: remaining - size,
                };
                if remaining > size {
                    return Ok(None);
                }
                stream.frame = OpenFrame::None;
                self.read_section(context, id, &bytes[*at..])
            }
            OpenFrame::Data { .. } => self.read_data(context, id, bytes, at),
            OpenFrame::Skipped { remaining } => {
                let size = remaining.min((bytes.len() - *at) as u64);
                *at += size as usize;
                stream.frame = match remaining - size {
                    0 => OpenFrame::None,
                    remaining => OpenFrame::Skipped { remaining },
                };
                Ok(None)
            }
        }
    }

    /// Begins a frame. `rest` contains the bytes after its header.
    fn begin_frame(&mut self, context: &mut Context<'_>, id: StreamId, header: FrameHeader, rest: &[u8]) -> ReadResult {
        let Some(stream) = self.streams.get_mut(id) else {
            return Ok(None);
        };
        match header.kind {
            frame::HEADERS => {
                if stream.phase == Phase::AfterTrailers || stream.phase == Phase::Body && stream.is_connect {
                    return Err(ConnectionError::FrameUnexpected);
                }
                if stream.is_cancelled {
                    return self.skip_trailers(id, header.length);
                }
                let max_size = section_max(context.limits);
                match usize::try_from(header.length).ok().filter(|&length| length <= max_size) {
                    Some(remaining) => {
                        stream.section.clear();
                        stream.section.reserve_exact(remaining);
                        stream.frame = OpenFrame::Headers { remaining };
                        if remaining == 0 {
                            stream.frame = OpenFrame::None;
                            return self.read_section(context, id, rest);
                        }
                        Ok(None)
                    }
                    None => self.refuse_section(context, id, header.length),
                }
            }
            frame::DATA => self.begin_request_data(context, id, header.length),
            kind if frame::is_forbidden_in_requests(kind) => Err(ConnectionError::FrameUnexpected),
            // Unknown frames are ignored (RFC 9114 §9).
            _ => {
                if header.length > 0 {
                    stream.frame = OpenFrame::Skipped {
                        remaining: header.length,
                    };
                }
                self.budget.spend(Flood::Unknown, context.now)?;
                Ok(None)
            }
        }
    }

    /// Refuses a field section that is too large to be received. QPACK permits skipping it after a Stream Cancellation
    /// (RFC 9204 §2.2.2.2). `remove` may later queue a second one, which has no effect.
    #[cold]
    fn refuse_section(&mut self, context: &mut Context<'_>, id: StreamId, length: u64) -> ReadResult {
        self.decoder.cancel(id.number());
        let Some(stream) = self.streams.get_mut(id) else {
            return Ok(None);
        };
        stream.frame = OpenFrame::Skipped { remaining: length };
        stream.is_cancelled = true;
        if stream.phase == Phase::Body {
            return self.reset(context, id, Malformed::TrailersTooLarge.into());
        }
        (stream.phase, stream.discards_body, stream.is_reported) = (Phase::Body, true, true);
        let refusal = Refusal::Field(FieldError::TooLarge);
        Ok(Some(ConnectionEvent::Refused {
            refusal,
            is_head: false,
        }))
    }

    /// Skips the trailers of a stream whose head was refused and cancelled. The client may have encoded them after it
    /// received the Stream Cancellation, so a second one is queued. It has no effect if the client has encoded them
    /// before.
    #[cold]
    fn skip_trailers(&mut self, id: StreamId, length: u64) -> ReadResult {
        self.decoder.cancel(id.number());
        if let Some(stream) = self.streams.get_mut(id) {
            stream.phase = Phase::AfterTrailers;
            stream.frame = match length {
                0 => OpenFrame::None,
                remaining => OpenFrame::Skipped { remaining },
            };
        }
        Ok(None)
    }

    /// Decodes a complete field section. `rest` contains the bytes after it.
    fn read_section(&mut self, context: &mut Context<'_>, id: StreamId, rest: &[u8]) -> ReadResult {
        let Some(stream) = self.streams.get_mut(id) else {
            return Ok(None);
        };
        let is_trailers = stream.phase == Phase::Body;
        let kind = if is_trailers {
            BlockKind::Trailers
        } else {
            BlockKind::Request
        };
        let section = std::mem::take(&mut stream.section);
        let mut sink = context.head.begin(context.limits, kind);
        match self.decoder.decode(id.number(), &section, &mut sink)? {
            SectionOutcome::Decoded => stream.is_blocked = false,
            SectionOutcome::Blocked => {
                (stream.section, stream.is_blocked) = (section, true);
                return Ok(Some(ConnectionEvent::Blocked));
            }
        }
        if is_trailers {
            let is_discarded = stream.discards_body;
            if stream.remaining_length.is_some_and(|remaining| remaining > 0) {
                return self.reset(context, id, Malformed::ContentLength.into());
            }
            stream.phase = Phase::AfterTrailers;
            if let Err(malformed) = sink.finish_trailers() {
                return self.reset(context, id, malformed.into());
            }
            return Ok((!is_discarded).then_some(ConnectionEvent::Trailers));
        }
        let found = sink.finish_request(Version::Http3);
        stream.is_head = context.head.has_method_head();
        let announces_body = found
            .as_ref()
            .is_ok_and(|info| info.content_length.is_some_and(|length| length > 0));
        // Some clients send an unknown frame before the end of each request (RFC 9114 §7.2.8). The event must still
        // show that the request has no body, because only then may it be sent again to another upstream. If
        // Content-Length announces a body, `end_stream` finds that it is missing.
        let is_end = context.fin && (rest.is_empty() || !announces_body && has_only_unknown_frames(rest));
        stream.phase = if is_end { Phase::Ended } else { Phase::Body };
        let info = match found {
            Ok(info) => info,
            Err(RequestHeadError::Malformed(malformed)) => return self.reset(context, id, malformed.into()),
            Err(RequestHeadError::Refused(refusal)) => {
                (stream.discards_body, stream.is_reported) = (true, true);
                let is_head = stream.is_head;
                return Ok(Some(ConnectionEvent::Refused { refusal, is_head }));
            }
        };
        if is_end && info.content_length.is_some_and(|length| length > 0) {
            return self.reset(context, id, Malformed::ContentLength.into());
        }
        if context.head.protocol().is_some() && !self.config.connect_protocol {
            return self.reset(context, id, Malformed::Protocol.into());
        }
        stream.is_reported = true;
        self.budget.refund(Flood::Unknown, UNKNOWN_PER_REQUEST);
        stream.remaining_length = info.content_length;
        stream.remaining_limit = context.limits.body_size;
        stream.is_connect = context.head.request().method == Method::Connect;
        if let Some(priority) = info.priority.filter(|_| !stream.has_updated_priority) {
            stream.priority = priority;
        }
        Ok(Some(ConnectionEvent::Request {
            end: is_end,
            expects_continue: info.expects_continue && !is_end,
        }))
    }

    /// Handles the end of a stream between two frames.
    fn end_stream(&mut self, context: &Context<'_>, id: StreamId) -> ReadResult {
        let Some(stream) = self.streams.get_mut(id) else {
            return Ok(None);
        };
        match stream.phase {
            Phase::Ended => return Ok(None),
            Phase::Head => return self.reset(context, id, StreamError::Incomplete),
            Phase::Body if stream.remaining_length.is_some_and(|remaining| remaining > 0) => {
                return self.reset(context, id, Malformed::ContentLength.into());
            }
            Phase::Body | Phase::AfterTrailers => {}
        }
        let reports_end = stream.phase == Phase::Body && !stream.discards_body;
        stream.phase = Phase::Ended;
        if stream.response_ended {
            self.streams.remove(id);
        }
        Ok(reports_end.then_some(ConnectionEvent::Data {
            start: 0,
            end: 0,
            last: true,
        }))
    }

    /// Resets a stream because of the client's error. Resets are counted, because a client that provokes them can start
    /// more requests than its stream limit allows.
    #[cold]
    pub(super) fn reset(&mut self, context: &Context<'_>, id: StreamId, error: StreamError) -> ReadResult {
        self.budget.spend(Flood::Resets, context.now)?;
        // True if the request was reported and its response has not ended.
        let is_pending = self.streams.get(id).is_some_and(RequestStream::is_pending);
        self.abandon(id);
        Ok(Some(ConnectionEvent::Reset { error, is_pending }))
    }

    /// Returns a stream whose field section was blocked and can be decoded now; `None` if there is no such stream. The
    /// caller calls [`receive`](Self::receive) for it, with the bytes that it has kept.
    pub fn next_unblocked(&self) -> Option<StreamId> {
        self.streams
            .iter()
            .find(|(_, stream)| stream.is_blocked && self.decoder.is_ready(&stream.section))
            .map(|(id, _)| id)
    }
}

/// Returns true if the bytes consist of whole frames of unknown types.
fn has_only_unknown_frames(mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        let Some((FrameHeader { kind, length }, size)) = FrameHeader::decode(bytes) else {
            return false;
        };
        let is_known = matches!(kind, frame::DATA | frame::HEADERS) || frame::is_forbidden_in_requests(kind);
        let rest = usize::try_from(length)
            .ok()
            .and_then(|length| bytes[size..].get(length..));
        match rest.filter(|_| !is_known) {
            Some(rest) => bytes = rest,
            None => return false,
        }
    }
    true
}

/// Returns the maximum size of an encoded field section in bytes. Huffman coding can make fields up to 30/8 times
/// larger, but no sensible client uses it in that case. The maximum is therefore only twice the limit of the decoded
/// size, which leaves room for indices and lengths. The prefix of the section fits into the 64 bytes that are added.
fn section_max(limits: &Limits) -> usize {
    limits.max_head_size().max(limits.max_trailer_size()) * 2 + 64
}
