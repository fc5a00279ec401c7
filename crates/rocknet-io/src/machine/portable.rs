//! Where the kernel's tables of addresses cannot be read as files, none is listed.

use std::net::IpAddr;

pub(super) fn addresses() -> Vec<IpAddr> {
    Vec::new()
}
