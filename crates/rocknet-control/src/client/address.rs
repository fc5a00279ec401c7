//! Address at which a server offers its control API, and the stream of a connection to it.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::ClientError;
use super::listener;
use super::unix_socket::{self, Peer};

/// Maximum time to open a TCP connection. It is short because the address is on this machine. For a forwarded port, the
/// SSH client accepts the connection at once, before it reaches the server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Address at which a server offers its control API.
#[derive(Clone, PartialEq, Eq)]
pub enum ServerAddress {
    /// Path of the control socket.
    Socket(PathBuf),
    /// TCP address of this machine: the address of the server, or a port that SSH forwards to the server. The token is
    /// sent in the clear, so [`Client::connect_to`](super::Client::connect_to) refuses an address of another machine.
    Tcp {
        /// Address, whose IP address is a loopback address.
        address: SocketAddr,
        /// Token from the folder `admin` of the server's state folder.
        token: String,
    },
}

impl ServerAddress {
    /// Returns the socket, or the TCP address as text in place of a path.
    pub fn shown(&self) -> PathBuf {
        match self {
            ServerAddress::Socket(path) => path.clone(),
            ServerAddress::Tcp { address, .. } => address.to_string().into(),
        }
    }

    /// Returns the token; `None` for a socket.
    pub(super) fn token(&self) -> Option<&str> {
        match self {
            ServerAddress::Socket(_) => None,
            ServerAddress::Tcp { token, .. } => Some(token),
        }
    }
}

impl From<&Path> for ServerAddress {
    fn from(socket: &Path) -> ServerAddress {
        ServerAddress::Socket(socket.to_owned())
    }
}

/// Leaves the token out, because errors and logs show addresses.
impl fmt::Debug for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServerAddress").field(&self.shown()).finish()
    }
}

/// Returns the error of a connection that could not be opened.
fn failed(server: &ServerAddress, error: io::Error) -> ClientError {
    match (error.kind(), server) {
        (io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused, _) => ClientError::NotRunning(server.shown()),
        (io::ErrorKind::PermissionDenied, ServerAddress::Socket(path)) => ClientError::NoAccess(path.clone()),
        // A TCP address has no owner and no group.
        (io::ErrorKind::PermissionDenied, ServerAddress::Tcp { address, .. }) => {
            let what = format!("a firewall or a security policy (SELinux, AppArmor) of this machine denies {address}");
            ClientError::Io(with_context(&what, &error))
        }
        _ => ClientError::of_sending(error),
    }
}

/// Returns the error with a text before its own.
fn with_context(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// Stream of a connection to the control API.
#[derive(Debug)]
pub(super) enum ControlStream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl ControlStream {
    /// Connects to an address. `timeout`: maximum time to connect to a control socket; a TCP address has its own limit.
    /// If the server no longer accepts connections, the queue of the socket becomes full. Without a limit, the wait for
    /// a place in the queue would have no end.
    ///
    /// # Errors
    ///
    /// Returns [`ClientError::NotRunning`], [`ClientError::NoAccess`], [`ClientError::NotLocal`],
    /// [`ClientError::Foreign`], or an error of the operating system.
    pub fn connect(server: &ServerAddress, timeout: Duration) -> Result<ControlStream, ClientError> {
        let stream = match server {
            ServerAddress::Socket(path) => unix_socket::connect(path, timeout).map(ControlStream::Unix),
            ServerAddress::Tcp { address, .. } if !address.ip().is_loopback() => {
                return Err(ClientError::NotLocal(*address));
            }
            ServerAddress::Tcp { address, .. } => {
                TcpStream::connect_timeout(address, CONNECT_TIMEOUT).map(ControlStream::Tcp)
            }
        };
        let stream = stream.map_err(|error| failed(server, error))?;
        if let ServerAddress::Tcp { address, .. } = server {
            // The account is looked up once the connection is open, so that no other program can replace the listener
            // in between.
            match listener::foreign(*address) {
                Ok(None) => {}
                Ok(Some(account)) => return Err(ClientError::Foreign(*address, account)),
                Err(error) => {
                    let what = format!("the account that listens at {address} cannot be looked up");
                    return Err(ClientError::Io(with_context(&what, &error)));
                }
            }
        }
        Ok(stream)
    }

    /// Returns the process that listens at the socket; `None` for a TCP address, or if the operating system returns an
    /// error.
    pub fn peer(&self) -> Option<Peer> {
        let ControlStream::Unix(stream) = self else {
            return None;
        };
        unix_socket::peer(stream)
    }

    /// Limits the wait for bytes that are received; `None`: without a limit.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            ControlStream::Unix(stream) => stream.set_read_timeout(timeout),
            ControlStream::Tcp(stream) => stream.set_read_timeout(timeout),
        }
    }

    /// Limits the wait for room for bytes that are sent.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            ControlStream::Unix(stream) => stream.set_write_timeout(timeout),
            ControlStream::Tcp(stream) => stream.set_write_timeout(timeout),
        }
    }

    /// Returns the limits for reading and writing.
    pub fn timeouts(&self) -> io::Result<(Option<Duration>, Option<Duration>)> {
        match self {
            ControlStream::Unix(stream) => Ok((stream.read_timeout()?, stream.write_timeout()?)),
            ControlStream::Tcp(stream) => Ok((stream.read_timeout()?, stream.write_timeout()?)),
        }
    }
}

impl Read for ControlStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            ControlStream::Unix(stream) => stream.read(buffer),
            ControlStream::Tcp(stream) => stream.read(buffer),
        }
    }
}

impl Write for ControlStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            ControlStream::Unix(stream) => stream.write(bytes),
            ControlStream::Tcp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            ControlStream::Unix(stream) => stream.flush(),
            ControlStream::Tcp(stream) => stream.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_fits_the_kind_of_the_address() {
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let tcp = ServerAddress::Tcp {
            address: ([127, 0, 0, 1], 7625).into(),
            token: "secret".to_owned(),
        };
        for (server, expected) in [
            (ServerAddress::Socket("/run/s".into()), "as a member of its group"),
            (tcp, "a firewall or a security policy"),
        ] {
            let shown = server.shown();
            let error = failed(&server, denied()).to_string();
            assert!(
                error.contains(expected) && error.contains(&*shown.to_string_lossy()),
                "{error}"
            );
        }
    }
}
