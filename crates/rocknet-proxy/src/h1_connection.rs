//! A connection to an upstream: its link, its engine, and what lies between them.

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_proto::h1::ClientConnection;

use crate::transport::Transport;

pub struct H1Connection {
    pub link: Transport,
    pub engine: ClientConnection,
    /// What waits to leave.
    pub out: SendQueue,
    /// Received and not understood yet: empty at rest.
    pub unread: Vec<u8>,
    /// Nothing was asked over it before.
    pub is_new: bool,
    /// Since when it rests, in milliseconds of uptime.
    pub rests_since_ms: u64,
}

/// Memory that a connection may keep while it rests; requests are longer than that where much is told in cookies.
const RESTING_MEMORY: usize = 4096;

impl H1Connection {
    pub fn new(link: Transport) -> H1Connection {
        H1Connection {
            link,
            engine: ClientConnection::new(),
            out: SendQueue::default(),
            unread: Vec::new(),
            is_new: true,
            rests_since_ms: 0,
        }
    }

    /// Whether another request may go this way, as far as is known here.
    pub fn may_rest(&mut self) -> bool {
        self.link.flush();
        let is_fit = self.engine.is_reusable()
            && self.out.is_empty()
            && self.unread.is_empty()
            && self.link.take_unsent().is_none();
        if is_fit {
            self.out.shrink(RESTING_MEMORY);
            self.unread = Vec::new();
            self.is_new = false;
        }
        is_fit
    }

    /// Whether the other side has neither closed nor said what nobody asked. Costs a system call only if something came.
    pub fn still_stands(&mut self) -> bool {
        self.link.is_silent()
    }
}
