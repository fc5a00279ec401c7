//! Polls the exchange in progress: the handler, the request body, and the next piece of the response body. While the
//! exchange waits, the connection is watched for a disconnect, so that the exchange ends early if the client is gone.

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
use crate::lifecycle::deadlines::{MAX_UNACKNOWLEDGED, Wait};
use crate::lifecycle::poll_handler::{HandlerPoll, send_interim};
use crate::lifecycle::sending::Progress;
use crate::pipeline::RequestContext;
use crate::worker::{Buffers, Worker, WorkerConfig};

impl<L: Link> Connection<L> {
    /// Polls the handler, and passes the request body to it on demand.
    pub(super) fn poll_handler(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let worker = Rc::clone(self.core.open.worker());
        let config = worker.config();
        let State::Serving(serving) = &mut self.state else {
            return Poll::Ready(Ok(()));
        };
        let HandlerPoll { result, interim } = serving.exchange.poll_handler(context, &mut self.core.deadlines);
        if let Some(interim) = interim {
            let output = &mut worker.buffers.borrow_mut().output;
            send_interim(
                &interim,
                // `false`: an interim response does not end the connection.
                &mut H1Responder::new(&mut self.engine, output, &worker, false),
            );
            if result.is_pending() {
                return Poll::Ready(self.send(context, output));
            }
        }
        let Poll::Ready(result) = result else {
            return match self.await_handler(&config) {
                Some(channel) => self.receive_body(context, &worker, &config, &channel),
                None => {
                    self.watch_client(context, &config, &mut worker.buffers.borrow_mut().input)?;
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
        let close = self.core.should_close(&worker, &config);
        let mut responder = H1Responder::new(&mut self.engine, output, &worker, close);
        // After a panic no handler reads the rest of the body.
        let channel = channel.filter(|_| result.is_ok());
        let flow = exchange.handler_done(&worker, &mut self.core.info, result, &mut responder);
        let written = Written {
            channel,
            ..responder.written
        };
        self.advance(&config, flow, written);
        // If the first piece of the body is ready, one call sends it together with the head.
        if self.is_sending() {
            return self.send_body_with(context, &worker, &config, input, index, output);
        }
        Poll::Ready(self.send(context, output))
    }

    /// Sets the deadline while the handler works. Returns the channel of the request body if the handler has requested
    /// more of the body.
    fn await_handler(&mut self, config: &WorkerConfig) -> Option<Rc<BodyChannel>> {
        let handler_ticks = self.response_ticks(config);
        let State::Serving(serving) = &self.state else {
            return None;
        };
        let wanted = serving.channel.as_ref().filter(|channel| channel.wants_chunk());
        let (channel, ticks) = (serving.channel.as_deref(), (config.ticks.body, handler_ticks));
        let deadlines = &mut self.core.deadlines;
        serving
            .exchange
            .await_handler(wanted.is_some(), channel, deadlines, ticks);
        wanted.map(Rc::clone)
    }

    /// Counts received bytes of the request body, and passes them to the handler.
    fn put(&mut self, chunk: Bytes, channel: &BodyChannel) {
        if let State::Serving(serving) = &self.state {
            serving.exchange.received(chunk.len());
            self.core.deadlines.received(chunk.len() as u64);
            serving
                .exchange
                .body_progressed(Some(channel), &mut self.core.deadlines);
        }
        channel.put(chunk);
    }

    /// Returns true if a response body is being sent.
    pub(super) fn is_sending(&self) -> bool {
        matches!(&self.state, State::Serving(serving) if serving.exchange.is_sending())
    }

    /// Receives the next part of the request body while the handler waits for it. Sends 100 (Continue) first if the
    /// client waits for it. If the body is rejected, the response to the rejection replaces the exchange.
    pub(super) fn receive_body(
        &mut self,
        context: &mut Context<'_>,
        worker: &Rc<Worker>,
        config: &Rc<WorkerConfig>,
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
                // The backlog has to be sent first.
                return Poll::Ready(Ok(()));
            }
        }
        let event = poll_body(
            &mut self.engine,
            &mut self.core.link,
            context,
            &config.head_limits,
            &mut self.core.unread,
            input,
            request,
            channel,
        );
        match ready!(event)? {
            BodyEvent::Chunk(chunk) => self.put(chunk, channel),
            BodyEvent::End => channel.end(Ok(())),
            BodyEvent::Disconnected => {
                // The request is incomplete, and the client is gone. No response has begun that could be recorded.
                channel.end(Err(BodyError::Incomplete));
                self.state = State::Reading;
                self.core.close_or_await_ack(MAX_UNACKNOWLEDGED);
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
                    _ => RequestContext::unparsed(config, self.core.info.local()),
                };
                self.refuse(worker, config, refusal, request_context, output);
                self.send(context, output)?;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Sends the next piece of a response body. While no piece is ready, receives the request body if the handler has
    /// requested more of it, and otherwise watches the client.
    pub(super) fn send_body(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let worker = Rc::clone(self.core.open.worker());
        let config = worker.config();
        let Buffers {
            input, output, request, ..
        } = &mut *worker.buffers.borrow_mut();
        self.send_body_with(context, &worker, &config, input, request, output)
    }

    /// Sends like [`Connection::send_body`]. The caller passes the buffers of the worker, because it has borrowed them.
    pub(super) fn send_body_with(
        &mut self,
        context: &mut Context<'_>,
        worker: &Rc<Worker>,
        config: &Rc<WorkerConfig>,
        input: &mut [u8],
        request: &mut RequestIndex,
        output: &mut SendQueue,
    ) -> Poll<io::Result<()>> {
        let State::Serving(serving) = &mut self.state else {
            return Poll::Ready(Ok(()));
        };
        // `false` has no effect, because the head was written before, and only a head shows whether the connection
        // closes.
        let mut responder = H1Responder::new(&mut self.engine, output, worker, false);
        // The maximum size of a piece (`u64::MAX`) matters only for versions whose responses share a connection.
        let polled = serving
            .exchange
            .poll_body(context, worker, &mut self.core.info, u64::MAX, &mut responder);
        let written = responder.written;
        let Poll::Ready(progress) = polled else {
            if let Some(channel) = &serving.channel {
                // The request body may be read by another task, such as one that sends it to an upstream over HTTP/2.
                // When that task requests a chunk, the connection is polled again.
                channel.wake_when_wanted(context.waker());
            }
            let channel = self.await_handler(config);
            self.send(context, output)?;
            return match channel {
                _ if self.core.backlog.is_some() => Poll::Pending,
                Some(channel) => self.receive_body_while_sending(context, config, &channel, input, request),
                None => {
                    self.watch_client(context, config, input)?;
                    Poll::Pending
                }
            };
        };
        match progress {
            Progress::Piece => self.core.deadlines.end_handler_wait(),
            Progress::Done => self.finish_exchange(&written),
            Progress::Cut => {
                // The head is sent, because it may have waited for the first piece of the body.
                let _ = self.send(context, output);
                self.core.link.flush();
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
        }
        Poll::Ready(self.send(context, output))
    }

    /// Passes more of the request body to the handler while the response is being sent.
    fn receive_body_while_sending(
        &mut self,
        context: &mut Context<'_>,
        config: &WorkerConfig,
        channel: &BodyChannel,
        input: &mut [u8],
        request: &mut RequestIndex,
    ) -> Poll<io::Result<()>> {
        let ConnectionCore { link, unread, .. } = &mut self.core;
        let event = poll_body(
            &mut self.engine,
            link,
            context,
            &config.head_limits,
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
            // The response has begun and cannot be replaced, so the handler decides what to do.
            BodyEvent::Refused(Refusal::ContentTooLarge) => channel.end(Err(BodyError::TooLarge)),
            BodyEvent::Refused(_) => channel.end(Err(BodyError::Incomplete)),
        }
        Poll::Ready(Ok(()))
    }

    /// Receives from a client that waits for its response. A reset is an error. If the client closes its side, the
    /// deadline begins again with the shorter timeout of a half-closed connection. Pipelined requests are stored up to
    /// [`WATCHED_BYTES_BOUND`]; further bytes stay in the kernel.
    fn watch_client(&mut self, context: &mut Context<'_>, config: &WorkerConfig, input: &mut [u8]) -> io::Result<()> {
        while !self.client_has_closed && self.core.unread.len() < WATCHED_BYTES_BOUND {
            let room = input.len().min(WATCHED_BYTES_BOUND - self.core.unread.len());
            let Poll::Ready(received) = self.core.link.poll_recv(context, &mut input[..room]) else {
                break;
            };
            let received = received?;
            if received.is_empty() {
                self.client_has_closed = true;
                self.core.deadlines.begin(Wait::Handler, self.response_ticks(config));
            }
            self.core.unread.extend_from_slice(&received);
        }
        Ok(())
    }

    /// Returns the timeout in ticks for a response, or for its next piece.
    pub(super) fn response_ticks(&self, config: &WorkerConfig) -> u32 {
        let ticks = self.core.deadlines.handler_ticks(config.ticks.answer);
        if self.client_has_closed {
            ticks.min(config.ticks.half_closed)
        } else {
            ticks
        }
    }
}

/// Maximum number of bytes stored from a client that waits for its response: enough for the next pipelined requests,
/// and little memory for thousands of clients that wait for a disk. A close is noticed only while fewer bytes are
/// stored.
const WATCHED_BYTES_BOUND: usize = 16 * 1024;
