//! Closing: the end of a connection, polite where the client still listens, and what a passed deadline means.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_proto::status::Status;

use super::connection::{Connection, State};
use crate::exchange::ContentError;
use crate::filter;
use crate::handler::fixed;
use crate::protocol::deadlines::Phase;
use crate::protocol::facts::Facts;
use crate::told::Told;

/// After our last answer this much is read, so that closing does not reset what is still on its way.
const LINGER_BOUND: u32 = 1 << 20;

/// A disk that hangs is met by every request for it.
static OVERDUE: Told = Told::never();

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
        if !linger {
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

    pub(super) fn linger(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let worker = Rc::clone(self.open.worker());
        let input = &mut worker.buffers.borrow_mut().input;
        let received = ready!(self.link.poll_recv(context, input))?;
        self.dropped = self.dropped.saturating_add(received.len() as u32);
        if received.is_empty() || self.dropped > LINGER_BOUND {
            self.state = State::Closed;
        }
        Poll::Ready(Ok(()))
    }

    /// The deadline has passed.
    #[cold]
    pub(super) fn expire(&mut self) {
        let worker = Rc::clone(self.open.worker());
        let phase = self.deadlines.phase();
        tracing::debug!(client = %self.client, ?phase, "a deadline passed");
        let in_vain = phase == Phase::Handler && !self.ended;
        if in_vain && OVERDUE.is_due() {
            tracing::warn!(address = %worker.address, "an answer was not made in time (limits.answer_timeout)");
        }
        if let State::Tunnelling(_) = self.state {
            return self.expire_tunnel(phase);
        }
        let status = match phase {
            Phase::Header => Status::REQUEST_TIMEOUT,
            Phase::Content if self.engine.may_answer() => Status::REQUEST_TIMEOUT,
            Phase::Handler if self.engine.may_answer() => Status::SERVICE_UNAVAILABLE,
            _ => {
                self.record_cut();
                // Nothing acts before the backlog has left, and this one never will.
                self.backlog = None;
                self.state = State::Closed;
                return;
            }
        };
        let view = worker.view();
        let facts = match std::mem::replace(&mut self.state, State::Reading) {
            State::Waiting(waiting) => {
                if let Some(pipe) = waiting.pipe {
                    pipe.end(Err(ContentError::TooSlow));
                }
                waiting.facts
            }
            _ => Facts::of_nothing(&view, self.local.as_deref().copied()),
        };
        let mut response = fixed::error(status);
        filter::headers::apply_server(&mut response.fields);
        let mut output = SendQueue::default();
        self.respond(&worker, &view, response, true, facts, &mut output);
        self.state = State::Closing { linger: true };
        self.deadlines.begin_send(view.ticks.send, self.link.in_flight());
        self.backlog = Some(Box::new(output));
    }
}
