//! Waiting: for handlers, for the content of their requests, for the next pieces of their answers.

use std::rc::Rc;
use std::task::{Context, Poll};

use rocknet_io::link::Link;

use super::answer::{Answer, Demand, Incoming, State};
use super::connection::Connection;
use super::reply::RequestBody;
use super::send_ahead::OUTPUT_BOUND;
use crate::lifecycle::deadlines::Wait;
use crate::lifecycle::exchange::Stage;
use crate::lifecycle::sending::Progress;
use crate::lifecycle::waiting::{Panicked, Polled, inform};
use crate::pipeline::Answer as Made;
use crate::worker::{Worker, WorkerConfig};

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
    pub(super) fn look_after(
        &mut self,
        context: &mut Context<'_>,
        worker: &Rc<Worker>,
        view: &Rc<WorkerConfig>,
    ) -> bool {
        if self.answers.is_empty() {
            return false;
        }
        let mut moved = false;
        // What one round may send is read for it and no more, whoever asks for how much: what is ready while windows are
        // closed is memory that a client pins for nothing.
        let mut room = self.engine.connection_send_capacity().min(OUTPUT_BOUND);
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
        view: &Rc<WorkerConfig>,
        mut answer: Box<Answer>,
        room: &mut u64,
    ) -> Look {
        let exchange = match &mut answer.state {
            State::Active(exchange) if exchange.is_tunnelling() => {
                return self.look_at_tunnel(context, worker, view, answer, room);
            }
            State::Active(exchange) => exchange,
            State::Held(_) => {
                let Answer { asked, state, .. } = *answer;
                if let State::Held(held) = state {
                    self.release(worker, view, held, asked);
                }
                return Look::Moved;
            }
        };
        loop {
            let id = answer.asked.id;
            match &exchange.stage {
                Stage::Tunnelling(_) => {}
                Stage::Waiting(_) => {
                    let Polled { answer: made, interim } = exchange.poll_handler(context);
                    if let Some(early) = &interim {
                        let output = &mut worker.buffers.borrow_mut().output;
                        let (mut reply, _) = self.reply(worker, &answer.asked, RequestBody::None, output);
                        inform(early, &mut reply);
                    }
                    match made {
                        Poll::Pending if interim.is_some() => continue,
                        Poll::Pending => {}
                        Poll::Ready(made) => {
                            self.answer_made(worker, made, *answer);
                            return Look::Moved;
                        }
                    }
                }
                Stage::Sending { body, .. } => {
                    let is_file = body.is_file();
                    let allowance = self.engine.send_capacity(id, body.left());
                    if body.ready() > 0 || is_file && allowance == 0 {
                        answer.deadlines.enter(Wait::Send, view.ticks.send);
                    } else if !is_file || *room > 0 {
                        let output = &mut worker.buffers.borrow_mut().output;
                        let (mut reply, peer) = self.reply(worker, &answer.asked, RequestBody::None, output);
                        let most = allowance.min(*room);
                        match exchange.poll_body(context, worker, peer, most, &mut reply) {
                            Poll::Pending if is_file => answer
                                .deadlines
                                .enter_handler(answer.deadlines.handler_ticks(view.ticks.answer)),
                            Poll::Pending => {}
                            Poll::Ready(Progress::Piece) => {
                                if let Stage::Sending { body, .. } = &exchange.stage {
                                    *room = room.saturating_sub(body.ready());
                                }
                                answer.deadlines.leave();
                                self.answers.insert(answer);
                                return Look::Moved;
                            }
                            Poll::Ready(Progress::Done) => return Look::Moved,
                            Poll::Ready(Progress::Cut) => {
                                exchange.record_cut(worker, &mut self.core.peer, 0);
                                return Look::Moved;
                            }
                        }
                    }
                }
            }
            let is_sending = exchange.is_sending();
            let is_making = match &exchange.stage {
                Stage::Waiting(_) => true,
                Stage::Sending { body, .. } => body.ready() == 0 && !body.is_file(),
                Stage::Tunnelling(_) => false,
            };
            let demand = match &mut answer.asked.content {
                Some(content) => {
                    let output = &mut worker.buffers.borrow_mut().output;
                    let demand = content.give(answer.asked.id, &mut self.engine, output);
                    if is_sending && matches!(&demand, Demand::None | Demand::Met) {
                        content.pipe().wake_when_wanted(context.waker());
                    }
                    demand
                }
                None => Demand::None,
            };
            if is_making {
                let (deadlines, pipe) = (&mut answer.deadlines, answer.asked.content.as_ref().map(Incoming::pipe));
                if matches!(demand, Demand::Met) {
                    exchange.got_body(pipe, deadlines);
                    continue;
                }
                let ticks = (view.ticks.body, deadlines.handler_ticks(view.ticks.answer));
                exchange.await_handler(matches!(demand, Demand::Open), pipe, deadlines, ticks);
            }
            return Look::Same(answer);
        }
    }

    /// Goes on with what a handler has answered.
    fn answer_made(&mut self, worker: &Rc<Worker>, made: Result<Made, Panicked>, answer: Answer) {
        let Answer { asked, state, .. } = answer;
        let State::Active(exchange) = state else { return };
        let output = &mut worker.buffers.borrow_mut().output;
        let (mut reply, peer) = self.reply(worker, &asked, RequestBody::None, output);
        let flow = exchange.answer(worker, peer, made, &mut reply);
        let promised = reply.written.promised;
        self.go_on(worker, flow, promised, asked, output);
    }
}
