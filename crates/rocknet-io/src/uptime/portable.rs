//! Reads the monotonic clock of the standard library.

use std::sync::OnceLock;
use std::time::Instant;

/// Returns the nanoseconds since the first call.
pub(super) fn now_ns() -> u64 {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    ORIGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
