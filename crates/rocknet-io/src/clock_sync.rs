//! Reads from the kernel whether a time service synchronizes the system clock, and how precisely (`adjtimex(2)`).

use std::io;
use std::time::Duration;

/// Synchronization of the system clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSync {
    /// True if a time service (NTP, PTP) keeps the clock synchronized.
    pub is_synchronized: bool,
    /// Amount by which the kernel still has to correct the clock, forwards or backwards.
    pub offset: Duration,
    /// Maximum error that the time service has reported. The kernel increases it while no service reports.
    pub max_error: Duration,
}

/// Queries the kernel for the synchronization of the system clock. Needs no privileges, and no network.
///
/// # Errors
///
/// Fails if a sandbox denies the system call, and on systems other than Linux.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
pub fn clock_sync() -> io::Result<ClockSync> {
    // SAFETY: all fields of `timex` are integers, for which zero is valid. A zero `modes` changes nothing.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is valid for the call, and the kernel writes to the structure only.
    if unsafe { libc::adjtimex(&raw mut state) } == -1 {
        return Err(io::Error::last_os_error());
    }
    let magnitude = |value: i128| u64::try_from(value.unsigned_abs()).unwrap_or(u64::MAX);
    let offset = magnitude(i128::from(state.offset));
    Ok(ClockSync {
        is_synchronized: state.status & libc::STA_UNSYNC == 0,
        offset: if state.status & libc::STA_NANO == 0 {
            Duration::from_micros(offset)
        } else {
            Duration::from_nanos(offset)
        },
        max_error: Duration::from_micros(magnitude(i128::from(state.maxerror))),
    })
}

/// Returns an error, because the system call exists on Linux only.
///
/// # Errors
///
/// Always fails.
#[cfg(not(target_os = "linux"))]
pub fn clock_sync() -> io::Result<ClockSync> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_state_can_be_read_without_a_change() {
        // A container may deny the system call.
        let Ok(first) = clock_sync() else { return };
        let second = clock_sync().expect("the second call is like the first");
        assert_eq!(first.is_synchronized, second.is_synchronized);
        // The kernel limits the offset to half a second, so it is never as large as this bound.
        assert!(first.offset <= Duration::from_secs(1), "{first:?}");
    }
}
