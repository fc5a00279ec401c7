//! Polls exchanges in progress: handlers, request bodies, and the next pieces of response bodies. This is the first
//! part of each round, that is of each iteration of the connection's loop. A round then receives, writes frames, and
//! sends.

use std::rc::Rc;
use std::task::{Context, Poll};

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_proto::h2::{ServerConnection, StreamId};
use rocknet_proto::status::Status;

use super::connection::Connection;
use super::responder::RequestBody;
use super::send_budget::OUTPUT_BOUND;
use super::streams::{ExchangeState, StreamExchange};
use crate::lifecycle::body_receiver::{BodyDemand, BodyReceiver, BodyStream};
use crate::lifecycle::deadlines::Wait;
use crate::lifecycle::exchange::Stage;
use crate::lifecycle::poll_handler::{HandlerPoll, Panicked, send_interim};
use crate::lifecycle::sending::Progress;
use crate::pipeline::CompletedResponse;
use crate::worker::{Worker, WorkerConfig};

/// Result of polling an exchange.
pub(super) enum ExchangePoll {
    /// The exchange waits for its next poll. The caller puts it back.
    Waiting(Box<StreamExchange>),
    /// The exchange has progressed and is back in the table, or has ended.
    Progressed,
}

impl<L: Link> Connection<L> {
    /// Polls all exchanges in progress. Also starts the exchanges of held requests, which arrived while the socket was
    /// blocked: a round begins only once the socket has taken all earlier output. Returns true if an exchange has
    /// progressed.
    #[inline]
    pub(super) fn poll_exchanges(
        &mut self,
        context: &mut Context<'_>,
        worker: &Rc<Worker>,
        config: &Rc<WorkerConfig>,
    ) -> bool {
        if self.streams.is_empty() {
            return false;
        }
        let mut progressed = false;
        // Files and tunnels of one round together read only as many bytes as the round may send. Otherwise a client
        // could close its windows and fill memory with ready bytes at no cost to itself. A handler that streams its
        // body chooses the size of its pieces. It is polled even without room, because at most one of its pieces is
        // ready at a time.
        let mut room = self.engine.connection_send_capacity().min(OUTPUT_BOUND);
        let (slots, first) = (self.streams.slots(), self.first_slot.min(self.streams.slots()));
        for slot in (first..slots).chain(0..first) {
            let Some(entry) = self.streams.take_slot(slot) else {
                continue;
            };
            let had_room = room > 0;
            match self.poll_exchange(context, worker, config, entry, &mut room) {
                ExchangePoll::Waiting(entry) => self.streams.insert(entry),
                ExchangePoll::Progressed => progressed = true,
            }
            if had_room && room == 0 {
                // The next round starts with the exchanges for which this round had no room.
                self.first_slot = slot + 1;
            }
        }
        progressed
    }

