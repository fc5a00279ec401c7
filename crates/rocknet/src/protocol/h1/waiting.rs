//! Waiting: for a handler, for the content of its request, for the next piece of its answer. Meanwhile the client is
//! watched: nothing is made for one that has gone.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_proto::h1::{self, Refusal};
use rocknet_proto::request::RequestIndex;

use super::connection::{Connection, Serving, State};
use super::content::{Pulled, pull};
use super::reply::{H1Reply, Written};
use crate::exchange::{BodyChannel, BodyError};
use crate::lifecycle::connection::ConnectionCore;
use crate::lifecycle::deadlines::{LEFT_TO_KERNEL, Wait};
use crate::lifecycle::sending::Progress;
use crate::lifecycle::waiting::{Polled, inform};
use crate::pipeline::RequestContext;
use crate::worker::{Buffers, Worker, WorkerConfig};

impl<L: Link> Connection<L> {
    /// Waits for a handler, and gives it the request's content as it asks for it.
    pub(super) fn wait(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let worker = Rc::clone(self.core.open.worker());
        let view = worker.config();
        let State::Serving(serving) = &mut self.state else {
            return Poll::Ready(Ok(()));
        };
        let Polled { answer, interim } = serving.exchange.poll_handler(context);
        if let Some(early) = interim {
            let output = &mut worker.buffers.borrow_mut().output;
            inform(&early, &mut H1Reply::new(&mut self.engine, output, &worker, false));
            if answer.is_pending() {
                return Poll::Ready(self.send(context, output));
            }
        }
        let Poll::Ready(answer) = answer else {
            return match self.await_handler(&view) {
                Some(pipe) => self.give_content(context, &worker, &view, &pipe),
                None => {
                    self.watch(context, &view, &mut worker.buffers.borrow_mut().input)?;
                    Poll::Pending
                }
            };
        };
        let State::Serving(serving) = std::mem::replace(&mut self.state, State::Reading) else {
            return Poll::Ready(Ok(()));
        };
        let Serving { exchange, pipe, .. } = *serving;
        let Buffers {
            input,
            output,
            request: index,
            ..
        } = &mut *worker.buffers.borrow_mut();
        let close = self.core.is_old(&worker, &view);
        let mut reply = H1Reply::new(&mut self.engine, output, &worker, close);
        // Nothing reads the rest of the body for a handler that has panicked.
        let pipe = pipe.filter(|_| answer.is_ok());
        let flow = exchange.answer(&worker, &mut self.core.peer, answer, &mut reply);
        let written = Written { pipe, ..reply.written };
        self.go_on(&view, flow, written);
        // The head waits for the first of the content, if that is there: one call sends both.
        if self.is_sending() {
            return self.feed_into(context, &worker, &view, input, index, output);
        }
        Poll::Ready(self.send(context, output))
    }

    /// Sets the deadline for a handler that works. Returns what leads the request body to it, if it wants more of that.
    fn await_handler(&mut self, view: &WorkerConfig) -> Option<Rc<BodyChannel>> {
        let handler_ticks = self.answer_ticks(view);
        let State::Serving(serving) = &self.state else {
            return None;
        };
        let wanted = serving.pipe.as_ref().filter(|pipe| pipe.wants_chunk());
        let (pipe, ticks) = (serving.pipe.as_deref(), (view.ticks.body, handler_ticks));
        let deadlines = &mut self.core.deadlines;
        serving.exchange.await_handler(wanted.is_some(), pipe, deadlines, ticks);
        wanted.map(Rc::clone)
    }

    /// Counts received bytes of the request body, and gives them to the handler.
    fn put(&mut self, chunk: Bytes, pipe: &BodyChannel) {
        if let State::Serving(serving) = &self.state {
            serving.exchange.received(chunk.len());
            self.core.deadlines.moved(chunk.len() as u64);
            serving.exchange.got_body(Some(pipe), &mut self.core.deadlines);
        }
        pipe.put(chunk);
    }

    /// Whether the body of a response is being sent.
    pub(super) fn is_sending(&self) -> bool {
        matches!(&self.state, State::Serving(serving) if serving.exchange.is_sending())
    }

