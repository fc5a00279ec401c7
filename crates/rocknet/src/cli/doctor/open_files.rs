//! Checks the limit of open files of the server against the connections that it is to accept.

use std::fs::File;
use std::io::Read;

use rocknet::capacity;
use rocknet_io::descriptors;

use super::facts::DoctorFacts;
use super::verdict::Check;

const SUBJECT: &str = "open files";

/// Minimum descriptor limit for a few thousand connections with their files.
const MIN_DESCRIPTORS: u64 = 8_192;

/// Maximum number of bytes read of the limits of a process. The kernel's table has about 1.5 KiB.
const MAX_LIMITS_BYTES: u64 = 16 * 1024;

pub(super) fn check(facts: &DoctorFacts<'_>) -> Vec<Check> {
    // The server raises its limit in the same way when it starts.
    descriptors::raise();
    let own = descriptors::limit();
    // The service manager may give the running server another limit than this terminal has.
    let running = facts.running.pid.and_then(limit_of_process);
    let check = of_limit(running.unwrap_or(own), facts.config.limits.connections, |limit| {
        capacity::allowed_connections(facts.config, limit)
    });
    match &facts.other_account {
        // The limit of this terminal is not that of the server.
        Some(other) if running.is_none() => vec![other.skipped(SUBJECT, "limit of the server")],
        _ => vec![check],
    }
}

/// Returns the result for a limit. `wanted`: `limits.connections`. `allowed`: connections that a limit permits.
fn of_limit(limit: u64, wanted: Option<usize>, allowed: impl Fn(u64) -> usize) -> Check {
    let connections = allowed(limit);
    if let Some(wanted) = wanted.filter(|wanted| connections < *wanted) {
        // A power of two that permits the connections. The loop ends at the latest at 2^62.
        let mut needed = MIN_DESCRIPTORS;
        while needed < 1 << 62 && allowed(needed) < wanted {
            needed *= 2;
        }
        let found = format!(
            "{limit} at most, which permits {connections} connections and not the {wanted} of `limits.connections`: raise \
             the limit by `ulimit -n {needed}`, or LimitNOFILE={needed} in the unit"
        );
        return Check::fair(SUBJECT, "open-files-below-connections", found).command(format!("ulimit -n {needed}"));
    }
    if limit < MIN_DESCRIPTORS {
        let found = format!(
            "{limit} at most, for {connections} connections: raise the limit by `ulimit -n {MIN_DESCRIPTORS}`, or \
             LimitNOFILE= in the unit"
        );
        return Check::fair(SUBJECT, "open-files-low", found).command(format!("ulimit -n {MIN_DESCRIPTORS}"));
    }
    Check::good(SUBJECT, format!("{limit} at most, for {connections} connections"))
}

/// Returns the limit of open files of another process.
fn limit_of_process(pid: u32) -> Option<u64> {
    let mut limits = String::new();
    let file = File::open(format!("/proc/{pid}/limits")).ok()?;
    file.take(MAX_LIMITS_BYTES).read_to_string(&mut limits).ok()?;
    parse_limit(&limits)
}

/// Returns the soft limit of open files in the text of `/proc/PID/limits`.
fn parse_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_ascii_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_below_the_wanted_connections_are_reported_with_a_sufficient_one() {
        let half = |limit: u64| usize::try_from(limit / 2).unwrap_or(usize::MAX);
        // Limit, `limits.connections`, and the expected code and command.
        for (limit, wanted, code, command) in [
            (8_192, None, "", None),
            (8_192, Some(4_096), "", None),
            (
                8_192,
                Some(4_097),
                "open-files-below-connections",
                Some("ulimit -n 16384"),
            ),
            (
                1_024,
                Some(100_000),
                "open-files-below-connections",
                Some("ulimit -n 262144"),
            ),
            (1_024, Some(10), "open-files-low", Some("ulimit -n 8192")),
            (1_024, None, "open-files-low", Some("ulimit -n 8192")),
            (u64::MAX, Some(1_000_000), "", None),
        ] {
            let check = of_limit(limit, wanted, half);
            assert_eq!(
                (check.code, check.command.as_deref()),
                (code, command),
                "{limit} {wanted:?}"
            );
        }
    }

    #[test]
    fn the_limit_of_a_process_is_read_from_the_table_of_the_kernel() {
        let table = "Limit                     Soft Limit           Hard Limit           Units     \n\
                     Max processes             63420                63420                processes \n\
                     Max open files            1024                 524288               files     \n";
        assert_eq!(parse_limit(table), Some(1024));
        assert_eq!(parse_limit(&table.replace("1024", "unlimited")), Some(u64::MAX));
        assert_eq!(parse_limit("Max processes 1 1\n"), None);
        assert_eq!(limit_of_process(std::process::id()), Some(descriptors::limit()));
    }
}
