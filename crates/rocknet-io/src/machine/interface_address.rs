//! IP addresses with their interfaces.

use std::net::IpAddr;

/// An address with its interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InterfaceAddress {
    pub address: IpAddr,
    /// Name of the interface; empty if it is not known.
    pub interface: String,
    /// True if the default route leads over the interface.
    pub is_default: bool,
}
