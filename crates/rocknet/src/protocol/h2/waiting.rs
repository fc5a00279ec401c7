//! Waiting: for handlers, for the content of their requests, for the next pieces of their answers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::{Context, Poll};

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_proto::h2::{ErrorCode, SendError, ServerConnection, StreamId};

use super::answer::{Answer, Demand, Incoming, State};
use super::answering::Asked;
use super::connection::Connection;
use super::feeding::OUTPUT_BOUND;
use super::reply::{H2Reply, RequestBody};
use crate::interim::Early;
use crate::pipeline::{self, Answer as Outcome, refusals};
use crate::protocol::deadlines::Phase;
use crate::response::FieldList;
use crate::worker::{View, Worker};

/// What became of an answer that was looked at.
pub(super) enum Look {
    /// It waits on.
    Same(Box<Answer>),
    /// It has come further, or to its end.
    Moved,
}

impl<L: Link> Connection<L> {
    /// Looks at all answers under way; true if one has come further.
    #[inline]
    pub(super) fn look_after(&mut self, context: &mut Context<'_>, worker: &Rc<Worker>, view: &Rc<View>) -> bool {
        if self.answers.is_empty() {
            return false;
        }
        let mut moved = false;
        // What one round may send is read for it and no more, whoever asks for how much: what is ready while windows are
        // closed is memory that a client pins for nothing.
        let mut room = self.engine.connection_allowance().min(OUTPUT_BOUND);
        let (places, first) = (self.answers.places(), self.first_place.min(self.answers.places()));
        for place in (first..places).chain(0..first) {
            let Some(answer) = self.answers.take_at(place) else {
                continue;
            };
            let had_room = room > 0;
            match self.look_at(context, worker, view, answer, &mut room) {
                Look::Same(answer) => self.answers.insert(answer),
                Look::Moved => moved = true,
            }
            if had_room && room == 0 {
                // The next round begins with those that got nothing in this one.
                self.first_place = place + 1;
            }
        }
        moved
    }

    fn look_at(
        &mut self,
        context: &mut Context<'_>,
        worker: &Rc<Worker>,
        view: &Rc<View>,
        mut answer: Box<Answer>,
        room: &mut u64,
    ) -> Look {
        if let State::Held(_) = answer.state {
            let Answer {
                id,
                state,
                head_only,
                request_context,
                content,
                page,
                ..
            } = *answer;
            let asked = Asked {
                id,
                head_only,
                request_context,
                content,
                page,
                patience: None,
            };
            if let State::Held(held) = state {
                self.release(worker, view, held, asked);
            }
            return Look::Moved;
        }
        if let State::Tunnelling(_) = answer.state {
            return self.look_at_tunnel(context, worker, view, answer, room);
        }
        loop {
            match &mut answer.state {
                State::Held(_) | State::Tunnelling(_) => {}
                State::Waiting(making) => {
                    let polled = catch_unwind(AssertUnwindSafe(|| making.poll(context)));
                    let early = making.interim();
                    if let Some(early) = &early {
                        self.inform(worker, answer.id, early);
                    }
                    match polled {
                        Ok(Poll::Pending) if early.is_some() => continue,
                        Ok(Poll::Pending) => {}
                        Ok(Poll::Ready(outcome)) => {
                            self.outcome(worker, outcome, asked(*answer));
                            return Look::Moved;
                        }
                        Err(_) => {
                            let output = &mut worker.buffers.borrow_mut().output;
                            self.panicked(worker, asked(*answer), output);
                            return Look::Moved;
                        }
                    }
                }
                State::Feeding { supply, .. } if supply.ready() > 0 => {
                    answer.deadlines.enter(Phase::Send, view.ticks.send);
                }
                State::Feeding { supply, .. }
                    if supply.is_file() && self.engine.allowance(answer.id, supply.left()) == 0 =>
                {
                    answer.deadlines.enter(Phase::Send, view.ticks.send);
                }
                State::Feeding { supply, .. } if supply.is_file() && *room == 0 => {}
                State::Feeding { supply, status, sent } => {
                    let most = self.engine.allowance(answer.id, supply.left()).min(*room);
                    match catch_unwind(AssertUnwindSafe(|| supply.poll(context, &worker.shared.pool, most))) {
                        Ok(Poll::Pending) if supply.is_file() => {
                            answer.deadlines.enter_handler(answer.ticks(view));
                        }
                        Ok(Poll::Pending) => {}
                        Ok(Poll::Ready(Some(Ok(())))) => {
                            let (ready, last) = (supply.ready(), supply.is_last());
                            *room = room.saturating_sub(ready);
                            let output = &mut worker.buffers.borrow_mut().output;
                            if self.engine.offer(answer.id, ready, last, output.buffer()).is_ok() {
                                answer.deadlines.leave();
                                self.answers.insert(answer);
                            }
                            return Look::Moved;
                        }
                        Ok(Poll::Ready(None)) => {
                            let output = &mut worker.buffers.borrow_mut().output;
                            match supply.take_trailers() {
                                Some(trailers) => finish_with(&mut self.engine, answer.id, &trailers, output),
                                None => drop(self.engine.offer(answer.id, 0, true, output.buffer())),
                            }
                            let (status, sent) = (*status, *sent);
                            let request = answer.request_context.request.as_ref().map(|request| request.view());
                            self.answered(worker, answer.request_context.access, request.as_ref(), status, sent);
                            return Look::Moved;
                        }
                        failed => {
                            match failed {
                                Ok(Poll::Ready(Some(Err(error)))) => {
                                    tracing::warn!("an answer was cut short: {error}");
                                }
                                _ => {
                                    worker.counters.panics.add(1);
                                    refusals::log_panic(&answer.request_context);
                                }
                            }
                            let output = &mut worker.buffers.borrow_mut().output;
                            self.engine.reset(answer.id, ErrorCode::InternalError, output.buffer());
                            self.record_cut(worker, &answer);
                            return Look::Moved;
                        }
                    }
                }
            }
            let demand = match &mut answer.content {
                Some(content) => {
                    let output = &mut worker.buffers.borrow_mut().output;
                    let demand = content.give(answer.id, &mut self.engine, output);
                    if matches!(
                        (&demand, &answer.state),
                        (Demand::None | Demand::Met, State::Feeding { .. })
                    ) {
                        content.on_wanted(context.waker());
                    }
                    demand
                }
                None => Demand::None,
            };
            let is_making = match &answer.state {
                State::Held(_) | State::Tunnelling(_) => false,
                State::Waiting(_) => true,
                State::Feeding { supply, .. } => supply.ready() == 0 && !supply.is_file(),
            };
            if answer.content.as_ref().is_some_and(Incoming::take_moved) {
                answer.deadlines.leave_handler();
            }
            let may_pause = answer.content.as_ref().is_some_and(Incoming::may_pause)
                || matches!(answer.state, State::Feeding { .. });
            match demand {
                Demand::Met if is_making => {
                    if may_pause {
                        // Who speaks is waited for anew, as one that is silent is not.
                        answer.deadlines.leave_handler();
                    }
                    continue;
                }
                // Both sides may be silent for a while once both have spoken.
                Demand::Open if is_making && !may_pause => answer.deadlines.enter_content(view.ticks.body),
                _ if is_making => answer.deadlines.enter_handler(answer.ticks(view)),
                _ => {}
            }
            return Look::Same(answer);
        }
    }

