//! Incoming request bodies: DATA frames and their limits.

use super::reading::ReadResult;
use super::{ConnectionEvent, Context, ServerConnection};
use crate::h3::error::{ConnectionError, StreamError};
use crate::h3::stream::{OpenFrame, Phase, StreamId};
use crate::multiplexed::{Flood, Malformed};
use crate::refusal::Refusal;

impl ServerConnection {
    /// Checks a DATA frame by its header. Its payload is reported as it arrives.
    pub(super) fn begin_request_data(&mut self, context: &mut Context<'_>, id: StreamId, length: u64) -> ReadResult {
        let Some(stream) = self.streams.get_mut(id) else {
            return Ok(None);
        };
        if stream.phase != Phase::Body {
            return Err(ConnectionError::FrameUnexpected);
        }
        if length == 0 {
            self.budget.spend(Flood::EmptyData, context.now)?;
            return Ok(None);
        }
        stream.frame = OpenFrame::Data { remaining: length };
        if let Some(remaining) = &mut stream.remaining_length {
            match remaining.checked_sub(length) {
                Some(left) => *remaining = left,
                None => return self.reset(context, id, Malformed::ContentLength.into()),
            }
        }
        if length > stream.remaining_limit && !stream.discards_body {
            stream.discards_body = true;
            if !stream.head_sent {
                return Ok(Some(ConnectionEvent::Refused {
                    refusal: Refusal::ContentTooLarge,
                    is_head: stream.is_head,
                }));
            }
            // The response has started, so a status can no longer report the error.
            return self.reset(context, id, StreamError::BodyTooLarge);
        }
        stream.remaining_limit = stream.remaining_limit.saturating_sub(length);
        Ok(None)
    }

    /// Reports the next piece of the open DATA frame.
    #[inline]
    pub(super) fn read_data(
        &mut self,
        context: &mut Context<'_>,
        id: StreamId,
        bytes: &[u8],
        at: &mut usize,
    ) -> ReadResult {
        let Some(stream) = self.streams.get_mut(id) else {
            return Ok(None);
        };
        let OpenFrame::Data { remaining } = stream.frame else {
            return Ok(None);
        };
        let start = *at;
        let size = remaining.min((bytes.len() - start) as u64);
        *at += size as usize;
        let is_whole = remaining == size;
        stream.frame = if is_whole {
            OpenFrame::None
        } else {
            OpenFrame::Data {
                remaining: remaining - size,
            }
        };
        if stream.discards_body || size == 0 {
            return Ok(None);
        }
        let is_too_short = stream.remaining_length.is_some_and(|remaining| remaining > 0);
        // The end of a body that is too short is an error, which the next call reports.
        let last = is_whole && context.fin && *at == bytes.len() && !is_too_short;
        if last {
            stream.phase = Phase::Ended;
            if stream.response_ended {
                self.streams.remove(id);
            }
        }
        Ok(Some(ConnectionEvent::Data { start, end: *at, last }))
    }

    /// Sets the maximum size of the request body in bytes, once the route is known. A body that exceeds it later is
    /// reported as [`ConnectionEvent::Refused`], or by a reset once the response has started. DATA frames that began
    /// before this call do not count.
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
        if stream.remaining_length.is_some_and(|length| length > limit) {
            stream.discards_body = true;
            return Err(Refusal::ContentTooLarge);
        }
        Ok(())
    }

    /// Discards the rest of the request body; no further events report it. The response is not affected.
    pub fn discard_body(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(id) {
            stream.discards_body = true;
        }
    }

    /// Returns whether the client may still send body bytes that are not discarded.
    pub fn receives_body(&self, id: StreamId) -> bool {
        self.streams
            .get(id)
            .is_some_and(|stream| stream.phase == Phase::Body && !stream.discards_body)
    }
}
