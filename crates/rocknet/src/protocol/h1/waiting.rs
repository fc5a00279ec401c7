//! Waiting: for a handler, for the content of its request, for the next piece of its answer. Meanwhile the client is
//! watched: nothing is made for one that has gone.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_proto::h1::{self, Length, Next, Refusal, ServerConnection};
use rocknet_proto::request::RequestIndex;

use super::connection::{Connection, State, Waiting};
use super::content::{Pulled, pull};
use super::feed::Fed;
use super::reply::{H1Reply, Written};
use crate::exchange::{ContentError, Pipe};
use crate::interim::Early;
use crate::pipeline::{self, Answer, RequestContext, refusals};
use crate::protocol::deadlines::Phase;
use crate::response::FieldList;
use crate::worker::{Buffers, View, Worker};

impl<L: Link> Connection<L> {
    /// Waits for a handler, and gives it the request's content as it asks for it.
    pub(super) fn wait(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let worker = Rc::clone(self.open.worker());
        let view = worker.view();
        let State::Waiting(waiting) = &mut self.state else {
            return Poll::Ready(Ok(()));
        };
        let polled = catch_unwind(AssertUnwindSafe(|| waiting.pending.poll(context)));
        if let Some(early) = waiting.pending.interim() {
            let output = &mut worker.buffers.borrow_mut().output;
            inform(&mut self.engine, &early, output);
            if let Ok(Poll::Pending) = polled {
                return Poll::Ready(self.send(context, output, &view));
            }
        }
        if let Ok(Poll::Pending) = polled {
            if waiting.pipe.as_ref().is_some_and(|pipe| pipe.take_moved()) {
                self.deadlines.leave_handler();
            }
            let Some(pipe) = waiting.pipe.as_ref().filter(|pipe| pipe.is_wanted()).map(Rc::clone) else {
                self.deadlines.enter_handler(self.answer_ticks(&view));
                self.watch(context, &view, &mut worker.buffers.borrow_mut().input)?;
                return Poll::Pending;
            };
            self.deadlines.enter_content(view.ticks.body);
            return self.give_content(context, &worker, &view, &pipe);
        }
        let State::Waiting(waiting) = std::mem::replace(&mut self.state, State::Reading) else {
            return Poll::Ready(Ok(()));
        };
        let Buffers {
            input,
            output,
            request: index,
            ..
        } = &mut *worker.buffers.borrow_mut();
        match polled {
            Ok(Poll::Ready(Answer::Response(response))) => {
                self.respond(
                    &worker,
                    &view,
                    *response,
                    waiting.close,
                    waiting.request_context,
                    output,
                );
                if let State::Feeding(feeding) = &mut self.state {
                    feeding.pipe = waiting.pipe;
                } else if waiting.close {
                    self.state = State::Closing { linger: true };
                }
            }
            Ok(Poll::Ready(Answer::Cached(known, request))) => {
                let close = worker.is_stopping() || worker.wheel.now().since(self.born) >= view.ticks.age;
                let mut reply = H1Reply::new(&mut self.engine, output, &worker, close);
                let Waiting {
                    request_context, pipe, ..
                } = *waiting;
                let proceeding = catch_unwind(AssertUnwindSafe(|| {
                    let request_context = Rc::clone(&request_context);
                    pipeline::from_known(&worker, request_context, &known, &request.view(), &mut reply)
                }));
                let written = Written { pipe, ..reply.written };
                match proceeding {
                    Ok(going) => self.proceed(&worker, &view, going, written, output),
                    Err(_) => self.panicked(&worker, &view, request_context, output),
                }
            }
            _ => self.panicked(&worker, &view, waiting.request_context, output),
        }
        // The head waits for the first of the content, if that is there: one call sends both.
        if let State::Feeding(_) = self.state {
            return self.feed_into(context, &worker, &view, input, index, output);
        }
        Poll::Ready(self.send(context, output, &view))
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
            pipe,
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
                    State::Waiting(waiting) => waiting.request_context,
                    _ => RequestContext::unparsed(view, self.local.as_deref().copied()),
                };
                self.refuse(worker, view, refusal, request_context, output);
                self.send(context, output, view)?;
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
        let State::Feeding(feeding) = &mut self.state else {
            return Poll::Ready(Ok(()));
        };
        let polled = match catch_unwind(AssertUnwindSafe(|| {
            feeding.feed.poll(context, &worker.shared.pool, output)
        })) {
            Ok(Poll::Pending) => {
                if let Some(pipe) = &feeding.pipe {
                    pipe.on_wanted(context.waker());
                }
                let pipe = feeding.pipe.as_ref().filter(|pipe| pipe.is_wanted()).map(Rc::clone);
                self.deadlines.enter_handler(self.answer_ticks(view));
                self.send(context, output, view)?;
                return match pipe {
                    _ if self.backlog.is_some() => Poll::Pending,
                    Some(pipe) => self.give_beside(context, view, &pipe, input, request),
                    None => {
                        self.watch(context, view, input)?;
                        Poll::Pending
                    }
                };
            }
            Ok(Poll::Ready(polled)) => polled,
            Err(_) => {
                worker.counters.panics.add(1);
                refusals::log_panic(&feeding.request_context);
                Err(io::ErrorKind::Other.into())
            }
        };
        self.deadlines.leave_handler();
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
            Ok(fed @ (Fed::Done | Fed::Trailers(_))) => {
                let State::Feeding(feeding) = std::mem::replace(&mut self.state, State::Reading) else {
                    return Poll::Ready(Ok(()));
                };
                let next = match fed {
                    Fed::Trailers(trailers) => finish_with(&mut self.engine, &trailers, output),
                    _ => self.engine.finish(output.buffer()),
                };
                self.answered(worker, feeding.status, feeding.sent, &feeding.request_context, next);
            }
            Err(error) => {
                // The head promises more, and leaves now if it has waited for its content: only a cut tells the client.
                tracing::warn!("an answer was cut short: {error}");
                self.engine.abort();
                let _ = self.send(context, output, view);
                self.link.flush();
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
        }
        Poll::Ready(self.send(context, output, view))
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
        let ticks = self.deadlines.patience().unwrap_or(view.ticks.answer);
        if self.ended {
            ticks.min(view.ticks.half_closed)
        } else {
            ticks
        }
    }
}

/// Ends an answer with these fields, or without them where they cannot be sent.
#[cold]
fn finish_with(engine: &mut ServerConnection, trailers: &FieldList, output: &mut SendQueue) -> Next {
    match engine.finish_with_trailers(trailers.bytes(), output.buffer()) {
        Ok(next) => next,
        Err(error) => {
            tracing::warn!("trailers of an answer were not sent: {error}");
            engine.finish(output.buffer())
        }
    }
}

/// Writes an interim answer, for a client that knows what that is.
#[cold]
fn inform(engine: &mut ServerConnection, early: &Early, output: &mut SendQueue) {
    if !engine.may_inform() {
        return;
    }
    let framing = engine.respond(early.status, Length::None, false);
    if let Err(error) = h1::encode_head(output.buffer(), framing, early.status, early.fields.bytes()) {
        tracing::error!("an interim answer was not sent: {error}");
    }
}

/// Bytes kept of what a client sends before it has its answer: the next requests of one that pipelines find room, and
/// those that wait for a disk by the thousand hold little. Only while there is room is an end seen behind them.
const WATCH_BOUND: usize = 16 * 1024;
