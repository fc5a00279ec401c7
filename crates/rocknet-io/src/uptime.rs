//! Monotonic clock of the process, which counts from its first reading.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Returns the milliseconds since the first call in this process, from a clock that never goes back.
pub fn uptime_ms() -> u64 {
    uptime().as_millis() as u64
}

/// Returns the time since the first call in this process, from a clock that never goes back.
pub fn uptime() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}
