//! Address of the peer of a connection.

use std::net::{IpAddr, SocketAddr};

/// Address of the peer of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PeerAddress {
    /// A TCP peer. The address of an IPv4 client is IPv4 even if it connected to an IPv6 socket.
    Ip(SocketAddr),
    /// A process on this machine, through a Unix socket.
    Unix,
}

impl PeerAddress {
    /// Returns the IP address; `None` for a Unix socket.
    pub fn ip(self) -> Option<IpAddr> {
        match self {
            Self::Ip(address) => Some(address.ip()),
            Self::Unix => None,
        }
    }

    /// Converts the IP address of a peer. `None` stands for the peer of a Unix socket.
    pub(super) fn of(address: Option<SocketAddr>) -> Self {
        address.map_or(Self::Unix, |address| Self::Ip(canonical(address)))
    }
}

/// Converts an IPv4-mapped IPv6 address to IPv4. Returns all other addresses unchanged, with their scope.
pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        IpAddr::V6(_) => address,
    }
}
