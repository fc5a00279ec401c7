//! Addresses at which the running server listens. They are in use, and need no check.

use std::collections::BTreeSet;

use rocknet_control::ListeningSocket;
use rocknet_io::socket::Address;

/// Addresses at which a server listens: as configured, and with the port that the kernel has chosen.
#[derive(Debug, Default)]
pub struct ServedAddresses {
    /// Addresses whose TCP ports are served.
    pub tcp: BTreeSet<Address>,
    /// Addresses whose UDP ports are served.
    pub udp: BTreeSet<Address>,
}

impl ServedAddresses {
    /// Returns the addresses of the sockets of a server. Socket files are left out.
    pub fn new(sockets: &[ListeningSocket]) -> ServedAddresses {
        let mut served = ServedAddresses::default();
        for socket in sockets.iter().filter(|socket| socket.file.is_none()) {
            for port in [socket.configured_port, socket.port] {
                let address = Address::Tcp { ip: socket.ip, port };
                if socket.http3 {
                    served.udp.insert(address.clone());
                }
                served.tcp.insert(address);
            }
        }
        served
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_served_at_their_configured_and_bound_ports() {
        let socket = |ip: Option<&str>, configured_port, port, http3| ListeningSocket {
            file: None,
            ip: ip.map(|ip| ip.parse().expect("an address")),
            configured_port,
            port,
            http3,
        };
        let file = ListeningSocket {
            file: Some("/run/a.sock".into()),
            ..ListeningSocket::default()
        };
        let sockets = [socket(None, 80, 80, false), socket(Some("::1"), 0, 444, true), file];
        let served = ServedAddresses::new(&sockets);
        let tcp = |ip: Option<&str>, port| Address::Tcp {
            ip: ip.map(|ip| ip.parse().expect("an address")),
            port,
        };
        let udp = [tcp(Some("::1"), 0), tcp(Some("::1"), 444)];
        assert_eq!(served.udp, BTreeSet::from(udp.clone()));
        assert_eq!(served.tcp, udp.into_iter().chain([tcp(None, 80)]).collect());
    }
}
