//! Waiting: for a handler, for the content of its request, for the next piece of its answer.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_proto::h1::{self, Refusal};

use super::connection::{Connection, Facts, State, Waiting};
use super::content::{Pulled, pull};
use super::deadlines::Phase;
use super::feed::Fed;
use super::reply::H1Reply;
use crate::dispatch::{self, Outcome};
use crate::exchange::{ContentError, Pipe};
use crate::worker::{Buffers, View, Worker};

impl<L: Link> Connection<L> {
    /// Waits for a handler, and gives it the request's content as it asks for it.
    pub(super) fn wait(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let worker = Rc::clone(self.open.worker());
        let view = worker.view();
        let State::Waiting(waiting) = &mut self.state else {
            return Poll::Ready(Ok(()));
        };
        let polled = catch_unwind(AssertUnwindSafe(|| waiting.answer.as_mut().poll(context)));
        if let Ok(Poll::Pending) = polled {
            let Some(pipe) = waiting.pipe.as_ref().filter(|pipe| pipe.is_wanted()).map(Rc::clone) else {
                self.deadlines.suspend();
                return Poll::Pending;
            };
            self.deadlines.enter(Phase::Content, view.ticks.body);
            return self.give_content(context, &worker, &view, &pipe);
        }
        let State::Waiting(waiting) = std::mem::replace(&mut self.state, State::Reading) else {
            return Poll::Ready(Ok(()));
        };
        let output = &mut worker.buffers.borrow_mut().output;
        match polled {
            Ok(Poll::Ready(Outcome::Response(response))) => {
                self.respond(&worker, &view, *response, false, waiting.facts, output);
            }
            Ok(Poll::Ready(Outcome::Known(known, request))) => {
                let close = worker.is_stopping() || worker.wheel.now() - self.born >= view.ticks.age;
                let mut reply = H1Reply::new(&mut self.engine, output, &worker, close);
                let view_of = Rc::clone(&request);
                let dispatched = catch_unwind(AssertUnwindSafe(|| {
                    dispatch::from_known(&worker, &known, &view_of.view(), || request, &mut reply)
                }));
                let written = reply.written;
                match dispatched {
                    Ok(dispatched) => {
                        let Waiting { facts, pipe, .. } = *waiting;
                        self.dispatched(&worker, &view, dispatched, written, facts, pipe, output);
                    }
                    Err(_) => self.panicked(&worker, &view, waiting.facts, output),
                }
            }
            _ => self.panicked(&worker, &view, waiting.facts, output),
        }
        Poll::Ready(self.send(context, output, &view))
    }

    pub(super) fn give_content(
        &mut self,
        context: &mut Context<'_>,
        worker: &Rc<Worker>,
        view: &View,
        pipe: &Pipe,
    ) -> Poll<io::Result<()>> {
        let Buffers { input, output, request } = &mut *worker.buffers.borrow_mut();
        if self.engine.wants_continue() {
            self.engine.continue_sent();
            output.buffer().extend_from_slice(h1::CONTINUE);
            self.send(context, output, view)?;
            if self.backlog.is_some() {
                // Nothing may overtake it.
                return Poll::Ready(Ok(()));
            }
        }
        let pulled = pull(
            &mut self.engine,
            &mut self.link,
            context,
            &view.head_limits,
            &mut self.unread,
            input,
            request,
        );
        match ready!(pulled)? {
            Pulled::Chunk(chunk) => {
                self.deadlines.moved(chunk.len() as u64);
                pipe.put(chunk);
            }
            Pulled::End => pipe.end(Ok(())),
            Pulled::Left => {
                // Half a request and nobody to answer.
                pipe.end(Err(ContentError::Cut));
                self.state = State::Closed;
            }
            Pulled::Refused(refusal) => {
                let too_large = refusal == Refusal::ContentTooLarge;
                pipe.end(Err(if too_large {
                    ContentError::TooLarge
                } else {
                    ContentError::Cut
                }));
                let facts = match std::mem::replace(&mut self.state, State::Reading) {
                    State::Waiting(waiting) => waiting.facts,
                    _ => Facts::NONE,
                };
                self.refuse(worker, view, refusal, facts, output);
                self.send(context, output, view)?;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Queues the next piece of an answer.
    pub(super) fn feed(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let worker = Rc::clone(self.open.worker());
        let view = worker.view();
        let output = &mut worker.buffers.borrow_mut().output;
        self.feed_into(context, &worker, &view, output)
    }

    pub(super) fn feed_into(
        &mut self,
        context: &mut Context<'_>,
        worker: &Rc<Worker>,
        view: &View,
        output: &mut SendQueue,
    ) -> Poll<io::Result<()>> {
        let State::Feeding(feeding) = &mut self.state else {
            return Poll::Ready(Ok(()));
        };
        let polled = match catch_unwind(AssertUnwindSafe(|| {
            feeding.feed.poll(context, &worker.shared.pool, output)
        })) {
            Ok(Poll::Pending) => {
                self.deadlines.suspend();
                self.send(context, output, view)?;
                return Poll::Pending;
            }
            Ok(Poll::Ready(polled)) => polled,
            Err(_) => {
                worker.counters.panics.add(1);
                Err(io::ErrorKind::Other.into())
            }
        };
        match polled {
            Ok(Fed::Some) => {}
            Ok(Fed::Chunk(bytes)) => {
                feeding.sent += bytes.len() as u64;
                let end = self.engine.data_end();
                if !bytes.is_empty() && self.engine.begin_data(bytes.len() as u64, output.buffer()).is_ok() {
                    output.push_owned(bytes);
                    output.buffer().extend_from_slice(end);
                }
            }
            Ok(Fed::Done) => {
                let State::Feeding(feeding) = std::mem::replace(&mut self.state, State::Reading) else {
                    return Poll::Ready(Ok(()));
                };
                let next = self.engine.finish(output.buffer());
                self.answered(worker, feeding.status, feeding.sent, &feeding.facts, next);
            }
            Err(error) => {
                // The head has left and promised more: only a cut tells the client.
                tracing::warn!("an answer was cut short: {error}");
                self.engine.abort();
                output.clear();
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
        }
        Poll::Ready(self.send(context, output, view))
    }
}
