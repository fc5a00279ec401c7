//! CPU time and memory that this process uses.

use std::time::Duration;

#[cfg(target_os = "linux")]
#[path = "usage/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "usage/portable.rs"]
mod system;

/// Returns the CPU time of all threads of the process since its start; zero on systems that do not count it.
pub fn cpu_time() -> Duration {
    system::cpu_time()
}

/// Returns the resident memory of the process in bytes; `None` if the system does not report it.
pub fn resident_memory() -> Option<u64> {
    system::resident_memory()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_busy_process_uses_cpu_time_and_memory() {
        let before = cpu_time();
        let mut sum = 0_u64;
        while cpu_time() == before {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        // Every process needs more than 100 kB.
        assert!(resident_memory().expect("Linux counts it") > 100_000);
    }
}
