//! Replacement for systems whose service managers have another protocol.

use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::net::SocketAddr;

/// Does nothing, because the service managers of these systems set no such variables.
pub(super) fn remove_variables(_: &[&str]) {}

/// Returns `None`, because the service manager passes no sockets in this way.
pub(super) fn open_socket(_: RawFd) -> Option<OwnedFd> {
    None
}

/// Returns `None`, because abstract sockets exist on Linux only.
pub(super) fn abstract_address(_: &[u8]) -> Option<SocketAddr> {
    None
}
