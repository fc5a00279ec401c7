//! Monotonic clock of the machine. All processes share it, so that one can pass times to another.

use rustix::time::{ClockId, clock_gettime};

/// Returns the nanoseconds of the monotonic clock that all processes of the machine share. It stands still while the
/// machine is suspended, except on Apple systems.
pub fn machine_uptime_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn the_clock_advances_like_that_of_the_standard_library() {
        const LEAST: Duration = Duration::from_millis(5);
        let (began, machine) = (Instant::now(), machine_uptime_ns());
        while began.elapsed() < 2 * LEAST {
            std::hint::spin_loop();
        }
        // Reading the first clock before and after the second bounds the difference.
        let middle = machine_uptime_ns();
        let all = began.elapsed();
        let passed = Duration::from_nanos(middle - machine);
        assert!(passed >= LEAST && passed <= all, "{passed:?}");
    }
}
