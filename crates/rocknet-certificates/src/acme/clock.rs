//! The clock of renewals: the system clock, which a test can move forward.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tokio::sync::Notify;

/// A clock; clones share their offset.
#[derive(Clone, Default)]
pub struct Clock(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// Offset from the system clock in seconds.
    offset_s: AtomicU64,
    /// Notified when the clock is advanced.
    moved: Notify,
}

impl Clock {
    /// Returns the current time.
    pub fn now(&self) -> SystemTime {
        SystemTime::now() + Duration::from_secs(self.0.offset_s.load(Ordering::Acquire))
    }

    /// Moves the clock forward and wakes all waiting tasks.
    pub fn advance(&self, by: Duration) {
        self.0.offset_s.fetch_add(by.as_secs(), Ordering::AcqRel);
        self.0.moved.notify_waiters();
        // Stores one notification for a task that is about to wait.
        self.0.moved.notify_one();
    }

    /// Waits until `then`, until the clock is advanced, or for `MAX_SLEEP`, whichever comes first. The maximum makes
    /// the caller notice a changed system clock or a suspended machine, so callers must check the clock again.
    pub async fn wait_until(&self, then: SystemTime) {
        let remaining = then.duration_since(self.now()).unwrap_or_default();
        tokio::select! {
            () = tokio::time::sleep(remaining.min(MAX_SLEEP)) => {}
            () = self.0.moved.notified() => {}
        }
    }
}

/// Maximum time between two checks of the clock. Certificates are valid for days, so a delay of a minute is harmless.
const MAX_SLEEP: Duration = Duration::from_secs(60);
