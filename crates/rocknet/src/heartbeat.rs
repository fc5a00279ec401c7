//! Detects workers that do not run any more, for instance because of an endless loop in a controller.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers of the last heartbeat sent to a worker and of the last one received by it. The sender and the worker each
/// have a clone.
#[derive(Debug, Clone, Default)]
pub struct Heartbeat {
    /// Number of the last heartbeat sent. Only the sender uses it.
    sent: u64,
    /// Number of the last heartbeat received. Shared by both clones.
    received: Arc<AtomicU64>,
}

/// Number of a heartbeat.
#[derive(Debug, Clone, Copy)]
pub struct BeatNumber(u64);

impl Heartbeat {
    /// Returns the number of the next heartbeat, which is to be sent to the worker, or `None` if the worker has not
    /// received the last one.
    pub fn next(&mut self) -> Option<BeatNumber> {
        if self.received.load(Ordering::Relaxed) < self.sent {
            return None;
        }
        self.sent += 1;
        Some(BeatNumber(self.sent))
    }

    /// Records that the worker has received a heartbeat.
    pub fn receive(&self, number: BeatNumber) {
        self.received.store(number.0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_heartbeat_waits_until_the_worker_has_received_the_last_one() {
        let mut sender = Heartbeat::default();
        let worker = sender.clone();
        let first = sender.next().expect("a worker that has just started");
        assert!(sender.next().is_none() && sender.next().is_none(), "not received yet");
        worker.receive(first);
        let second = sender.next().expect("a worker that runs");
        worker.receive(second);
        assert!(sender.next().is_some());
    }
}
