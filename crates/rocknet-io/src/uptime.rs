//! The process's own clock: milliseconds since it was first read, never going back.

use std::sync::OnceLock;
use std::time::Instant;

/// Returns the milliseconds since the first call in this process, by a clock that never jumps.
pub fn uptime_ms() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_millis() as u64
}
