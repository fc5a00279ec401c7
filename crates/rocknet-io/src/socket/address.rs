//! Where to listen: a TCP port, on one address or on all, or a socket file.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// Without an address: all that the machine has, IPv6 and IPv4. `[::]` itself means all of IPv6 and no IPv4, so
    /// that `0.0.0.0` can stand beside it.
    Tcp {
        ip: Option<IpAddr>,
        port: u16,
    },
    Unix(PathBuf),
}

impl Address {
    /// The TCP port; a socket file has none.
    pub fn port(&self) -> Option<u16> {
        match self {
            Self::Tcp { port, .. } => Some(*port),
            Self::Unix(_) => None,
        }
    }

    pub(super) fn of(bound: SocketAddr, only_v6: bool) -> Self {
        let ip = match bound.ip() {
            IpAddr::V6(Ipv6Addr::UNSPECIFIED) if !only_v6 => None,
            ip => Some(ip),
        };
        Self::Tcp { ip, port: bound.port() }
    }
}

/// As it stands in a URL after the two slashes, so that what is printed at start can be clicked: `localhost:8080` for
/// all addresses, `[::1]:8080`, `unix:/run/rocknet.sock`.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { ip: None, port } => write!(f, "localhost:{port}"),
            Self::Tcp { ip: Some(ip), port } => SocketAddr::new(*ip, *port).fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp {
            ip: Some(address.ip()),
            port: address.port(),
        }
    }
}