    /// Polls one exchange. `room`: bytes that all exchanges together may still make ready in this round.
    fn poll_exchange(
        &mut self,
        context: &mut Context<'_>,
        worker: &Rc<Worker>,
        config: &Rc<WorkerConfig>,
        mut entry: Box<StreamExchange>,
        room: &mut u64,
    ) -> ExchangePoll {
        let exchange = match &mut entry.state {
            ExchangeState::Active(exchange) if exchange.is_tunnel() => {
                return self.poll_tunnel(context, worker, config, entry, room);
            }
            ExchangeState::Active(exchange) => exchange,
            ExchangeState::Held(_) => {
                let StreamExchange { stream, state, .. } = *entry;
                if let ExchangeState::Held(held) = state {
                    self.begin_held(worker, config, held, stream);
                }
                return ExchangePoll::Progressed;
            }
        };
        loop {
            let id = entry.stream.id;
            match &exchange.stage {
                Stage::Tunnel(_) => {}
                Stage::Waiting(_) => {
                    let HandlerPoll { result, interim } = exchange.poll_handler(context, &mut entry.deadlines);
                    if let Some(interim) = &interim {
                        let output = &mut worker.buffers.borrow_mut().output;
                        let (mut responder, _) = self.responder(worker, &entry.stream, RequestBody::None, output);
                        send_interim(interim, &mut responder);
                    }
                    match result {
                        // The handler was woken, because its interim response was taken.
                        Poll::Pending if interim.is_some() => continue,
                        Poll::Pending => {}
                        Poll::Ready(result) => {
                            self.respond_completed(worker, result, *entry);
                            return ExchangePoll::Progressed;
                        }
                    }
                }
                Stage::Sending { body, .. } => {
                    let is_file = body.is_file();
                    let allowance = self.engine.send_capacity(id, body.left());
                    // Ready bytes wait for the client. A file also waits while the windows permit no bytes.
                    if body.ready() > 0 || is_file && allowance == 0 {
                        entry.deadlines.enter(Wait::Send, config.ticks.send);
                    } else if !is_file || *room > 0 {
                        let output = &mut worker.buffers.borrow_mut().output;
                        let (mut responder, info) = self.responder(worker, &entry.stream, RequestBody::None, output);
                        // Applies only to pieces of files.
                        let max_bytes = allowance.min(*room);
                        match exchange.poll_body(context, worker, info, max_bytes, &mut responder) {
                            Poll::Pending if is_file => entry
                                .deadlines
                                .enter_handler(entry.deadlines.handler_ticks(config.ticks.answer)),
                            Poll::Pending => {}
                            Poll::Ready(Progress::Piece) => {
                                if let Stage::Sending { body, .. } = &exchange.stage {
                                    *room = room.saturating_sub(body.ready());
                                }
                                entry.deadlines.end_wait();
                                self.streams.insert(entry);
                                return ExchangePoll::Progressed;
                            }
                            Poll::Ready(Progress::Done) => return ExchangePoll::Progressed,
                            Poll::Ready(Progress::Cut) => {
                                // No bytes (`0`) are deducted as unsent: rounds begin without a backlog.
                                exchange.record_cut(worker, &mut self.core.info, 0);
                                return ExchangePoll::Progressed;
                            }
                        }
                    }
                }
            }
            let is_sending = exchange.is_sending();
            let awaits_handler = match &exchange.stage {
                Stage::Waiting(_) => true,
                Stage::Sending { body, .. } => body.ready() == 0 && !body.is_file(),
                Stage::Tunnel(_) => false,
            };
            let demand = match &mut entry.stream.body {
                Some(body) => {
                    let output = &mut worker.buffers.borrow_mut().output;
                    let mut stream = H2BodyStream {
                        id: entry.stream.id,
                        engine: &mut self.engine,
                        output,
                    };
                    let demand = body.supply(&mut stream);
                    if is_sending && matches!(&demand, BodyDemand::None | BodyDemand::Met) {
                        // The request body may be read by another task, such as one that sends it to an upstream over
                        // HTTP/2. When that task requests a chunk, the connection is polled again.
                        body.channel().wake_when_wanted(context.waker());
                    }
                    demand
                }
                None => BodyDemand::None,
            };
            if awaits_handler {
                let (deadlines, channel) = (
                    &mut entry.deadlines,
                    entry.stream.body.as_ref().map(BodyReceiver::channel),
                );
                if matches!(demand, BodyDemand::Met) {
                    exchange.body_progressed(channel, deadlines);
                    continue;
                }
                let ticks = (config.ticks.body, deadlines.handler_ticks(config.ticks.answer));
                exchange.await_handler(matches!(demand, BodyDemand::Unmet), channel, deadlines, ticks);
            }
            return ExchangePoll::Waiting(entry);
        }
    }

    /// Continues with the result of a handler.
    fn respond_completed(
        &mut self,
        worker: &Rc<Worker>,
        result: Result<CompletedResponse, Panicked>,
        entry: StreamExchange,
    ) {
        let StreamExchange { stream, state, .. } = entry;
        let ExchangeState::Active(exchange) = state else { return };
        let output = &mut worker.buffers.borrow_mut().output;
        let (mut responder, info) = self.responder(worker, &stream, RequestBody::None, output);
        let flow = exchange.handler_done(worker, info, result, &mut responder);
        // Streams of pushed files, announced by PUSH_PROMISE frames.
        let promised = responder.written.promised;
        self.advance(worker, flow, promised, stream, output);
    }
}

/// HTTP/2 stream on which a request body arrives.
struct H2BodyStream<'a> {
    id: StreamId,
    engine: &'a mut ServerConnection,
    output: &'a mut SendQueue,
}

impl BodyStream for H2BodyStream<'_> {
    fn release(&mut self, bytes: u32) {
        self.engine.release(self.id, bytes, self.output.buffer());
    }

    fn send_continue(&mut self) {
        // If the stream is gone, the failure to send does not matter.
        let _ = self
            .engine
            .send_interim(self.id, Status::CONTINUE, [], self.output.buffer());
    }
}
