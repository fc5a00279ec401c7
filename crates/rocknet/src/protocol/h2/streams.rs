//! Answers that could not be given at once, each on its stream, and the content that still comes for them.

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

/// Room for content that comes in small pieces; larger pieces have a chunk of their own.
const CHUNK: usize = 4096;

/// One answer under way.
pub struct StreamExchange {
    pub stream: RequestStream,
    pub state: ExchangeState,
    pub deadlines: Deadlines,
}

/// The stream of an answer, and what was received of its request.
pub struct RequestStream {
    pub id: StreamId,
    /// The request was HEAD: its answer has no content.
    pub head_only: bool,
    pub body: Option<BodyReceiver>,
    pub page: Option<Box<PendingPage>>,
}

pub enum ExchangeState {
    /// It came while nothing could be sent, and is answered when that is over.
    Held(HeldRequest),
    Active(ActiveExchange),
}

impl RequestStream {
    pub fn new(id: StreamId, head_only: bool) -> RequestStream {
        RequestStream {
            id,
            head_only,
            body: None,
            page: None,
        }
    }

    /// Ends the request body for its handler before its time.
    pub fn fail(&self, error: BodyError) {
        if let Some(body) = &self.body {
            body.fail(error);
        }
    }
}

impl ExchangeState {
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

/// What waits to be answered.
pub enum HeldRequest {
    Request {
        request: Rc<OwnedRequest>,
        body: RequestBody,
    },
    Refusal(Refusal, Rc<RequestContext>),
}

/// Content of the request on its way to the handler. The stream's window bounds it.
pub struct BodyReceiver {
    channel: Rc<BodyChannel>,
    chunks: VecDeque<BytesMut>,
    ended: bool,
    /// The client waits for 100 before it sends.
    expects_continue: bool,
}

impl BodyReceiver {
    pub fn new(channel: Rc<BodyChannel>, expects_continue: bool) -> BodyReceiver {
        BodyReceiver {
            channel,
            chunks: VecDeque::new(),
            ended: false,
            expects_continue,
        }
    }

    /// A piece came.
    pub fn add(&mut self, piece: &[u8], last: bool) {
        if !piece.is_empty() {
            self.push(piece);
        }
        self.ended |= last;
        // Who sends has seen that it may.
        self.expects_continue = false;
    }

    /// These fields came, and nothing follows them.
    pub fn end_with_trailers(&mut self, trailers: FieldList) {
        self.channel.put_trailers(trailers);
        self.add(&[], true);
    }

    /// Small pieces share a chunk: the window counts bytes, and a piece of one takes much more memory than that.
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

    /// The next piece, for a tunnel; what is taken is to be released.
    pub fn take(&mut self) -> Option<Bytes> {
        self.chunks.pop_front().map(BytesMut::freeze)
    }

    /// Bytes that were received and not taken.
    pub fn held(&self) -> usize {
        self.chunks.iter().map(BytesMut::len).sum()
    }

    /// Nothing more will come.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Leads the request body to the handler.
    pub fn channel(&self) -> &BodyChannel {
        &self.channel
    }

    /// Ends it for the handler before its time.
    pub fn fail(&self, error: BodyError) {
        self.channel.end(Err(error));
    }

    /// Hands on what the handler asks for.
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
            // On a stream that has gone nobody waits for it.
            let _ = engine.send_interim(id, Status::CONTINUE, [], output.buffer());
        }
        BodyDemand::Unmet
    }
}

/// What a handler wants of its request's content.
pub enum BodyDemand {
    /// Nothing now.
    None,
    /// It has got what it asked for.
    Met,
    /// The client is waited for.
    Unmet,
}

/// The answers under way on one connection, by the place of their stream.
#[derive(Default)]
pub struct StreamTable {
    slots: Vec<Option<Box<StreamExchange>>>,
    count: usize,
}

impl StreamTable {
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// SiteRoutes to look at.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    pub fn insert(&mut self, entry: Box<StreamExchange>) {
        let slot = entry.stream.id.slot();
        if slot >= self.slots.len() {
            self.slots.resize_with(slot + 1, || None);
        }
        self.count += usize::from(self.slots[slot].is_none());
        self.slots[slot] = Some(entry);
    }

    pub fn get_mut(&mut self, id: StreamId) -> Option<&mut StreamExchange> {
        let entry = self.slots.get_mut(id.slot())?.as_deref_mut()?;
        (entry.stream.id == id).then_some(entry)
    }

    pub fn take(&mut self, id: StreamId) -> Option<Box<StreamExchange>> {
        let slot = self.slots.get_mut(id.slot())?;
        if slot.as_ref()?.stream.id != id {
            return None;
        }
        self.count -= 1;
        slot.take()
    }

    /// The streams whose content may be ready at any moment: a handler or a disk is waited for. Tunnels and streams that have
    /// begun are not among them, because they may be silent for as long as they like.
    pub fn awaited(&self) -> impl Iterator<Item = StreamId> + '_ {
        let exchanges = self.slots.iter().flatten();
        exchanges
            .filter(|entry| entry.state.is_awaited())
            .map(|entry| entry.stream.id)
    }

    /// What stands at a place, out of the table.
    pub fn take_slot(&mut self, slot: usize) -> Option<Box<StreamExchange>> {
        let entry = self.slots.get_mut(slot)?.take()?;
        self.count -= 1;
        Some(entry)
    }

    /// Gives memory back when nothing is under way.
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
