//! Replacement for systems whose service managers do not use the protocol of systemd.

use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::net::SocketAddr;

/// Does nothing, because the service managers of these systems do not set the variables.
pub(super) fn remove_variables(_: &[&str]) {}

/// Returns `None`, because the service managers of these systems do not announce passed descriptors by variables.
pub(super) fn open_socket(_: RawFd) -> Option<OwnedFd> {
    None
}

/// Returns `None`, because abstract sockets exist on Linux only.
pub(super) fn abstract_address(_: &[u8]) -> Option<SocketAddr> {
    None
}
