//! Receiver of a request body on its way to the handler, for HTTP versions that carry several requests at a time on one
//! connection.

use std::collections::VecDeque;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};

use crate::exchange::{BodyChannel, BodyError};
use crate::response::FieldList;

/// Chunk size in bytes for request bodies that arrive in small pieces: a page of memory, because a body may end after a
/// few bytes. Each larger piece gets its own chunk.
const CHUNK: usize = 4096;

/// Stream that a request body arrives on.
pub trait BodyStream {
    /// Called when the handler has taken `bytes` bytes, which lets the client send that many more.
    fn release(&mut self, bytes: u32);

    /// Sends 100 (Continue).
    fn send_continue(&mut self);
}

/// Receiver that stores a request body until the handler requests it. Over HTTP/2, the flow-control window of the
/// stream bounds the stored bytes. Over HTTP/3, pauses in reading the stream bound them.
pub struct BodyReceiver {
    channel: Rc<BodyChannel>,
    /// Received bytes that have not been taken.
    chunks: VecDeque<BytesMut>,
    /// True if no more bytes will arrive.
    ended: bool,
    /// True if the client waits for 100 (Continue) before it sends the body.
    expects_continue: bool,
}

impl BodyReceiver {
    /// Creates a receiver. `expects_continue`: true if the client waits for 100 (Continue).
    pub fn new(channel: Rc<BodyChannel>, expects_continue: bool) -> BodyReceiver {
        BodyReceiver {
            channel,
            chunks: VecDeque::new(),
            ended: false,
            expects_continue,
        }
    }

    /// Adds received bytes. `last`: true if the stream has ended.
    pub fn add(&mut self, piece: &[u8], last: bool) {
        if !piece.is_empty() {
            self.push(piece);
        }
        self.ended |= last;
        // A client that sends does not wait for 100 (Continue).
        self.expects_continue = false;
    }

    /// Ends the request body with trailer fields.
    pub fn end_with_trailers(&mut self, trailers: FieldList) {
        self.channel.put_trailers(trailers);
        self.add(&[], true);
    }

    /// Appends bytes. Small pieces share a chunk, because flow control counts only the received bytes, and a chunk for
    /// a single byte uses far more memory than one byte.
    fn push(&mut self, piece: &[u8]) {
        if let Some(last) = self.chunks.back_mut()
            && last.len() + piece.len() <= last.capacity()
        {
            return last.extend_from_slice(piece);
        }
        let mut chunk = BytesMut::with_capacity(piece.len().max(CHUNK));
        chunk.extend_from_slice(piece);
        self.chunks.push_back(chunk);
    }

    /// Returns the next piece for a tunnel; `None` if all received bytes were taken. Over HTTP/2, the caller must
    /// release the bytes of the piece to the flow-control window.
    pub fn take(&mut self) -> Option<Bytes> {
        self.chunks.pop_front().map(BytesMut::freeze)
    }

    /// Returns the number of bytes that were received and not taken yet.
    pub fn held(&self) -> usize {
        self.chunks.iter().map(BytesMut::len).sum()
    }

    /// Returns true if no more bytes will arrive.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns the channel that carries the request body to the handler.
    pub fn channel(&self) -> &BodyChannel {
        &self.channel
    }

    /// Fails the request body for the handler.
    pub fn fail(&self, error: BodyError) {
        self.channel.end(Err(error));
    }

    /// Passes the next chunk, or the end of the body, to the handler, if it has requested a chunk. If no chunk has been
    /// received yet and the client waits for 100 (Continue), sends that.
    pub fn supply(&mut self, stream: &mut impl BodyStream) -> BodyDemand {
        if !self.channel.wants_chunk() {
            return BodyDemand::None;
        }
        if let Some(chunk) = self.chunks.pop_front() {
            stream.release(chunk.len() as u32);
            self.channel.put(chunk.freeze());
            return BodyDemand::Met;
        }
        if self.ended {
            self.channel.end(Ok(()));
            return BodyDemand::Met;
        }
        if std::mem::take(&mut self.expects_continue) {
            stream.send_continue();
        }
        BodyDemand::Unmet
    }
}

/// Demand of a handler for the request body.
pub enum BodyDemand {
    /// The handler has requested no chunk.
    None,
    /// The handler has received the requested chunk, or the end of the body.
    Met,
    /// The requested chunk has not been received from the client yet.
    Unmet,
}

#[cfg(test)]
mod tests {
    use crate::exchange::RequestBody;

    use super::*;

    #[test]
    fn small_pieces_share_chunks() {
        let (_body, channel) = RequestBody::channel();
        let mut receiver = BodyReceiver::new(channel, false);
        for _ in 0..3 * CHUNK {
            receiver.add(b"x", false);
        }
        assert_eq!(receiver.chunks.len(), 3);
        receiver.add(&[b'y'; 2 * CHUNK], false);
        receiver.add(b"z", true);
        let sizes: Vec<_> = receiver.chunks.iter().map(|chunk| chunk.len()).collect();
        assert_eq!(sizes, [CHUNK, CHUNK, CHUNK, 2 * CHUNK, 1]);
    }
}
