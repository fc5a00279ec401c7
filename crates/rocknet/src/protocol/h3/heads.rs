//! Deadlines of request heads: each has its own, which received bytes and other requests do not extend.

use std::rc::Rc;
use std::task::Context;

use rocknet_proto::h3::{ErrorCode, StreamId};

use super::connection::Connection;
use super::output::quic_id;
use crate::lifecycle::deadlines::Wait;
use crate::worker::{Worker, WorkerConfig};

impl Connection {
    /// Starts the deadline of the head on a stream that the client has opened, unless the head has arrived already.
    pub(super) fn await_head(&mut self, worker: &Rc<Worker>, id: StreamId) {
        if !self.engine.awaits_request(id) {
            return;
        }
        if self.heads.is_empty() {
            self.head_deadlines.begin(Wait::Header, worker.config().ticks.header);
        }
        self.heads.push((id, worker.wheel.now()));
    }

    /// Resets streams whose head has not arrived in time. Returns true if a deadline has passed, so that the next one
    /// is polled.
    pub(super) fn expire_heads(&mut self, context: &mut Context<'_>, config: &WorkerConfig) -> bool {
        if self.heads.is_empty() || !self.head_deadlines.poll_past(context.waker()) {
            return false;
        }
        let now = self.open.worker().wheel.now();
        let is_late = |opened| now.since(opened) >= config.ticks.header;
        let late: Vec<StreamId> = self
            .heads
            .iter()
            .filter(|(_, opened)| is_late(*opened))
            .map(|(id, _)| *id)
            .collect();
        for &id in &late {
            self.forget(id);
            self.engine.abandon(id);
            self.quic.reset(quic_id(id), ErrorCode::RequestRejected.number());
            self.quic
                .stop_receiving(quic_id(id), ErrorCode::RequestRejected.number());
        }
        // `forget` has removed the late heads. The others are in the order in which their streams were opened, so the
        // first is due next.
        if let Some((_, opened)) = self.heads.first() {
            let left = config.ticks.header.saturating_sub(now.since(*opened));
            self.head_deadlines.begin(Wait::Header, left.max(1));
        }
        true
    }
}
