//! Closing: the end of a connection or of one answer, polite where the client still listens, and what a passed deadline
//! means.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use rocknet_io::link::Link;
use rocknet_proto::h2::ErrorCode;

use super::answer::{Answer, Asked, State as Stage};
use super::connection::{Connection, State};
use super::reply::RequestBody;
use crate::exchange::ContentError;
use crate::lifecycle::deadlines::{LEFT_TO_KERNEL, ONLY_THE_END, Phase};
use crate::lifecycle::exchange::ActiveExchange;
use crate::lifecycle::flow;
use crate::lifecycle::link::{self, Lingering};
use crate::pipeline::refusals;
use crate::worker::Worker;

impl<L: Link> Connection<L> {
    /// All has been sent.
    pub(super) fn end(&mut self) -> Poll<io::Result<()>> {
        if !self.has_sent_all() {
            return Poll::Ready(Ok(()));
        }
        self.record_cuts();
        self.unread = Vec::new();
        self.shut_down()?;
        self.deadlines
            .begin(Phase::Linger, self.open.worker().view().ticks.linger);
        self.dropped = 0;
        self.state = State::Lingering;
        Poll::Ready(Ok(()))
    }

    /// Ends our side. The limit of unsent bytes is lifted first, or it would keep back the `close_notify` of TLS.
    fn shut_down(&mut self) -> io::Result<()> {
        if self.ahead.lift() {
            self.link.limit_unsent(None);
        }
        self.link.shut_down()
    }

