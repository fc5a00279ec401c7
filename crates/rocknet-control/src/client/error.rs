//! Reason why a server could not be queried.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::api::ApiError;

/// Reason why a server could not be queried.
#[derive(Debug)]
pub enum ClientError {
    /// Nothing listens at the socket or TCP address. Contains the path of the socket, or the TCP address as text.
    NotRunning(PathBuf),
    /// The user has no access to the control socket at this path.
    NoAccess(PathBuf),
    /// The TCP address is not on this machine, so the token would be sent over a network in the clear.
    NotLocal(SocketAddr),
    /// Another account of this machine listens at the TCP address, and would get the token. `None`: the account is not
    /// known.
    Foreign(SocketAddr, Option<u32>),
    /// The connection has failed.
    Io(io::Error),
    /// The reply is not what a server sends.
    Invalid(String),
    /// The server has rejected the request, or has failed to carry it out.
    Api(ApiError),
}

impl ClientError {
    /// Returns true if the server did not reply in time, or has not accepted the connection in time.
    pub fn is_timeout(&self) -> bool {
        matches!(self, ClientError::Io(error) if is_late(error))
    }

    /// Returns the error of a connection that could not be opened, or of a request that could not be sent as a whole.
    pub(super) fn of_sending(error: io::Error) -> ClientError {
        ClientError::Io(match is_late(&error) {
            true => io::Error::new(io::ErrorKind::TimedOut, NotSent),
            false => error,
        })
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Timeout before the whole request was sent. The server does not carry out an incomplete request.
#[derive(Debug)]
struct NotSent;

impl fmt::Display for NotSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server did not accept the request in time, so it does not carry it out")
    }
}

impl std::error::Error for NotSent {}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::NotRunning(socket) => {
                write!(f, "no server is running: nothing listens at {}", socket.display())
            }
            ClientError::NoAccess(socket) => write!(
                f,
                "no access to {}: run the command as the user of the server, or as a member of its group",
                socket.display()
            ),
            ClientError::NotLocal(address) => write!(
                f,
                "{address} is not an address of this machine, and the token would be sent unencrypted: forward the port \
                 by `ssh -L`"
            ),
            ClientError::Foreign(address, Some(account)) => write!(
                f,
                "the account {account} listens at {address}, so the token was not sent: start the tunnel again, or use \
                 another port"
            ),
            ClientError::Foreign(address, None) => write!(
                f,
                "the account that listens at {address} is not known, so the token was not sent: forward the port by \
                 `ssh -L` on this machine"
            ),
            ClientError::Io(error) if error.get_ref().is_some_and(|inner| inner.is::<NotSent>()) => error.fmt(f),
            error if error.is_timeout() => {
                f.write_str("the server did not reply in time; it may still carry out the request")
            }
            ClientError::Io(error) => write!(f, "the connection to the server has failed: {error}"),
            ClientError::Invalid(what) => write!(f, "the reply of the server is not valid: {what}"),
            ClientError::Api(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ClientError {}
