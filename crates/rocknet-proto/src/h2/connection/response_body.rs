//! Outgoing response bodies: queued bytes, the windows that limit them, and the stream that sends next.

use super::{DATA_MAX, ServerConnection};
use crate::h2::flow::{CREDITED_FRAME, USEFUL_FRAME};
use crate::h2::frame;
use crate::h2::streams::StreamId;
use crate::multiplexed::{Flood, SendError};

/// Number of WINDOW_UPDATE frames that one DATA frame refunds to the flood budget: one for its stream and one for the
/// connection.
const UPDATES_PER_FRAME: u16 = 2;

/// DATA frame whose header is written. The caller must append `length` bytes of the stream's response body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataGrant {
    /// Stream of the response.
    pub stream: StreamId,
    /// Number of payload bytes to append.
    pub length: u64,
    /// Set if the frame ends the response.
    pub end: bool,
}

impl ServerConnection {
    /// Queues `size` more bytes of a response body. If `end` is set, they are the last. An end without bytes is written
    /// immediately if nothing is queued.
    ///
    /// # Errors
    ///
    /// [`SendError::Gone`] if the stream no longer exists or its response has ended, and [`SendError::OutOfOrder`]
    /// before the head or after `end`.
    pub fn queue_body(&mut self, id: StreamId, size: u64, end: bool, out: &mut Vec<u8>) -> Result<(), SendError> {
        let stream = self.streams.get_mut(id).ok_or(SendError::Gone)?;
        if !stream.state.can_send() {
            return Err(SendError::Gone);
        }
        if !stream.head_sent || stream.end_queued {
            return Err(SendError::OutOfOrder);
        }
        stream.queued += size;
        stream.end_queued = end;
        let is_empty = stream.queued == 0;
        if is_empty && end {
            self.write_data_header(id, 0, end, out);
        } else if size > 0 {
            self.streams.reschedule(id);
        }
        Ok(())
    }

    /// Writes the header of the next DATA frame, with a payload of at most `max_size` bytes. Returns `None` if no data
    /// can be sent. The order of streams follows their priorities (RFC 9218 §10).
    ///
    /// A response may end before its request body, the rest of which is discarded. Once the client has used up the
    /// receive window of such a stream, it would wait for a WINDOW_UPDATE. It gets RST_STREAM instead, which precedes
    /// the header (RFC 9113 §8.1).
    #[inline]
    pub fn next_data(&mut self, max_size: u64, out: &mut Vec<u8>) -> Option<DataGrant> {
        self.reset_ended(out);
        let max_size = max_size
            .min(self.send_window.available())
            .min(u64::from(self.client.max_frame_size.min(DATA_MAX)));
        if max_size == 0 {
            return None;
        }
        let (id, queued) = loop {
            let (id, window, queued) = self.streams.next_to_send()?;
            if self.streams.admits(window, queued) {
                break (id, queued);
            }
            // The stream was scheduled while small frames were allowed. Now it must wait for a larger window.
            self.streams.reschedule(id);
        };
        if !self.streams.admits(self.send_window, queued) {
            return None;
        }
        let stream = self.streams.get_mut(id)?;
        let length = max_size.min(stream.send_window.available()).min(stream.queued);
        stream.queued -= length;
        let end = stream.end_queued && stream.queued == 0;
        // `write_data_header` subtracts `length` from the window later.
        let has_more = stream.queued > 0 && stream.send_window.available() > length;
        self.streams.rotate(id);
        self.write_data_header(id, length, end, out);
        if !has_more {
            self.streams.reschedule(id);
        }
        Some(DataGrant {
            stream: id,
            length,
            end,
        })
    }

    /// Writes the header of a DATA frame with a payload of `length` bytes, which ends the response if `end` is true.
    /// Subtracts the payload from the window of the connection and, unless the frame ends the response, of the stream.
    /// The caller has already subtracted it from the queued bytes. Nothing else may be written before the payload.
    #[inline]
    pub(super) fn write_data_header(&mut self, id: StreamId, length: u64, end: bool, out: &mut Vec<u8>) {
        self.send_window.consume(length);
        // A frame is cut if it uses up a window before the end of the body. The last frame of a stream never counts as
        // cut, because the stream does not need its window afterwards.
        let is_cut = !end && {
            let stream = self.streams.get_mut(id);
            let is_used_up = stream.is_some_and(|stream| {
                stream.send_window.consume(length);
                stream.send_window.available() == 0
            });
            is_used_up || self.send_window.available() == 0
        };
        self.streams.count_frame(is_cut && length < USEFUL_FRAME);
        // A frame that a window has cut to a few bytes gives no refund. Otherwise a client could keep sending updates
        // that permit a byte each, and the server would answer each of them with a frame.
        if !is_cut || length >= CREDITED_FRAME {
            self.budget.refund(Flood::WindowUpdates, UPDATES_PER_FRAME);
        }
        if end {
            // May write WINDOW_UPDATE for the connection, which could not stand between the header and the payload.
            self.end_data(id, out);
        }
        frame::data_header(id.number, length as usize, end, out);
    }

    /// Returns whether a stream has data to send, and the windows admit a frame of the stream that sends next.
    #[inline]
    pub fn may_send(&self) -> bool {
        self.streams.next_to_send().is_some_and(|(_, window, queued)| {
            self.streams.admits(window, queued) && self.streams.admits(self.send_window, queued)
        })
    }

    /// Returns the number of bytes that the windows of the stream and of the connection permit now. `left` is the
    /// number of bytes that remain to be sent; the result can exceed it. Returns 0 if the stream no longer exists. Once
    /// the client's windows have caused too many small frames, returns 0 while they do not admit a useful frame.
    pub fn send_capacity(&self, id: StreamId, left: u64) -> u64 {
        let Some(stream) = self.streams.get(id) else { return 0 };
        if self.streams.admits(stream.send_window, left) && self.streams.admits(self.send_window, left) {
            stream.send_window.available().min(self.send_window.available())
        } else {
            0
        }
    }

    /// Returns the connection's send window in bytes, for all streams together (RFC 9113 §6.9).
    pub fn connection_send_capacity(&self) -> u64 {
        self.send_window.available()
    }

    /// Returns the number of response body bytes that are queued and not sent; 0 if the stream no longer exists.
    pub fn queued(&self, id: StreamId) -> u64 {
        self.streams.get(id).map_or(0, |stream| stream.queued)
    }

    /// Returns whether this stream is more urgent than the stream that sends next; `false` if no stream has data to
    /// send, or if this stream no longer exists.
    pub fn precedes_next(&self, id: StreamId) -> bool {
        // Lower numbers are more urgent (RFC 9218 §4.1).
        let urgency = self.streams.get(id).map(|stream| stream.priority.urgency);
        urgency
            .zip(self.streams.scheduler.urgency())
            .is_some_and(|(ours, next)| ours < next)
    }

    /// Returns whether the response of a stream has not ended; `false` if the stream no longer exists.
    pub fn may_respond(&self, id: StreamId) -> bool {
        self.streams.get(id).is_some_and(|stream| stream.state.can_send())
    }
}
