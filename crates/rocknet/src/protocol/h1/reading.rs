//! Receives requests, and handles all requests of one receive together if possible.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_proto::h1::{BodyFraming, ServerEvent};
use rocknet_proto::request::RequestIndex;

use super::connection::{Connection, State};
use crate::lifecycle::connection::End;
use crate::lifecycle::deadlines::MAX_UNACKNOWLEDGED;
use crate::pipeline::RequestContext;
use crate::worker::{Buffers, Ticks, Worker, WorkerConfig};

/// Number of queued response bytes at which the connection handles no further request until the output is sent.
/// Without this bound, a client that pipelines without reading could fill memory.
const OUTPUT_BOUND: u64 = 256 * 1024;

/// Maximum number of request-body bytes that are read and discarded to keep the connection. After more bytes it is
/// closed, because a new connection costs less than the rest of the body.
const DRAIN_BOUND: u32 = 256 * 1024;

impl<L: Link> Connection<L> {
    /// Receives bytes, handles the requests that can be completed immediately, and sends their responses in one write.
    pub(super) fn read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let worker = Rc::clone(self.core.open.worker());
        let config = worker.config();
        let buffers = &mut *worker.buffers.borrow_mut();
        let Buffers {
            input, output, request, ..
        } = buffers;
        // The buffer is already empty, unless a panic has left the response of another connection in it.
        output.clear();
        if self.core.stalled {
            // `unread` can contain complete requests, so they are handled before more bytes are received.
            self.core.stalled = false;
            self.process_unread(&worker, &config, request, output);
        } else {
            let received = match self.core.link.poll_recv(context, input) {
                // The worker stops, and all requests received so far have been handled. The connection closes once
                // their responses are sent. If bytes are unsent, `has_sent_all` has put them back into the backlog. The
                // caller sends the backlog before it calls this function again.
                Poll::Pending if worker.closes_idle() && self.core.unread.is_empty() && self.engine.is_idle() => {
                    if self.core.has_sent_all() {
                        self.core.link.finish();
                        self.core.end = End::Closed;
                    }
                    return Poll::Ready(Ok(()));
                }
                Poll::Pending => {
                    self.await_input(&config.ticks);
                    return Poll::Pending;
                }
                Poll::Ready(received) => received?,
            };
            if received.is_empty() {
                // The client has closed its side. Up to `MAX_UNACKNOWLEDGED` bytes do not delay the close.
                self.core.link.finish();
                self.core.close_or_await_ack(MAX_UNACKNOWLEDGED);
                return Poll::Ready(Ok(()));
            }
            if self.core.unread.is_empty() {
                let used = self.process_requests(&worker, &config, &received, request, output);
                if used < received.len() {
                    self.core.unread.extend_from_slice(&received[used..]);
                }
            } else {
                self.core.unread.extend_from_slice(&received);
                self.process_unread(&worker, &config, request, output);
            }
        }
        if self.is_sending() {
            // The head and the first bytes of the body are sent together.
            return self.send_body_with(context, &worker, &config, input, request, output);
        }
        Poll::Ready(self.send(context, output))
    }

    /// Handles the requests in `unread`, and keeps the bytes that are not consumed.
    pub(super) fn process_unread(
        &mut self,
        worker: &Rc<Worker>,
        config: &Rc<WorkerConfig>,
        request: &mut RequestIndex,
        output: &mut SendQueue,
    ) {
        let unread = std::mem::take(&mut self.core.unread);
        let used = self.process_requests(worker, config, &unread, request, output);
        self.core.keep_unread(unread, used);
    }

    /// Sets the deadline for the next input.
    fn await_input(&mut self, ticks: &Ticks) {
        // While a body is received, `unread` can contain a part of a chunk. `await_request` would take it for the
        // beginning of a request.
        if self.engine.is_receiving_body() {
            self.core.deadlines.enter_request_body(ticks.body);
        } else {
            self.core.await_request(!self.core.unread.is_empty(), ticks);
        }
    }

    /// Handles the requests in `bytes` until one is incomplete or has to wait, [`OUTPUT_BOUND`] bytes are queued, or
    /// the connection has to close. Returns the number of consumed bytes.
    #[inline]
    pub(super) fn process_requests(
        &mut self,
        worker: &Rc<Worker>,
        config: &Rc<WorkerConfig>,
        bytes: &[u8],
        request: &mut RequestIndex,
        output: &mut SendQueue,
    ) -> usize {
        let mut at = 0;
        loop {
            match self.engine.receive(&config.head_limits, &bytes[at..], request) {
                Ok(ServerEvent::More { consumed }) => return at + consumed,
                Ok(ServerEvent::Request {
                    consumed,
                    body: framing,
                }) => {
                    let head = &bytes[at..at + consumed];
                    at += consumed;
                    self.handle_request(worker, config, head, request, framing, output);
                    if !matches!(self.state, State::Reading) {
                        return at;
                    }
                    // Saves a call of the engine in the most frequent case.
                    if at == bytes.len() && framing == BodyFraming::None {
                        return at;
                    }
                    // A response whose request keeps a permit is sent first, so that the permit is free for the next
                    // request of the connection.
                    if output.len() >= OUTPUT_BOUND || output.keeps_values() {
                        // The caller keeps the rest as unread input. It is handled once the output has been sent.
                        self.core.stalled = at < bytes.len();
                        return at;
                    }
                }
                // The rest of a request body that no handler reads.
                Ok(ServerEvent::Data { start, end }) => {
                    self.core.dropped = self.core.dropped.saturating_add((end - start) as u32);
                    self.core.deadlines.received((end - start) as u64);
                    at += end;
                    if self.core.dropped > DRAIN_BOUND {
                        self.state = State::Closing { linger: true };
                        return at;
                    }
                }
                Ok(ServerEvent::End { consumed }) => {
                    at += consumed;
                    self.core.dropped = 0;
                }
                // The response to the last request is not complete, or the connection reads no more requests.
                Ok(ServerEvent::Blocked) => return at,
                Err(refusal) => {
                    let request_context = RequestContext::unparsed(config, self.core.info.local());
                    self.refuse(worker, config, refusal, request_context, output);
                    return at;
                }
            }
        }
    }
}
