//! Table of exchanges in progress by stream, and the receiver of each request body.

use std::collections::VecDeque;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use rocknet_io::queue::SendQueue;
use rocknet_proto::h2::{ServerConnection, StreamId};
use rocknet_proto::refusal::Refusal;
use rocknet_proto::request::OwnedRequest;
use rocknet_proto::status::Status;

use super::push_state::PendingPage;
use crate::exchange::{BodyChannel, BodyError, RequestBody};
use crate::lifecycle::deadlines::Deadlines;
use crate::lifecycle::exchange::{ActiveExchange, Stage};
use crate::pipeline::RequestContext;
use crate::response::FieldList;

/// Chunk size in bytes for request bodies that arrive in small pieces. Each larger piece gets its own chunk.
const CHUNK: usize = 4096;

/// Exchange in progress on one stream.
pub struct StreamExchange {
    pub stream: RequestStream,
    pub state: ExchangeState,
    pub deadlines: Deadlines,
}

/// Stream of an exchange, with the received part of its request.
pub struct RequestStream {
    pub id: StreamId,
    /// True if the request was HEAD, so that the response has no body.
    pub head_only: bool,
    /// Receiver of the request body, or of tunnel data.
    pub body: Option<BodyReceiver>,
    /// Page whose files may be pushed with the response.
    pub page: Option<Box<PendingPage>>,
}

/// State of an exchange on a stream.
pub enum ExchangeState {
    /// The request arrived while the socket was blocked, and starts once the backlog has been sent.
    Held(HeldRequest),
    Active(ActiveExchange),
}

impl RequestStream {
    /// Creates a stream without a request body. `head_only`: the request was HEAD.
    pub fn new(id: StreamId, head_only: bool) -> RequestStream {
        RequestStream {
            id,
            head_only,
            body: None,
            page: None,
        }
    }

    /// Fails the request body for its handler.
    pub fn fail(&self, error: BodyError) {
        if let Some(body) = &self.body {
            body.fail(error);
        }
    }
}

impl ExchangeState {
    /// Returns true if response bytes can become ready at any moment; see [`StreamTable::awaited`].
    fn is_awaited(&self) -> bool {
        match self {
            ExchangeState::Held(_) => true,
            ExchangeState::Active(exchange) => match &exchange.stage {
                Stage::Waiting(_) => true,
                Stage::Sending { body, .. } => body.is_file(),
                Stage::Tunnel(_) => false,
            },
        }
    }
}

/// Request or rejection that waits until the backlog has been sent.
pub enum HeldRequest {
    Request {
        request: Rc<OwnedRequest>,
        body: RequestBody,
    },
    Refusal(Refusal, Rc<RequestContext>),
}

/// Receiver that stores a request body until the handler requests it. The flow-control window of the stream bounds its
/// size.
pub struct BodyReceiver {
    channel: Rc<BodyChannel>,
    chunks: VecDeque<BytesMut>,
    ended: bool,
    /// True if the client waits for 100 (Continue) before it sends the body.
    expects_continue: bool,
}

impl BodyReceiver {
    /// Creates a receiver. `expects_continue`: the client waits for 100 (Continue).
    pub fn new(channel: Rc<BodyChannel>, expects_continue: bool) -> BodyReceiver {
        BodyReceiver {
            channel,
            chunks: VecDeque::new(),
            ended: false,
            expects_continue,
        }
    }

    /// Adds received bytes. `last`: the stream has ended.
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

    /// Appends bytes. Small pieces share a chunk, because the window counts only the received bytes, and a chunk for a
    /// single byte uses far more memory.
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

    /// Returns the next piece for a tunnel. The caller must release its bytes to the window.
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

    /// Passes the next chunk to the handler, if it has requested one.
    pub fn supply(&mut self, id: StreamId, engine: &mut ServerConnection, output: &mut SendQueue) -> BodyDemand {
        if !self.channel.wants_chunk() {
            return BodyDemand::None;
        }
        if let Some(chunk) = self.chunks.pop_front() {
            engine.release(id, chunk.len() as u32, output.buffer());
            self.channel.put(chunk.freeze());
            return BodyDemand::Met;
        }
        if self.ended {
            self.channel.end(Ok(()));
            return BodyDemand::Met;
        }
        if std::mem::take(&mut self.expects_continue) {
            // If the stream is gone, the failure to send does not matter.
            let _ = engine.send_interim(id, Status::CONTINUE, [], output.buffer());
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

/// Exchanges in progress on one connection, in the slots of their streams.
#[derive(Default)]
pub struct StreamTable {
    slots: Vec<Option<Box<StreamExchange>>>,
    count: usize,
}

impl StreamTable {
    /// Returns true if no exchange is in progress.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the number of slots, free ones included.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Puts an exchange into the slot of its stream.
    pub fn insert(&mut self, entry: Box<StreamExchange>) {
        let slot = entry.stream.id.slot();
        if slot >= self.slots.len() {
            self.slots.resize_with(slot + 1, || None);
        }
        self.count += usize::from(self.slots[slot].is_none());
        self.slots[slot] = Some(entry);
    }

    /// Returns the exchange of a stream.
    pub fn get_mut(&mut self, id: StreamId) -> Option<&mut StreamExchange> {
        let entry = self.slots.get_mut(id.slot())?.as_deref_mut()?;
        (entry.stream.id == id).then_some(entry)
    }

    /// Takes the exchange of a stream out of the table.
    pub fn take(&mut self, id: StreamId) -> Option<Box<StreamExchange>> {
        let slot = self.slots.get_mut(id.slot())?;
        if slot.as_ref()?.stream.id != id {
            return None;
        }
        self.count -= 1;
        slot.take()
    }

    /// Returns the streams whose response bytes can become ready at any moment, because they wait for a handler or the
    /// disk. Tunnels and responses streamed by handlers are excluded, because they may pause indefinitely.
    pub fn awaited(&self) -> impl Iterator<Item = StreamId> + '_ {
        let exchanges = self.slots.iter().flatten();
        exchanges
            .filter(|entry| entry.state.is_awaited())
            .map(|entry| entry.stream.id)
    }

    /// Takes the exchange in a slot out of the table.
    pub fn take_slot(&mut self, slot: usize) -> Option<Box<StreamExchange>> {
        let entry = self.slots.get_mut(slot)?.take()?;
        self.count -= 1;
        Some(entry)
    }

    /// Frees the table if no exchange is in progress.
    pub fn trim(&mut self) {
        if self.count == 0 && self.slots.capacity() > 0 {
            self.slots = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
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
