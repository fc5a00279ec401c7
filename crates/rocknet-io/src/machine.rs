//! Addresses of this machine, for people who want to reach it from another one.

use std::net::IpAddr;

#[cfg(target_os = "linux")]
#[path = "machine/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "machine/portable.rs"]
mod system;

/// The addresses that other machines may reach this one by: those of its interfaces, without loopback and link-local
/// ones. IPv4 comes first. Empty where the system does not list them.
pub fn addresses() -> Vec<IpAddr> {
    let mut all = system::addresses();
    all.retain(|address| match address {
        IpAddr::V4(address) => !address.is_loopback() && !address.is_link_local(),
        IpAddr::V6(address) => !address.is_loopback() && !address.is_unicast_link_local(),
    });
    all.sort_unstable();
    all.dedup();
    all
}