    pub(super) fn give_content(
        &mut self,
        context: &mut Context<'_>,
        worker: &Rc<Worker>,
        view: &Rc<WorkerConfig>,
        pipe: &BodyChannel,
    ) -> Poll<io::Result<()>> {
        let Buffers {
            input, output, request, ..
        } = &mut *worker.buffers.borrow_mut();
        if self.engine.wants_continue() {
            self.engine.continue_sent();
            output.buffer().extend_from_slice(h1::CONTINUE);
            self.send(context, output)?;
            if self.core.backlog.is_some() {
                // Nothing may overtake it.
                return Poll::Ready(Ok(()));
            }
        }
        let pulled = pull(
            &mut self.engine,
            &mut self.core.link,
            context,
            &view.head_limits,
            &mut self.core.unread,
            input,
            request,
            pipe,
        );
        match ready!(pulled)? {
            Pulled::Chunk(chunk) => self.put(chunk, pipe),
            Pulled::End => pipe.end(Ok(())),
            Pulled::Left => {
                // Half a request, and no client to respond to.
                pipe.end(Err(BodyError::Incomplete));
                self.state = State::Reading;
                self.core.close_when_taken(LEFT_TO_KERNEL);
            }
            Pulled::Refused(refusal) => {
                let too_large = refusal == Refusal::ContentTooLarge;
                pipe.end(Err(if too_large {
                    BodyError::TooLarge
                } else {
                    BodyError::Incomplete
                }));
                let request_context = match std::mem::replace(&mut self.state, State::Reading) {
                    State::Serving(serving) => serving.exchange.context,
                    _ => RequestContext::unparsed(view, self.core.peer.local()),
                };
                self.refuse(worker, view, refusal, request_context, output);
                self.send(context, output)?;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Queues the next piece of an answer.
    pub(super) fn feed(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let worker = Rc::clone(self.core.open.worker());
        let view = worker.config();
        let Buffers {
            input, output, request, ..
        } = &mut *worker.buffers.borrow_mut();
        self.feed_into(context, &worker, &view, input, request, output)
    }

    pub(super) fn feed_into(
        &mut self,
        context: &mut Context<'_>,
        worker: &Rc<Worker>,
        view: &Rc<WorkerConfig>,
        input: &mut [u8],
        request: &mut RequestIndex,
        output: &mut SendQueue,
    ) -> Poll<io::Result<()>> {
        let State::Serving(serving) = &mut self.state else {
            return Poll::Ready(Ok(()));
        };
        let mut reply = H1Reply::new(&mut self.engine, output, worker, false);
        let polled = serving
            .exchange
            .poll_body(context, worker, &mut self.core.peer, u64::MAX, &mut reply);
        let written = reply.written;
        let Poll::Ready(progress) = polled else {
            if let Some(pipe) = &serving.pipe {
                pipe.wake_when_wanted(context.waker());
            }
            let pipe = self.await_handler(view);
            self.send(context, output)?;
            return match pipe {
                _ if self.core.backlog.is_some() => Poll::Pending,
                Some(pipe) => self.give_beside(context, view, &pipe, input, request),
                None => {
                    self.watch(context, view, input)?;
                    Poll::Pending
                }
            };
        };
        match progress {
            Progress::Piece => self.core.deadlines.leave_handler(),
            Progress::Done => self.done(&written),
            Progress::Cut => {
                // The head leaves now if it has waited for its content.
                let _ = self.send(context, output);
                self.core.link.flush();
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
        }
        Poll::Ready(self.send(context, output))
    }

    /// Gives the handler more of the request's content while its answer is under way.
    fn give_beside(
        &mut self,
        context: &mut Context<'_>,
        view: &WorkerConfig,
        pipe: &BodyChannel,
        input: &mut [u8],
        request: &mut RequestIndex,
    ) -> Poll<io::Result<()>> {
        let ConnectionCore { link, unread, .. } = &mut self.core;
        let pulled = pull(
            &mut self.engine,
            link,
            context,
            &view.head_limits,
            unread,
            input,
            request,
            pipe,
        );
        match ready!(pulled)? {
            Pulled::Chunk(chunk) => self.put(chunk, pipe),
            Pulled::End => pipe.end(Ok(())),
            Pulled::Left => {
                pipe.end(Err(BodyError::Incomplete));
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
            // The answer has begun, and no other can be given: what becomes of it is the handler's matter.
            Pulled::Refused(Refusal::ContentTooLarge) => pipe.end(Err(BodyError::TooLarge)),
            Pulled::Refused(_) => pipe.end(Err(BodyError::Incomplete)),
        }
        Poll::Ready(Ok(()))
    }

    /// Sees what the client does while it waits. One that has broken off is an error; one that has ended its side gets
    /// a short time more; what one sends ahead is kept, up to a bound, and behind that the kernel keeps it.
    fn watch(&mut self, context: &mut Context<'_>, view: &WorkerConfig, input: &mut [u8]) -> io::Result<()> {
        while !self.ended && self.core.unread.len() < WATCH_BOUND {
            let room = input.len().min(WATCH_BOUND - self.core.unread.len());
            let Poll::Ready(received) = self.core.link.poll_recv(context, &mut input[..room]) else {
                break;
            };
            let received = received?;
            if received.is_empty() {
                self.ended = true;
                self.core.deadlines.begin(Wait::Handler, self.answer_ticks(view));
            }
            self.core.unread.extend_from_slice(&received);
        }
        Ok(())
    }

    /// How long an answer, or its next piece, may be in the making.
    pub(super) fn answer_ticks(&self, view: &WorkerConfig) -> u32 {
        let ticks = self.core.deadlines.handler_ticks(view.ticks.answer);
        if self.ended {
            ticks.min(view.ticks.half_closed)
        } else {
            ticks
        }
    }
}

/// Bytes kept of what a client sends before it has its answer: the next requests of one that pipelines find room, and
/// those that wait for a disk by the thousand hold little. Only while there is room is an end seen behind them.
const WATCH_BOUND: usize = 16 * 1024;
