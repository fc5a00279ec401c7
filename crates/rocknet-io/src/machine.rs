//! IP addresses at which other machines reach this one.

use std::net::IpAddr;

#[cfg(target_os = "linux")]
#[path = "machine/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "machine/portable.rs"]
mod system;

/// Returns the addresses of this machine's interfaces, IPv4 first, without loopback and link-local addresses. The list
/// is empty on systems other than Linux.
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

#[cfg(test)]
mod tests {
    #[test]
    fn loopback_addresses_are_left_out() {
        let all = super::addresses();
        assert!(all.iter().all(|address| !address.is_loopback()), "{all:?}");
    }
}
