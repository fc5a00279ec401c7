//! Responses: interim and final heads, prepared heads, frame headers of bodies, and trailers.

use super::ServerConnection;
use crate::h3::frame::{self, HeadersFrame};
use crate::h3::prepared::PreparedHead;
use crate::h3::stream::{Phase, StreamId};
use crate::multiplexed::{DATE_SIZE, SendError, check_fields, digits};
use crate::status::Status;

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
        // HTTP/3 has no 101 (RFC 9114 §4.5).
        if stream.head_sent || !status.is_informational() || status == Status::SWITCHING_PROTOCOLS {
            return Err(SendError::OutOfOrder);
        }
        self.write_section(id, Some(status), None, fields, out)
    }

    /// Writes the head of the final response. `length` becomes Content-Length. Date must be one of `fields`.
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
        out: &mut Vec<u8>,
    ) -> Result<(), SendError> {
        let stream = self.streams.get(id).ok_or(SendError::Gone)?;
        if stream.head_sent || status.is_informational() {
            return Err(SendError::OutOfOrder);
        }
        self.write_section(id, Some(status), length, fields, out)?;
        self.record_head(id)
    }

    /// Writes a prepared response head, and the header of a DATA frame for a body of `body_size` bytes; 0 means no
    /// body.
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
    ) -> Result<(), SendError> {
        let stream = self.streams.get_mut(id).ok_or(SendError::Gone)?;
        if stream.head_sent {
            return Err(SendError::OutOfOrder);
        }
        stream.head_sent = true;
        head.write(date, out);
        if body_size > 0 {
            frame::header(frame::DATA, body_size, out);
        }
        Ok(())
    }

    /// Writes the header of a DATA frame, or nothing if `length` is 0. The caller appends `length` bytes of the body
    /// after it, before anything else is written to the stream.
    ///
    /// # Errors
    ///
    /// [`SendError::Gone`] if the stream no longer exists, and [`SendError::OutOfOrder`] before the head.
    pub fn begin_data(&mut self, id: StreamId, length: u64, out: &mut Vec<u8>) -> Result<(), SendError> {
        let stream = self.streams.get(id).ok_or(SendError::Gone)?;
        if !stream.head_sent {
            return Err(SendError::OutOfOrder);
        }
        if length > 0 {
            frame::header(frame::DATA, length, out);
        }
        Ok(())
    }

    /// Writes trailers (RFC 9114 §4.1) after the whole body. The caller then ends the response.
    ///
    /// # Errors
    ///
    /// [`SendError::Gone`] if the stream no longer exists, [`SendError::OutOfOrder`] before the head, and
    /// [`SendError::Field`] if a field is invalid.
    pub fn send_trailers<'a>(
        &mut self,
        id: StreamId,
        trailers: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        out: &mut Vec<u8>,
    ) -> Result<(), SendError> {
        let stream = self.streams.get(id).ok_or(SendError::Gone)?;
        if !stream.head_sent {
            return Err(SendError::OutOfOrder);
        }
        self.write_section(id, None, None, trailers, out)
    }

    /// Records the end of the response; the caller finishes the stream. The rest of the request is then ignored, unless
    /// the stream is a tunnel.
    pub fn end_response(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(id) else {
            return;
        };
        stream.response_ended = true;
        if stream.phase == Phase::Ended || !stream.is_tunnel {
            self.remove(id);
        }
    }

    /// Returns whether a stream is open: its response has not ended, or it is a tunnel whose client has not ended its
    /// side. If the stream is not open, bytes that the client still sends on it are ignored.
    pub fn is_open(&self, id: StreamId) -> bool {
        self.streams.get(id).is_some()
    }

    /// Turns a stream into a tunnel after the response to an extended CONNECT (RFC 9220 §3). From now on its bytes are
    /// not an HTTP message: they have no size limit, and each side ends separately.
    pub fn begin_tunnel(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(id) {
            (stream.is_tunnel, stream.remaining_limit) = (true, u64::MAX);
        }
    }

    /// Returns whether the final head of the response has not been written; `false` if the stream no longer exists.
    pub fn may_respond(&self, id: StreamId) -> bool {
        self.streams
            .get(id)
            .is_some_and(|stream| !stream.head_sent && !stream.response_ended)
    }

    /// Writes a HEADERS frame. `status` is `None` for trailers; `length` becomes Content-Length. All fields are checked
    /// before any is encoded, because encoding changes the dynamic table.
    fn write_section<'a>(
        &mut self,
        id: StreamId,
        status: Option<Status>,
        length: Option<u64>,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        out: &mut Vec<u8>,
    ) -> Result<(), SendError> {
        let fields = check_fields(fields)?;
        let status = status.map(|status| status.digits());
        let length = length.map(digits);
        let all = status
            .iter()
            .map(|digits| (&b":status"[..], &digits[..]))
            .chain(fields.iter().map(|(name, value)| (&name[..], *value)))
            .chain(length.iter().map(|digits| (&b"content-length"[..], &digits[..])));
        let frame = HeadersFrame::begin(out);
        self.encoder.encode(id.number(), all, out);
        frame.finish(out);
        Ok(())
    }

    /// Records that the final head is written.
    fn record_head(&mut self, id: StreamId) -> Result<(), SendError> {
        self.streams.get_mut(id).ok_or(SendError::Gone)?.head_sent = true;
        Ok(())
    }
}
