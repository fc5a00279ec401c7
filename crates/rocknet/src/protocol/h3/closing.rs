//! Closes HTTP/3 connections and their exchanges, and acts on passed deadlines.

use std::rc::Rc;
use std::task::Context;

use rocknet_proto::h3::{ConnectionError, ErrorCode, StreamId};

use super::connection::{Connection, State};
use super::output::quic_id;
use crate::lifecycle::body_receiver::BodyReceiver;
use crate::lifecycle::connection::rate_window;
use crate::lifecycle::deadlines::Wait;
use crate::lifecycle::expiry::Expiry;
use crate::worker::{Worker, WorkerConfig};

impl Connection {
    /// Closes the connection because of an error of the client.
    #[cold]
    pub(super) fn fail(&mut self, error: ConnectionError) {
        tracing::debug!(client = %self.info.client, ?error, "a connection was closed");
        self.record_cuts();
        self.quic.close(error.code().number(), error.reason());
        self.state = State::Closing;
    }

    /// Closes the connection.
    pub(super) fn close(&mut self, code: ErrorCode) {
        self.record_cuts();
        self.quic.close(code.number(), "");
        self.state = State::Closing;
    }

    /// Records all responses in progress as cut.
    pub(super) fn record_cuts(&mut self) {
        let worker = Rc::clone(self.open.worker());
        for id in self.streams.ids() {
            self.cut(&worker, id);
        }
    }

    /// Acts on passed deadlines of exchanges, heads and the connection, and sets the deadline of the connection for the
    /// wait that begins. Returns true if a deadline has passed.
    pub(super) fn poll_deadlines(&mut self, context: &mut Context<'_>, worker: &Rc<Worker>) -> bool {
        if self.state == State::Closing {
            return false;
        }
        let config = worker.config();
        let mut has_acted = false;
        for id in self.streams.ids() {
            let Some(entry) = self.streams.get_mut(id) else {
                continue;
            };
            let rate = |wait| rate_window(&config, wait);
            // Bytes count as moved once QUIC has accepted them, so no bytes (0) wait in the kernel.
            if entry.deadlines.poll_rate(context.waker(), rate, || 0) {
                self.expire_exchange(worker, id);
                has_acted = true;
            }
        }
        if self.state == State::Serving {
            has_acted |= self.expire_heads(context, &config);
            // This function runs at every wake-up. `enter` sets a deadline only if another wait begins, so that
            // wake-ups do not postpone the deadline.
            //
            // Between the first GOAWAY and the last, the connection is checked at every tick (1) even if exchanges are
            // in progress, so that the last GOAWAY is sent in time.
            if self.is_announcing() {
                self.deadlines.enter(Wait::Linger, 1);
            } else if !self.streams.is_empty() || !self.heads.is_empty() && !self.engine.is_draining() {
                // Each exchange and each head has its own deadline. The deadline of the connection only ensures that
                // the client is pinged and the age of the connection is checked. A drain waits for incomplete heads
                // only until its own deadline.
                if self.deadlines.wait() != Wait::Handler {
                    self.begin_ping_interval(worker);
                }
            } else if self.engine.is_draining() {
                // No exchange is left. `expire` closes the connection once the client has had time to read.
                self.deadlines.enter(Wait::Linger, 1);
            } else if !self.unacknowledged.is_empty() {
                if self.deadlines.wait() != Wait::Send {
                    self.await_acknowledgements();
                }
                self.deadlines.enter(Wait::Send, config.ticks.send);
            } else {
                // Until the first request, the deadline that began with the connection continues.
                if self.deadlines.wait() != Wait::FirstByte {
                    self.streams.trim();
                    self.engine.trim();
                    self.deadlines.enter(Wait::KeepAlive, config.ticks.keep_alive);
                }
            }
        }
        if self.deadlines.poll_past(context.waker()) {
            self.expire(worker, &config);
            has_acted = true;
        }
        has_acted
    }

    /// Acts on the passed deadline of the connection.
    #[cold]
    fn expire(&mut self, worker: &Worker, config: &WorkerConfig) {
        let wait = self.deadlines.wait();
        tracing::debug!(client = %self.info.client, ?wait, "a deadline passed");
        // `begin` sets a new deadline, although the wait is the same.
        match wait {
            // If the connection is too old, `advance_drain` begins the drain after this wake-up.
            Wait::Handler => {
                if !self.streams.is_empty() {
                    self.quic.ping();
                }
                self.begin_ping_interval(worker);
            }
            // The server has passed all responses to the transport, and the client still acknowledges them.
            Wait::Send if self.may_await_acknowledgements(config) => {
                self.deadlines.begin(Wait::Send, config.ticks.send);
            }
            // `advance_drain` is called after this wake-up, too.
            Wait::Linger if !self.streams.is_empty() || self.lingers(config) || self.may_be_reading(config) => {
                self.deadlines.begin(Wait::Linger, 1);
            }
            _ => self.close(ErrorCode::NoError),
        }
    }

    /// Starts the interval after which the connection is checked again. If an exchange is then in progress, the client
    /// is pinged, because a tunnel or slow handler may be silent for longer than QUIC's idle timeout.
    fn begin_ping_interval(&mut self, worker: &Worker) {
        let ticks = worker.wheel.ticks(rocknet_quic::PING_INTERVAL);
        self.deadlines.begin(Wait::Handler, ticks);
    }

    /// Acts on the passed deadline of one exchange.
    #[cold]
    fn expire_exchange(&mut self, worker: &Rc<Worker>, id: StreamId) {
        let Some(mut entry) = self.streams.take(id) else {
            return;
        };
        let wait = entry.deadlines.wait();
        let channel = entry.stream.body.as_ref().map(BodyReceiver::channel);
        tracing::debug!(client = %self.info.client, ?wait, "the deadline of an exchange passed");
        // `false`: a QUIC connection cannot be half closed.
        let expiry = match &entry.exchange {
            Some(exchange) => exchange.expire(worker, &entry.deadlines, channel, false),
            None => Expiry::Cut,
        };
        match (expiry, entry.exchange.take()) {
            (Expiry::Respond, Some(exchange)) => {
                self.respond_timeout(worker, exchange, entry.stream, wait);
                // The exchange is not stored again if the transport has taken the whole response.
                if self.streams.get_mut(id).is_none() {
                    self.read_rest(worker, id);
                }
            }
            (Expiry::EndTunnel, Some(exchange)) => {
                exchange.record(worker, &mut self.info);
                self.end_tunnel(&mut entry);
                self.streams.insert(entry);
            }
            (_, exchange) => {
                self.abandon_stream(id, ErrorCode::RequestCancelled);
                if let Some(exchange) = exchange {
                    exchange.record_cut(worker, &mut self.info, entry.stream.output.length());
                }
            }
        }
    }

    /// Resets both directions of a stream.
    pub(super) fn abandon_stream(&mut self, id: StreamId, code: ErrorCode) {
        self.forget(id);
        self.engine.abandon(id);
        self.quic.reset(quic_id(id), code.number());
        self.quic.stop_receiving(quic_id(id), code.number());
    }
}
