//! Checks the clock of this machine, on which certificates, cookies and caches depend.

use std::env;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rocknet_io::clock_sync::{ClockSync, clock_sync};

use super::facts::DoctorFacts;
use super::verdict::Check;

const SUBJECT: &str = "clock";

/// Maximum error that is not reported. Clients tolerate more, but the error of a synchronized clock is far smaller.
const MAX_ERROR: Duration = Duration::from_secs(2);

/// Maximum offset that is not reported. The time service still has to correct the offset.
const MAX_OFFSET: Duration = Duration::from_millis(250);

/// Tolerance for the date of the program's own file, which another machine may have set.
const FILE_TOLERANCE: Duration = Duration::from_secs(24 * 3600);

/// The program that controls the time service of systemd.
const TIMEDATECTL: &str = "/usr/bin/timedatectl";

/// Folder that exists while the time service of systemd runs.
const TIMESYNCD: &str = "/run/systemd/timesync";

/// Command that switches the time service on.
const SWITCH_ON: &str = "sudo timedatectl set-ntp true";

pub(super) fn check(_: &DoctorFacts<'_>) -> Vec<Check> {
    let built = env::current_exe()
        .and_then(fs::metadata)
        .and_then(|found| found.modified());
    if let Some(check) = built.ok().and_then(|built| check_date(SystemTime::now(), built)) {
        return vec![check];
    }
    vec![match clock_sync() {
        Ok(sync) => of_sync(sync),
        Err(error) => Check::skipped(
            SUBJECT,
            "clock-unknown",
            format!("the system does not show whether the clock is synchronized: {error}"),
        ),
    }]
}

/// Reports a clock that shows a time before the program was built.
fn check_date(now: SystemTime, built: SystemTime) -> Option<Check> {
    (now + FILE_TOLERANCE < built).then(|| {
        let found = "shows a time before this program was built, so certificates count as not valid yet: set the date, \
                     and switch the time service on";
        with_command(Check::bad(SUBJECT, "clock-behind", found), SWITCH_ON)
    })
}

fn of_sync(sync: ClockSync) -> Check {
    let seconds = |duration: Duration| format!("{:.3} s", duration.as_secs_f64());
    if !sync.is_synchronized {
        let found = "not synchronized by a time service, so certificates and cookies expire too early or too late: \
                     install chrony or systemd-timesyncd, or let the host of the container keep the time";
        return with_command(Check::fair(SUBJECT, "clock-not-synchronized", found), SWITCH_ON);
    }
    if sync.offset > MAX_OFFSET || sync.max_error > MAX_ERROR {
        let found = format!(
            "synchronized, but may be wrong by {}: check the servers of the time service",
            seconds(sync.offset.max(sync.max_error))
        );
        let check = Check::fair(SUBJECT, "clock-inaccurate", found);
        // The command fails with another time service, such as chrony.
        return match Path::new(TIMESYNCD).exists() {
            true => with_command(check, "timedatectl timesync-status"),
            false => check,
        };
    }
    Check::good(SUBJECT, format!("synchronized, offset {}", seconds(sync.offset)))
}

/// Adds a command of `timedatectl`, if the system has it.
fn with_command(check: Check, command: &str) -> Check {
    if Path::new(TIMEDATECTL).exists() {
        check.command(command)
    } else {
        check
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_the_kernel_decides() {
        let sync = |is_synchronized, offset, max_error| ClockSync {
            is_synchronized,
            offset: Duration::from_millis(offset),
            max_error: Duration::from_millis(max_error),
        };
        for (sync, code) in [
            (sync(true, 1, 100), ""),
            (sync(true, 250, 2_000), ""),
            (sync(true, 251, 0), "clock-inaccurate"),
            (sync(true, 0, 2_001), "clock-inaccurate"),
            (sync(false, 0, 0), "clock-not-synchronized"),
            (sync(false, 0, 16_000), "clock-not-synchronized"),
        ] {
            let check = of_sync(sync);
            assert_eq!(check.code, code, "{sync:?}");
            if let Some(command) = check.command {
                let needs_service = command.contains("timesync-status");
                assert!(Path::new(TIMEDATECTL).exists(), "{command}");
                assert!(!needs_service || Path::new(TIMESYNCD).exists(), "{command}");
            }
        }
    }

    #[test]
    fn a_time_before_the_program_was_built_is_wrong() {
        let built = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        assert!(check_date(built - FILE_TOLERANCE, built).is_none());
        let check = check_date(built - FILE_TOLERANCE - Duration::from_secs(1), built).expect("it is behind");
        assert_eq!(check.code, "clock-behind");
    }
}
