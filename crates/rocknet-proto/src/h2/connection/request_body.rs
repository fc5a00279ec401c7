//! Content of requests on its way in, in the pieces it comes in, and the windows it fills.

use super::open_data_frame::OpenDataFrame;
use super::{ConnectionEvent, Context, FrameResult, ServerConnection};
use crate::h1::Refusal;
use crate::h2::budget::Flood;
use crate::h2::error::{ConnectionError, ErrorCode, Malformed, StreamError};
use crate::h2::frame::{self, FrameHeader};
use crate::h2::stream::{StreamState, StreamTransition};
use crate::h2::streams::StreamId;

/// How much padding a DATA frame says it has; `None` while its byte is not there.
#[inline]
pub(super) fn padding(header: &FrameHeader, rest: &[u8]) -> Result<Option<u8>, ConnectionError> {
    if !header.has(frame::PADDED) {
        return Ok(Some(0));
    }
    if header.length == 0 {
        return Err(ConnectionError::FrameSize);
    }
    match rest.first() {
        Some(&padding) if u32::from(padding) >= header.length => Err(ConnectionError::Padding),
        Some(&padding) => Ok(Some(padding)),
        None => Ok(None),
    }
}

impl ServerConnection {
    /// Judges a frame of data by its header; what it holds is told as it comes.
    pub(super) fn begin_data(&mut self, context: &mut Context<'_>, header: &FrameHeader, padding: u8) -> FrameResult {
        self.receive_window
            .consume(header.length)
            .map_err(|_| ConnectionError::WindowExceeded)?;
        let Some(id) = self.streams.find(header.stream) else {
            return self.discard_data(context, header);
        };
        let Some(stream) = self.streams.get_mut(id) else {
            return Ok(None);
        };
        // Padding and its byte are part of the window, and of use to nobody.
        let overhead = if header.has(frame::PADDED) {
            u32::from(padding) + 1
        } else {
            0
        };
        let (length, end_stream) = (header.length - overhead, header.has(frame::END_STREAM));
        let error = if !stream.state.can_receive() {
            Some(StreamError::Closed)
        } else if stream.receive_window.consume(header.length).is_err() {
            Some(StreamError::WindowExceeded)
        } else {
            match &mut stream.remaining_length {
                Some(remaining) if u64::from(length) > *remaining || end_stream && u64::from(length) < *remaining => {
                    Some(Malformed::ContentLength.into())
                }
                Some(remaining) => {
                    *remaining -= u64::from(length);
                    None
                }
                None => None,
            }
        };
        if let Some(error) = error {
            self.skip = header.length;
            self.credit(header.length, context.out);
            return self.reject(context, header.stream, error);
        }
        if length == 0 && !end_stream {
            self.budget.spend(Flood::EmptyData, context.now)?;
        }
        let mut event = None;
        if u64::from(length) > stream.remaining_limit && !stream.discards_body {
            stream.discards_body = true;
            if !stream.head_sent {
                let refusal = Refusal::ContentTooLarge;
                event = Some(ConnectionEvent::Refused { stream: id, refusal });
            } else {
                // The answer has begun, so there is no other way to say it.
                self.budget.spend(Flood::Resets, context.now)?;
                self.skip = header.length;
                self.credit(header.length, context.out);
                return self.cancel(id, ErrorCode::Cancel, context.out);
            }
        }
        stream.remaining_limit = stream.remaining_limit.saturating_sub(u64::from(length));
        if overhead > 0 {
            if let Some(grant) = stream.receive_window.release(overhead)
                && !end_stream
            {
                frame::window_update(header.stream, grant, context.out);
            }
            self.credit(overhead, context.out);
            // The byte that tells of the padding comes first.
            self.skip = 1;
        }
        self.open_data = OpenDataFrame {
            stream: header.stream,
            slot: id.slot,
            end_stream,
            remaining: length,
            padding,
        };
        Ok(event)
    }

