//! Orderly end of a connection: GOAWAY twice, then the end of its responses (RFC 9114 §5.2).

use std::time::Duration;

use rocknet_quic::SEND_WINDOW;

use super::connection::Connection;
use crate::worker::{Worker, WorkerConfig};

/// Minimum and maximum time from the first GOAWAY to the last, which rejects further requests. Between these bounds,
/// the time is two round trips. By then all requests have arrived that the client sent before it read the first GOAWAY.
const ANNOUNCEMENT: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// Time that a client has to read its last response and to close the connection, unless the server stops. A client
/// acknowledges data that its application has not read yet, and some clients discard such data when the server closes
/// the connection.
const READ_GRACE: Duration = Duration::from_secs(10);

/// Minimum ticks from the last GOAWAY to the close of the connection, which discards all bytes that are not sent yet.
const FINAL_TICKS: u32 = 1;

impl Connection {
    /// Returns the ticks since the first GOAWAY; 0 before it.
    fn drain_age(&self) -> u32 {
        let now = self.open.worker().wheel.now();
        self.drain_began.map_or(0, |began| now.since(began))
    }

    /// Returns true between the first GOAWAY and the last.
    pub(super) fn is_announcing(&self) -> bool {
        self.drain_began.is_some() && self.drain_finished.is_none()
    }

    /// Advances the orderly end of a connection that has reached its maximum age, whose client is banned, or whose
    /// server stops. Returns true if a GOAWAY was queued.
    pub(super) fn advance_drain(&mut self, worker: &Worker, config: &WorkerConfig) -> bool {
        let now = worker.wheel.now();
        if self.drain_began.is_none() {
            // A connection is old only after its first request, so that it serves one even with a maximum age of 0.
            let is_over = || worker.is_old(self.born, config) || worker.is_banned(self.info.client);
            let begins = worker.is_stopping() || self.engine.has_had_requests() && is_over();
            if begins {
                self.drain_began = Some(now);
                self.engine.begin_drain();
            }
            return begins;
        }
        let (min, max) = ANNOUNCEMENT;
        let announcement = (self.quic.round_trip_time() * 2).clamp(min, max);
        let finishes = self.is_announcing() && self.drain_age() >= worker.wheel.ticks(announcement);
        if finishes {
            self.drain_finished = Some(now);
            self.engine.finish_drain();
        }
        finishes
    }

    /// Returns true if the client has acknowledged something since the last call.
    fn has_acknowledged(&mut self) -> bool {
        let before = std::mem::replace(&mut self.acknowledgements, self.quic.received_acknowledgements());
        self.acknowledgements != before
    }

    /// Begins the wait until the client has acknowledged complete responses.
    pub(super) fn await_acknowledgements(&mut self) {
        // Only acknowledgements from now on count.
        self.has_acknowledged();
        self.unacknowledged_since = self.open.worker().wheel.now();
    }

    /// Returns true if the wait for acknowledgements may continue. The client must have acknowledged something since
    /// the last call. This alone proves no progress, because an acknowledgement can be a repetition. The wait is
    /// therefore limited to the time that a client at the minimum rate needs for a whole send window.
    pub(super) fn may_await_acknowledgements(&mut self, config: &WorkerConfig) -> bool {
        let waited = self.open.worker().wheel.now().since(self.unacknowledged_since);
        self.has_acknowledged() && waited < send_window_ticks(config)
    }

    /// Returns true if the orderly end may take longer: the linger time has not passed since the first GOAWAY, or since
    /// the client last acknowledged something. The second case ends at the latest when a client at the minimum rate
    /// would have taken a whole send window since the first GOAWAY.
    pub(super) fn lingers(&mut self, config: &WorkerConfig) -> bool {
        let now = self.open.worker().wheel.now();
        if self.has_acknowledged() {
            self.acknowledged_at = now;
        }
        let age = self.drain_age();
        let is_active = now.since(self.acknowledged_at) < config.ticks.linger && age < send_window_ticks(config);
        age < config.ticks.linger || is_active
    }

    /// Returns true while the client may still read a response that it has acknowledged.
    pub(super) fn may_be_reading(&self, config: &WorkerConfig) -> bool {
        let worker = self.open.worker();
        let grace = match worker.tunnel_close_period() {
            // The worker stops, and no other one takes over (`is_hurried`). Tunnels are closed `ticks` after the stop,
            // and all connections are cut as many ticks later. Even a client whose tunnel was the last to close has
            // half of this second period to read, and its connection is closed before the cut.
            Some(ticks) if worker.is_hurried() => config.ticks.linger.min(ticks / 2),
            _ => worker.wheel.ticks(READ_GRACE),
        };
        let now = worker.wheel.now();
        self.last_delivered
            .is_some_and(|delivered| now.since(delivered) < grace)
    }

    /// Returns true if no request is accepted any more, and the client has acknowledged all responses and has had time
    /// to read them.
    pub(super) fn is_drained(&self, config: &WorkerConfig) -> bool {
        let now = self.open.worker().wheel.now();
        let has_finished = self
            .drain_finished
            .is_some_and(|finished| now.since(finished) >= FINAL_TICKS);
        has_finished
            && self.engine.is_drained()
            && self.streams.is_empty()
            && self.heads.is_empty()
            && self.unacknowledged.is_empty()
            && !self.may_be_reading(config)
    }
}

/// Returns the ticks in which a client at the minimum rate takes a whole send window of QUIC, the data that is sent
/// before the client acknowledges any of it.
fn send_window_ticks(config: &WorkerConfig) -> u32 {
    // A client at the minimum rate takes `rate_bytes` in `rate_ticks`.
    let (rate_bytes, rate_ticks) = config.send_rate_window();
    let largest_send_window = *SEND_WINDOW.end();
    let rate_windows = largest_send_window.div_ceil(rate_bytes.max(1));
    u32::try_from(rate_windows.saturating_mul(u64::from(rate_ticks))).unwrap_or(u32::MAX)
}
