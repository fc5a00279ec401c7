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

use super::body_reader::{BodyEvent, poll_body};
use super::connection::{Connection, CurrentExchange, State};
use super::responder::{H1Responder, Written};
use crate::exchange::{BodyChannel, BodyError};
use crate::lifecycle::connection::ConnectionCore;
use crate::lifecycle::deadlines::{LEFT_TO_KERNEL, Wait};
use crate::lifecycle::poll_handler::{HandlerPoll, send_interim};
use crate::lifecycle::sending::Progress;
use crate::pipeline::RequestContext;
use crate::worker::{Buffers, Worker, WorkerConfig};

impl<L: Link> Connection<L> {
    /// Waits for a handler, and gives it the request's content as it asks for it.
    pub(super) fn poll_handler(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let worker = Rc::clone(self.core.open.worker());
        let view = worker.config();
        let State::Serving(serving) = &mut self.state else {
            return Poll::Ready(Ok(()));
        };
        let HandlerPoll { result, interim } = serving.exchange.poll_handler(context);
        if let Some(interim) = interim {
            let output = &mut worker.buffers.borrow_mut().output;
            send_interim(
                &interim,
                &mut H1Responder::new(&mut self.engine, output, &worker, false),
            );
            if result.is_pending() {
                return Poll::Ready(self.send(context, output));
            }
        }
        let Poll::Ready(result) = result else {
            return match self.await_handler(&view) {
                Some(channel) => self.receive_body(context, &worker, &view, &channel),
                None => {
                    self.watch_client(context, &view, &mut worker.buffers.borrow_mut().input)?;
                    Poll::Pending
                }
            };
        };
        let State::Serving(serving) = std::mem::replace(&mut self.state, State::Reading) else {
            return Poll::Ready(Ok(()));
        };
        let CurrentExchange { exchange, channel, .. } = *serving;
        let Buffers {
            input,
            output,
            request: index,
            ..
        } = &mut *worker.buffers.borrow_mut();
        let close = self.core.is_old(&worker, &view);
        let mut responder = H1Responder::new(&mut self.engine, output, &worker, close);
        // Nothing reads the rest of the body for a handler that has panicked.
        let channel = channel.filter(|_| result.is_ok());
        let flow = exchange.handler_done(&worker, &mut self.core.info, result, &mut responder);
        let written = Written {
            channel,
            ..responder.written
        };
        self.advance(&view, flow, written);
        // The head waits for the first of the content, if that is there: one call sends both.
        if self.is_sending() {
            return self.send_body_with(context, &worker, &view, input, index, output);
        }
        Poll::Ready(self.send(context, output))
    }

    /// Sets the deadline for a handler that works. Returns what leads the request body to it, if it wants more of that.
    fn await_handler(&mut self, view: &WorkerConfig) -> Option<Rc<BodyChannel>> {
        let handler_ticks = self.response_ticks(view);
        let State::Serving(serving) = &self.state else {
            return None;
        };
        let wanted = serving.channel.as_ref().filter(|channel| channel.wants_chunk());
        let (channel, ticks) = (serving.channel.as_deref(), (view.ticks.body, handler_ticks));
        let deadlines = &mut self.core.deadlines;
        serving
            .exchange
            .await_handler(wanted.is_some(), channel, deadlines, ticks);
        wanted.map(Rc::clone)
    }

    /// Counts received bytes of the request body, and gives them to the handler.
    fn put(&mut self, chunk: Bytes, channel: &BodyChannel) {
        if let State::Serving(serving) = &self.state {
            serving.exchange.received(chunk.len());
            self.core.deadlines.moved(chunk.len() as u64);
            serving.exchange.got_body(Some(channel), &mut self.core.deadlines);
        }
        channel.put(chunk);
    }

    /// Whether the body of a response is being sent.
    pub(super) fn is_sending(&self) -> bool {
        matches!(&self.state, State::Serving(serving) if serving.exchange.is_sending())
    }

