//! Names no owner on systems whose socket tables cannot be read as files.

use std::net::IpAddr;
use std::path::Path;

use super::PortOwner;

/// Returns `None`, because the owner cannot be found.
pub(super) fn of_port(_ip: Option<IpAddr>, _port: u16) -> Option<PortOwner> {
    None
}

/// Returns `None`, because the owner cannot be found.
pub(super) fn of_udp_port(_ip: Option<IpAddr>, _port: u16) -> Option<PortOwner> {
    None
}

/// Returns `None`, because the owner cannot be found.
pub(super) fn of_socket_file(_path: &Path) -> Option<PortOwner> {
    None
}
