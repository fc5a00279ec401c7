//! One HTTP/1 connection: a future that ends with it.
//!
//! ```text
//! Reading ──request, ready──▶ Reading        the fast way: no task, no allocation, one write for all that was read
//!    │ └──not ready──▶ Serving ──response queued──▶ Reading | Closing
//!    │                    └──tunnel ended──▶ Closing
//!    └──last answer──▶ Closing ──sent──▶ Lingering ──client closed──▶ Closed
//! ```
//! Before any state acts, what is queued must have left: that is all the back-pressure there is.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_io::wheel::Tick;
use rocknet_proto::h1::ServerConnection;

use crate::exchange::{Client, Pipe};
use crate::handshake::Handshake;
use crate::lifecycle::deadlines::{Deadlines, ONLY_THE_END, Phase};
use crate::lifecycle::exchange::{ActiveExchange, Stage};
use crate::lifecycle::link::{self, Backlog};
use crate::lifecycle::peer::Peer;
use crate::worker::{OpenConnection, Worker};

/// Pieces of an answer queued before others get their turn: a client that takes a large file as fast as it comes would
/// else have the worker for itself.
const PIECES_PER_TURN: u32 = 2;

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
    /// `unread` may hold whole requests.
    pub(super) stalled: bool,
    /// The client has ended its side, as was seen while it waited for an answer.
    pub(super) ended: bool,
    /// The end of the answer under way is the end of the connection (RFC 9112 §6.3), and not all of it is sent: to close
    /// now would make a part look like the whole.
    pub(super) open_ended: bool,
    /// What did not fit into the socket.
    pub(super) backlog: Backlog,
    /// Bytes thrown away, of content or while lingering.
    pub(super) dropped: u32,
    /// Bytes handed to the link since the beginning, or `u32::MAX` if that many or not known.
    pub(super) sent: u32,
}

pub(super) enum State {
    Reading,
    /// Its response is being made or sent, or the handler has taken the connection over.
    Serving(Box<Serving>),
    Closing {
        linger: bool,
    },
    /// Our side has ended.
    Lingering,
    /// So has the client's, or the link is of no more use, but not all that was sent was taken. `waited`: ticks from then to
    /// the next look.
    Ended {
        waited: u32,
    },
    Closed,
}

/// The exchange under way.
pub(super) struct Serving {
    pub(super) exchange: ActiveExchange,
    /// For the request body, of which the handler may want more until the response is complete.
    pub(super) pipe: Option<Rc<Pipe>>,
    /// The head that agreed to a tunnel has left.
    pub(super) has_begun: bool,
}

impl<L: Link> Connection<L> {
    pub fn new(worker: &Rc<Worker>, link: L, client: Client, local: Option<IpAddr>) -> Connection<L> {
        let local = local.map(Box::new);
        Connection::take_over(OpenConnection::new(worker), link, client, local, Vec::new())
    }

    /// Goes on with what turned out to be HTTP/1; `unread` is what has been received.
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
            engine: ServerConnection::new(),
            deadlines,
            peer: Peer::new(client, local),
            born: worker.wheel.now(),
            open,
            state: State::Reading,
            stalled: !unread.is_empty(),
            unread,
            ended: false,
            open_ended: false,
            backlog: None,
            dropped: 0,
            sent: 0,
        }
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
        let driven = self.drive_on(context);
        if driven.is_ready() {
            self.record_cut();
        }
        driven
    }

    /// The exchange under way ends before it is complete: the log says how much of it was sent.
    pub(super) fn record_cut(&mut self) {
        if let State::Serving(serving) = &self.state
            && !serving.exchange.is_waiting()
        {
            let backlog = self.backlog.as_ref().filter(|_| serving.exchange.is_sending());
            let unsent = backlog.map_or(0, |backlog| backlog.len());
            serving.exchange.record_cut(self.open.worker(), &mut self.peer, unsent);
            self.state = State::Closed;
        }
    }

    fn drive_on(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut pieces = 0;
        loop {
            let progress = match self.send_backlog(context) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                Poll::Ready(Ok(())) => match &self.state {
                    State::Reading => self.read(context),
                    State::Serving(serving) => match &serving.exchange.stage {
                        Stage::Waiting(_) => self.wait(context),
                        Stage::Sending { .. } if pieces == PIECES_PER_TURN => {
                            context.waker().wake_by_ref();
                            return Poll::Pending;
                        }
                        Stage::Sending { .. } => {
                            pieces += 1;
                            self.feed(context)
                        }
                        Stage::Tunnelling(_) => self.tunnel(context),
                    },
                    State::Closing { linger } => {
                        let linger = *linger;
                        self.end(linger)
                    }
                    State::Lingering => self.linger(context),
                    State::Ended { .. } => Poll::Pending,
                    State::Closed => return Poll::Ready(()),
                },
            };
            match progress {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => {
                    if self.broken(&error) {
                        return Poll::Ready(());
                    }
                }
                Poll::Pending => {
                    let view = self.open.worker().view();
                    let (window, ticks) = match self.deadlines.phase() {
                        Phase::Content => (view.content_window(), view.ticks.body),
                        _ => (view.send_window(), view.ticks.send),
                    };
                    if !self
                        .deadlines
                        .poll_past(context.waker(), window, ticks, || self.link.in_flight())
                    {
                        return Poll::Pending;
                    }
                    self.expire();
                }
            }
        }
    }

    /// A link that failed is mostly a client that has gone: nobody is left to tell. True if that is the end; false if the
    /// client is there, broke its TLS session for instance, and has not taken all that was sent.
    #[cold]
    fn broken(&mut self, error: &io::Error) -> bool {
        // But a file that ended before its time is the operator's matter.
        if error.kind() == io::ErrorKind::UnexpectedEof {
            tracing::warn!(client = %self.peer.client, "an answer was cut off: {error}");
        }
        self.record_cut();
        // What was not sent ends in a reset anyway, and so does an answer that only the end of the connection ends. After the
        // client's own reset our side cannot be ended.
        let is_over = self.open_ended || self.backlog.is_some() || matches!(self.state, State::Ended { .. });
        is_over || self.let_go_of(ONLY_THE_END).is_err() || matches!(self.state, State::Closed)
    }

    pub(super) fn send_backlog(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let worker = self.open.worker();
        let mut moved = 0;
        let way = (&**worker, &mut self.deadlines);
        let sent = link::poll_send(&mut self.link, &mut self.backlog, way, context, |bytes| moved = bytes);
        self.note_sent(moved);
        sent.map_ok(drop)
    }

    #[inline]
    fn note_sent(&mut self, bytes: u64) {
        self.sent = self.sent.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
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
        let sent = if self.link.send_together(context, output) {
            Poll::Ready(Ok(()))
        } else {
            self.link.poll_send(context, output)
        };
        let moved = before - output.len();
        self.open.worker().counters.bytes_sent.add(moved);
        self.note_sent(moved);
        match sent {
            Poll::Ready(Ok(())) => {
                output.clear();
                Ok(())
            }
            Poll::Ready(Err(error)) => {
                output.clear();
                Err(error)
            }
            Poll::Pending => {
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
        if self.open_ended || self.backlog.is_some() {
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
