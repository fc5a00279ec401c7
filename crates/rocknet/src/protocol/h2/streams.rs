//! Table of exchanges in progress by stream.

use std::rc::Rc;

use rocknet_proto::h2::StreamId;
use rocknet_proto::refusal::Refusal;
use rocknet_proto::request::OwnedRequest;

use super::push_state::PendingPage;
use crate::exchange::{BodyError, RequestBody};
use crate::lifecycle::body_receiver::BodyReceiver;
use crate::lifecycle::deadlines::Deadlines;
use crate::lifecycle::exchange::{ActiveExchange, Stage};
use crate::pipeline::RequestContext;

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
    /// Receiver of the request body, or of tunnel data, if the client sends any.
    pub body: Option<BodyReceiver>,
    /// Page whose files may be pushed with the response, if any.
    pub page: Option<Box<PendingPage>>,
}

/// State of an exchange on a stream.
pub enum ExchangeState {
    /// The request arrived while the socket was blocked, and starts once the backlog has been sent.
    Held(HeldRequest),
    /// The exchange has started.
    Active(ActiveExchange),
}

impl RequestStream {
    /// Creates a stream without a request body. `head_only`: true if the request was HEAD.
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
    /// Request whose exchange has not started.
    Request {
        request: Rc<OwnedRequest>,
        /// Request body for the handler.
        body: RequestBody,
    },
    /// Reason of a rejection, and the context with which the response is recorded.
    Refusal(Refusal, Rc<RequestContext>),
}

/// Exchanges in progress on one connection, by the slots of their streams. The slot of a stream is a small number that
/// is unique among the open streams of the connection.
#[derive(Default)]
pub struct StreamTable {
    slots: Vec<Option<Box<StreamExchange>>>,
    /// Number of exchanges in `slots`.
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

    /// Returns the exchange of a stream, if it is in progress.
    pub fn get_mut(&mut self, id: StreamId) -> Option<&mut StreamExchange> {
        let entry = self.slots.get_mut(id.slot())?.as_deref_mut()?;
        (entry.stream.id == id).then_some(entry)
    }

    /// Takes the exchange of a stream out of the table, if it is in progress.
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
