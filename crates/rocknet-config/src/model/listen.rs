//! Listeners of sites.

use std::net::IpAddr;
use std::path::PathBuf;

/// Address that a site listens on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Listen {
    /// TCP port.
    Tcp {
        /// Address; `None`: every IPv4 and IPv6 address of the machine.
        address: Option<IpAddr>,
        /// Port; 0: the kernel chooses one.
        port: u16,
    },
    /// Path of a Unix socket.
    Unix(PathBuf),
}

impl Listen {
    /// Returns true if `other` is this listener, or a listener at one of its addresses: a port without an address
    /// stands for every address.
    pub fn includes(&self, other: &Listen) -> bool {
        match (self, other) {
            (Listen::Tcp { address: None, port }, Listen::Tcp { port: other, .. }) => port == other,
            _ => self == other,
        }
    }
}
