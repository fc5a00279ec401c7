//! Exchange in progress: its stage, and its access-log record when it ends.

use std::num::NonZeroU32;
use std::rc::Rc;

use bytes::Bytes;
use rocknet_io::queue::SendQueue;
use rocknet_proto::status::Status;

use super::body::BodySource;
use super::connection_info::ConnectionInfo;
use super::tunnel::ActiveTunnel;
use crate::pipeline::{HandlerTimeout, PendingResponse, RequestContext};
use crate::worker::Worker;

/// Exchange whose response is not complete. Its connection owns it.
pub struct ActiveExchange {
    pub stage: Stage,
    pub context: Rc<RequestContext>,
    /// Bytes of the response body, or of the tunnel, queued for the socket.
    pub sent: u64,
    /// True if the connection must be closed after the response, unless it can carry several exchanges at a time.
    pub close: bool,
    /// Timeout of each further piece of the response in ticks; `None` if the server's `limits.answer_timeout` applies.
    body_ticks: Option<NonZeroU32>,
}

/// Stage of an exchange.
pub enum Stage {
    /// The handler has not returned the response.
    Waiting(PendingResponse),
    /// The head was written, and the body is being sent.
    Sending { body: BodySource, status: Status },
    /// The handler has taken over the connection, or the stream.
    Tunnel(Box<ActiveTunnel>),
}

/// Result of [`ActiveExchange::queue_ready`].
pub struct QueuedPiece {
    /// True if no ready bytes are left.
    pub is_drained: bool,
    /// True if the bytes belong to a tunnel, not to a response body.
    pub is_tunnel: bool,
}

impl ActiveExchange {
    /// Creates an exchange that has sent no bytes. `close`: see [`ActiveExchange::close`].
    pub fn new(stage: Stage, context: Rc<RequestContext>, close: bool) -> ActiveExchange {
        ActiveExchange {
            stage,
            context,
            sent: 0,
            close,
            body_ticks: None,
        }
    }

    /// Keeps the timeout of the handler for each further piece of the response, which has begun.
    pub fn keep_timeout(&mut self, handler_timeout: Option<HandlerTimeout>) {
        self.body_ticks = handler_timeout.and_then(|timeout| NonZeroU32::new(timeout.body_ticks));
    }

    /// Returns the timeout of the handler, or of the next piece of its response; `None` if the server's
    /// `limits.answer_timeout` applies.
    pub fn handler_timeout(&self) -> Option<HandlerTimeout> {
        match &self.stage {
            Stage::Waiting(pending) => pending.timeout,
            Stage::Sending { .. } => self.body_ticks.map(|ticks| HandlerTimeout::of_body(ticks.get())),
            Stage::Tunnel(_) => None,
        }
    }

    /// Returns true while the handler has not returned the response.
    pub fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Waiting(_))
    }

    /// Returns true while the response body is being sent.
    pub fn is_sending(&self) -> bool {
        matches!(self.stage, Stage::Sending { .. })
    }

    /// Returns true if the exchange is an open tunnel.
    pub fn is_tunnel(&self) -> bool {
        matches!(self.stage, Stage::Tunnel(_))
    }

    /// Counts received bytes of the request body.
    pub fn received(&self, bytes: usize) {
        let received = &self.context.received;
        received.set(received.get() + bytes as u64);
    }

    /// Moves `length` ready bytes into the queue. Returns `None` at a stage that has no ready bytes.
    pub fn queue_ready(&mut self, length: u64, out: &mut SendQueue) -> Option<QueuedPiece> {
        let (body, is_tunnel) = match &mut self.stage {
            Stage::Waiting(_) => return None,
            Stage::Sending { body, .. } => (body, false),
            Stage::Tunnel(tunnel) => (&mut tunnel.ready, true),
        };
        body.put(length, out);
        self.sent += length;
        let is_drained = body.ready() == 0;
        Some(QueuedPiece { is_drained, is_tunnel })
    }

    /// Takes at most `max_bytes` ready bytes of the body, in one piece. Returns `None` if no bytes are ready. The
    /// caller adds the taken bytes to `sent`. `scratch`: an empty queue.
    pub fn take_ready(&mut self, max_bytes: u64, scratch: &mut SendQueue) -> Option<Bytes> {
        let Stage::Sending { body, .. } = &mut self.stage else {
            return None;
        };
        body.put(body.ready().min(max_bytes), scratch);
        let piece = scratch.take(usize::MAX);
        (!piece.is_empty()).then_some(piece)
    }

    /// Records the response as complete: all its queued bytes count as sent.
    pub fn record(&self, worker: &Worker, info: &mut ConnectionInfo) {
        self.record_cut(worker, info, 0);
    }

    /// Records a response that was cut, if it has begun. `unsent`: queued bytes of the connection that were not sent.
    /// They do not count as sent in the record. Returns how many of these bytes belong to other exchanges.
    pub fn record_cut(&self, worker: &Worker, info: &mut ConnectionInfo, unsent: u64) -> u64 {
        let status = match &self.stage {
            Stage::Waiting(_) => return unsent,
            Stage::Sending { status, .. } => *status,
            Stage::Tunnel(tunnel) => tunnel.status(),
        };
        let sent = self.sent.saturating_sub(unsent);
        info.record(worker, &self.context, status, sent, self.is_tunnel());
        unsent.saturating_sub(self.sent)
    }
}
