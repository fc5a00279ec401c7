//! Host names for which the server requests no certificate from a public authority: local names and IP addresses.

use std::net::IpAddr;

/// Domains for private use: RFC 6761, RFC 6762, RFC 8375, `internal` by ICANN's resolution of 2024, and the usual
/// domains of home routers.
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

/// Returns true if a host name in lower case, with or without `*.` before it, is local: an address, a name without a
/// dot, or a name in a domain for private use.
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
    fn private_names_are_local_and_public_ones_are_not() {
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
