//! Heads of answers: interim ones, final ones, those rendered beforehand, and trailers.

use super::ServerConnection;
use crate::h1::EncodeError;
use crate::h2::frame::{BlockFrame, END_HEADERS, END_STREAM, FrameType, frame_header};
use crate::h2::hpack::encode_status;
use crate::h2::prepared::{DATE_SIZE, LowerName, PreparedHead, check_field, digits};
use crate::h2::stream::{StreamState, StreamTransition};
use crate::h2::streams::StreamId;
use crate::status::Status;
use smallvec::SmallVec;

/// Why an answer cannot be sent. Nothing of it was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum SendError {
    /// The stream is no more: reset, or ended before.
    Gone,
    /// Not now: a second final head, content before it, interim answers behind it, trailers before all content has left.
    OutOfOrder,
    /// A field that may not be sent.
    Field(EncodeError),
}

impl std::fmt::Display for SendError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Gone => f.write_str("the stream is no more"),
            Self::OutOfOrder => f.write_str("a part of an answer that cannot come now"),
            Self::Field(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SendError {}

impl From<EncodeError> for SendError {
    fn from(error: EncodeError) -> Self {
        Self::Field(error)
    }
}

/// What is left to do for an answer whose head is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BodyDelivery {
    /// Nothing: the head was all of it.
    Done,
    /// To put all of the content behind the frame header that is written; then it is done.
    Now,
    /// To keep the content and put parts of it behind the frame headers that `next_data` writes.
    Later,
}

pub(super) type CheckedFields<'a> = SmallVec<[(LowerName, &'a [u8]); 16]>;

/// All fields or none: what is encoded changes our table, and must reach the client's.
pub(super) fn check_fields<'a>(
    fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
) -> Result<CheckedFields<'a>, EncodeError> {
    fields
        .into_iter()
        .map(|(name, value)| check_field(name, value))
        .collect()
}

impl ServerConnection {
    /// Sends an interim answer (100, 103) before the final one.
    pub fn send_interim<'a>(
        &mut self,
        id: StreamId,
        status: Status,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        out: &mut Vec<u8>,
    ) -> Result<(), SendError> {
        let stream = self.streams.get(id).ok_or(SendError::Gone)?;
        // 101 has no meaning here (RFC 9113 §8.6).
        if stream.head_sent || !status.is_informational() || status == Status::SWITCHING_PROTOCOLS {
            return Err(SendError::OutOfOrder);
        }
        let fields = check_fields(fields)?;
        let frame = BlockFrame::headers(id.number, false, out);
        self.encoder.begin_block(out);
        encode_status(status, out);
        self.encode_fields(&fields, out);
        frame.finish(self.client.max_frame_size, out);
        Ok(())
    }

    /// Begins the answer; with `end` its head is all of it. `length` is what Content-Length tells, `date` is a field like
    /// the others.
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

    /// The answer that was begun agrees to an extended CONNECT (RFC 8441): what comes and goes is no content from now on. It
    /// has no bound, and each side ends for itself, until `ignore_content` says that nobody wants what still comes.
    pub fn begin_tunnel(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(id) {
            (stream.is_tunnel, stream.remaining_limit) = (true, u64::MAX);
        }
    }

    /// Sends an answer whose head was rendered beforehand, and whose content is ready: so many bytes, 0 where the head is
    /// all of it.
    #[inline]
    pub fn respond_prepared(
        &mut self,
        id: StreamId,
        head: &PreparedHead,
        date: &[u8; DATE_SIZE],
        content: u64,
        out: &mut Vec<u8>,
    ) -> Result<BodyDelivery, SendError> {
        let stream = self.streams.get_mut(id).ok_or(SendError::Gone)?;
        if stream.head_sent {
            return Err(SendError::OutOfOrder);
        }
        stream.head_sent = true;
        stream.state = stream.state.after(StreamTransition::HeadSent).unwrap_or(stream.state);
        let available = stream.send_window.available().min(self.send_window.available());
        let urgency = stream.priority.urgency;
        let now = content <= available.min(u64::from(self.client.max_frame_size.min(super::DATA_MAX)))
            && self.streams.scheduler.urgency().is_none_or(|ahead| ahead >= urgency);
        if self.encoder.has_sent_table_size() && head.length() <= self.client.max_frame_size as usize {
            let flags = END_HEADERS | if content == 0 { END_STREAM } else { 0 };
            frame_header(head.length(), FrameType::Headers, flags, id.number, out);
            head.write(date, out);
        } else {
            let frame = BlockFrame::headers(id.number, content == 0, out);
            self.encoder.begin_block(out);
            head.write(date, out);
            frame.finish(self.client.max_frame_size, out);
        }
        if content == 0 {
            self.end_response(id, out);
            return Ok(BodyDelivery::Done);
        }
        if now {
            self.write_data_header(id, content, true, out);
            return Ok(BodyDelivery::Now);
        }
        self.queue_body(id, content, true, out)?;
        Ok(BodyDelivery::Later)
    }

    /// Begins an answer with a head that was rendered beforehand; with `end` that is all of it. Content is to be offered.
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

    /// Ends the answer with trailers; all content that was offered must have left.
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

    #[inline]
    fn record_head(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(id) {
            stream.head_sent = true;
            stream.state = stream.state.after(StreamTransition::HeadSent).unwrap_or(stream.state);
        }
    }

    /// The answer is ended; so is the stream if the client has ended its side.
    #[inline]
    pub(super) fn end_response(&mut self, id: StreamId, out: &mut Vec<u8>) {
        if self.record_end(id, out) {
            self.reset_discarding(id, out);
        }
    }

    /// As `end_sent`, for the frame whose header is written next: window updates may go ahead of it, but the end of its stream
    /// has to wait until its content is written as well.
    #[inline]
    pub(super) fn end_data(&mut self, id: StreamId, out: &mut Vec<u8>) {
        if self.record_end(id, out) {
            self.ending.push(id);
        }
    }

    /// Ends streams of which the last frame has been written, and whose content nobody wants.
    #[inline]
    pub(super) fn reset_ended(&mut self, out: &mut Vec<u8>) {
        while let Some(id) = self.ending.pop() {
            self.reset_discarding(id, out);
        }
    }

    /// True where content may still come that nobody wants.
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
            // What content is still to come is for nobody.
            self.start_discarding(id, out);
        }
        !is_tunnel
    }
}
