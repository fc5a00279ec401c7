//! Finds the running server of a configuration and its listening addresses, which are in use and need no check.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::Duration;

use rocknet::certificates::ServerEnvironment;
use rocknet_config::Config;
use rocknet_control::api::Request;
use rocknet_control::{CertificateSummary, Client, ClientError, ListeningSocket, Status};
use rocknet_io::socket::Address;

use super::super::{control, search};

/// Addresses at which a server listens, both as configured and with the port that the kernel has chosen.
#[derive(Debug, Default)]
pub struct ServedAddresses {
    /// Addresses whose TCP ports are served.
    pub tcp: BTreeSet<Address>,
    /// Addresses whose UDP ports are served, also as [`Address::Tcp`].
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

/// State of the running server of a configuration; empty without one.
#[derive(Debug, Default)]
pub struct Running {
    /// Addresses that the server listens at.
    pub addresses: ServedAddresses,
    /// Process of the server; `None` without a server, and if the server is this process.
    pub pid: Option<u32>,
    /// Certificates of the server; `None` without a server.
    pub certificates: Option<Vec<CertificateSummary>>,
}

impl Running {
    /// Returns true if the server runs in this process.
    pub fn is_this_process(&self) -> bool {
        self.pid.is_none() && self.certificates.is_some()
    }
}

/// Maximum wait for the reply of a server to [`running_server`]. A server replies within milliseconds, unless it hangs.
const QUERY_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the state of the running server of this configuration; an empty state if no such server runs, or if this
/// user has no access to it. Without `file`, queries the server of the default configuration.
///
/// # Errors
///
/// Returns a message for the operator if a server accepts the connection but does not reply correctly.
pub fn running_server(file: Option<&Path>) -> Result<Running, String> {
    let config = match file {
        Some(file) => rocknet_config::load_despite_errors(file, &ServerEnvironment::new()).ok(),
        None => Some(Config::default()),
    };
    let sockets = config.and_then(|config| control::sockets(&config).ok());
    let connected = sockets.into_iter().flatten().find_map(|socket| {
        let client = Client::connect_with_timeout(&socket, QUERY_TIMEOUT).ok()?;
        Some((socket, client))
    });
    let Some((socket, mut client)) = connected else {
        return Ok(Running::default());
    };
    match client.call::<Status>(&Request::Status) {
        Ok(status) => {
            // The socket is in the state folder, which a server with another configuration file may use.
            let is_other = file.is_some_and(|file| {
                let served = status.config_file.as_deref();
                served.is_some_and(|served| served != search::absolute(file))
            });
            if is_other {
                return Ok(Running::default());
            }
            Ok(Running {
                addresses: ServedAddresses::new(&status.sockets),
                pid: Some(status.pid),
                // An older server may not reply. Certificates are then read from their files.
                certificates: client.call(&Request::Certificates).ok(),
            })
        }
        // The server has ended in the meantime, or this user has no access to it.
        Err(ClientError::NotRunning(_) | ClientError::NoAccess(_)) => Ok(Running::default()),
        // A read that exceeds the timeout of a socket fails with `WouldBlock`.
        Err(ClientError::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => Err(format!(
            "the server at {} accepted a connection, but did not reply within {} s: if this persists, restart it",
            socket.display(),
            QUERY_TIMEOUT.as_secs()
        )),
        Err(error) => Err(format!("the server at {}: {error}", socket.display())),
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
