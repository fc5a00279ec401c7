//! Incoming request bodies: DATA frames, the windows they fill, and their limits.

use super::open_data_frame::OpenDataFrame;
use super::{ConnectionEvent, Context, FrameResult, ServerConnection};
use crate::h1::Refusal;
use crate::h2::error::{ConnectionError, ErrorCode, StreamError};
use crate::h2::frame::{self, FrameHeader};
use crate::h2::stream::{StreamState, StreamTransition};
use crate::h2::streams::StreamId;
use crate::multiplexed::Flood;
use crate::multiplexed::Malformed;

/// Returns the length of a DATA frame's padding, or `None` if the byte that holds it has not arrived. Fails if the
/// padding does not fit in the frame. `rest` holds the unread bytes after the frame header.
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
    /// Checks a DATA frame by its header. Its payload is reported as it arrives.
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
        // Padding and its length byte count against the windows but carry no data, so they are released immediately.
        let overhead = if header.has(frame::PADDED) {
            u32::from(padding) + 1
        } else {
            0
        };
        let (length, end_stream) = (header.length - overhead, header.has(frame::END_STREAM));
        let error = if !stream.state.can_receive() {
            Some(StreamError::HalfClosed)
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
                event = Some(ConnectionEvent::Refused {
                    stream: id,
                    refusal: Refusal::ContentTooLarge,
                    is_head: stream.is_head,
                });
            } else {
                // The response has started, so a status can no longer report the error.
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
            // The length byte of the padding precedes the data.
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

    /// Reports the next piece of the open DATA frame. Returns `None` if no byte of it has arrived, if the piece is
    /// discarded, or if the frame has no data and does not end the request.
    #[inline]
    pub(super) fn read_data(&mut self, context: &mut Context<'_>, unread: &[u8], at: &mut usize) -> FrameResult {
        // Until the data of a frame begins, only the length byte of its padding is skipped.
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
            // The stream was reset after its frame had started.
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

    /// Handles DATA on a stream that is not open.
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

    /// Returns whether no stream of this number has been opened yet. Streams that the final GOAWAY excludes do not
    /// count as idle, because frames on them are ignored instead of being an error.
    pub(super) fn is_idle_stream(&self, number: u32) -> bool {
        if number & 1 == 1 {
            number > self.last_client_stream && !self.drain_state.refuses(number)
        } else {
            number >= self.next_push_stream
        }
    }

    /// Ends the client's side of a stream.
    #[inline]
    pub(super) fn end_request(&mut self, id: StreamId, out: &mut Vec<u8>) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        // The transition is always valid, because the callers have checked that the client had not ended its side.
        stream.state = stream
            .state
            .after(StreamTransition::EndReceived)
            .unwrap_or(StreamState::Closed);
        if stream.state == StreamState::Closed {
            self.remove(id, out);
            self.streams.remember_end(id.number);
        }
    }

    /// Resets a stream whose request body is discarded, if its response has ended and its receive window is used up
    /// (RFC 9113 §8.1, NO_ERROR). Until then the body is received, but its data does not extend the window. An earlier
    /// reset would gain little, because most of the body is in flight already. It could also make a client that is
    /// still sending lose the response.
    pub(super) fn reset_discarding(&mut self, id: StreamId, out: &mut Vec<u8>) {
        let Some(stream) = self.streams.get(id) else { return };
        if !stream.state.can_send() && stream.receive_window.available() == 0 {
            frame::rst_stream(id.number, ErrorCode::NoError, out);
            self.streams.remember_reset(id.number);
            self.remove(id, out);
        }
    }

    /// Reports `size` bytes of the request body as consumed, so that the client may send as many again (RFC 9113 §6.9).
    /// At most the bytes reported by [`ConnectionEvent::Data`] and not yet released are counted.
    pub fn release(&mut self, id: StreamId, size: u32, out: &mut Vec<u8>) {
        // The bytes of a removed stream were released on its removal.
        let Some(stream) = self.streams.get_mut(id) else { return };
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

    /// Discards the rest of the request body; no further events report it. The response is not affected.
    pub fn discard_body(&mut self, id: StreamId, out: &mut Vec<u8>) {
        self.start_discarding(id, out);
        self.reset_discarding(id, out);
    }

    /// Discards the rest of the request body and releases its bytes.
    pub(super) fn start_discarding(&mut self, id: StreamId, out: &mut Vec<u8>) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        stream.discards_body = true;
        let size = std::mem::take(&mut stream.unreleased);
        self.credit(size, out);
    }

    /// Sets the maximum size of the request body in bytes, once the route is known. A body that exceeds it later is
    /// reported as [`ConnectionEvent::Refused`], or by a reset once the response has started. DATA frames that were
    /// received before this call do not count.
    ///
    /// # Errors
    ///
    /// [`Refusal::ContentTooLarge`] if the rest of the announced Content-Length exceeds the limit. The body is then
    /// discarded.
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

    /// Returns whether the client may still send body bytes that are not discarded.
    pub fn receives_body(&self, id: StreamId) -> bool {
        self.streams
            .get(id)
            .is_some_and(|stream| stream.state.can_receive() && !stream.discards_body)
    }
}
