//! Listening addresses: a TCP port on one address or on all, or a socket file.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// A TCP port. `ip: None` means all addresses of the machine, IPv6 and IPv4. `[::]` means all IPv6 addresses and no
    /// IPv4 address, so that `0.0.0.0` can be bound in addition.
    Tcp {
        /// Address, or `None` for all.
        ip: Option<IpAddr>,
        /// Port; 0 means that the kernel chooses one.
        port: u16,
    },
    /// A Unix socket bound to this file.
    Unix(PathBuf),
}

impl Address {
    /// Returns the TCP port; `None` for a socket file.
    pub fn port(&self) -> Option<u16> {
        match self {
            Self::Tcp { port, .. } => Some(*port),
            Self::Unix(_) => None,
        }
    }

    /// Returns whether a connection could match both addresses.
    pub fn overlaps(&self, other: &Self) -> bool {
        let (
            Self::Tcp { ip, port },
            Self::Tcp {
                ip: other_ip,
                port: other_port,
            },
        ) = (self, other)
        else {
            return self == other;
        };
        let contains = |all: IpAddr, one: IpAddr| all.is_unspecified() && all.is_ipv4() == one.is_ipv4();
        port == other_port
            && match (*ip, *other_ip) {
                (None, _) | (_, None) => true,
                (Some(one), Some(other)) => one == other || contains(one, other) || contains(other, one),
            }
    }

    /// Returns true if every connection to `one` matches this address too, and this address also matches other
    /// connections. For example, all addresses of a port cover each single address with that port.
    pub fn covers(&self, one: &Self) -> bool {
        let is_wider = match (self, one) {
            (Self::Tcp { ip: None, .. }, Self::Tcp { ip: Some(_), .. }) => true,
            (Self::Tcp { ip: Some(all), .. }, Self::Tcp { ip: Some(one), .. }) => {
                all.is_unspecified() && !one.is_unspecified()
            }
            _ => false,
        };
        is_wider && self.overlaps(one)
    }

    /// Returns the address of a socket bound to `bound`. `only_v6` is its option `IPV6_V6ONLY`: without the option, a
    /// socket at `[::]` also accepts IPv4 connections.
    pub(crate) fn of(bound: SocketAddr, only_v6: bool) -> Self {
        let ip = match bound.ip() {
            IpAddr::V6(Ipv6Addr::UNSPECIFIED) if !only_v6 => None,
            ip => Some(ip),
        };
        Self::Tcp { ip, port: bound.port() }
    }
}

/// Formats the address as the authority of a URL, so that a printed URL can be clicked: `localhost:8080` for all
/// addresses, `[::1]:8080`, `unix:/run/rocknet.sock`.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { ip: None, port } => write!(f, "localhost:{port}"),
            Self::Tcp { ip: Some(ip), port } => SocketAddr::new(*ip, *port).fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Converts an IP address with a port. `[::]` means all IPv6 addresses here, and no IPv4 address.
impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp {
            ip: Some(address.ip()),
            port: address.port(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a TCP address. The text `*` is not an IP address, so it becomes `None`: all addresses.
    fn tcp(ip: &str, port: u16) -> Address {
        Address::Tcp {
            ip: ip.parse().ok(),
            port,
        }
    }

    #[test]
    fn all_addresses_of_a_port_cover_each_of_them() {
        for (all, one, expected) in [
            (tcp("*", 1), tcp("127.0.0.1", 1), true),
            (tcp("*", 1), tcp("::", 1), true),
            (tcp("*", 1), tcp("127.0.0.1", 2), false),
            (tcp("0.0.0.0", 1), tcp("127.0.0.1", 1), true),
            (tcp("::", 1), tcp("127.0.0.1", 1), false),
            (tcp("::", 1), tcp("::1", 1), true),
            (tcp("127.0.0.1", 1), tcp("*", 1), false),
            (tcp("127.0.0.1", 1), tcp("127.0.0.1", 1), false),
            (tcp("*", 1), Address::Unix("x".into()), false),
        ] {
            assert_eq!(all.covers(&one), expected, "{all:?} {one:?}");
        }
    }

    #[test]
    fn addresses_overlap_if_one_connection_matches_both() {
        for (one, other, expected) in [
            (tcp("*", 80), tcp("*", 80), true),
            (tcp("*", 80), tcp("127.0.0.1", 80), true),
            (tcp("*", 80), tcp("::1", 80), true),
            (tcp("*", 80), tcp("127.0.0.1", 81), false),
            (tcp("0.0.0.0", 80), tcp("127.0.0.1", 80), true),
            (tcp("0.0.0.0", 80), tcp("::1", 80), false),
            (tcp("::", 80), tcp("::1", 80), true),
            (tcp("127.0.0.1", 80), tcp("127.0.0.1", 80), true),
            (tcp("127.0.0.1", 80), tcp("127.0.0.2", 80), false),
            (Address::Unix("/a".into()), Address::Unix("/a".into()), true),
            (Address::Unix("/a".into()), tcp("*", 80), false),
        ] {
            assert_eq!(one.overlaps(&other), expected, "{one} and {other}");
            assert_eq!(other.overlaps(&one), expected, "{other} and {one}");
        }
    }

    #[test]
    fn addresses_are_formatted_as_in_a_url() {
        for (address, text, port) in [
            (tcp("*", 8080), "localhost:8080", Some(8080)),
            (tcp("127.0.0.1", 80), "127.0.0.1:80", Some(80)),
            (tcp("::1", 443), "[::1]:443", Some(443)),
            (
                Address::Unix("/run/rocknet.sock".into()),
                "unix:/run/rocknet.sock",
                None,
            ),
        ] {
            assert_eq!((address.to_string().as_str(), address.port()), (text, port));
        }
    }
}
