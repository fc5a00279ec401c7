//! Port at which connections are refused.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketType};

/// A port at which connections are refused as long as this value exists. A port that is only closed could be assigned
/// to a server of another test.
pub struct RefusingPort {
    /// Bound, but not listening.
    socket: OwnedFd,
}

impl RefusingPort {
    pub fn new() -> RefusingPort {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        rustix::net::bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a port");
        RefusingPort { socket }
    }

    pub fn address(&self) -> SocketAddr {
        let address = rustix::net::getsockname(&self.socket).expect("its address");
        address.try_into().expect("an address of IPv4")
    }
}
