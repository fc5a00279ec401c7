//! Answers that could not be given at once, each on its stream, and the content that still comes for them.

use std::collections::VecDeque;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use rocknet_io::queue::SendQueue;
use rocknet_proto::h2::{ServerConnection, StreamId};
use rocknet_proto::refusal::Refusal;
use rocknet_proto::request::OwnedRequest;
use rocknet_proto::status::Status;

use super::pushes::Page;
use crate::exchange::{BodyChannel, BodyError, RequestBody};
use crate::lifecycle::deadlines::Deadlines;
use crate::lifecycle::exchange::{ActiveExchange, Stage};
use crate::pipeline::RequestContext;
use crate::response::FieldList;

/// Room for content that comes in small pieces; larger pieces have a chunk of their own.
const CHUNK: usize = 4096;

/// One answer under way.
pub struct Answer {
    pub asked: Asked,
    pub state: State,
    pub deadlines: Deadlines,
}

/// The stream of an answer, and what was received of its request.
pub struct Asked {
    pub id: StreamId,
    /// The request was HEAD: its answer has no content.
    pub head_only: bool,
    pub content: Option<Incoming>,
    pub page: Option<Box<Page>>,
}

pub enum State {
    /// It came while nothing could be sent, and is answered when that is over.
    Held(Held),
    Active(ActiveExchange),
}

impl Asked {
    pub fn new(id: StreamId, head_only: bool) -> Asked {
        Asked {
            id,
            head_only,
            content: None,
            page: None,
        }
    }

    /// Ends the request body for its handler before its time.
    pub fn fail(&self, error: BodyError) {
        if let Some(content) = &self.content {
            content.fail(error);
        }
    }
}

impl State {
    fn is_awaited(&self) -> bool {
        match self {
            State::Held(_) => true,
            State::Active(exchange) => match &exchange.stage {
                Stage::Waiting(_) => true,
                Stage::Sending { body, .. } => body.is_file(),
                Stage::Tunnelling(_) => false,
            },
        }
    }
}

/// What waits to be answered.
pub enum Held {
    Request {
        request: Rc<OwnedRequest>,
        content: RequestBody,
    },
    Refusal(Refusal, Rc<RequestContext>),
}

/// Content of the request on its way to the handler. The stream's window bounds it.
pub struct Incoming {
    pipe: Rc<BodyChannel>,
    chunks: VecDeque<BytesMut>,
    ended: bool,
    /// The client waits for 100 before it sends.
    expects_continue: bool,
}

impl Incoming {
    pub fn new(pipe: Rc<BodyChannel>, expects_continue: bool) -> Incoming {
        Incoming {
            pipe,
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
    pub fn end_with(&mut self, trailers: FieldList) {
        self.pipe.put_trailers(trailers);
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
    pub fn pipe(&self) -> &BodyChannel {
        &self.pipe
    }

    /// Ends it for the handler before its time.
    pub fn fail(&self, error: BodyError) {
        self.pipe.end(Err(error));
    }

    /// Hands on what the handler asks for.
    pub fn give(&mut self, id: StreamId, engine: &mut ServerConnection, output: &mut SendQueue) -> Demand {
        if !self.pipe.wants_chunk() {
            return Demand::None;
        }
        if let Some(chunk) = self.chunks.pop_front() {
            engine.release(id, chunk.len() as u32, output.buffer());
            self.pipe.put(chunk.freeze());
            return Demand::Met;
        }
        if self.ended {
            self.pipe.end(Ok(()));
            return Demand::Met;
        }
        if std::mem::take(&mut self.expects_continue) {
            // On a stream that has gone nobody waits for it.
            let _ = engine.send_interim(id, Status::CONTINUE, [], output.buffer());
        }
        Demand::Open
    }
}

/// What a handler wants of its request's content.
pub enum Demand {
    /// Nothing now.
    None,
    /// It has got what it asked for.
    Met,
    /// The client is waited for.
    Open,
}

/// The answers under way on one connection, by the place of their stream.
#[derive(Default)]
pub struct Answers {
    places: Vec<Option<Box<Answer>>>,
    count: usize,
}

impl Answers {
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Places to look at.
    pub fn places(&self) -> usize {
        self.places.len()
    }

    pub fn insert(&mut self, answer: Box<Answer>) {
        let place = answer.asked.id.slot();
        if place >= self.places.len() {
            self.places.resize_with(place + 1, || None);
        }
        self.count += usize::from(self.places[place].is_none());
        self.places[place] = Some(answer);
    }

    pub fn get_mut(&mut self, id: StreamId) -> Option<&mut Answer> {
        let answer = self.places.get_mut(id.slot())?.as_deref_mut()?;
        (answer.asked.id == id).then_some(answer)
    }

    pub fn take(&mut self, id: StreamId) -> Option<Box<Answer>> {
        let place = self.places.get_mut(id.slot())?;
        if place.as_ref()?.asked.id != id {
            return None;
        }
        self.count -= 1;
        place.take()
    }

    /// The streams whose content may be ready at any moment: a handler or a disk is waited for. Tunnels and streams that have
    /// begun are not among them, because they may be silent for as long as they like.
    pub fn awaited(&self) -> impl Iterator<Item = StreamId> + '_ {
        let answers = self.places.iter().flatten();
        answers
            .filter(|answer| answer.state.is_awaited())
            .map(|answer| answer.asked.id)
    }

    /// What stands at a place, out of the table.
    pub fn take_at(&mut self, place: usize) -> Option<Box<Answer>> {
        let answer = self.places.get_mut(place)?.take()?;
        self.count -= 1;
        Some(answer)
    }

    /// Gives memory back when nothing is under way.
    pub fn trim(&mut self) {
        if self.count == 0 && self.places.capacity() > 0 {
            self.places = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_pieces_share_chunks() {
        let (_content, pipe) = RequestBody::channel();
        let mut incoming = Incoming::new(pipe, false);
        for _ in 0..3 * CHUNK {
            incoming.add(b"x", false);
        }
        assert_eq!(incoming.chunks.len(), 3);
        incoming.add(&[b'y'; 2 * CHUNK], false);
        incoming.add(b"z", true);
        let sizes: Vec<_> = incoming.chunks.iter().map(|chunk| chunk.len()).collect();
        assert_eq!(sizes, [CHUNK, CHUNK, CHUNK, 2 * CHUNK, 1]);
    }
}
