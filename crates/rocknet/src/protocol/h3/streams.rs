//! Table of exchanges in progress by stream.

use rocknet_proto::h3::{Priority, StreamId};

use super::output::StreamOutput;
use crate::exchange::BodyError;
use crate::lifecycle::body_receiver::BodyReceiver;
use crate::lifecycle::deadlines::{Deadlines, Wait};
use crate::lifecycle::exchange::ActiveExchange;

/// Exchange in progress on one stream.
pub struct StreamExchange {
    pub stream: RequestStream,
    /// Exchange; `None` if the response is complete except for output that the transport has not taken.
    pub exchange: Option<ActiveExchange>,
    pub deadlines: Deadlines,
    /// True if the client has permitted further bytes of this stream, and none of them could be written yet, because
    /// other streams use up the window of the connection. The event `Writable` of the transport sets the flag. It is
    /// cleared by the next bytes written on this stream, and by [`StreamTable::credit_waiting`].
    pub awaits_turn: bool,
}

/// Stream of an exchange, with the received part of its request and the output of its response.
pub struct RequestStream {
    pub id: StreamId,
    /// True if the request was HEAD, so that the response has no body.
    pub head_only: bool,
    /// Priority of the response (RFC 9218).
    pub priority: Priority,
    /// Receiver of the request body, or of tunnel data, if the client sends any.
    pub body: Option<BodyReceiver>,
    pub output: StreamOutput,
    /// True if the header of a DATA frame for the whole body has been written.
    pub is_framed: bool,
    /// True if the stream is not read until the handler has taken the received bytes.
    pub is_paused: bool,
}

impl RequestStream {
    /// Creates a stream without a request body. `head_only`: true if the request was HEAD.
    pub fn new(id: StreamId, head_only: bool) -> RequestStream {
        RequestStream {
            id,
            head_only,
            priority: Priority::DEFAULT,
            body: None,
            output: StreamOutput::default(),
            is_framed: false,
            is_paused: false,
        }
    }

    /// Fails the request body for its handler.
    pub fn fail(&self, error: BodyError) {
        if let Some(body) = &self.body {
            body.fail(error);
        }
    }
}

/// Exchanges in progress on one connection. There is at most one for each stream of the client.
#[derive(Default)]
pub struct StreamTable {
    /// Stream of each exchange in `entries`, in the same order.
    ids: Vec<StreamId>,
    /// Boxed, because an exchange is taken out and put back whenever it is polled.
    #[allow(clippy::vec_box)]
    entries: Vec<Box<StreamExchange>>,
}

impl StreamTable {
    /// Returns true if no exchange is in progress.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Returns the streams of all exchanges.
    pub fn ids(&self) -> Vec<StreamId> {
        self.ids.clone()
    }

    /// Returns the streams of all exchanges with the priorities of their responses.
    pub fn priorities(&self) -> Vec<(StreamId, Priority)> {
        let streams = self.entries.iter().map(|entry| &entry.stream);
        streams.map(|stream| (stream.id, stream.priority)).collect()
    }

    /// Returns the number of bytes that wait for the transport on all streams.
    pub fn held(&self) -> u64 {
        self.entries.iter().map(|entry| entry.stream.output.length()).sum()
    }

    /// Returns the position of an exchange. Searches from the end, where the exchange that was polled last is.
    fn position(&self, id: StreamId) -> Option<usize> {
        self.ids.iter().rposition(|&known| known == id)
    }

    /// Adds an exchange.
    pub fn insert(&mut self, entry: Box<StreamExchange>) {
        self.ids.push(entry.stream.id);
        self.entries.push(entry);
    }

    /// Returns the exchange of a stream, if it is in progress.
    pub fn get_mut(&mut self, id: StreamId) -> Option<&mut StreamExchange> {
        self.position(id).map(|position| &mut *self.entries[position])
    }

    /// Takes the exchange of a stream out of the table, if it is in progress.
    pub fn take(&mut self, id: StreamId) -> Option<Box<StreamExchange>> {
        let position = self.position(id)?;
        self.ids.swap_remove(position);
        Some(self.entries.swap_remove(position))
    }

    /// Counts `bytes`, which the client has taken on other streams, as moved for each exchange that waits for its
    /// turn. Skips an exchange whose own stream has no credit, because the client has stopped reading that stream.
    pub fn credit_waiting(&mut self, bytes: u64) {
        for entry in &mut self.entries {
            if entry.deadlines.wait() == Wait::Send && std::mem::take(&mut entry.awaits_turn) {
                entry.deadlines.moved(bytes);
            }
        }
    }

    /// Frees the table if no exchange is in progress.
    pub fn trim(&mut self) {
        if self.ids.is_empty() && self.ids.capacity() > 0 {
            *self = StreamTable::default();
        }
    }
}