    /// Writes an interim answer.
    #[cold]
    fn inform(&mut self, worker: &Worker, id: StreamId, early: &Early) {
        if id.is_promised() {
            return;
        }
        let output = &mut worker.buffers.borrow_mut().output;
        let fields = early.fields.bytes();
        if let Err(SendError::Field(error)) = self.engine.inform(id, early.status, fields, output.buffer()) {
            tracing::error!("an interim answer was not sent: {error}");
        }
    }

    fn outcome(&mut self, worker: &Rc<Worker>, outcome: Outcome, asked: Asked) {
        let output = &mut worker.buffers.borrow_mut().output;
        match outcome {
            Outcome::Response(response) => self.respond(worker, *response, asked, output),
            Outcome::Cached(known, request) => {
                let scheme = self.scheme();
                let bound = self.ahead.round(false);
                let mut reply = H2Reply::new(
                    &mut self.engine,
                    &mut self.pushes,
                    scheme,
                    output,
                    worker,
                    asked.id,
                    asked.head_only,
                    bound,
                    RequestBody::None,
                );
                let going = catch_unwind(AssertUnwindSafe(|| {
                    let request_context = Rc::clone(&asked.request_context);
                    pipeline::from_known(worker, request_context, &known, &request.view(), &mut reply)
                }));
                let written = reply.written;
                match going {
                    Ok(going) => self.step(worker, going.step, written, asked, output),
                    Err(_) => {
                        self.give_up_promised(written.promised, output);
                        self.panicked(worker, asked, output);
                    }
                }
            }
        }
    }
}

/// Ends an answer with these fields, or without them where they cannot be sent.
#[cold]
fn finish_with(engine: &mut ServerConnection, id: StreamId, trailers: &FieldList, output: &mut SendQueue) {
    if let Err(SendError::Field(error)) = engine.finish_with_trailers(id, trailers.bytes(), output.buffer()) {
        tracing::warn!("trailers of an answer were not sent: {error}");
        let _ = engine.offer(id, 0, true, output.buffer());
    }
}

fn asked(answer: Answer) -> Asked {
    let Answer {
        id,
        head_only,
        request_context,
        content,
        page,
        deadlines,
        ..
    } = answer;
    Asked {
        id,
        head_only,
        request_context,
        content,
        page,
        patience: deadlines.patience(),
    }
}
