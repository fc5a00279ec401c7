//! HTTP/1.1 connection to an upstream: the link, the protocol engine, and the buffers between them.

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_proto::h1::ClientConnection;

use crate::transport::Transport;

/// Connection to an upstream, which carries one exchange at a time.
pub struct H1Connection {
    pub link: Transport,
    pub engine: ClientConnection,
    /// Bytes to send.
    pub out: SendQueue,
    /// Received bytes that are not parsed yet. Empty while the connection is idle.
    pub unread: Vec<u8>,
    /// True until the first exchange is over.
    pub is_new: bool,
    /// Start of the idle time, in milliseconds of uptime.
    pub idle_since_ms: u64,
}

/// Size of the send buffer that an idle connection keeps, in bytes. Only requests with large cookies need more.
const IDLE_MEMORY: usize = 4096;

impl H1Connection {
    /// Returns a connection over a connected transport.
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

    /// Prepares the connection for another request. Returns false if it cannot be reused.
    pub fn prepare_for_reuse(&mut self) -> bool {
        // Sends a batched write now, so that `take_unsent` returns what the socket did not accept of it.
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

    /// Returns false if the upstream closed the idle connection or sent data on it. Requires a system call only if data
    /// arrived.
    pub fn is_alive(&mut self) -> bool {
        self.link.is_idle()
    }
}
