//! CPU time and memory on Linux.

use std::time::Duration;

use rustix::param::page_size;
use rustix::time::{ClockId, clock_gettime};

/// Returns the CPU time of all threads of the process since its start.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Reads `/proc/self/statm`, whose second number is the resident memory in pages.
pub fn resident_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    pages.checked_mul(page_size() as u64)
}
