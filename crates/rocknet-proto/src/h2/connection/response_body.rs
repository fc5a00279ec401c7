//! Content of answers on its way out: what is offered, what windows allow, and whose turn it is.

use super::{DATA_MAX, SendError, ServerConnection};
use crate::h2::budget::Flood;
use crate::h2::flow::{CREDITED_FRAME, USEFUL_FRAME};
use crate::h2::frame;
use crate::h2::streams::StreamId;

/// WINDOW_UPDATE frames that a frame of data may be answered with: one for the stream and one for the connection.
const UPDATES_PER_FRAME: u16 = 2;

/// A frame of data whose header is written: `length` bytes of this stream's content are to be put behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataGrant {
    pub stream: StreamId,
    pub length: u64,
    /// The answer ends with it.
    pub end: bool,
}

impl ServerConnection {
    /// So much more content of an answer is ready; with `end` it is the last of it. An end that comes with nothing, and
    /// behind content that has left, is written at once.
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
        self.streams.queued += size;
        if is_empty && end {
            self.write_data_header(id, 0, true, out);
        } else if size > 0 {
            self.streams.reschedule(id);
        }
        Ok(())
    }

    /// Writes the header of the next frame of data, for not more than `most` bytes; `None` when nothing may be sent.
    #[inline]
    pub fn next_data(&mut self, most: u64, out: &mut Vec<u8>) -> Option<DataGrant> {
        self.reset_ended(out);
        let most = most
            .min(self.send_window.available())
            .min(u64::from(self.client.max_frame_size.min(DATA_MAX)));
        if most == 0 {
            return None;
        }
        let (id, queued) = loop {
            let (id, window, queued) = self.streams.next_to_send()?;
            if self.streams.admits(window, queued) {
                break (id, queued);
            }
            // It came among those that may send while small frames might be sent.
            self.streams.reschedule(id);
        };
        if !self.streams.admits(self.send_window, queued) {
            return None;
        }
        let stream = self.streams.get_mut(id)?;
        let length = most.min(stream.send_window.available()).min(stream.queued);
        stream.queued -= length;
        let end = stream.end_queued && stream.queued == 0;
        let goes_on = stream.queued > 0 && stream.send_window.available() > length;
        self.streams.queued -= length;
        self.streams.rotate(id);
        self.write_data_header(id, length, end, out);
        if !goes_on {
            self.streams.reschedule(id);
        }
        Some(DataGrant {
            stream: id,
            length,
            end,
        })
    }

    /// Writes the header of a frame and takes its content off the windows; it was taken off what is offered. The header is the
    /// last that is written: its content has to follow it at once.
    #[inline]
    pub(super) fn write_data_header(&mut self, id: StreamId, length: u64, end: bool, out: &mut Vec<u8>) {
        self.send_window.consume(length);
        // Behind its last frame a stream has no use for its window.
        let is_cut = !end && {
            let stream = self.streams.get_mut(id);
            let is_used_up = stream.is_some_and(|stream| {
                stream.send_window.consume(length);
                stream.send_window.available() == 0
            });
            is_used_up || self.send_window.available() == 0
        };
        self.streams.count_frame(is_cut && length < USEFUL_FRAME);
        if !is_cut || length >= CREDITED_FRAME {
            self.budget.refund(Flood::WindowUpdates, UPDATES_PER_FRAME);
        }
        if end {
            self.end_data(id, out);
        }
        frame::data_header(id.number, length as usize, end, out);
    }

    /// Whether `next_data` has something to give.
    #[inline]
    pub fn may_send(&self) -> bool {
        self.streams.next_to_send().is_some_and(|(_, window, queued)| {
            self.streams.admits(window, queued) && self.streams.admits(self.send_window, queued)
        })
    }

    /// What the client's windows let this stream send now, of which so much content is left: 0 where that is not worth a
    /// frame and the client had its share of small ones.
    pub fn send_capacity(&self, id: StreamId, left: u64) -> u64 {
        let Some(stream) = self.streams.get(id) else { return 0 };
        if self.streams.admits(stream.send_window, left) && self.streams.admits(self.send_window, left) {
            stream.send_window.available().min(self.send_window.available())
        } else {
            0
        }
    }

    /// What the client's windows let all streams together send now.
    pub fn connection_send_capacity(&self) -> u64 {
        self.send_window.available()
    }

    /// Content that is ready and held back by the client's windows alone: to be given a deadline by the server, as memory
    /// that a client pins by not reading (CVE-2019-9517). 0 while something may be sent.
    pub fn blocked(&self) -> u64 {
        if self.may_send() { 0 } else { self.streams.queued }
    }

    /// Content of one stream that is offered and has not left.
    pub fn queued(&self, id: StreamId) -> u64 {
        self.streams.get(id).map_or(0, |stream| stream.queued)
    }

    /// Whether content of this stream would be sent before that of the stream that is next.
    pub fn precedes_next(&self, id: StreamId) -> bool {
        let urgency = self.streams.get(id).map(|stream| stream.priority.urgency);
        urgency
            .zip(self.streams.scheduler.urgency())
            .is_some_and(|(ours, next)| ours < next)
    }

    /// Whether the answer of a stream is still to be given or ended; false once the stream is gone.
    pub fn owes_response(&self, id: StreamId) -> bool {
        self.streams.get(id).is_some_and(|stream| stream.state.can_send())
    }
}
