//! The sender of a request, as its address is known.

use std::net::IpAddr;

use rocknet_config::model::Network;

/// The client: the peer, or the address that a trusted proxy names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    Ip {
        address: IpAddr,
        port: u16,
    },
    /// A client of a Unix socket.
    Local,
}

impl Client {
    /// Returns whether the client is in one of the networks.
    pub fn is_in(self, networks: &[Network]) -> bool {
        match self {
            Client::Ip { address, .. } => networks.iter().any(|network| network.contains(address)),
            Client::Local => networks.contains(&Network::Unix),
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
