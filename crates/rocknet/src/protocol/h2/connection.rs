//! One HTTP/2 connection: a future that ends with it.
//!
//! ```text
//! Serving ──fault, drained, or nobody there──▶ Closing ──all sent──▶ Lingering ──client closed──▶ Closed
//! ```
//! Serving goes in rounds: answers that are being made are looked at, what came in is read and answered where it can be
//! at once, what windows allow is framed, and all of it leaves in one go. Before any round, what is queued must have
//! left: that is all the back-pressure there is. Until it has, what comes is read and held.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_io::wheel::Tick;
use rocknet_proto::h2::{CONNECTION_WINDOW, Config, STREAM_WINDOW, STREAMS, ServerConnection, StreamId, upgrade};
use rocknet_proto::request::{OwnedRequest, RequestIndex};

use super::answer::Answers;
use super::pushes::Pushes;
use super::send_ahead::SendAhead;
use crate::exchange::Client;
use crate::handshake::Handshake;
use crate::lifecycle::deadlines::{Deadlines, LEFT_TO_KERNEL, ONLY_THE_END, Phase};
use crate::lifecycle::link::{self, Backlog};
use crate::lifecycle::peer::Peer;
use crate::worker::{OpenConnection, Worker};

/// Rounds before others get their turn: a client that takes large answers as fast as they come would else have the
/// worker for itself.
const ROUNDS_PER_TURN: u32 = 8;

/// What clients are allowed. They hear of it before it is known which site they will ask; where nobody takes tunnels, asking
/// for one gets 501.
const CONFIG: Config = Config {
    streams: STREAMS,
    stream_window: STREAM_WINDOW,
    connection_window: CONNECTION_WINDOW,
    connect_protocol: true,
};

pub struct Connection<L: Link> {
    pub(super) link: L,
    pub(super) engine: ServerConnection,
    pub(super) open: OpenConnection,
    pub(super) deadlines: Deadlines,
    pub(super) peer: Peer,
    /// The wheel's tick at its beginning.
    pub(super) born: Tick,
    pub(super) state: State,
    /// What was received and not yet understood: empty for an idle connection.
    pub(super) unread: Vec<u8>,
    /// `unread` may hold whole frames.
    pub(super) stalled: bool,
    /// What did not fit into the socket.
    pub(super) backlog: Backlog,
    /// How much is committed ahead of the link.
    pub(super) ahead: SendAhead,
    /// A response more urgent than what is sent may be ready at any moment.
    pub(super) is_tight: bool,
    /// Heads of requests that came while nothing could be sent, in bytes.
    pub(super) held: usize,
    /// What is received now is acted on without beginning answers.
    pub(super) is_holding: bool,
    /// The place of an answer that is looked at first.
    pub(super) first_place: usize,
    pub(super) pushes: Pushes,
    /// Answers that could not be given at once.
    pub(super) answers: Answers,
    /// Bytes thrown away while lingering.
    pub(super) dropped: u32,
}

/// What a request with `Upgrade: h2c` begins.
pub struct Upgraded {
    engine: ServerConnection,
    id: StreamId,
    request: OwnedRequest,
}

impl Upgraded {
    /// `None`: the request is answered in HTTP/1.1, as it does not ask as it should.
    pub fn of(head: &[u8], index: &RequestIndex) -> Option<Upgraded> {
        let settings = upgrade::settings_of(&index.view(head))?;
        let (engine, id) = ServerConnection::upgraded(&CONFIG, &settings).ok()?;
        let request = upgrade::as_stream(&OwnedRequest::copy(head, index));
        Some(Upgraded { engine, id, request })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Our preface has not been sent.
    New,
    Serving,
    Closing,
    Lingering,
    /// The client has ended its side, or the link is of no more use, but not all that was sent was taken. `waited`: ticks
    /// from then to the next look.
    Ended {
        waited: u32,
    },
    Closed,
}

impl<L: Link> Connection<L> {
    pub fn new(worker: &Rc<Worker>, link: L, client: Client, local: Option<IpAddr>) -> Connection<L> {
        let local = local.map(Box::new);
        Connection::take_over(OpenConnection::new(worker), link, client, local, Vec::new())
    }

    /// Goes on with what turned out to be HTTP/2; `unread` is what has been received.
    pub fn take_over(
        open: OpenConnection,
        link: L,
        client: Client,
        local: Option<Box<IpAddr>>,
        unread: Vec<u8>,
    ) -> Connection<L> {
        let worker = Rc::clone(open.worker());
        let mut deadlines = Deadlines::new(&worker.wheel);
        deadlines.begin(Phase::First, worker.view().ticks.header);
        Connection {
            link,
            engine: ServerConnection::new(&CONFIG),
            open,
            deadlines,
            peer: Peer::new(client, local),
            born: worker.wheel.now(),
            state: State::New,
            stalled: !unread.is_empty(),
            unread,
            backlog: None,
            ahead: SendAhead::default(),
            is_tight: false,
            held: 0,
            is_holding: false,
            first_place: 0,
            pushes: Pushes::default(),
            answers: Answers::default(),
            dropped: 0,
        }
    }

