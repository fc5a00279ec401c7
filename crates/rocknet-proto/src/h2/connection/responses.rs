//! Outgoing field blocks: interim and final response heads, prepared heads, and trailers.

use super::ServerConnection;
use crate::h2::frame::{BlockFrame, END_HEADERS, END_STREAM, FrameType, frame_header};
use crate::h2::prepared::PreparedHead;
use crate::h2::stream::{StreamState, StreamTransition};
use crate::h2::streams::StreamId;
use crate::hpack::encode_status;
use crate::multiplexed::{CheckedFields, DATE_SIZE, SendError, check_fields, digits};
use crate::status::Status;

/// Remaining work for a response whose head is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BodyDelivery {
    /// No work remains: the response has no body.
    Done,
    /// The caller must append the whole body after the frame header that is written. The response is then complete.
    Now,
    /// The caller must keep the body and append parts of it after the frame headers that
    /// [`next_data`](ServerConnection::next_data) writes.
    Later,
}

impl ServerConnection {
    /// Writes an interim response, for example 100 or 103 (RFC 9110 §15.2).
    ///
    /// # Errors
    ///
    /// [`SendError::Gone`] if the stream no longer exists, [`SendError::OutOfOrder`] after the final head, for 101 or
    /// for a status that is not interim, and [`SendError::Field`] if a field is invalid.
    pub fn send_interim<'a>(
        &mut self,
        id: StreamId,
        status: Status,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        out: &mut Vec<u8>,
    ) -> Result<(), SendError> {
        let stream = self.streams.get(id).ok_or(SendError::Gone)?;
        // HTTP/2 has no 101 (RFC 9113 §8.6).
        if stream.head_sent || !status.is_informational() || status == Status::SWITCHING_PROTOCOLS {
            return Err(SendError::OutOfOrder);
        }
        let fields = check_fields(fields)?;
        // An interim head does not end the stream.
        let frame = BlockFrame::headers(id.number, false, out);
        self.encoder.begin_block(out);
        encode_status(status, out);
        self.encode_fields(&fields, out);
        frame.finish(self.client.max_frame_size, out);
        Ok(())
    }

    /// Writes the head of the final response. If `end` is set, there is no body. `length` becomes Content-Length. No
    /// Date is added, so `fields` should contain it.
    ///
    /// # Errors
    ///
    /// [`SendError::Gone`] if the stream no longer exists, [`SendError::OutOfOrder`] after a final head or for an
    /// interim status, and [`SendError::Field`] if a field is invalid.
    pub fn respond<'a>(
        &mut self,
        id: StreamId,
        status: Status,
        length: Option<u64>,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        end: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), SendError> {
        let stream = self.streams.get(id).ok_or(SendError::Gone)?;
        if stream.head_sent || status.is_informational() {
            return Err(SendError::OutOfOrder);
        }
        let fields = check_fields(fields)?;
        let frame = BlockFrame::headers(id.number, end, out);
        self.encoder.begin_block(out);
        encode_status(status, out);
        self.encode_fields(&fields, out);
        if let Some(length) = length {
            self.encoder.encode(b"content-length", &digits(length), out);
        }
        frame.finish(self.client.max_frame_size, out);
        self.record_head(id);
        if end {
            self.end_response(id, out);
        }
        Ok(())
    }

    /// Turns a stream into a tunnel after the response to an extended CONNECT (RFC 8441 §5). From now on its bytes are
    /// not an HTTP message: they have no size limit, and each side ends separately.
    /// [`discard_body`](Self::discard_body) drops the bytes that the client still sends.
    pub fn begin_tunnel(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(id) {
            (stream.is_tunnel, stream.remaining_limit) = (true, u64::MAX);
        }
    }

    /// Writes a prepared response head. If the whole body fits into one DATA frame and into the windows, writes the
    /// header of that frame, too. `body_size` is the size of the body in bytes; 0 means no body. A body that does not
    /// fit, or that a more urgent stream precedes, is queued.
    ///
    /// # Errors
    ///
    /// [`SendError::Gone`] if the stream no longer exists, and [`SendError::OutOfOrder`] after a final head.
    #[inline]
    pub fn respond_prepared(
        &mut self,
        id: StreamId,
        head: &PreparedHead,
        date: &[u8; DATE_SIZE],
        body_size: u64,
        out: &mut Vec<u8>,
    ) -> Result<BodyDelivery, SendError> {
        let stream = self.streams.get_mut(id).ok_or(SendError::Gone)?;
        if stream.head_sent {
            return Err(SendError::OutOfOrder);
        }
        stream.head_sent = true;
        stream.state = stream.state.after(StreamTransition::HeadSent).unwrap_or(stream.state);
        let available = stream.send_window.available().min(self.send_window.available());
        // Lower numbers are more urgent (RFC 9218 §4.1).
        let urgency = stream.priority.urgency;
        let max_frame = u64::from(self.client.max_frame_size.min(super::DATA_MAX));
        let is_preceded = self.streams.scheduler.urgency().is_some_and(|next| next < urgency);
        let sends_now = body_size <= available.min(max_frame) && !is_preceded;
        // The frame size is known in advance unless the block must begin with a table size or needs CONTINUATION.
        if self.encoder.has_sent_table_size() && head.encoded_len() <= self.client.max_frame_size as usize {
            let flags = END_HEADERS | if body_size == 0 { END_STREAM } else { 0 };
            frame_header(head.encoded_len(), FrameType::Headers, flags, id.number, out);
            head.write(date, out);
        } else {
            let frame = BlockFrame::headers(id.number, body_size == 0, out);
            self.encoder.begin_block(out);
            head.write(date, out);
            frame.finish(self.client.max_frame_size, out);
        }
        if body_size == 0 {
            self.end_response(id, out);
            return Ok(BodyDelivery::Done);
        }
        // `true` marks the end of the response: the body is announced as a whole.
        if sends_now {
            self.write_data_header(id, body_size, true, out);
            return Ok(BodyDelivery::Now);
        }
        self.queue_body(id, body_size, true, out)?;
        Ok(BodyDelivery::Later)
    }

    /// Writes a prepared response head. If `end` is set, there is no body. Otherwise the caller announces the body with
    /// [`queue_body`](Self::queue_body).
    ///
    /// # Errors
    ///
    /// [`SendError::Gone`] if the stream no longer exists, and [`SendError::OutOfOrder`] after a final head.
    pub fn respond_prepared_head(
        &mut self,
        id: StreamId,
        head: &PreparedHead,
        date: &[u8; DATE_SIZE],
        end: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), SendError> {
        let stream = self.streams.get(id).ok_or(SendError::Gone)?;
        if stream.head_sent {
            return Err(SendError::OutOfOrder);
        }
        let frame = BlockFrame::headers(id.number, end, out);
        self.encoder.begin_block(out);
        head.write(date, out);
        frame.finish(self.client.max_frame_size, out);
        self.record_head(id);
        if end {
            self.end_response(id, out);
        }
        Ok(())
    }

    /// Ends the response with trailers (RFC 9113 §8.1). The whole queued body must have been sent.
    ///
    /// # Errors
    ///
    /// [`SendError::Gone`] if the stream no longer exists or its response has ended, [`SendError::OutOfOrder`] before
    /// the head or while body bytes are queued, and [`SendError::Field`] if a field is invalid.
    pub fn finish_with_trailers<'a>(
        &mut self,
        id: StreamId,
        trailers: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        out: &mut Vec<u8>,
    ) -> Result<(), SendError> {
        let stream = self.streams.get(id).ok_or(SendError::Gone)?;
        if !stream.state.can_send() {
            return Err(SendError::Gone);
        }
        if !stream.head_sent || stream.queued > 0 || stream.end_queued {
            return Err(SendError::OutOfOrder);
        }
        let trailers = check_fields(trailers)?;
        // Trailers end the stream.
        let frame = BlockFrame::headers(id.number, true, out);
        self.encoder.begin_block(out);
        self.encode_fields(&trailers, out);
        frame.finish(self.client.max_frame_size, out);
        self.end_response(id, out);
        Ok(())
    }

    pub(super) fn encode_fields(&mut self, fields: &CheckedFields<'_>, out: &mut Vec<u8>) {
        for (name, value) in fields {
            self.encoder.encode(name, value, out);
        }
    }

    /// Records that the final head is written.
    #[inline]
    fn record_head(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(id) {
            stream.head_sent = true;
            stream.state = stream.state.after(StreamTransition::HeadSent).unwrap_or(stream.state);
        }
    }

    /// Ends the response, and the stream if the client has ended its side.
    #[inline]
    pub(super) fn end_response(&mut self, id: StreamId, out: &mut Vec<u8>) {
        if self.record_end(id, out) {
            self.reset_discarding(id, out);
        }
    }

    /// Ends the response with the DATA frame whose header is written next. Window updates may precede that header, but
    /// a reset of the stream must wait until the payload is written.
    #[inline]
    pub(super) fn end_data(&mut self, id: StreamId, out: &mut Vec<u8>) {
        if self.record_end(id, out) {
            self.ending.push(id);
        }
    }

    /// Resets the streams of `ending` whose receive windows are used up. The others are reset by `read_data` once the
    /// client has used up their windows.
    #[inline]
    pub(super) fn reset_ended(&mut self, out: &mut Vec<u8>) {
        while let Some(id) = self.ending.pop() {
            self.reset_discarding(id, out);
        }
    }

    /// Ends the server's side of a stream. Returns whether the client may still send a request body, which is then
    /// discarded. Returns `false` for a tunnel, whose other direction stays open.
    fn record_end(&mut self, id: StreamId, out: &mut Vec<u8>) -> bool {
        let Some(stream) = self.streams.get_mut(id) else {
            return false;
        };
        let Some(state) = stream.state.after(StreamTransition::EndSent) else {
            return false;
        };
        stream.state = state;
        let is_tunnel = stream.is_tunnel;
        self.streams.response_ended();
        if state == StreamState::Closed {
            self.remove(id, out);
            self.streams.remember_end(id.number);
            return false;
        }
        if !is_tunnel {
            // The rest of the request body is not needed.
            self.start_discarding(id, out);
        }
        !is_tunnel
    }
}
