//! Private names: the names of this machine and its network, for which no public CA issues certificates.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rcgen::{CidrSubnet, GeneralSubtree, NameConstraints};

/// Domains reserved for private use, with all names below them: RFC 6761 and 6762, RFC 8375, ICANN's `internal`, and
/// the names that home routers have always used.
const DOMAINS: [&str; 9] = [
    "localhost",
    "test",
    "example",
    "invalid",
    "internal",
    "local",
    "home.arpa",
    "lan",
    "localdomain",
];

/// Loopback, private and link-local IPv4 networks, each with its prefix length: RFC 1122, 1918, 3927.
const V4: [(Ipv4Addr, u8); 5] = [
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
];
/// Loopback, private and link-local IPv6 networks, each with its prefix length: RFC 4193, 4291.
const V6: [(Ipv6Addr, u8); 3] = [
    (Ipv6Addr::LOCALHOST, 128),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10),
];

/// Returns true if the local CA with name constraints may sign this name: a host name, a wildcard, or an address.
pub fn is_private(name: &str) -> bool {
    if let Ok(address) = name.parse() {
        return is_private_address(address);
    }
    let name = name.strip_prefix("*.").unwrap_or(name);
    DOMAINS.iter().any(|domain| {
        name.strip_suffix(domain)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

fn is_private_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => V4
            .iter()
            .any(|(network, bits)| (address.to_bits() ^ network.to_bits()).leading_zeros() >= u32::from(*bits)),
        IpAddr::V6(address) => V6
            .iter()
            .any(|(network, bits)| (address.to_bits() ^ network.to_bits()).leading_zeros() >= u32::from(*bits)),
    }
}

/// Returns the rule of [`is_private`] as name constraints (RFC 5280 §4.2.1.10), which clients enforce.
pub fn constraints() -> NameConstraints {
    let domains = DOMAINS
        .iter()
        .map(|domain| GeneralSubtree::DnsName((*domain).to_owned()));
    let v4 = V4.iter().map(|(network, bits)| ((*network).into(), *bits));
    let v6 = V6.iter().map(|(network, bits)| ((*network).into(), *bits));
    let networks = v4
        .chain(v6)
        .map(|(network, bits)| GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(network, bits)));
    NameConstraints {
        permitted_subtrees: domains.chain(networks).collect(),
        excluded_subtrees: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_names_are_recognized() {
        for (name, private) in [
            ("localhost", true),
            ("shop.localhost", true),
            ("*.test", true),
            ("a.b.test", true),
            ("contest", false),
            ("my.contest", false),
            ("printer.home.arpa", true),
            ("home.arpa", true),
            ("arpa", false),
            ("db.internal", true),
            ("intranet", false),
            ("example.com", false),
            ("shop.example", true),
            ("*.example.com", false),
            ("127.0.0.1", true),
            ("127.255.255.255", true),
            ("128.0.0.0", false),
            ("172.15.255.255", false),
            ("172.16.0.0", true),
            ("172.31.255.255", true),
            ("172.32.0.0", false),
            ("192.168.1.1", true),
            ("9.255.255.255", false),
            ("::1", true),
            ("::2", false),
            ("fd00::1", true),
            ("fe80::1", true),
            ("fec0::1", false),
            ("2001:db8::1", false),
        ] {
            assert_eq!(is_private(name), private, "{name}");
        }
    }

    #[test]
    fn local_names_of_the_configuration_are_private() {
        for name in [
            "localhost",
            "a.test",
            "a.example",
            "a.invalid",
            "a.internal",
            "a.local",
            "a.home.arpa",
        ] {
            assert!(rocknet_config::is_local_name(name) && is_private(name), "{name}");
        }
    }
}
