//! Closes HTTP/3 connections and their exchanges, and acts on passed deadlines.

use std::rc::Rc;
use std::task::Context;

use rocknet_proto::h3::{ConnectionError, ErrorCode, StreamId};

use super::connection::{Connection, State};
use super::output::quic_id;
use super::streams::StreamExchange;
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

    /// Sets the deadline of the connection for the wait that begins. Returns true if a deadline has passed and was
    /// acted on.
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
            if entry.deadlines.poll_rate(context.waker(), rate, || 0) {
                self.expire_exchange(worker, id);
                has_acted = true;
            }
        }
        if self.state == State::Serving {
            has_acted |= self.expire_heads(context, &config);
            if self.is_announcing() {
                self.deadlines.enter(Wait::Linger, 1);
            } else if !self.streams.is_empty() || !self.heads.is_empty() && !self.engine.is_draining() {
                // Each exchange and each head has its own deadline. The deadline of the connection only ensures that
                // the age of the connection is checked.
                self.deadlines.enter(Wait::Handler, config.ticks.age.max(1));
            } else if self.engine.is_draining() {
                self.deadlines.enter(Wait::Linger, 1);
            } else if !self.unacknowledged.is_empty() {
                if self.deadlines.wait() != Wait::Send {
                    self.await_acknowledgements();
                }
                self.deadlines.enter(Wait::Send, config.ticks.send);
            } else {
                if self.deadlines.wait() != Wait::FirstByte {
                    self.streams.trim();
                    self.engine.trim();
                    self.deadlines.enter(Wait::KeepAlive, config.ticks.keep_alive);
                }
            }
        }
        if self.deadlines.poll_past(context.waker()) {
            self.expire(&config);
            has_acted = true;
        }
        has_acted
    }

    /// Acts on the passed deadline of the connection.
    #[cold]
    fn expire(&mut self, config: &WorkerConfig) {
        let wait = self.deadlines.wait();
        tracing::debug!(client = %self.info.client, ?wait, "a deadline passed");
        match wait {
            // The next round begins the drain.
            Wait::Handler => self.deadlines.begin(Wait::Handler, config.ticks.age.max(1)),
            Wait::FirstByte => self.close(ErrorCode::ExcessiveLoad),
            // The server has passed all responses to the transport, and the client still acknowledges them.
            Wait::Send if self.may_await_acknowledgements(config) => {
                self.deadlines.begin(Wait::Send, config.ticks.send);
            }
            // The next round advances the drain.
            Wait::Linger if !self.streams.is_empty() || self.lingers(config) => self.deadlines.begin(Wait::Linger, 1),
            _ => self.close(ErrorCode::NoError),
        }
    }

    /// Acts on the passed deadline of one exchange.
    #[cold]
    fn expire_exchange(&mut self, worker: &Rc<Worker>, id: StreamId) {
        let Some(entry) = self.streams.take(id) else {
            return;
        };
        let StreamExchange {
            stream,
            exchange,
            deadlines,
        } = *entry;
        let (wait, channel) = (deadlines.wait(), stream.body.as_ref().map(BodyReceiver::channel));
        tracing::debug!(client = %self.info.client, ?wait, "the deadline of an exchange passed");
        match exchange {
            Some(exchange) if matches!(exchange.expire(worker, &deadlines, channel, false), Expiry::Respond) => {
                self.respond_timeout(worker, exchange, stream, wait);
                if self.streams.get_mut(id).is_none() {
                    self.read_rest(worker, id);
                }
            }
            exchange => {
                self.forget(id);
                self.engine.abandon(id);
                self.quic.reset(quic_id(id), ErrorCode::RequestCancelled.number());
                self.quic
                    .stop_receiving(quic_id(id), ErrorCode::RequestCancelled.number());
                if let Some(exchange) = exchange {
                    exchange.record_cut(worker, &mut self.info, stream.output.length());
                }
            }
        }
    }
}
