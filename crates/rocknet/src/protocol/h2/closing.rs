//! Closes HTTP/2 connections and their exchanges, and acts on passed deadlines.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use rocknet_io::link::Link;
use rocknet_proto::h2::ErrorCode;

use super::connection::{Connection, State};
use super::responder::RequestBody;
use super::streams::{ExchangeState, RequestStream, StreamExchange};
use crate::exchange::BodyError;
use crate::lifecycle::body_receiver::BodyReceiver;
use crate::lifecycle::connection::rate_window;
use crate::lifecycle::deadlines::{MAX_UNACKNOWLEDGED, Wait};
use crate::lifecycle::drive::Version;
use crate::lifecycle::exchange::ActiveExchange;
use crate::lifecycle::expiry::Expiry;
use crate::lifecycle::flow;
use crate::worker::Worker;

impl<L: Link> Connection<L> {
    /// Ends the connection if its last frame has been sent. Otherwise the unsent bytes are in the backlog, which is
    /// sent before the next call. Returns `Ready` in both cases, because nothing is waited for here.
    pub(super) fn end(&mut self) -> Poll<io::Result<()>> {
        if self.core.has_sent_all() {
            self.record_cuts();
            self.before_shut_down();
            self.core.begin_linger()?;
        }
        Poll::Ready(Ok(()))
    }

    /// Closes a connection whose client has closed its side. The responses in progress are recorded as cut off, because
    /// the client does not read them.
    pub(super) fn client_ended(&mut self) {
        self.record_cuts();
        self.before_shut_down();
        self.core.close_or_await_ack(MAX_UNACKNOWLEDGED);
    }

    /// Acts on the passed deadlines of exchanges, and sets the deadline of the connection for the wait that begins.
    /// Returns true if the deadline of an exchange has passed.
    pub(super) fn poll_deadlines(&mut self, context: &mut Context<'_>) -> bool {
        let worker = Rc::clone(self.core.open.worker());
        let config = worker.config();
        let mut acted = false;
        for slot in 0..self.streams.slots() {
            let Some(mut entry) = self.streams.take_slot(slot) else {
                continue;
            };
            // The server cannot match unacknowledged bytes in the kernel to exchanges, so it attributes 0 bytes to
            // this exchange.
            if entry
                .deadlines
                .poll_rate(context.waker(), |wait| rate_window(&config, wait), || 0)
            {
                self.expire_exchange(&worker, *entry);
                acted = true;
            } else {
                self.streams.insert(entry);
            }
        }
        if self.core.is_open() && self.state != State::Closing && self.core.backlog.is_none() {
            if !self.streams.is_empty() {
                // Each exchange has its own deadline. The deadline of the connection only ensures that the age of the
                // connection is checked. The check is at the earliest after one tick, because the maximum age may be 0.
                self.core.deadlines.enter(Wait::Handler, config.ticks.age.max(1));
            } else {
                let is_partial = !self.core.unread.is_empty() || self.engine.is_mid_block();
                if !is_partial && self.core.deadlines.wait() != Wait::FirstByte {
                    // The connection is idle, so the memory of its past exchanges is freed.
                    self.streams.trim();
                    self.engine.trim();
                }
                self.core.await_request(is_partial, &config.ticks);
            }
        }
        acted
    }

    /// Acts on the passed deadline of an open connection.
    #[cold]
    pub(super) fn expire_open(&mut self) {
        let wait = self.core.deadlines.wait();
        tracing::debug!(client = %self.core.info.client, ?wait, "a deadline passed");
        match wait {
            Wait::KeepAlive => self.send_goaway(ErrorCode::NoError),
            Wait::FirstByte | Wait::Header => self.send_goaway(ErrorCode::EnhanceYourCalm),
            // The connection has reached its maximum age. The next call of `serve` begins the drain; responses in
            // progress are bounded by the deadlines of their exchanges.
            Wait::Handler => {
                let age = self.core.open.worker().config().ticks.age;
                self.core.deadlines.begin(Wait::Handler, age.max(1));
            }
            _ => {
                self.core.link.reset();
                // The client does not take the backlog, so a GOAWAY frame after the backlog could not be sent.
                self.core.abandon();
            }
        }
    }

    /// Sends GOAWAY with the reason, and closes the connection.
    fn send_goaway(&mut self, code: ErrorCode) {
        let mut queue = self.core.backlog.take().unwrap_or_default();
        self.engine.close(code, queue.buffer());
        self.core.begin_send();
        self.core.backlog = Some(queue);
        self.state = State::Closing;
    }

    /// Acts on the passed deadline of one exchange.
    #[cold]
    fn expire_exchange(&mut self, worker: &Rc<Worker>, entry: StreamExchange) {
        let StreamExchange {
            stream,
            state: ExchangeState::Active(exchange),
            deadlines,
        } = entry
        else {
            return;
        };
        let (wait, channel) = (deadlines.wait(), stream.body.as_ref().map(BodyReceiver::channel));
        tracing::debug!(client = %self.core.info.client, ?wait, "the deadline of an exchange passed");
        let starts_backlog = self.core.backlog.is_none();
        let mut queue = self.core.backlog.take().unwrap_or_default();
        // `false`: a client that has closed its side has no exchanges in progress.
        match exchange.expire(worker, &deadlines, channel, false) {
            Expiry::Respond => {
                let ActiveExchange { context, stage, .. } = exchange;
                let stream = RequestStream::new(stream.id, stream.head_only);
                let (mut responder, info) = self.responder(worker, &stream, RequestBody::None, &mut queue);
                let flow = flow::respond_timeout(worker, info, context, Some(&stage), wait, &mut responder);
                let promised = responder.written.promised;
                self.advance(worker, flow, promised, stream, &mut queue);
            }
            Expiry::EndTunnel => self.close_tunnel(worker, stream.id, &exchange, &mut queue),
            Expiry::Cut => {
                self.engine.reset(stream.id, ErrorCode::Cancel, queue.buffer());
                // The bytes of the backlog cannot be matched to this exchange, so none (`0`) are deducted as unsent.
                exchange.record_cut(worker, &mut self.core.info, 0);
            }
        }
        if starts_backlog {
            self.core.begin_send();
        }
        self.core.backlog = Some(queue);
    }

    /// Records all responses in progress as cut off, and fails the request bodies of their exchanges. The bytes of
    /// the backlog were not sent. The server cannot match them to exchanges, so it deducts them from one exchange
    /// after another.
    pub(super) fn record_cuts(&mut self) {
        let worker = Rc::clone(self.core.open.worker());
        let mut unsent = self.core.backlog.as_ref().map_or(0, |backlog| backlog.len());
        for slot in 0..self.streams.slots() {
            if let Some(entry) = self.streams.take_slot(slot) {
                entry.stream.fail(BodyError::Incomplete);
                if let ExchangeState::Active(exchange) = &entry.state {
                    unsent = exchange.record_cut(&worker, &mut self.core.info, unsent);
                }
            }
        }
    }
}
