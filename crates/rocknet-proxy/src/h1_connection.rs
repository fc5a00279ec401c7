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
    pub idle_since_ms: u64,
}

/// Memory that a connection may keep while it rests; requests are longer than that where much is told in cookies.
const IDLE_MEMORY: usize = 4096;

impl H1Connection {
    pub fn new(link: Transport) -> H1Connection {
        H1Connection {
            link,
            engine: ClientConnection::new(),
            out: SendQueue::default(),
            unread: Vec::new(),
            is_new: true,
            idle_since_ms: 0,
        }
    }

    /// Whether another request may go this way, as far as is known here.
    pub fn prepare_for_reuse(&mut self) -> bool {
        self.link.flush();
        let is_reusable = self.engine.is_reusable()
            && self.out.is_empty()
            && self.unread.is_empty()
            && self.link.take_unsent().is_none();
        if is_reusable {
            self.out.shrink(IDLE_MEMORY);
            self.unread = Vec::new();
            self.is_new = false;
        }
        is_reusable
    }

    /// Whether the other side has neither closed nor said what nobody asked. Costs a system call only if something came.
    pub fn is_alive(&mut self) -> bool {
        self.link.is_silent()
    }
}
