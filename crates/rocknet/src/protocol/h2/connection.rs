//! HTTP/2 connection: a future that completes when the connection has closed.
//!
//! ```text
//! New ──first round──▶ Serving ──error, deadline, end of drain──▶ Closing ──all sent──▶ end of the connection
//!                         └──client has closed its side──▶ end of the connection
//! ```
//! The end of the connection is the same for HTTP/1 and HTTP/2; see `lifecycle/connection.rs`.
//!
//! Serving proceeds in rounds. A round polls exchanges in progress, reads and handles received frames, writes the DATA
//! frames that flow-control windows allow, and sends all output together. A round starts only after the backlog has
//! been sent, which is the only back-pressure. While the backlog waits, requests are received and held.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_proto::h2::{CONNECTION_WINDOW, Config, MAX_STREAMS, STREAM_WINDOW, ServerConnection, StreamId, upgrade};
use rocknet_proto::request::{OwnedRequest, RequestIndex};

use super::push_state::PushState;
use super::send_budget::SendBudget;
use super::streams::StreamTable;
use crate::lifecycle::connection::{Batching, ConnectionCore};
use crate::lifecycle::drive::{Version, drive};

/// Maximum number of rounds in one poll, before other connections are served. Without this limit, a client that
/// reads large responses quickly would occupy the worker.
const ROUNDS_PER_POLL: u32 = 8;

/// Settings that are sent to clients. They are sent before the requested site is known, so they always permit extended
/// CONNECT; a route that does not accept tunnels responds with 501.
const CONFIG: Config = Config {
    streams: MAX_STREAMS,
    stream_window: STREAM_WINDOW,
    connection_window: CONNECTION_WINDOW,
    connect_protocol: true,
};

/// Server side of an HTTP/2 connection.
pub struct Connection<L: Link> {
    pub(super) core: ConnectionCore<L>,
    pub(super) engine: ServerConnection,
    pub(super) state: State,
    /// Limit of bytes committed ahead of the link.
    pub(super) send_budget: SendBudget,
    /// True if a response that is more urgent than the one being sent can become ready at any moment. Determined only
    /// for a link that is slow enough for the order of frames to matter; otherwise false.
    pub(super) is_urgent_pending: bool,
    /// Size of the held requests in bytes.
    pub(super) held_bytes: usize,
    /// True while the server handles frames that it received before the backlog was sent. No exchange is started
    /// meanwhile.
    pub(super) is_blocked: bool,
    /// Slot of the exchange that is polled first.
    pub(super) first_slot: usize,
    pub(super) pushes: PushState,
    /// Exchanges that are not complete.
    pub(super) streams: StreamTable,
}

/// HTTP/2 connection that a request with `Upgrade: h2c` starts.
pub struct Upgraded {
    engine: ServerConnection,
    /// Stream on which the response to the upgrade request is sent.
    id: StreamId,
    request: OwnedRequest,
}

impl Upgraded {
    /// Returns the upgrade that a request contains. Returns `None` if the request is not a valid upgrade; it is then
    /// handled as HTTP/1.1.
    pub fn from_request(head: &[u8], index: &RequestIndex) -> Option<Upgraded> {
        let settings = upgrade::requested_settings(&index.view(head))?;
        let (engine, id) = ServerConnection::upgraded(&CONFIG, &settings).ok()?;
        let request = upgrade::as_stream_request(&OwnedRequest::copy(head, index));
        Some(Upgraded { engine, id, request })
    }
}

/// State while the connection is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The server's preface has not been sent.
    New,
    /// Exchanges are served in rounds.
    Serving,
    /// The last frame is queued.
    Closing,
}

impl<L: Link> Connection<L> {
    /// Creates a connection that waits for the preface of the client.
    pub fn new(core: ConnectionCore<L>) -> Connection<L> {
        core.open.speaks(2);
        Connection {
            core,
            engine: ServerConnection::new(&CONFIG),
            state: State::New,
            send_budget: SendBudget::default(),
            is_urgent_pending: false,
            held_bytes: 0,
            is_blocked: false,
            first_slot: 0,
            pushes: PushState::default(),
            streams: StreamTable::default(),
        }
    }

    /// Creates the connection after an accepted `Upgrade: h2c`. The upgrade request is held, and starts in the first
    /// round.
    pub fn upgraded(core: ConnectionCore<L>, accepted: Upgraded) -> Connection<L> {
        let mut connection = Connection::new(core);
        let mut queue = SendQueue::default();
        queue.buffer().extend_from_slice(upgrade::SWITCHING_PROTOCOLS);
        connection.core.backlog = Some(Box::new(queue));
        connection.engine = accepted.engine;
        connection.hold_upgrade_request(accepted.id, accepted.request);
        connection
    }

    /// Returns the scheme of requests on this connection.
    pub(super) fn scheme(&self) -> &'static [u8] {
        if self.core.info.secure.is_some() {
            b"https"
        } else {
            b"http"
        }
    }

    /// Sends the contents of the worker's output buffer.
    #[inline]
    pub(super) fn send(&mut self, context: &mut Context<'_>, output: &mut SendQueue) -> io::Result<()> {
        if output.is_empty() {
            return Ok(());
        }
        if let Some(limit) = self
            .send_budget
            .kernel_limit_change(output.len(), self.is_urgent_pending)
        {
            self.core.link.limit_unsent(limit);
        }
        // A batch would take all bytes, however slow the link is.
        let (moved, sent) = self.core.send(context, output, Batching::Alone);
        self.send_budget.moved(moved);
        match sent {
            // The link has not taken all bytes.
            Ok(false) => self.send_budget.filled(Instant::now()),
            _ => self.send_budget.took_round(moved),
        }
        sent.map(drop)
    }
}

impl<L: Link> Version for Connection<L> {
    type Link = L;
    const READS_WHILE_BLOCKED: bool = true;

    fn core(&mut self) -> &mut ConnectionCore<L> {
        &mut self.core
    }

    #[inline]
    fn poll_backlog(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let budget = &mut self.send_budget;
        let sent = self.core.poll_backlog(context, |bytes| budget.moved(bytes));
        // The result is true if there was a backlog.
        if ready!(sent)? {
            self.send_budget.drained(Instant::now());
            // The next round starts all held requests.
            self.held_bytes = 0;
            self.core.deadlines.end_wait();
        }
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn step(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.state {
            State::New | State::Serving => self.serve(context),
            State::Closing => self.end(),
        }
    }

    #[inline]
    fn begin_step(&self, rounds: &mut u32) -> bool {
        *rounds += 1;
        *rounds <= ROUNDS_PER_POLL
    }

    fn step_while_blocked(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.state {
            State::Serving => self.read_while_blocked(context),
            State::New | State::Closing => Poll::Pending,
        }
    }

    fn poll_exchange_deadlines(&mut self, context: &mut Context<'_>) -> bool {
        self.poll_deadlines(context)
    }

    fn expire(&mut self) {
        self.expire_open();
    }

    fn record_cut(&mut self) {
        self.record_cuts();
    }

    /// Removes the limit of unsent bytes, which would delay the `close_notify` of TLS.
    fn before_shut_down(&mut self) {
        if self.send_budget.clear_kernel_limit() {
            self.core.link.limit_unsent(None);
        }
    }
}

impl<L: Link + Unpin> Future for Connection<L> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        drive(self.get_mut(), context)
    }
}
