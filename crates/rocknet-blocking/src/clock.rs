//! The time by which waiting jobs age: the system's, or a test's own.

use std::time::{Duration, Instant};

/// Time since some fixed moment, never going back.
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Duration;
}

/// The monotonic clock, from when it was made.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock(Instant);

impl SystemClock {
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
