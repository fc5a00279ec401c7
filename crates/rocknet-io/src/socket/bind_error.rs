//! Errors of listening on an address. Their messages name the remedy, except for unexpected errors of the system.

use std::error::Error;
use std::fmt;
use std::io;

use rustix::io::Errno;

use super::Address;
use crate::port_owner::{self, PortOwner};

/// Error of listening on an address.
#[derive(Debug)]
pub struct BindError {
    /// The address that was requested.
    pub address: Address,
    /// The cause.
    pub kind: BindErrorKind,
}

/// Cause of a [`BindError`].
#[derive(Debug)]
pub enum BindErrorKind {
    /// Another socket is bound to the address, or the server lacks the permission to check this by connecting to the
    /// existing socket file. Contains the process that owns the socket, if it was found.
    InUse(Option<PortOwner>),
    /// The system denies permission: usually for a port below 1024, or for the directory of the socket file.
    Denied,
    /// The machine has no such address, or the path of the socket file leads through a directory that does not exist.
    Unavailable,
    /// Any other error.
    Other(io::Error),
}

impl BindError {
    /// Determines the cause from the error of the system. If the address is in use, searches all processes for its
    /// owner.
    pub(super) fn new(address: &Address, error: io::Error) -> Self {
        let kind = match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::ADDRINUSE) => BindErrorKind::InUse(match address {
                Address::Tcp { ip, port } => port_owner::of_port(*ip, *port),
                Address::Unix(path) => port_owner::of_socket_file(path),
            }),
            Some(Errno::ACCESS | Errno::PERM) => BindErrorKind::Denied,
            Some(Errno::ADDRNOTAVAIL | Errno::AFNOSUPPORT | Errno::NOENT | Errno::NOTDIR) => BindErrorKind::Unavailable,
            _ => BindErrorKind::Other(error),
        };
        Self {
            address: address.clone(),
            kind,
        }
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Address::Tcp { ip: None, port } => write!(f, "port {port} ")?,
            Address::Tcp { .. } => write!(f, "{} ", self.address)?,
            Address::Unix(path) => write!(f, "socket {} ", path.display())?,
        }
        match (&self.kind, &self.address) {
            (BindErrorKind::InUse(Some(owner)), _) if owner.is_this_process() => {
                f.write_str("is in use by this server itself: two `listen` entries overlap; remove one of them")
            }
            (BindErrorKind::InUse(Some(owner)), _) => {
                write!(f, "is in use by {owner}; stop it or choose another `listen`")
            }
            (BindErrorKind::InUse(None), Address::Tcp { port, .. }) => write!(
                f,
                "is in use by another program (`sudo ss -ltnp 'sport = :{port}'` names it); stop it or choose another `listen`"
            ),
            (BindErrorKind::InUse(None), Address::Unix(_)) => f.write_str(
                "is in use by another program, or its file belongs to another user; stop the program or choose another \
                 `listen`",
            ),
            // The kernel chooses a port above 1023 for port 0.
            (BindErrorKind::Denied, Address::Tcp { port: 0 | 1024.., .. }) => {
                f.write_str("may not be used: a security policy of the system (SELinux, AppArmor) denies it")
            }
            (BindErrorKind::Denied, Address::Tcp { .. }) => f.write_str(
                "needs root or CAP_NET_BIND_SERVICE: start as root with `server.user` set (privileges are dropped after \
                 binding), give the program this capability with `setcap cap_net_bind_service=+ep`, or choose port 1024 or \
                 above",
            ),
            (BindErrorKind::Denied, Address::Unix(_)) => f.write_str(
                "cannot be created: give the server's user all permissions (`rwx`) for the file's directory",
            ),
            (BindErrorKind::Unavailable, Address::Tcp { .. }) => f.write_str(
                "is not an address of this machine (`ip address` lists them); use one of those, or only the port for all",
            ),
            (BindErrorKind::Unavailable, Address::Unix(_)) => {
                f.write_str("cannot be created, because its directory does not exist or is not a directory: create it first")
            }
            (BindErrorKind::Other(error), _) => write!(f, "cannot be bound: {error}"),
        }
    }
}

impl Error for BindError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            BindErrorKind::Other(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_remedy() {
        let nginx = || {
            Some(PortOwner {
                pid: 812,
                name: "nginx".into(),
            })
        };
        let port = || Address::Tcp { ip: None, port: 80 };
        let unix = || Address::Unix("/run/x".into());
        let full = || BindErrorKind::Other(io::Error::other("full"));
        // Address, cause, and texts that the message contains.
        for (address, kind, words) in [
            (
                port(),
                BindErrorKind::InUse(nginx()),
                &["port 80 is in use by nginx (pid 812); stop it or choose another `listen`"][..],
            ),
            (
                Address::from(std::net::SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], 80))),
                BindErrorKind::InUse(nginx()),
                &["[::1]:80 is in use by nginx"],
            ),
            (
                port(),
                BindErrorKind::InUse(None),
                &["port 80 is in use by another program", "sport = :80"],
            ),
            (
                unix(),
                BindErrorKind::InUse(nginx()),
                &["socket /run/x is in use by nginx (pid 812)"],
            ),
            (
                unix(),
                BindErrorKind::InUse(None),
                &["socket /run/x is in use by another program"],
            ),
            (
                port(),
                BindErrorKind::Denied,
                &["port 80 needs root or CAP_NET_BIND_SERVICE", "setcap", "1024"],
            ),
            (
                Address::Tcp { ip: None, port: 8089 },
                BindErrorKind::Denied,
                &["port 8089 may not be used", "SELinux"],
            ),
            (
                Address::Tcp { ip: None, port: 0 },
                BindErrorKind::Denied,
                &["port 0 may not be used", "SELinux"],
            ),
            (unix(), BindErrorKind::Denied, &["socket /run/x", "directory"]),
            (
                Address::from(std::net::SocketAddr::from(([192, 0, 2, 1], 80))),
                BindErrorKind::Unavailable,
                &["192.0.2.1:80 is not an address of this machine"],
            ),
            (
                unix(),
                BindErrorKind::Unavailable,
                &["socket /run/x", "create it first"],
            ),
            (port(), full(), &["port 80 cannot be bound: full"]),
        ] {
            let message = BindError { address, kind }.to_string();
            assert!(words.iter().all(|word| message.contains(word)), "{message}");
        }
    }
}