    /// Goes on with an agreement to `Upgrade: h2c`. The request that asked for it is held, and answered in the first round.
    pub fn upgraded(
        open: OpenConnection,
        link: L,
        client: Client,
        local: Option<Box<IpAddr>>,
        unread: Vec<u8>,
        agreed: Upgraded,
    ) -> Connection<L> {
        let mut connection = Connection::take_over(open, link, client, local, unread);
        let mut queue = SendQueue::default();
        queue.buffer().extend_from_slice(upgrade::SWITCHING);
        connection.backlog = Some(Box::new(queue));
        connection.engine = agreed.engine;
        connection.hold_first(agreed.id, agreed.request);
        connection
    }

    /// The scheme of what is asked for over this connection.
    pub(super) fn scheme(&self) -> &'static [u8] {
        if self.peer.secure.is_some() { b"https" } else { b"http" }
    }

    /// Of the time for its first head, so many ticks are left.
    pub fn begun(mut self, ticks: u32) -> Connection<L> {
        self.deadlines.begin(Phase::First, ticks);
        self
    }

    /// Under TLS: what the handshake has settled.
    pub fn secured(mut self, secure: Rc<Handshake>) -> Connection<L> {
        self.peer.secure = Some(secure);
        self
    }

    fn drive(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut rounds = 0;
        loop {
            let progress = match self.send_backlog(context) {
                Poll::Pending if self.state == State::Serving => {
                    if rounds == ROUNDS_PER_TURN {
                        context.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    rounds += 1;
                    self.hold(context)
                }
                Poll::Pending => Poll::Pending,
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                Poll::Ready(Ok(())) => match self.state {
                    State::New | State::Serving if rounds == ROUNDS_PER_TURN => {
                        context.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    State::New | State::Serving => {
                        rounds += 1;
                        self.serve(context)
                    }
                    State::Closing => self.end(),
                    State::Lingering => self.linger(context),
                    State::Ended { .. } => Poll::Pending,
                    State::Closed => {
                        self.record_cuts();
                        return Poll::Ready(());
                    }
                },
            };
            match progress {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => {
                    // Mostly a client that has gone: nobody is left to tell.
                    if error.kind() == io::ErrorKind::UnexpectedEof {
                        tracing::warn!("a connection was cut: {error}");
                    }
                    self.record_cuts();
                    // What was not sent ends in a reset anyway.
                    let is_over = self.backlog.is_some() || matches!(self.state, State::Ended { .. });
                    // A client that broke its TLS session is still there, and is not one that asked for the end.
                    let left = match error.kind() {
                        io::ErrorKind::ConnectionReset => LEFT_TO_KERNEL,
                        _ => ONLY_THE_END,
                    };
                    if is_over || !self.let_go(left) {
                        return Poll::Ready(());
                    }
                }
                Poll::Pending if !self.look_at_deadlines(context) => return Poll::Pending,
                Poll::Pending => {}
            }
        }
    }

    fn send_backlog(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let worker = self.open.worker();
        let (ahead, way) = (&mut self.ahead, (&**worker, &mut self.deadlines));
        let sent = link::poll_send(&mut self.link, &mut self.backlog, way, context, |bytes| {
            ahead.moved(bytes);
        });
        if !ready!(sent)? {
            return Poll::Ready(Ok(()));
        }
        self.ahead.drained(Instant::now());
        self.held = 0;
        self.deadlines.leave();
        Poll::Ready(Ok(()))
    }

    /// Whether all that was sent has truly left, so that the link may be let go.
    pub(super) fn has_sent_all(&mut self) -> bool {
        let worker = self.open.worker();
        link::has_sent_all(&mut self.link, &mut self.backlog, worker, &mut self.deadlines)
    }

    /// Sends what has been rendered into the worker's buffer; what does not fit becomes this connection's own.
    #[inline]
    pub(super) fn send(&mut self, context: &mut Context<'_>, output: &mut SendQueue) -> io::Result<()> {
        if output.is_empty() {
            return Ok(());
        }
        let before = output.len();
        if let Some(limit) = self.ahead.change(before, self.is_tight) {
            self.link.limit_unsent(limit);
        }
        let sent = self.link.poll_send(context, output);
        let moved = before - output.len();
        self.open.worker().counters.bytes_sent.add(moved);
        self.ahead.moved(moved);
        match sent {
            Poll::Ready(result) => {
                self.ahead.took_round(moved);
                output.clear();
                result
            }
            Poll::Pending => {
                self.ahead.filled(Instant::now());
                let way = (&**self.open.worker(), &mut self.deadlines);
                link::keep(&self.link, &mut self.backlog, output, way);
                Ok(())
            }
        }
    }
}

impl<L: Link> Drop for Connection<L> {
    fn drop(&mut self) {
        // What was not sent is lost; the kernel shall not keep what was, for a client that may never take it.
        if self.backlog.is_some() {
            self.link.reset();
        }
    }
}

impl<L: Link + Unpin> Future for Connection<L> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.get_mut().drive(context)
    }
}
