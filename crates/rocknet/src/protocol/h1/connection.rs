//! HTTP/1 connection: a future that completes when the connection has closed.
//!
//! ```text
//! Reading ──immediate response──▶ Reading    fast path: no stored exchange, no allocation, one write for all responses
//!    │ └──incomplete response──▶ Serving ──response queued──▶ Reading | Closing
//!    │                                └──tunnel ended──▶ Closing
//!    └──last response──▶ Closing ──sent──▶ end of the connection (lifecycle/connection.rs)
//! ```

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_proto::h1::ServerConnection;

use crate::exchange::BodyChannel;
use crate::lifecycle::connection::{Batching, ConnectionCore};
use crate::lifecycle::drive::{Version, drive};
use crate::lifecycle::exchange::{ActiveExchange, Stage};

/// Maximum number of pieces of a response body that are queued in one poll, before other connections are served.
/// Without this limit, a client that reads a large file quickly would occupy the worker.
const PIECES_PER_POLL: u32 = 2;

/// Server side of an HTTP/1 connection.
pub struct Connection<L: Link> {
    pub(super) core: ConnectionCore<L>,
    pub(super) engine: ServerConnection,
    pub(super) state: State,
    /// True if the client has closed its side while it waited for a response.
    pub(super) client_has_closed: bool,
    /// Number of bytes written to the link, which is a socket, or TLS over one. `u32::MAX` if the number is larger or
    /// unknown.
    pub(super) sent: u32,
}

/// State while the connection is open.
pub(super) enum State {
    /// No exchange is in progress: the connection waits for a request, or discards the rest of a request body.
    Reading,
    /// A response is being made or sent, or a tunnel is open.
    Serving(Box<CurrentExchange>),
    /// The last response is queued.
    Closing {
        /// True if input is read and discarded until the client closes its side.
        linger: bool,
    },
}

/// Exchange in progress.
pub(super) struct CurrentExchange {
    pub(super) exchange: ActiveExchange,
    /// Channel of the request body, which the handler may read until the response is complete.
    pub(super) channel: Option<Rc<BodyChannel>>,
    /// True once the tunnel has been polled. The response that accepts the tunnel may still be unsent.
    pub(super) tunnel_has_begun: bool,
}

impl<L: Link> Connection<L> {
    /// Creates a connection that waits for its first request.
    pub fn new(core: ConnectionCore<L>) -> Connection<L> {
        core.open.speaks(1);
        Connection {
            core,
            engine: ServerConnection::new(),
            state: State::Reading,
            client_has_closed: false,
            sent: 0,
        }
    }

    /// Counts bytes that were written to the link.
    #[inline]
    fn count_sent(&mut self, bytes: u64) {
        self.sent = self.sent.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// Sends the contents of the worker's output buffer.
    #[inline]
    pub(super) fn send(&mut self, context: &mut Context<'_>, output: &mut SendQueue) -> io::Result<()> {
        if output.is_empty() {
            return Ok(());
        }
        let (moved, result) = self.core.send(context, output, Batching::Permitted);
        self.count_sent(moved);
        result.map(drop)
    }
}

impl<L: Link> Version for Connection<L> {
    type Link = L;
    const READS_WHILE_BLOCKED: bool = false;

    fn core(&mut self) -> &mut ConnectionCore<L> {
        &mut self.core
    }

    fn poll_backlog(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut moved = 0;
        let polled = self.core.poll_backlog(context, |bytes| moved = bytes);
        self.count_sent(moved);
        polled.map_ok(drop)
    }

    #[inline]
    fn step(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.state {
            State::Reading => self.read(context),
            State::Serving(serving) => match &serving.exchange.stage {
                Stage::Waiting(_) => self.poll_handler(context),
                Stage::Sending { .. } => self.send_body(context),
                Stage::Tunnel(_) => self.poll_tunnel(context),
            },
            State::Closing { linger } => {
                let linger = *linger;
                self.end(linger)
            }
        }
    }

    #[inline]
    fn begin_step(&self, pieces: &mut u32) -> bool {
        if !self.is_sending() {
            return true;
        }
        *pieces += 1;
        *pieces <= PIECES_PER_POLL
    }

    fn expire(&mut self) {
        self.expire_open();
    }

    /// Records an exchange that ends before it is complete, with the bytes sent so far.
    fn record_cut(&mut self) {
        let State::Serving(serving) = std::mem::replace(&mut self.state, State::Reading) else {
            return;
        };
        // A tunnel counts only bytes that the link has taken, so its backlog is not deducted.
        let backlog = self.core.backlog.as_ref().filter(|_| serving.exchange.is_sending());
        let unsent = backlog.map_or(0, |backlog| backlog.len());
        let worker = self.core.open.worker();
        serving.exchange.record_cut(worker, &mut self.core.info, unsent);
    }
}

impl<L: Link + Unpin> Future for Connection<L> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        drive(self.get_mut(), context)
    }
}
