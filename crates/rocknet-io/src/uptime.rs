//! Monotonic clock of the process, which counts from its first reading.

// On Apple systems, the monotonic clock of the machine continues while the machine is suspended. The clock of the
// standard library stands still there.
#[cfg(all(unix, not(target_vendor = "apple")))]
#[path = "uptime/unix.rs"]
mod system;
#[cfg(any(not(unix), target_vendor = "apple"))]
#[path = "uptime/portable.rs"]
mod system;

use std::sync::OnceLock;
use std::time::Duration;

/// Returns the milliseconds since the first call in this process, from a clock that never goes back.
pub fn uptime_ms() -> u64 {
    uptime_ns() / 1_000_000
}

/// Returns the time since the first call in this process, from a clock that never goes back.
pub fn uptime() -> Duration {
    Duration::from_nanos(uptime_ns())
}

/// Returns the nanoseconds since the first call in this process, from a clock that never goes back. Rate limits call it
/// for each request, and it takes about half as many instructions as `Instant::elapsed`.
#[inline]
pub fn uptime_ns() -> u64 {
    static START: OnceLock<u64> = OnceLock::new();
    let now = system::now_ns();
    // Another thread may have stored a later time as the start meanwhile.
    now.saturating_sub(*START.get_or_init(|| now))
}
