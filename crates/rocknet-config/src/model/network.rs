//! Networks in CIDR notation.

use std::net::IpAddr;

/// Set of peer addresses: an IP network, or all peers of Unix sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Addresses whose first `length` bits equal those of `ip`.
    Ip {
        /// An address of the network.
        ip: IpAddr,
        /// Prefix length: at most 32 for IPv4, 128 for IPv6.
        length: u8,
    },
    /// Peers of Unix sockets.
    Unix,
}

impl Network {
    /// Returns true if the network contains an address. IPv4-mapped IPv6 addresses count as IPv4. [`Network::Unix`]
    /// contains no IP address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let Network::Ip { ip, length } = *self else {
            return false;
        };
        let (ours, theirs, bits) = match (ip, address.to_canonical()) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => (u128::from(ours.to_bits()), u128::from(theirs.to_bits()), 32),
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => (ours.to_bits(), theirs.to_bits(), 128),
            _ => return false,
        };
        let ignored = bits - u32::from(length).min(bits);
        // For `::/0` the shift is as wide as the type, which `checked_shr` refuses. No bit has to be compared then.
        ours.checked_shr(ignored).unwrap_or(0) == theirs.checked_shr(ignored).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_their_addresses() {
        for (ip, length, address, expected) in [
            ("10.0.0.0", 8, "10.255.0.1", true),
            ("10.0.0.0", 8, "11.0.0.1", false),
            ("10.0.0.0", 8, "::ffff:10.1.2.3", true),
            ("192.0.2.7", 32, "192.0.2.7", true),
            ("192.0.2.7", 32, "192.0.2.6", false),
            ("0.0.0.0", 0, "203.0.113.9", true),
            ("0.0.0.0", 0, "2001:db8::1", false),
            ("::", 0, "2001:db8::1", true),
            ("2001:db8::", 32, "2001:db8:1::1", true),
            ("2001:db8::", 32, "2001:db9::1", false),
            ("::1", 128, "::1", true),
        ] {
            let network = Network::Ip {
                ip: ip.parse().expect("an address"),
                length,
            };
            let address = address.parse().expect("an address");
            assert_eq!(network.contains(address), expected, "{ip}/{length} {address}");
        }
        assert!(!Network::Unix.contains("::1".parse().expect("an address")));
    }
}
