//! Checks the dependencies between crates: they point down only, and the protocol crate has none with side effects.

/// Crates of the workspace, each with the crates that it may depend on (ARCHITECTURE.md).
pub const ALLOWED: &[(&str, &[&str])] = &[
    ("rocknet-proto", &[]),
    ("rocknet-io", &[]),
    ("rocknet-config", &[]),
    ("rocknet-controller", &[]),
    ("rocknet-control", &["rocknet-proto"]),
    ("rocknet-access", &["rocknet-config"]),
    ("rocknet-import", &["rocknet-config"]),
    ("rocknet-limit", &[]),
    ("rocknet-blocking", &["rocknet-config", "rocknet-io"]),
    ("rocknet-log", &["rocknet-config", "rocknet-io"]),
    ("rocknet-oidc", &[]),
    ("rocknet-pages", &[]),
    ("rocknet-telemetry", &["rocknet-config", "rocknet-io"]),
    ("rocknet-quic", &["rocknet-io"]),
    ("rocknet-routing", &["rocknet-config", "rocknet-proto"]),
    (
        "rocknet-handler",
        &[
            "rocknet-blocking",
            "rocknet-config",
            "rocknet-io",
            "rocknet-log",
            "rocknet-pages",
            "rocknet-proto",
            "rocknet-routing",
        ],
    ),
    (
        "rocknet-files",
        &[
            "rocknet-blocking",
            "rocknet-config",
            "rocknet-handler",
            "rocknet-io",
            "rocknet-log",
            "rocknet-pages",
            "rocknet-proto",
        ],
    ),
    (
        "rocknet-cache",
        &[
            "rocknet-config",
            "rocknet-handler",
            "rocknet-io",
            "rocknet-proto",
            "rocknet-routing",
        ],
    ),
    (
        "rocknet-proxy",
        &[
            "rocknet-blocking",
            "rocknet-certificates",
            "rocknet-config",
            "rocknet-handler",
            "rocknet-io",
            "rocknet-log",
            "rocknet-proto",
        ],
    ),
    (
        "rocknet-gateway",
        &[
            "rocknet-config",
            "rocknet-files",
            "rocknet-handler",
            "rocknet-io",
            "rocknet-log",
            "rocknet-proto",
        ],
    ),
    (
        "rocknet-certificates",
        &["rocknet-config", "rocknet-io", "rocknet-proto"],
    ),
    (
        "rocknet",
        &[
            "rocknet-proto",
            "rocknet-io",
            "rocknet-config",
            "rocknet-access",
            "rocknet-admin",
            "rocknet-control",
            "rocknet-controller",
            "rocknet-blocking",
            "rocknet-cache",
            "rocknet-certificates",
            "rocknet-files",
            "rocknet-gateway",
            "rocknet-handler",
            "rocknet-import",
            "rocknet-limit",
            "rocknet-log",
            "rocknet-oidc",
            "rocknet-pages",
            "rocknet-quic",
            "rocknet-proxy",
            "rocknet-routing",
            "rocknet-telemetry",
        ],
    ),
    (
        "rocknet-admin",
        &[
            "rocknet-access",
            "rocknet-config",
            "rocknet-control",
            "rocknet-handler",
            "rocknet-io",
            "rocknet-proto",
        ],
    ),
    ("rocknet-gui", &["rocknet-config", "rocknet-control"]),
];

/// Runtimes and system crates, which `rocknet-proto` must not use, because it runs without an operating system.
const IMPURE: &[&str] = &["tokio", "rustix", "socket2", "libc", "mio", "jiff"];

/// Returns the violations in the manifest of one crate. Dev-dependencies are not checked.
pub fn check(name: &str, allowed: &[&str], text: &str) -> Vec<String> {
    let mut violations = Vec::new();
    let mut section = "";
    for line in text.lines() {
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']');
            continue;
        }
        if !section.ends_with("dependencies") || section.ends_with("dev-dependencies") {
            continue;
        }
        let used = line.split(['.', '=', ' ']).next().unwrap_or_default();
        if used.starts_with("rocknet") && !allowed.contains(&used) {
            violations.push(format!(
                "{name} depends on {used}, which xtask/src/tidy/dependencies.rs does not allow"
            ));
        }
        if name == "rocknet-proto" && IMPURE.contains(&used) {
            violations.push(format!(
                "{name} depends on {used}, but must receive time, bytes and randomness as arguments"
            ));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_dependencies_are_violations() {
        let rows = [
            ("rocknet-proto", "[dependencies]\nmemchr.workspace = true\n", 0),
            ("rocknet-proto", "[dependencies]\ntokio.workspace = true\n", 1),
            ("rocknet-proto", "[dev-dependencies]\ntokio.workspace = true\n", 0),
            (
                "rocknet-config",
                "[dependencies]\nrocknet = { path = \"../rocknet\" }\n",
                1,
            ),
            ("rocknet-config", "[package]\nname = \"rocknet-config\"\n", 0),
            (
                "rocknet-config",
                "[target.'cfg(unix)'.dependencies]\nrocknet-io.workspace = true\n",
                1,
            ),
        ];
        for (name, text, expected) in rows {
            assert_eq!(check(name, &[], text).len(), expected, "{name}: {text:?}");
        }
    }
}
