//! Polls exchanges in progress: handlers, request bodies, and the output of responses. Each call of
//! [`Connection::poll_exchanges`] is one round, in which every stream gets at most one turn.

use std::rc::Rc;
use std::task::{Context, Poll};

use rocknet_proto::h3::{ServerConnection, StreamId};
use rocknet_proto::status::Status;

use super::connection::Connection;
use super::output::{StreamOutput, WriteProgress, quic_id};
use super::responder::RequestBody;
use super::streams::StreamExchange;
use crate::exchange::BodyError;
use crate::lifecycle::body_receiver::{BodyDemand, BodyReceiver, BodyStream};
use crate::lifecycle::deadlines::Wait;
use crate::lifecycle::exchange::{ActiveExchange, Stage};
use crate::lifecycle::poll_handler::{HandlerPoll, send_interim};
use crate::lifecycle::responder::Responder;
use crate::lifecycle::sending::Progress;
use crate::worker::{Worker, WorkerConfig};

/// Maximum number of bytes of a response body that are read from a file, or taken from memory, at once.
const PIECE: u64 = 64 * 1024;

/// Maximum in place of [`PIECE`] while [`HELD_BOUND`] is exceeded.
const SMALL_PIECE: u64 = 4 * 1024;

/// Number of bytes that wait for the transport on all streams together, above which streams take small pieces. A client
/// that opens many streams and permits nothing on them would otherwise occupy the memory of one whole piece for each.
const HELD_BOUND: u64 = 512 * 1024;

/// Number of pieces of a body that a stream sends before other streams get their turn.
const PIECES_PER_TURN: u32 = 2;

/// Result of polling an exchange.
pub(super) enum ExchangePoll {
    /// The exchange waits, and nothing has changed.
    Waiting(Box<StreamExchange>),
    /// The exchange has progressed and waits again.
    Progressed(Box<StreamExchange>),
    /// The exchange has sent as much of its body as it may in one round, and has more.
    TurnEnded(Box<StreamExchange>),
    /// The exchange is over, or continues in another entry of the table.
    Over,
}

impl Connection {
    /// Polls all exchanges in progress, the most urgent first. Returns true if one has progressed.
    pub(super) fn poll_exchanges(
        &mut self,
        context: &mut Context<'_>,
        worker: &Rc<Worker>,
        config: &Rc<WorkerConfig>,
    ) -> bool {
        if self.streams.is_empty() {
            return false;
        }
        let mut streams = self.streams.priorities();
        streams.sort_unstable_by_key(|&(id, priority)| self.send_order.place(id, priority));
        let mut progressed = false;
        self.send_order.begin_round();
        self.round_bytes = 0;
        self.held_bytes = self.streams.held();
        for (id, priority) in streams {
            let Some(entry) = self.streams.take(id) else {
                continue;
            };
            let is_sending = entry.exchange.as_ref().is_none_or(ActiveExchange::is_sending);
            if is_sending && self.send_order.is_held_back(priority) {
                self.streams.insert(entry);
                continue;
            }
            self.held_bytes = self.held_bytes.saturating_sub(entry.stream.output.length());
            match self.poll_exchange(context, worker, config, entry) {
                ExchangePoll::Waiting(entry) => self.put_back(entry),
                ExchangePoll::Progressed(entry) => {
                    self.put_back(entry);
                    progressed = true;
                }
                ExchangePoll::TurnEnded(entry) => {
                    self.put_back(entry);
                    progressed = true;
                    self.send_order.turn_ended(priority);
                }
                ExchangePoll::Over => {
                    progressed = true;
                    if self.streams.get_mut(id).is_none() {
                        self.read_rest(worker, id);
                    }
                }
            }
            if self.resume_reading(worker, id) {
                progressed = true;
            }
        }
        if self.round_bytes > 0 {
            // A client that takes the bytes of any stream is not too slow for the streams that wait for their turn.
            self.streams.credit_waiting(self.round_bytes);
        }
        progressed
    }

    /// Puts an exchange back into the table, and counts its waiting bytes again.
    fn put_back(&mut self, entry: Box<StreamExchange>) {
        self.held_bytes += entry.stream.output.length();
        self.streams.insert(entry);
    }

    /// Returns the maximum number of bytes of a body that are read or taken at once.
    fn piece(&self) -> u64 {
        if self.held_bytes > HELD_BOUND {
            SMALL_PIECE
        } else {
            PIECE
        }
    }

