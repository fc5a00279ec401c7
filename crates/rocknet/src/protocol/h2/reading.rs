//! Runs one round of a connection: receives frames, and handles all requests of one receive.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_proto::h2::{ConnectionEvent, DecodedHead};

use super::connection::{Connection, State};
use super::send_budget::OUTPUT_BOUND;
use super::streams::ExchangeState::Active;
use super::streams::RequestStream;
use crate::exchange::BodyError;
use crate::response::FieldList;
use crate::worker::{Buffers, Worker, WorkerConfig};

impl<L: Link> Connection<L> {
    /// Runs one round: polls exchanges, receives, handles requests, writes frames, and sends all output.
    pub(super) fn serve(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let worker = Rc::clone(self.core.open.worker());
        let config = worker.config();
        self.begin_round(&worker, &config);
        let mut progressed = self.poll_exchanges(context, &worker, &config);
        let buffers = &mut *worker.buffers.borrow_mut();
        let Some(received) = self.receive(context, &worker, &config, buffers)? else {
            self.client_ended();
            return Poll::Ready(Ok(()));
        };
        progressed |= received;
        let output = &mut buffers.output;
        progressed |= self.write_frames(&worker, output);
        if self.engine.is_closed() || self.engine.is_drained() && self.streams.is_empty() {
            self.state = State::Closing;
            progressed = true;
        }
        if !output.is_empty() {
            self.send(context, output)?;
            progressed = true;
        } else if !progressed {
            self.send_budget.idle();
        }
        if progressed { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Sends the preface in the first round, and begins the drain of a connection that must end.
    fn begin_round(&mut self, worker: &Worker, config: &Rc<WorkerConfig>) {
        let output = &mut worker.buffers.borrow_mut().output;
        // The buffer is already empty, unless a panic has left the response of another connection in it.
        output.clear();
        if self.state == State::New {
            self.state = State::Serving;
            self.engine.write_preface(&config.head_limits, output.buffer());
        }
        if self.core.should_close(worker, config) && !self.engine.is_draining() {
            self.engine.begin_drain(output.buffer());
        }
        if worker.closes_idle() && self.engine.is_idle() && self.engine.is_draining() {
            // Requests that are still in transit are not handled. GOAWAY informs the client, which can retry them
            // elsewhere.
            self.engine.finish_drain(output.buffer());
        }
    }

    /// Receives and handles frames. Returns `Some(false)` if nothing was received, and `None` if the client has closed
    /// its side.
    fn receive(
        &mut self,
        context: &mut Context<'_>,
        worker: &Rc<Worker>,
        config: &Rc<WorkerConfig>,
        buffers: &mut Buffers,
    ) -> io::Result<Option<bool>> {
        let Buffers {
            input, output, head, ..
        } = buffers;
        if self.core.stalled {
            // `unread` can contain complete frames, so they are handled before more bytes are received.
            self.core.stalled = false;
            self.process_unread(worker, config, head, output);
            return Ok(Some(true));
        }
        let Poll::Ready(received) = self.core.link.poll_recv(context, input) else {
            return Ok(Some(false));
        };
        let received = received?;
        if received.is_empty() {
            return Ok(None);
        }
        if self.core.unread.is_empty() {
            let used = self.process_received(worker, config, &received, head, output);
            self.core.unread.extend_from_slice(&received[used..]);
        } else {
            self.core.unread.extend_from_slice(&received);
            self.process_unread(worker, config, head, output);
        }
        Ok(Some(true))
    }

    /// Handles the frames in `unread`, and keeps the bytes that are not consumed.
    pub(super) fn process_unread(
        &mut self,
        worker: &Rc<Worker>,
        config: &Rc<WorkerConfig>,
        head: &mut DecodedHead,
        output: &mut SendQueue,
    ) {
        let unread = std::mem::take(&mut self.core.unread);
        let used = self.process_received(worker, config, &unread, head, output);
        self.core.keep_unread(unread, used);
    }

    /// Handles the events in `bytes`. Returns the number of consumed bytes. Stops early when [`OUTPUT_BOUND`] bytes are
    /// queued; the next round then handles the rest. While the socket is blocked, no response is started, so the queue
    /// grows little, and processing does not stop early.
    #[inline]
    fn process_received(
        &mut self,
        worker: &Rc<Worker>,
        config: &Rc<WorkerConfig>,
        bytes: &[u8],
        head: &mut DecodedHead,
        output: &mut SendQueue,
    ) -> usize {
        let now = worker.clock.uptime_ms();
        let mut at = 0;
        loop {
            let unparsed = &bytes[at..];
            let received = self
                .engine
                .receive(&config.head_limits, now, unparsed, head, output.buffer());
            at += received.consumed;
            match received.event {
                ConnectionEvent::More => return at,
                ConnectionEvent::Request {
                    stream,
                    end,
                    expects_continue,
                } => {
                    if self.is_blocked {
                        self.hold_request(worker, config, head, stream, end, expects_continue);
                        continue;
                    }
                    // Ends the wait of the connection for this request, so that the wait for the next request gets its
                    // full time.
                    self.core.deadlines.end_wait();
                    self.handle_request(worker, config, head, stream, end, expects_continue, output);
                }
                ConnectionEvent::Refused {
                    stream,
                    refusal,
                    is_head,
                } => {
                    let stream = RequestStream::new(stream, is_head);
                    if self.is_blocked {
                        self.hold_refusal(worker, config, stream, refusal);
                    } else {
                        self.refuse(worker, config, stream, refusal, output);
                    }
                }
                ConnectionEvent::Data {
                    stream,
                    start,
                    end,
                    last,
                } => {
                    let piece = &unparsed[start..end];
                    match self.streams.get_mut(stream) {
                        Some(entry) if entry.stream.body.is_some() => {
                            entry.deadlines.received(piece.len() as u64);
                            if let Active(exchange) = &entry.state {
                                exchange.received(piece.len());
                            }
                            if let Some(body) = &mut entry.stream.body {
                                body.add(piece, last);
                            }
                        }
                        // No handler reads the data, so its share of the window is released at once.
                        _ => self.engine.release(stream, piece.len() as u32, output.buffer()),
                    }
                }
                ConnectionEvent::Trailers { stream } => {
                    if let Some(body) = self
                        .streams
                        .get_mut(stream)
                        .and_then(|entry| entry.stream.body.as_mut())
                    {
                        let trailers = head.index().trailers.view(head.bytes());
                        body.end_with_trailers(FieldList::from_fields(trailers.lines()));
                    }
                }
                ConnectionEvent::Reset { stream, code, error } => {
                    tracing::debug!(client = %self.core.info.client, ?code, ?error, "a stream was reset");
                    if let Some(entry) = self.streams.take(stream) {
                        entry.stream.fail(BodyError::Incomplete);
                        if let Active(exchange) = &entry.state {
                            // The access log counts all queued bytes of the exchange as sent. The bytes that the
                            // socket has not taken yet belong to several exchanges, so none (`0`) are deducted.
                            exchange.record_cut(worker, &mut self.core.info, 0);
                        }
                    }
                }
                ConnectionEvent::Rejected { error } => {
                    tracing::debug!(client = %self.core.info.client, ?error, "a request was rejected");
                }
                ConnectionEvent::GoAway { .. } | ConnectionEvent::Pong { .. } => {}
                ConnectionEvent::Closed { error } => {
                    tracing::debug!(client = %self.core.info.client, ?error, "a connection was closed");
                    return bytes.len();
                }
            }
            if output.len() >= OUTPUT_BOUND && !self.is_blocked {
                // The caller keeps the rest as unread input.
                self.core.stalled = at < bytes.len();
                return at;
            }
        }
    }
}
