//! Clock that determines the age of waiting jobs. Tests supply their own.

use std::time::{Duration, Instant};

/// Monotonic time since a fixed moment.
pub trait Clock: Send + Sync + 'static {
    /// Returns the time since the moment at which the clock started.
    fn now(&self) -> Duration;
}

/// The monotonic clock of the system. Its time starts when the value is created.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock(Instant);

impl SystemClock {
    /// Creates a clock that starts now.
    pub fn new() -> SystemClock {
        SystemClock(Instant::now())
    }
}

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}
