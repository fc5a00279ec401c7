//! Client addresses that may enter a site or route.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::network::Network;

/// Addresses of clients at one place. An address in both lists may not enter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Access {
    /// Addresses that may enter; empty: all.
    pub allow: Vec<ClientRange>,
    /// Addresses that may not enter.
    pub deny: Vec<ClientRange>,
}

/// Client addresses that are treated alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientRange {
    All,
    /// Every network of [`PRIVATE_NETWORKS`].
    Private,
    Network(Network),
}

/// Networks that no stranger sends from: loopback, RFC 1918, link-local (RFC 3927, RFC 4291) and unique local addresses
/// (RFC 4193). The shared addresses of RFC 6598 are missing, because the other customers of a carrier are strangers.
pub const PRIVATE_NETWORKS: [Network; 8] = [
    network(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), 8),
    network(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), 8),
    network(IpAddr::V4(Ipv4Addr::new(172, 16, 0, 0)), 12),
    network(IpAddr::V4(Ipv4Addr::new(192, 168, 0, 0)), 16),
    network(IpAddr::V4(Ipv4Addr::new(169, 254, 0, 0)), 16),
    network(IpAddr::V6(Ipv6Addr::LOCALHOST), 128),
    network(IpAddr::V6(Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0)), 7),
    network(IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)), 10),
];

const fn network(ip: IpAddr, length: u8) -> Network {
    Network::Ip { ip, length }
}

impl Access {
    /// Returns true if every client may enter.
    pub fn is_open(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }
}
