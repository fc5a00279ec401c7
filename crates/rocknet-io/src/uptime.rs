//! Monotonic clock of the process: milliseconds since its first reading.

use std::sync::OnceLock;
use std::time::Instant;

/// Returns the milliseconds since the first call in this process, from a clock that never goes back.
pub fn uptime_ms() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_millis() as u64
}
