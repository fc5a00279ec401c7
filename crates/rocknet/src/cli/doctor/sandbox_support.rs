//! Checks which restrictions of the sandbox the kernel supports. `rocknet status` shows those in effect.

use rocknet_config::model::Sandbox;
use rocknet_io::sandbox;

use super::facts::DoctorFacts;
use super::verdict::Check;

const SUBJECT: &str = "sandbox";

pub(super) fn check(facts: &DoctorFacts<'_>) -> Vec<Check> {
    let support = [
        ("seccomp", sandbox::can_deny_system_calls()),
        ("Landlock of Linux 5.19", sandbox::can_limit_writes()),
    ];
    let lacking: Vec<_> = support
        .iter()
        .filter(|(_, is_there)| !is_there)
        .map(|(name, _)| *name)
        .collect();
    let lacking = lacking.join(" and ");
    vec![match facts.config.server.sandbox {
        Sandbox::Off => Check::fair(SUBJECT, "sandbox-off", "switched off by `sandbox` below [server]"),
        _ if lacking.is_empty() => Check::good(SUBJECT, "the kernel has seccomp and Landlock"),
        Sandbox::Strict => Check::bad(
            SUBJECT,
            "sandbox-impossible",
            format!("`sandbox = \"strict\"` needs {lacking}, which this system lacks"),
        ),
        Sandbox::Auto => Check::fair(SUBJECT, "sandbox-partial", format!("this system lacks {lacking}")),
    }]
}
