//! Access lists of client addresses for sites and routes.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::network::Network;
use crate::choice::choice;

/// Client addresses that a site or route allows and denies. An address in both lists is denied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Access {
    /// Allowed addresses; empty: all.
    pub allow: Vec<ClientRange>,
    /// Denied addresses.
    pub deny: Vec<ClientRange>,
}

choice! {
    /// Restrictions that a client has to meet if a route has lists of addresses and `auth`.
    #[derive(Copy)]
    pub enum Satisfy {
        All = "all", "an allowed address and a password";
        Any = "any", "an allowed address or a password";
    }
    default All
}

/// Range of client addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientRange {
    /// Every address, and every client of a Unix socket.
    All,
    /// Addresses of every network in [`PRIVATE_NETWORKS`].
    Private,
    /// One network, or the clients of Unix sockets.
    Network(Network),
}

/// Networks that are never routed on the Internet: loopback, private (RFC 1918), link-local (RFC 3927, RFC 4291) and
/// unique local addresses (RFC 4193). The shared addresses of RFC 6598 are not included, because other customers of the
/// same carrier use them.
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

/// Writes the range as in the configuration.
impl fmt::Display for ClientRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientRange::All => f.write_str("all"),
            ClientRange::Private => f.write_str("private"),
            ClientRange::Network(Network::Unix) => f.write_str("unix"),
            ClientRange::Network(Network::Ip { ip, length }) if *length == if ip.is_ipv4() { 32 } else { 128 } => {
                ip.fmt(f)
            }
            ClientRange::Network(Network::Ip { ip, length }) => write!(f, "{ip}/{length}"),
        }
    }
}

impl Access {
    /// Returns true if every client is allowed.
    pub fn is_open(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }
}
