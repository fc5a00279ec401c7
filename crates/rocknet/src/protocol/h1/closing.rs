//! Closing: the end of a connection, polite where the client still listens, and what a passed deadline means.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;

use super::connection::{Connection, State};
use super::reply::H1Reply;
use crate::exchange::ContentError;
use crate::lifecycle::deadlines::{LEFT_TO_KERNEL, ONLY_THE_END, Phase};
use crate::lifecycle::exchange::ActiveExchange;
use crate::lifecycle::flow;
use crate::lifecycle::link::{self, Lingering};
use crate::pipeline::{RequestContext, refusals};

impl<L: Link> Connection<L> {
    /// All has been sent.
    pub(super) fn end(&mut self, linger: bool) -> Poll<io::Result<()>> {
        if !self.has_sent_all() {
            return Poll::Ready(Ok(()));
        }
        self.open_ended = false;
        let worker = self.open.worker();
        // A client that was not the one to say close may have sent more, and closing over that would be a reset, which
        // takes away from it what it has not read yet.
        let ours = worker.is_stopping() || worker.wheel.now().since(self.born) >= worker.view().ticks.age;
        // Neither is it known what came while an answer that did not fit into the socket was on its way.
        let meanwhile = self.deadlines.phase() == Phase::Send;
        let linger = linger || ours || meanwhile || !self.unread.is_empty();
        self.unread = Vec::new();
        // Whoever was sent little has not left more than that: the kernel need not be asked.
        let is_little = u64::from(self.sent) <= LEFT_TO_KERNEL;
        if !linger && (is_little || self.link.in_flight() <= LEFT_TO_KERNEL) {
            self.link.finish();
            self.state = State::Closed;
            return Poll::Ready(Ok(()));
        }
        self.link.shut_down()?;
        self.deadlines
            .begin(Phase::Linger, self.open.worker().view().ticks.linger);
        self.dropped = 0;
        self.state = State::Lingering;
        Poll::Ready(Ok(()))
    }

    /// Closes a connection whose client has ended its side: at once if it has taken nearly all that was sent, else once it
    /// has taken all, or takes too little. Otherwise the kernel would keep the rest for as long as such a client likes.
    pub(super) fn let_go(&mut self) -> io::Result<()> {
        self.let_go_of(LEFT_TO_KERNEL)
    }

    /// The same; at most `left` unacknowledged bytes are left to the kernel.
    pub(super) fn let_go_of(&mut self, left: u64) -> io::Result<()> {
        if self.link.in_flight() <= left {
            self.state = State::Closed;
            return Ok(());
        }
        self.link.shut_down()?;
        let waited = self.deadlines.begin_ended();
        self.state = State::Ended { waited };
        Ok(())
    }

    pub(super) fn linger(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let worker = Rc::clone(self.open.worker());
        match ready!(link::linger(&mut self.link, &worker, &mut self.dropped, context))? {
            Lingering::GoesOn => {}
            Lingering::Ended => return Poll::Ready(self.let_go()),
            Lingering::TooMuch => {
                if self.link.in_flight() > ONLY_THE_END {
                    self.link.reset();
                }
                self.state = State::Closed;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// The time for the client to close, or to take some of what was sent, is over.
    fn expire_linger(&mut self, phase: Phase) {
        let (in_flight, worker) = (self.link.in_flight(), self.open.worker());
        // A server that stops leaves the rest to the kernel: what was answered is not cut, and nobody waits for it.
        if in_flight <= ONLY_THE_END || phase == Phase::Linger && worker.is_stopping() {
            self.state = State::Closed;
        } else if phase == Phase::Linger {
            let view = worker.view();
            if let State::Ended { waited } = &mut self.state
                && let Some(next) = self.deadlines.look_again(*waited, view.ticks.linger)
            {
                *waited = next;
            } else {
                self.deadlines.begin_send(view.ticks.send, in_flight);
            }
        } else {
            self.link.reset();
            self.state = State::Closed;
        }
    }

    /// The deadline has passed.
    #[cold]
    pub(super) fn expire(&mut self) {
        let worker = Rc::clone(self.open.worker());
        let phase = self.deadlines.phase();
        tracing::debug!(client = %self.peer.client, ?phase, "a deadline passed");
        let exchange = match &self.state {
            State::Serving(serving) => Some(&serving.exchange),
            _ => None,
        };
        if phase == Phase::Handler && !self.ended {
            refusals::log_overdue(&worker, exchange.map(|exchange| &*exchange.context));
        }
        match self.state {
            State::Serving(_) if exchange.is_some_and(ActiveExchange::is_tunnelling) => {
                return self.expire_tunnel(phase);
            }
            State::Lingering | State::Ended { .. } => return self.expire_linger(phase),
            _ => {}
        }
        match phase {
            Phase::Header => {}
            Phase::Content | Phase::Handler if self.engine.may_answer() => {}
            // What was sent may lie in the kernel, with a client that does not take it.
            Phase::KeepAlive if self.link.in_flight() > ONLY_THE_END => {
                self.state = State::Closing { linger: true };
                return;
            }
            _ => {
                self.record_cut();
                if phase == Phase::Send {
                    // Closed in an orderly way, it would keep its send buffer for as long as the client likes.
                    self.link.reset();
                }
                // Nothing acts before the backlog has left, and this one never will.
                self.backlog = None;
                self.state = State::Closed;
                return;
            }
        }
        let view = worker.view();
        let (context, stage) = match std::mem::replace(&mut self.state, State::Reading) {
            State::Serving(serving) => {
                if let Some(pipe) = &serving.pipe {
                    pipe.end(Err(ContentError::TooSlow));
                }
                (serving.exchange.context, Some(serving.exchange.stage))
            }
            _ => (RequestContext::unparsed(&view, self.peer.local()), None),
        };
        let mut output = SendQueue::default();
        let mut reply = H1Reply::new(&mut self.engine, &mut output, &worker, true);
        let flow = flow::overdue(&worker, &mut self.peer, context, stage.as_ref(), phase, &mut reply);
        let written = reply.written;
        self.go_on(&view, flow, written);
        if output.is_empty() {
            return;
        }
        self.deadlines.begin_send(view.ticks.send, self.link.in_flight());
        self.backlog = Some(Box::new(output));
    }
}