    /// Reads a stream on which reading had stopped, once the handler has taken what was received. Returns true if the
    /// stream was read.
    fn resume_reading(&mut self, worker: &Rc<Worker>, id: StreamId) -> bool {
        let resumes = self.streams.get_mut(id).is_some_and(|entry| {
            let is_taken = entry.stream.body.as_ref().is_none_or(|body| body.held() == 0);
            is_taken && std::mem::take(&mut entry.stream.is_paused)
        });
        if resumes {
            self.read(worker, quic_id(id));
        }
        resumes
    }

    /// Discards the rest of a request whose exchange is over. Reading may have stopped because the handler was slow,
    /// and the transport keeps a stream until all of it has been read.
    pub(super) fn read_rest(&mut self, worker: &Rc<Worker>, id: StreamId) {
        self.blocked.retain(|(blocked, ..)| *blocked != id);
        self.read(worker, quic_id(id));
    }

    /// Polls one exchange until it waits, is over, or has sent its pieces of this round.
    fn poll_exchange(
        &mut self,
        context: &mut Context<'_>,
        worker: &Rc<Worker>,
        config: &Rc<WorkerConfig>,
        mut entry: Box<StreamExchange>,
    ) -> ExchangePoll {
        if entry.exchange.as_ref().is_some_and(ActiveExchange::is_tunnel) {
            return self.poll_tunnel(context, worker, config, entry);
        }
        let (mut progressed, mut pieces, piece) = (false, 0, self.piece());
        loop {
            match self.write_output(worker, config, &mut entry) {
                WriteProgress::Gone => {
                    entry.stream.fail(BodyError::Incomplete);
                    if let Some(exchange) = &entry.exchange {
                        exchange.record_cut(worker, &mut self.info, entry.stream.output.length());
                    }
                    return ExchangePoll::Over;
                }
                WriteProgress::Blocked => return unchanged_unless(progressed, entry),
                WriteProgress::All if entry.stream.output.is_ended() => {
                    self.unacknowledged.push(entry.stream.id);
                    return ExchangePoll::Over;
                }
                WriteProgress::All => {}
            }
            // Without an exchange, an output that does not end belongs to an aborted response.
            let StreamExchange {
                stream,
                exchange: Some(exchange),
                deadlines,
                ..
            } = &mut *entry
            else {
                return ExchangePoll::Over;
            };
            match &mut exchange.stage {
                Stage::Tunnel(_) => {}
                Stage::Waiting(_) => {
                    let HandlerPoll { result, interim } = exchange.poll_handler(context, deadlines);
                    if let Some(interim) = &interim {
                        let (mut responder, _) = self.responder(worker, stream, RequestBody::None);
                        send_interim(interim, &mut responder);
                        progressed = true;
                    }
                    match result {
                        // The handler was woken, because its interim response was taken.
                        Poll::Pending if interim.is_some() => continue,
                        Poll::Pending => {}
                        Poll::Ready(result) => {
                            let StreamExchange {
                                mut stream, exchange, ..
                            } = *entry;
                            if let Some(exchange) = exchange {
                                let (mut responder, info) = self.responder(worker, &mut stream, RequestBody::None);
                                let flow = exchange.handler_done(worker, info, result, &mut responder);
                                self.advance(worker, flow, stream);
                            }
                            return ExchangePoll::Over;
                        }
                    }
                }
                Stage::Sending { body, .. } if body.is_last() && body.ready() == 0 => {
                    let (mut responder, info) = self.responder(worker, stream, RequestBody::None);
                    // Without trailer fields nothing can fail.
                    let _ = responder.finish(None);
                    exchange.record(worker, info);
                    entry.exchange = None;
                    entry.stream.body = None;
                    entry.deadlines.end_wait();
                    progressed = true;
                    continue;
                }
                Stage::Sending { body, .. } => {
                    let is_file = body.is_file();
                    let (mut responder, info) = self.responder(worker, stream, RequestBody::None);
                    match exchange.poll_body(context, worker, info, piece, &mut responder) {
                        Poll::Pending if is_file => {
                            deadlines.enter_handler(deadlines.handler_ticks(config.ticks.answer));
                        }
                        Poll::Pending => {}
                        Poll::Ready(Progress::Piece) => {
                            deadlines.end_wait();
                            progressed = true;
                            pieces += 1;
                            if pieces == PIECES_PER_TURN {
                                // The next round writes again, and acts on the progress.
                                self.write_output(worker, config, &mut entry);
                                return ExchangePoll::TurnEnded(entry);
                            }
                            continue;
                        }
                        Poll::Ready(Progress::Done) => {
                            entry.exchange = None;
                            entry.stream.body = None;
                            progressed = true;
                            continue;
                        }
                        Poll::Ready(Progress::Cut) => {
                            exchange.record_cut(worker, &mut self.info, stream.output.length());
                            return ExchangePoll::Over;
                        }
                    }
                }
            }
            if self.supply_body(context, config, &mut entry) {
                progressed = true;
                continue;
            }
            // Output at this point is 100 (Continue), which `supply_body` has added.
            progressed |= entry.stream.output.has_bytes();
            return unchanged_unless(progressed, entry);
        }
    }

