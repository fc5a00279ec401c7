//! Replacement for systems without the tables of the Linux kernel: lists no addresses.

use std::net::IpAddr;

/// Returns no addresses.
pub(super) fn addresses() -> Vec<IpAddr> {
    Vec::new()
}

/// Returns no addresses.
pub(super) fn interface_addresses() -> Vec<super::interface_address::InterfaceAddress> {
    Vec::new()
}