    pub(super) fn receive_body(
        &mut self,
        context: &mut Context<'_>,
        worker: &Rc<Worker>,
        view: &Rc<WorkerConfig>,
        channel: &BodyChannel,
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
        let event = poll_body(
            &mut self.engine,
            &mut self.core.link,
            context,
            &view.head_limits,
            &mut self.core.unread,
            input,
            request,
            channel,
        );
        match ready!(event)? {
            BodyEvent::Chunk(chunk) => self.put(chunk, channel),
            BodyEvent::End => channel.end(Ok(())),
            BodyEvent::Disconnected => {
                // Half a request, and no client to respond to.
                channel.end(Err(BodyError::Incomplete));
                self.state = State::Reading;
                self.core.close_when_taken(LEFT_TO_KERNEL);
            }
            BodyEvent::Refused(refusal) => {
                let too_large = refusal == Refusal::ContentTooLarge;
                channel.end(Err(if too_large {
                    BodyError::TooLarge
                } else {
                    BodyError::Incomplete
                }));
                let request_context = match std::mem::replace(&mut self.state, State::Reading) {
                    State::Serving(serving) => serving.exchange.context,
                    _ => RequestContext::unparsed(view, self.core.info.local()),
                };
                self.refuse(worker, view, refusal, request_context, output);
                self.send(context, output)?;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Queues the next piece of an answer.
    pub(super) fn send_body(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let worker = Rc::clone(self.core.open.worker());
        let view = worker.config();
        let Buffers {
            input, output, request, ..
        } = &mut *worker.buffers.borrow_mut();
        self.send_body_with(context, &worker, &view, input, request, output)
    }

    pub(super) fn send_body_with(
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
        let mut responder = H1Responder::new(&mut self.engine, output, worker, false);
        let polled = serving
            .exchange
            .poll_body(context, worker, &mut self.core.info, u64::MAX, &mut responder);
        let written = responder.written;
        let Poll::Ready(progress) = polled else {
            if let Some(channel) = &serving.channel {
                channel.wake_when_wanted(context.waker());
            }
            let channel = self.await_handler(view);
            self.send(context, output)?;
            return match channel {
                _ if self.core.backlog.is_some() => Poll::Pending,
                Some(channel) => self.receive_body_while_sending(context, view, &channel, input, request),
                None => {
                    self.watch_client(context, view, input)?;
                    Poll::Pending
                }
            };
        };
        match progress {
            Progress::Piece => self.core.deadlines.leave_handler(),
            Progress::Done => self.finish_exchange(&written),
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
    fn receive_body_while_sending(
        &mut self,
        context: &mut Context<'_>,
        view: &WorkerConfig,
        channel: &BodyChannel,
        input: &mut [u8],
        request: &mut RequestIndex,
    ) -> Poll<io::Result<()>> {
        let ConnectionCore { link, unread, .. } = &mut self.core;
        let event = poll_body(
            &mut self.engine,
            link,
            context,
            &view.head_limits,
            unread,
            input,
            request,
            channel,
        );
        match ready!(event)? {
            BodyEvent::Chunk(chunk) => self.put(chunk, channel),
            BodyEvent::End => channel.end(Ok(())),
            BodyEvent::Disconnected => {
                channel.end(Err(BodyError::Incomplete));
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
            // The answer has begun, and no other can be given: what becomes of it is the handler's matter.
            BodyEvent::Refused(Refusal::ContentTooLarge) => channel.end(Err(BodyError::TooLarge)),
            BodyEvent::Refused(_) => channel.end(Err(BodyError::Incomplete)),
        }
        Poll::Ready(Ok(()))
    }

    /// Sees what the client does while it waits. One that has broken off is an error; one that has ended its side gets
    /// a short time more; what one sends ahead is kept, up to a bound, and behind that the kernel keeps it.
    fn watch_client(&mut self, context: &mut Context<'_>, view: &WorkerConfig, input: &mut [u8]) -> io::Result<()> {
        while !self.ended && self.core.unread.len() < WATCHED_BYTES_BOUND {
            let room = input.len().min(WATCHED_BYTES_BOUND - self.core.unread.len());
            let Poll::Ready(received) = self.core.link.poll_recv(context, &mut input[..room]) else {
                break;
            };
            let received = received?;
            if received.is_empty() {
                self.ended = true;
                self.core.deadlines.begin(Wait::Handler, self.response_ticks(view));
            }
            self.core.unread.extend_from_slice(&received);
        }
        Ok(())
    }

    /// How long an answer, or its next piece, may be in the making.
    pub(super) fn response_ticks(&self, view: &WorkerConfig) -> u32 {
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
const WATCHED_BYTES_BOUND: usize = 16 * 1024;
