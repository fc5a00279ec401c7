//! Waiting: for a handler, for the content of its request, for the next piece of its answer. Meanwhile the client is
//! watched: nothing is made for one that has gone.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_proto::h1::{self, Refusal};
use rocknet_proto::request::RequestIndex;

use super::connection::{Connection, Serving, State};
use super::content::{Pulled, pull};
use super::reply::{H1Reply, Written};
use crate::exchange::{ContentError, Pipe};
use crate::lifecycle::deadlines::Phase;
use crate::lifecycle::sending::Progress;
use crate::lifecycle::waiting::{Polled, inform};
use crate::pipeline::RequestContext;
use crate::worker::{Buffers, View, Worker};

impl<L: Link> Connection<L> {
    /// Waits for a handler, and gives it the request's content as it asks for it.
    pub(super) fn wait(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let worker = Rc::clone(self.open.worker());
        let view = worker.view();
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
            if serving.pipe.as_ref().is_some_and(|pipe| pipe.take_moved()) {
                self.deadlines.leave_handler();
            }
            let Some(pipe) = serving.pipe.as_ref().filter(|pipe| pipe.is_wanted()).map(Rc::clone) else {
                self.deadlines.enter_handler(self.answer_ticks(&view));
                self.watch(context, &view, &mut worker.buffers.borrow_mut().input)?;
                return Poll::Pending;
            };
            self.deadlines.enter_content(view.ticks.body);
            return self.give_content(context, &worker, &view, &pipe);
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
        let close = self.is_old(&worker, &view);
        let mut reply = H1Reply::new(&mut self.engine, output, &worker, close);
        // Nothing reads the rest of the body for a handler that has panicked.
        let pipe = pipe.filter(|_| answer.is_ok());
        let flow = exchange.answer(&worker, &mut self.peer, answer, &mut reply);
        let written = Written { pipe, ..reply.written };
        self.go_on(&view, flow, written);
        // The head waits for the first of the content, if that is there: one call sends both.
        if self.is_sending() {
            return self.feed_into(context, &worker, &view, input, index, output);
        }
        Poll::Ready(self.send(context, output))
    }

    fn count_received(&self, bytes: usize) {
        if let State::Serving(serving) = &self.state {
            serving.exchange.received(bytes);
        }
    }

    /// Whether the body of a response is being sent.
    pub(super) fn is_sending(&self) -> bool {
        matches!(&self.state, State::Serving(serving) if serving.exchange.is_sending())
    }

    pub(super) fn give_content(
        &mut self,
        context: &mut Context<'_>,
        worker: &Rc<Worker>,
        view: &Rc<View>,
        pipe: &Pipe,
    ) -> Poll<io::Result<()>> {
        let Buffers {
            input, output, request, ..
        } = &mut *worker.buffers.borrow_mut();
        if self.engine.wants_continue() {
            self.engine.continue_sent();
            output.buffer().extend_from_slice(h1::CONTINUE);
            self.send(context, output)?;
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
            pipe,
        );
        match ready!(pulled)? {
            Pulled::Chunk(chunk) => {
                self.count_received(chunk.len());
                self.deadlines.moved(chunk.len() as u64);
                pipe.put(chunk);
            }
            Pulled::End => pipe.end(Ok(())),
            Pulled::Left => {
                // Half a request and nobody to answer.
                pipe.end(Err(ContentError::Cut));
                self.let_go()?;
            }
            Pulled::Refused(refusal) => {
                let too_large = refusal == Refusal::ContentTooLarge;
                pipe.end(Err(if too_large {
                    ContentError::TooLarge
                } else {
                    ContentError::Cut
                }));
                let request_context = match std::mem::replace(&mut self.state, State::Reading) {
                    State::Serving(serving) => serving.exchange.context,
                    _ => RequestContext::unparsed(view, self.peer.local()),
                };
                self.refuse(worker, view, refusal, request_context, output);
                self.send(context, output)?;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Queues the next piece of an answer.
    pub(super) fn feed(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let worker = Rc::clone(self.open.worker());
        let view = worker.view();
        let Buffers {
            input, output, request, ..
        } = &mut *worker.buffers.borrow_mut();
        self.feed_into(context, &worker, &view, input, request, output)
    }

    pub(super) fn feed_into(
        &mut self,
        context: &mut Context<'_>,
        worker: &Rc<Worker>,
        view: &Rc<View>,
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
            .poll_body(context, worker, &mut self.peer, u64::MAX, &mut reply);
        let written = reply.written;
        let Poll::Ready(progress) = polled else {
            if let Some(pipe) = &serving.pipe {
                pipe.on_wanted(context.waker());
            }
            let pipe = serving.pipe.as_ref().filter(|pipe| pipe.is_wanted()).map(Rc::clone);
            self.deadlines.enter_handler(self.answer_ticks(view));
            self.send(context, output)?;
            return match pipe {
                _ if self.backlog.is_some() => Poll::Pending,
                Some(pipe) => self.give_beside(context, view, &pipe, input, request),
                None => {
                    self.watch(context, view, input)?;
                    Poll::Pending
                }
            };
        };
        match progress {
            Progress::Piece => self.deadlines.leave_handler(),
            Progress::Done => self.done(&written),
            Progress::Cut => {
                // The head leaves now if it has waited for its content.
                let _ = self.send(context, output);
                self.link.flush();
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
        }
        Poll::Ready(self.send(context, output))
    }

    /// Gives the handler more of the request's content while its answer is under way.
    fn give_beside(
        &mut self,
        context: &mut Context<'_>,
        view: &View,
        pipe: &Pipe,
        input: &mut [u8],
        request: &mut RequestIndex,
    ) -> Poll<io::Result<()>> {
        let Connection {
            engine, link, unread, ..
        } = self;
        let pulled = pull(engine, link, context, &view.head_limits, unread, input, request, pipe);
        match ready!(pulled)? {
            Pulled::Chunk(chunk) => {
                self.count_received(chunk.len());
                // Who speaks is waited for anew, as one that is silent is not.
                self.deadlines.leave_handler();
                pipe.put(chunk);
            }
            Pulled::End => pipe.end(Ok(())),
            Pulled::Left => {
                pipe.end(Err(ContentError::Cut));
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
            // The answer has begun, and no other can be given: what becomes of it is the handler's matter.
            Pulled::Refused(Refusal::ContentTooLarge) => pipe.end(Err(ContentError::TooLarge)),
            Pulled::Refused(_) => pipe.end(Err(ContentError::Cut)),
        }
        Poll::Ready(Ok(()))
    }

    /// Sees what the client does while it waits. One that has broken off is an error; one that has ended its side gets
    /// a short time more; what one sends ahead is kept, up to a bound, and behind that the kernel keeps it.
    fn watch(&mut self, context: &mut Context<'_>, view: &View, input: &mut [u8]) -> io::Result<()> {
        while !self.ended && self.unread.len() < WATCH_BOUND {
            let room = input.len().min(WATCH_BOUND - self.unread.len());
            let Poll::Ready(received) = self.link.poll_recv(context, &mut input[..room]) else {
                break;
            };
            let received = received?;
            if received.is_empty() {
                self.ended = true;
                self.deadlines.begin(Phase::Handler, self.answer_ticks(view));
            }
            self.unread.extend_from_slice(&received);
        }
        Ok(())
    }

    /// How long an answer, or its next piece, may be in the making.
    pub(super) fn answer_ticks(&self, view: &View) -> u32 {
        let ticks = self.deadlines.handler_ticks(view.ticks.answer);
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
