//! Closing: the end of a connection or of one answer, polite where the client still listens, and what a passed deadline
//! means.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use rocknet_io::link::Link;
use rocknet_proto::h2::ErrorCode;

use super::answer::{Answer, Asked, Incoming, State as Stage};
use super::connection::{Connection, State};
use super::reply::RequestBody;
use crate::exchange::BodyError;
use crate::lifecycle::connection::rate_window;
use crate::lifecycle::deadlines::{LEFT_TO_KERNEL, Wait};
use crate::lifecycle::drive::Version;
use crate::lifecycle::exchange::ActiveExchange;
use crate::lifecycle::expiry::Expiry;
use crate::lifecycle::flow;
use crate::worker::Worker;

impl<L: Link> Connection<L> {
    /// Ends the connection once its last frame has left.
    pub(super) fn end(&mut self) -> Poll<io::Result<()>> {
        if self.core.has_sent_all() {
            self.record_cuts();
            self.before_shut_down();
            self.core.begin_linger()?;
        }
        Poll::Ready(Ok(()))
    }

    /// Closes a connection whose client has ended its side: no response under way has a reader.
    pub(super) fn client_ended(&mut self) {
        self.record_cuts();
        self.before_shut_down();
        self.core.close_when_taken(LEFT_TO_KERNEL);
    }

    /// Sets the deadline of the connection for the wait that begins. Returns true if a deadline of an exchange has passed and was
    /// acted on.
    pub(super) fn look_at_deadlines(&mut self, context: &mut Context<'_>) -> bool {
        let worker = Rc::clone(self.core.open.worker());
        let view = worker.config();
        let mut acted = false;
        for place in 0..self.answers.places() {
            let Some(mut answer) = self.answers.take_at(place) else {
                continue;
            };
            if answer
                .deadlines
                .poll_rate(context.waker(), |wait| rate_window(&view, wait), || 0)
            {
                self.expire_answer(&worker, *answer);
                acted = true;
            } else {
                self.answers.insert(answer);
            }
        }
        if self.core.is_open() && self.state != State::Closing && self.core.backlog.is_none() {
            if !self.answers.is_empty() {
                // Each of them has a deadline of its own.
                self.core.deadlines.enter(Wait::Handler, view.ticks.age.max(1));
            } else {
                let is_partial = !self.core.unread.is_empty() || self.engine.is_mid_block();
                if !is_partial && self.core.deadlines.wait() != Wait::FirstByte {
                    self.answers.trim();
                    self.engine.trim();
                }
                self.core.await_request(is_partial, &view.ticks);
            }
        }
        acted
    }

    /// Acts on the passed deadline of an open connection.
    #[cold]
    pub(super) fn expire_open(&mut self) {
        let wait = self.core.deadlines.wait();
        tracing::debug!(client = %self.core.peer.client, ?wait, "a deadline passed");
        match wait {
            Wait::KeepAlive => self.last_words(ErrorCode::NoError),
            Wait::FirstByte | Wait::Header => self.last_words(ErrorCode::EnhanceYourCalm),
            // The next round finds that it is old; its responses take the time they take.
            Wait::Handler => {
                let age = self.core.open.worker().config().ticks.age;
                self.core.deadlines.begin(Wait::Handler, age.max(1));
            }
            _ => {
                self.core.link.reset();
                // No round begins before the backlog has left, and this one never will.
                self.core.abandon();
            }
        }
    }

    /// Says why, and closes.
    fn last_words(&mut self, code: ErrorCode) {
        let mut queue = self.core.backlog.take().unwrap_or_default();
        self.engine.close(code, queue.buffer());
        self.core.begin_send();
        self.core.backlog = Some(queue);
        self.state = State::Closing;
    }

    /// The deadline of one answer has passed.
    #[cold]
    fn expire_answer(&mut self, worker: &Rc<Worker>, answer: Answer) {
        let Answer {
            asked,
            state: Stage::Active(exchange),
            deadlines,
        } = answer
        else {
            return;
        };
        let (wait, pipe) = (deadlines.wait(), asked.content.as_ref().map(Incoming::pipe));
        tracing::debug!(client = %self.core.peer.client, ?wait, "a deadline of a response passed");
        let is_first = self.core.backlog.is_none();
        let mut queue = self.core.backlog.take().unwrap_or_default();
        match exchange.expire(worker, &deadlines, pipe, false) {
            Expiry::Respond => {
                let ActiveExchange { context, stage, .. } = exchange;
                let asked = Asked::new(asked.id, asked.head_only);
                let (mut reply, peer) = self.reply(worker, &asked, RequestBody::None, &mut queue);
                let flow = flow::overdue(worker, peer, context, Some(&stage), wait, &mut reply);
                let promised = reply.written.promised;
                self.go_on(worker, flow, promised, asked, &mut queue);
            }
            Expiry::EndTunnel => self.close_tunnel(worker, asked.id, &exchange, &mut queue),
            Expiry::Cut => {
                self.engine.reset(asked.id, ErrorCode::Cancel, queue.buffer());
                exchange.record_cut(worker, &mut self.core.peer, 0);
            }
        }
        if is_first {
            self.core.begin_send();
        }
        self.core.backlog = Some(queue);
    }

    /// Records all responses under way as cut. What lies in the backlog was not sent; of which of them it is, is not known
    /// when there are several, and each is charged with it in turn.
    pub(super) fn record_cuts(&mut self) {
        let worker = Rc::clone(self.core.open.worker());
        let mut unsent = self.core.backlog.as_ref().map_or(0, |backlog| backlog.len());
        for place in 0..self.answers.places() {
            if let Some(answer) = self.answers.take_at(place) {
                answer.asked.fail(BodyError::Incomplete);
                if let Stage::Active(exchange) = &answer.state {
                    unsent = exchange.record_cut(&worker, &mut self.core.peer, unsent);
                }
            }
        }
    }
}
