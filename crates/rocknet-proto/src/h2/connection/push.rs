//! Server push: a promised request whose response has a stream of its own (RFC 9113 §8.4).

use super::ServerConnection;
use super::drain_state::DrainState;
use crate::bytes::{TARGET, all};
use crate::h1::EncodeError;
use crate::h2::flow::WINDOW_MAX;
use crate::h2::frame::BlockFrame;
use crate::h2::stream::{OpenStream, StreamState};
use crate::h2::streams::StreamId;
use crate::hpack::encode_field;
use crate::multiplexed::{SendError, check_fields};

/// Request that a PUSH_PROMISE contains: a GET without a body.
#[derive(Clone, Copy, Debug)]
pub struct PushRequest<'a> {
    /// Value of `:scheme`, `http` or `https`.
    pub scheme: &'a [u8],
    /// Value of `:authority`: host and optional port.
    pub authority: &'a [u8],
    /// Value of `:path`: path and query.
    pub path: &'a [u8],
}

impl ServerConnection {
    /// Returns whether the client accepts a push on this stream (RFC 9113 §8.4). The client must have push enabled, and
    /// neither side may have sent GOAWAY. The client must have opened the stream, and its response must not have ended.
    /// The limit of concurrent pushes (the client's, or [`Config::streams`](super::Config) if lower) must not be
    /// reached, and a stream number must be left.
    pub fn may_push(&self, id: StreamId) -> bool {
        let parent = self.streams.get(id);
        let pushed = self.streams.live() - self.streams.client_initiated();
        // `WINDOW_MAX` is also the largest stream number, 2^31-1.
        self.client.enable_push
            && !self.client_is_leaving
            && self.drain_state == DrainState::Active
            && pushed < self.client.max_concurrent_streams.min(self.config.streams) as usize
            && self.next_push_stream <= WINDOW_MAX
            && parent.is_some_and(|stream| stream.id & 1 == 1 && stream.state.can_send())
    }

    /// Writes a PUSH_PROMISE and returns the promised stream (RFC 9113 §8.4.1). The caller must send it before the
    /// bytes that refer to the pushed resource, and then respond on the promised stream as on any other.
    ///
    /// # Errors
    ///
    /// [`SendError::Gone`] if the stream no longer exists, [`SendError::OutOfOrder`] if [`may_push`](Self::may_push)
    /// returns `false`, and [`SendError::Field`] if the request or a field is invalid.
    pub fn push_promise<'a>(
        &mut self,
        id: StreamId,
        request: &PushRequest<'_>,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        out: &mut Vec<u8>,
    ) -> Result<StreamId, SendError> {
        if self.streams.get(id).is_none() {
            return Err(SendError::Gone);
        }
        if !self.may_push(id) {
            return Err(SendError::OutOfOrder);
        }
        let pseudo = [
            (b":method".as_slice(), b"GET".as_slice()),
            (b":scheme", request.scheme),
            (b":authority", request.authority),
            (b":path", request.path),
        ];
        // A malformed promised request is an error at the client (RFC 9113 §8.1.1).
        let is_target = request.path.first() == Some(&b'/') && !request.path.contains(&b'#');
        if !is_target || !pseudo.iter().all(|(_, value)| !value.is_empty() && all(value, TARGET)) {
            return Err(EncodeError::RequestLine.into());
        }
        let fields = check_fields(fields)?;
        let number = self.next_push_stream;
        let frame = BlockFrame::push_promise(id.number, number, out);
        self.encoder.begin_block(out);
        // These fields do not enter the dynamic table, because a path is rarely pushed twice on one connection.
        for (name, value) in pseudo {
            encode_field(name, value, out);
        }
        self.encode_fields(&fields, out);
        frame.finish(self.client.max_frame_size, out);
        self.next_push_stream += 2;
        // The receive window is 0, because the client sends nothing on a pushed stream.
        let stream = OpenStream::new(number, StreamState::ReservedLocal, self.client.initial_window_size, 0);
        Ok(self.streams.insert(stream))
    }
}
