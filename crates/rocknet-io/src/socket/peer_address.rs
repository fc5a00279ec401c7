//! The other end of a connection.

use std::net::{IpAddr, SocketAddr};

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PeerAddress {
    /// An IPv4 client is one also where it came in through an IPv6 socket.
    Ip(SocketAddr),
    /// Somebody on this machine, through a socket file.
    Unix,
}

impl PeerAddress {
    pub fn ip(self) -> Option<IpAddr> {
        match self {
            Self::Ip(address) => Some(address.ip()),
            Self::Unix => None,
        }
    }

    pub(super) fn of(address: Option<SocketAddr>) -> Self {
        address.map_or(Self::Unix, |address| Self::Ip(canonical(address)))
    }
}

/// An IPv4 address that is written as an IPv6 one becomes IPv4 again; all others stay, with their scope.
pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        IpAddr::V6(_) => address,
    }
}
