//! Which names only this machine or its network knows, so that no public authority can vouch for them.

use std::net::IpAddr;

/// Names kept for private use: RFC 6761, RFC 6762, RFC 8375, `internal` by ICANN's resolution of 2024, and what routers
/// at home have always called theirs.
const PRIVATE_SUFFIXES: &[&str] = &[
    "localhost",
    "test",
    "internal",
    "local",
    "home.arpa",
    "invalid",
    "example",
    "lan",
    "localdomain",
];

/// Whether a name, `*.` before it or not, is local. Addresses are, and names without a dot.
pub fn is_local_name(name: &str) -> bool {
    let name = name.strip_prefix("*.").unwrap_or(name);
    let name = name.strip_suffix('.').unwrap_or(name);
    let below = |private: &&str| {
        name.strip_suffix(*private)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    name.parse::<IpAddr>().is_ok() || !name.contains('.') || PRIVATE_SUFFIXES.iter().any(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_names_are_told_from_public_ones() {
        for name in [
            "localhost",
            "a.localhost",
            "shop.test",
            "*.shop.test",
            "nas.home.arpa",
            "printer",
            "nas.lan",
            "10.0.0.1",
            "::1",
            "db.internal.",
        ] {
            assert!(is_local_name(name), "{name}");
        }
        for name in [
            "example.com",
            "*.example.com",
            "test.example.org",
            "mylocalhost.com",
            "contest.de",
        ] {
            assert!(!is_local_name(name), "{name}");
        }
    }
}