    /// Tells of the next piece.
    #[inline]
    pub(super) fn read_data(&mut self, context: &mut Context<'_>, unread: &[u8], at: &mut usize) -> FrameResult {
        if self.skip > 0 {
            if *at == unread.len() {
                return Ok(None);
            }
            (*at, self.skip) = (*at + 1, 0);
        }
        let OpenDataFrame {
            stream: number,
            slot,
            end_stream,
            remaining,
            padding,
        } = self.open_data;
        let size = (remaining as usize).min(unread.len() - *at);
        if size == 0 && remaining > 0 {
            return Ok(None);
        }
        let start = *at;
        *at += size;
        self.open_data.remaining -= size as u32;
        let is_whole = self.open_data.remaining == 0;
        if is_whole {
            self.open_data = OpenDataFrame::NONE;
            self.skip = u32::from(padding);
        }
        let id = StreamId { number, slot };
        let Some(stream) = self.streams.get_mut(id) else {
            // Reset since its frame began.
            self.credit(size as u32, context.out);
            return Ok(None);
        };
        let last = is_whole && end_stream;
        let discarded = stream.discards_body;
        if discarded {
            self.credit(size as u32, context.out);
        } else {
            stream.unreleased += size as u32;
        }
        if last {
            self.end_request(id, context.out);
        } else if discarded {
            self.reset_discarding(id, context.out);
        }
        if discarded || size == 0 && !last {
            return Ok(None);
        }
        Ok(Some(ConnectionEvent::Data {
            stream: id,
            start,
            end: *at,
            last,
        }))
    }

    /// Data on a stream that is not open.
    #[cold]
    fn discard_data(&mut self, context: &mut Context<'_>, header: &FrameHeader) -> FrameResult {
        if self.is_idle_stream(header.stream) {
            return Err(ConnectionError::IdleStream);
        }
        if self.streams.was_ended(header.stream) {
            return Err(ConnectionError::ClosedStream);
        }
        self.budget.spend(Flood::Stale, context.now)?;
        self.credit(header.length, context.out);
        self.skip = header.length;
        Ok(None)
    }

    /// Whether nobody has opened a stream of that number.
    pub(super) fn is_idle_stream(&self, number: u32) -> bool {
        if number & 1 == 1 {
            number > self.last_client_stream && !self.drain_state.refuses(number)
        } else {
            number >= self.next_push_stream
        }
    }

    /// The client has ended its side of a stream.
    #[inline]
    pub(super) fn end_request(&mut self, id: StreamId, out: &mut Vec<u8>) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        stream.state = stream
            .state
            .after(StreamTransition::EndReceived)
            .unwrap_or(StreamState::Closed);
        if stream.state == StreamState::Closed {
            self.remove(id, out);
            self.streams.remember_end(id.number);
        }
    }

    /// Content that nobody wants is taken as far as the window goes, which it is not granted again: most of it is under way
    /// already, and clients that are reset while they send may lose the answer. Then, if the answer is ended, the stream is
    /// too (RFC 9113 §8.1: NO_ERROR).
    pub(super) fn reset_discarding(&mut self, id: StreamId, out: &mut Vec<u8>) {
        let Some(stream) = self.streams.get(id) else { return };
        if !stream.state.can_send() && stream.receive_window.available() == 0 {
            frame::rst_stream(id.number, ErrorCode::NoError, out);
            self.streams.remember_reset(id.number);
            self.remove(id, out);
        }
    }

    /// The reader has taken so much content: the client may send as much again.
    pub fn release(&mut self, id: StreamId, size: u32, out: &mut Vec<u8>) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        // What a stream had when it went was released then.
        let size = size.min(stream.unreleased);
        stream.unreleased -= size;
        if stream.state.can_receive()
            && !stream.discards_body
            && let Some(grant) = stream.receive_window.release(size)
        {
            frame::window_update(id.number, grant, out);
        }
        self.credit(size, out);
    }

    /// Nobody wants what content is still to come; it is no longer told.
    pub fn discard_body(&mut self, id: StreamId, out: &mut Vec<u8>) {
        self.start_discarding(id, out);
        self.reset_discarding(id, out);
    }

    pub(super) fn start_discarding(&mut self, id: StreamId, out: &mut Vec<u8>) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        stream.discards_body = true;
        let size = std::mem::take(&mut stream.unreleased);
        self.credit(size, out);
    }

    /// Sets how much content this request may bring, known once its site is. Content announced above it is refused here,
    /// other content when it gets there, by `Event::Refused`.
    pub fn set_body_limit(&mut self, id: StreamId, limit: u64) -> Result<(), Refusal> {
        let Some(stream) = self.streams.get_mut(id) else {
            return Ok(());
        };
        stream.remaining_limit = limit;
        if stream.state.can_receive() && stream.remaining_length.is_some_and(|length| length > limit) {
            stream.discards_body = true;
            return Err(Refusal::ContentTooLarge);
        }
        Ok(())
    }

    /// Whether the client may still send content that somebody wants.
    pub fn receives_body(&self, id: StreamId) -> bool {
        self.streams
            .get(id)
            .is_some_and(|stream| stream.state.can_receive() && !stream.discards_body)
    }
}