    /// Writes the output of a stream, then the ready bytes of its body.
    fn write_output(&mut self, worker: &Worker, config: &WorkerConfig, entry: &mut StreamExchange) -> WriteProgress {
        let StreamExchange {
            stream,
            exchange,
            deadlines,
            awaits_turn,
        } = entry;
        let piece_size = self.piece();
        let (mut written, mut bytes) = stream.output.write(&mut self.quic, stream.id);
        if let Some(exchange) = exchange {
            let queue = &mut worker.buffers.borrow_mut().output;
            // The buffer is already empty, unless a panic has left the response of another connection in it.
            queue.clear();
            while written == WriteProgress::All
                && let Some(piece) = exchange.take_ready(piece_size, queue)
            {
                exchange.sent += piece.len() as u64;
                stream.output.push(piece);
                let (progress, taken) = stream.output.write(&mut self.quic, stream.id);
                bytes += taken;
                written = progress;
            }
        }
        worker.counters.bytes_sent.add(bytes);
        self.round_bytes += bytes;
        if bytes > 0 {
            self.send_order.wrote(stream.id, stream.priority);
            *awaits_turn = false;
        }
        if written == WriteProgress::Blocked {
            if deadlines.wait() == Wait::Send {
                deadlines.moved(bytes);
            }
            deadlines.enter(Wait::Send, config.ticks.send);
        } else if deadlines.wait() == Wait::Send {
            deadlines.end_wait();
        }
        written
    }

    /// Passes the next piece of the request body to the handler. Returns true if the handler has to be polled again.
    fn supply_body(&mut self, context: &Context<'_>, config: &WorkerConfig, entry: &mut StreamExchange) -> bool {
        let StreamExchange {
            stream,
            exchange: Some(exchange),
            deadlines,
            ..
        } = entry
        else {
            return false;
        };
        let is_sending = exchange.is_sending();
        let awaits_handler = match &exchange.stage {
            Stage::Waiting(_) => true,
            Stage::Sending { body, .. } => body.ready() == 0 && !body.is_file(),
            Stage::Tunnel(_) => false,
        };
        let demand = match &mut stream.body {
            Some(body) => {
                let mut source = H3BodyStream {
                    id: stream.id,
                    engine: &mut self.engine,
                    output: &mut stream.output,
                };
                let demand = body.supply(&mut source);
                if is_sending && matches!(&demand, BodyDemand::None | BodyDemand::Met) {
                    // The request body may be read by another task, such as one that sends it to an upstream over
                    // HTTP/2. When that task requests a chunk, the connection is polled again.
                    body.channel().wake_when_wanted(context.waker());
                }
                demand
            }
            None => BodyDemand::None,
        };
        if !awaits_handler {
            return false;
        }
        let channel = stream.body.as_ref().map(BodyReceiver::channel);
        if matches!(demand, BodyDemand::Met) {
            exchange.body_progressed(channel, deadlines);
            return true;
        }
        let ticks = (config.ticks.body, deadlines.handler_ticks(config.ticks.answer));
        exchange.await_handler(matches!(demand, BodyDemand::Unmet), channel, deadlines, ticks);
        false
    }
}

/// Returns the result of polling an exchange that waits again. `progressed`: true if the exchange has progressed.
fn unchanged_unless(progressed: bool, entry: Box<StreamExchange>) -> ExchangePoll {
    if progressed {
        ExchangePoll::Progressed(entry)
    } else {
        ExchangePoll::Waiting(entry)
    }
}

/// HTTP/3 stream on which a request body arrives.
struct H3BodyStream<'a> {
    id: StreamId,
    engine: &'a mut ServerConnection,
    output: &'a mut StreamOutput,
}

impl BodyStream for H3BodyStream<'_> {
    /// Does nothing, because the transport releases bytes as soon as they are read. Reading stops while the handler
    /// lags behind.
    fn release(&mut self, _: u32) {}

    fn send_continue(&mut self) {
        let mut out = Vec::new();
        // If the stream is gone, the failure to send does not matter.
        let _ = self.engine.send_interim(self.id, Status::CONTINUE, [], &mut out);
        self.output.push(out.into());
    }
}
