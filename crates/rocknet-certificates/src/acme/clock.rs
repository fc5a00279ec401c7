//! The time that renewals go by: the system's, or one that a test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tokio::sync::Notify;

/// A clock that all who share it read alike.
#[derive(Clone, Default)]
pub struct Clock(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// Seconds ahead of the system's clock.
    offset_s: AtomicU64,
    moved: Notify,
}

impl Clock {
    pub fn now(&self) -> SystemTime {
        SystemTime::now() + Duration::from_secs(self.0.offset_s.load(Ordering::Acquire))
    }

    /// Lets time pass at once.
    pub fn advance(&self, by: Duration) {
        self.0.offset_s.fetch_add(by.as_secs(), Ordering::AcqRel);
        self.0.moved.notify_waiters();
        self.0.moved.notify_one();
    }

    /// Waits until it is `then`, but not much longer than [`LOOK`]: a clock that was set, and a machine that slept, are
    /// noticed. So whoever waits looks at the clock again.
    pub async fn wait_until(&self, then: SystemTime) {
        let left = then.duration_since(self.now()).unwrap_or_default();
        tokio::select! {
            () = tokio::time::sleep(left.min(MAX_SLEEP)) => {}
            () = self.0.moved.notified() => {}
        }
    }
}

/// Certificates live for days: a minute late is in time.
const MAX_SLEEP: Duration = Duration::from_secs(60);