    pub(super) fn linger(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let worker = Rc::clone(self.open.worker());
        match ready!(link::linger(&mut self.link, &worker, &mut self.dropped, context))? {
            Lingering::GoesOn => {}
            Lingering::Ended => {
                if !self.let_go(LEFT_TO_KERNEL) {
                    self.state = State::Closed;
                }
            }
            Lingering::TooMuch => {
                self.reset_if_untaken();
                self.state = State::Closed;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// The client has ended its side. True if it has not taken all that was sent but `left` bytes: the connection then stays
    /// until it has taken all, or takes too little. Otherwise the kernel would keep the rest for as long as such a client likes.
    /// False after the client's own reset, as our side cannot be ended then.
    pub(super) fn let_go(&mut self, left: u64) -> bool {
        if self.link.in_flight() <= left || self.shut_down().is_err() {
            return false;
        }
        let waited = self.deadlines.begin_ended();
        self.state = State::Ended { waited };
        true
    }

    /// Has the connection end in a reset if the client has not taken all that was sent: closed in an orderly way, it would
    /// keep its send buffer for as long as the client likes.
    fn reset_if_untaken(&mut self) {
        if self.link.in_flight() > ONLY_THE_END {
            self.link.reset();
        }
    }

    /// Says until when this connection may stay as it is; true if something was done because that is past.
    pub(super) fn look_at_deadlines(&mut self, context: &mut Context<'_>) -> bool {
        let worker = Rc::clone(self.open.worker());
        let view = worker.view();
        let mut acted = false;
        for place in 0..self.answers.places() {
            let Some(mut answer) = self.answers.take_at(place) else {
                continue;
            };
            let (window, ticks) = match answer.deadlines.phase() {
                Phase::Content => (view.content_window(), view.ticks.body),
                _ => (view.send_window(), view.ticks.send),
            };
            if answer.deadlines.poll_past(context.waker(), window, ticks, || 0) {
                self.expire_answer(&worker, *answer);
                acted = true;
            } else {
                self.answers.insert(answer);
            }
        }
        if matches!(self.state, State::New | State::Serving) && self.backlog.is_none() {
            if !self.answers.is_empty() {
                // Each of them has a deadline of its own.
                self.deadlines.enter(Phase::Handler, view.ticks.age.max(1));
            } else if !self.unread.is_empty() || self.engine.is_mid_block() {
                // The time for a head is hard: the first one's began with the connection.
                if self.deadlines.phase() == Phase::First {
                    self.deadlines.go_on_as(Phase::Header);
                }
                self.deadlines.enter(Phase::Header, view.ticks.header);
            } else if self.deadlines.phase() != Phase::First {
                self.answers.trim();
                self.engine.trim();
                self.deadlines.enter(Phase::KeepAlive, view.ticks.keep_alive);
            }
        }
        let ticks = view.ticks.send;
        if self
            .deadlines
            .poll_past(context.waker(), view.send_window(), ticks, || self.link.in_flight())
        {
            self.expire();
            acted = true;
        }
        acted
    }

    /// The deadline of the connection has passed.
    #[cold]
    fn expire(&mut self) {
        let phase = self.deadlines.phase();
        tracing::debug!(client = %self.peer.client, ?phase, "a deadline passed");
        match phase {
            Phase::KeepAlive => self.last_words(ErrorCode::NoError),
            Phase::First | Phase::Header => self.last_words(ErrorCode::EnhanceYourCalm),
            // The next round finds that it is old; its answers take the time they take.
            Phase::Handler => {
                let age = self.open.worker().view().ticks.age;
                self.deadlines.begin(Phase::Handler, age.max(1));
            }
            // A server that stops leaves the rest to the kernel: what was answered is not cut, and nobody waits for it.
            Phase::Linger if self.open.worker().is_stopping() => self.state = State::Closed,
            Phase::Linger if self.link.in_flight() > ONLY_THE_END => {
                let view = self.open.worker().view();
                if let State::Ended { waited } = &mut self.state
                    && let Some(next) = self.deadlines.look_again(*waited, view.ticks.linger)
                {
                    *waited = next;
                } else {
                    self.deadlines.begin_send(view.ticks.send, self.link.in_flight());
                }
            }
            _ => {
                if matches!(self.state, State::Lingering | State::Ended { .. }) {
                    self.reset_if_untaken();
                } else {
                    self.link.reset();
                }
                // Nothing acts before the backlog has left, and this one never will.
                self.backlog = None;
                self.state = State::Closed;
            }
        }
    }

    /// Says why, and closes.
    fn last_words(&mut self, code: ErrorCode) {
        let mut queue = self.backlog.take().unwrap_or_default();
        self.engine.close(code, queue.buffer());
        self.deadlines
            .begin_send(self.open.worker().view().ticks.send, self.link.in_flight());
        self.backlog = Some(queue);
        self.state = State::Closing;
    }

    /// The deadline of one answer has passed.
    #[cold]
    fn expire_answer(&mut self, worker: &Rc<Worker>, answer: Answer) {
        let phase = answer.deadlines.phase();
        tracing::debug!(client = %self.peer.client, ?phase, "a deadline of an answer passed");
        if let (Phase::Handler, Stage::Active(exchange)) = (phase, &answer.state) {
            refusals::log_overdue(worker, Some(&exchange.context));
        }
        let Answer {
            asked,
            state: Stage::Active(exchange),
            deadlines,
        } = answer
        else {
            return;
        };
        let is_first = self.backlog.is_none();
        let mut queue = self.backlog.take().unwrap_or_default();
        if phase == Phase::Content {
            asked.fail(ContentError::TooSlow);
        }
        if exchange.is_waiting() {
            let ActiveExchange { context, stage, .. } = exchange;
            let asked = Asked::new(asked.id, asked.head_only);
            let (mut reply, peer) = self.reply(worker, &asked, RequestBody::None, &mut queue);
            let flow = flow::overdue(worker, peer, context, Some(&stage), phase, &mut reply);
            let promised = reply.written.promised;
            self.go_on(worker, flow, promised, asked, &mut queue);
        } else if exchange.is_quiet_tunnel(&deadlines) {
            self.close_tunnel(worker, asked.id, &exchange, &mut queue);
        } else {
            self.engine.reset(asked.id, ErrorCode::Cancel, queue.buffer());
            exchange.record_cut(worker, &mut self.peer, 0);
        }
        if is_first {
            self.deadlines
                .begin_send(worker.view().ticks.send, self.link.in_flight());
        }
        self.backlog = Some(queue);
    }

    /// Records all responses under way as cut. What lies in the backlog was not sent; of which of them it is, is not known
    /// when there are several, and each is charged with it in turn.
    pub(super) fn record_cuts(&mut self) {
        let worker = Rc::clone(self.open.worker());
        let mut unsent = self.backlog.as_ref().map_or(0, |backlog| backlog.len());
        for place in 0..self.answers.places() {
            if let Some(answer) = self.answers.take_at(place) {
                answer.asked.fail(ContentError::Cut);
                if let Stage::Active(exchange) = &answer.state {
                    unsent = exchange.record_cut(&worker, &mut self.peer, unsent);
                }
            }
        }
    }
}
