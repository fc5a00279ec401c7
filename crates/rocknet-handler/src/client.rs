//! The client that sent a request, identified by its address.

use std::net::IpAddr;

use rocknet_config::client_ranges::client_network;
use rocknet_config::model::Network;

/// Address of a client: the address of the peer, or the address that a trusted proxy reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// A client with an IP address.
    Ip {
        /// IP address.
        address: IpAddr,
        /// Port; 0 if it is unknown, because many proxies report no port.
        port: u16,
    },
    /// A client connected through a Unix socket.
    Local,
}

impl Client {
    /// Returns true if the client is in one of the networks.
    pub fn is_in(self, networks: &[Network]) -> bool {
        match self {
            Client::Ip { address, .. } => networks.iter().any(|network| network.contains(address)),
            Client::Local => networks.contains(&Network::Unix),
        }
    }

    /// Returns the IP address; `None` for a client of a Unix socket.
    pub fn address(self) -> Option<IpAddr> {
        match self {
            Client::Ip { address, .. } => Some(address),
            Client::Local => None,
        }
    }

    /// Returns the key under which the uses of one client are counted; `None` for a client of a Unix socket. A customer
    /// of an Internet provider controls a whole IPv6 /64, so it counts as one client. Keys of IPv4 addresses have bits
    /// set in their lower 64 bits, so they do not collide with keys of IPv6 networks.
    pub fn count_key(self) -> Option<u128> {
        match self {
            Client::Ip { address, .. } => Some(client_network(address)),
            Client::Local => None,
        }
    }
}

impl std::fmt::Display for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Client::Ip { address, .. } => address.fmt(f),
            Client::Local => f.write_str("unix:"),
        }
    }
}
