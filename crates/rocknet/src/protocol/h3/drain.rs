//! Orderly end of a connection: GOAWAY twice, then the end of its responses (RFC 9114 §5.2).

use super::connection::Connection;
use crate::worker::{Worker, WorkerConfig};

/// Ticks from the first GOAWAY to the last, which rejects further requests. Requests that the client sent before it
/// read the first one have arrived by then; a tick is longer than most round trips.
const ANNOUNCEMENT_TICKS: u32 = 1;

/// Ticks from the first GOAWAY to the earliest end, so that the last GOAWAY reaches the client before the connection
/// closes.
const MIN_TICKS: u32 = 2;

impl Connection {
    /// Returns true if the connection must end after its open requests.
    fn is_old(&self, worker: &Worker, config: &WorkerConfig) -> bool {
        worker.is_stopping() || worker.wheel.now().since(self.born) >= config.ticks.age
    }

    /// Returns the ticks since the first GOAWAY; 0 before it.
    pub(super) fn drain_age(&self) -> u32 {
        let now = self.open.worker().wheel.now();
        self.drain_began.map_or(0, |began| now.since(began))
    }

    /// Advances the orderly end of a connection that has reached its maximum age, or whose server stops. Returns true
    /// if it did.
    pub(super) fn advance_drain(&mut self, worker: &Worker, config: &WorkerConfig) -> bool {
        if self.drain_began.is_none() {
            let is_old = self.is_old(worker, config);
            if is_old {
                self.drain_began = Some(worker.wheel.now());
                self.engine.begin_drain();
            }
            return is_old;
        }
        self.drain_age() >= ANNOUNCEMENT_TICKS && self.engine.finish_drain()
    }

    /// Returns true if the client has acknowledged something since the last call.
    pub(super) fn has_acknowledged(&mut self) -> bool {
        let before = std::mem::replace(&mut self.acknowledgements, self.quic.received_acknowledgements());
        self.acknowledgements != before
    }

    /// Returns true if the orderly end may take longer: the linger time has not passed since the first GOAWAY, or since
    /// the client last acknowledged something.
    pub(super) fn lingers(&mut self, config: &WorkerConfig) -> bool {
        let now = self.open.worker().wheel.now();
        if self.has_acknowledged() {
            self.acknowledged_at = now;
        }
        self.drain_age().min(now.since(self.acknowledged_at)) < config.ticks.linger
    }

    /// Returns true if no request is accepted any more, and the client has all responses.
    pub(super) fn is_drained(&self, worker: &Worker) -> bool {
        let is_complete = self.engine.is_drained() && self.streams.is_empty() && self.unacknowledged.is_empty();
        is_complete && (self.drain_age() >= MIN_TICKS || worker.config().ticks.linger == 0)
    }
}
