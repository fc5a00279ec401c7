//! IP addresses at which other machines reach this one.

use std::net::IpAddr;

mod interface_address;
#[cfg(target_os = "linux")]
#[path = "machine/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "machine/portable.rs"]
mod system;

use interface_address::InterfaceAddress;

/// Returns the addresses of this machine's interfaces, IPv4 first, without loopback and link-local addresses. The list
/// is empty on systems other than Linux.
pub fn addresses() -> Vec<IpAddr> {
    let mut all = system::addresses();
    all.retain(is_reachable);
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns the addresses at which machines of the same network, such as phones, reach this one. Those of the interface
/// with the default route come first, each group with IPv4 first. Addresses of containers, virtual machines and tunnels
/// are left out, unless there are no others. The list is empty on systems other than Linux.
pub fn lan_addresses() -> Vec<IpAddr> {
    lan(system::interface_addresses())
}

/// Returns the addresses in the order of [`lan_addresses`].
fn lan(mut all: Vec<InterfaceAddress>) -> Vec<IpAddr> {
    all.retain(|found| is_reachable(&found.address));
    let is_virtual = |found: &InterfaceAddress| {
        let starts_with = |names: &[&str]| names.iter().any(|name| found.interface.starts_with(name));
        // A bridge with the default route counts as the network of the machine. A tunnel never does, because it leads
        // elsewhere.
        starts_with(&TUNNELS) || !found.is_default && starts_with(&VIRTUAL)
    };
    if !all.iter().all(is_virtual) {
        all.retain(|found| !is_virtual(found));
    }
    all.sort_by_key(|found| (!found.is_default, found.address));
    let mut addresses: Vec<IpAddr> = Vec::new();
    for found in all {
        if !addresses.contains(&found.address) {
            addresses.push(found.address);
        }
    }
    addresses
}

/// Prefixes of the names of tunnel interfaces.
const TUNNELS: [&str; 7] = ["tun", "tap", "wg", "utun", "tailscale", "zt", "ppp"];

/// Prefixes of the names of interfaces that belong to containers and virtual machines.
const VIRTUAL: [&str; 17] = [
    "docker", "br-", "veth", "virbr", "vnet", "lxcbr", "lxdbr", "incusbr", "podman", "cni", "flannel", "cali", "kube",
    "vmnet", "vboxnet", "dummy", "ifb",
];

fn is_reachable(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !address.is_loopback() && !address.is_link_local(),
        IpAddr::V6(address) => !address.is_loopback() && !address.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_addresses_are_left_out() {
        let all = super::addresses();
        assert!(all.iter().all(|address| !address.is_loopback()), "{all:?}");
        let lan = lan_addresses();
        assert!(lan.iter().all(|address| all.contains(address)), "{lan:?} {all:?}");
        assert_eq!(lan.is_empty(), all.is_empty());
    }

    #[test]
    fn the_interface_with_the_default_route_comes_first_and_bridges_of_containers_are_left_out() {
        let of = |interfaces: &[(&str, &str, bool)]| {
            let all = interfaces
                .iter()
                .map(|(interface, address, is_default)| InterfaceAddress {
                    address: address.parse().unwrap(),
                    interface: (*interface).to_owned(),
                    is_default: *is_default,
                });
            let addresses: Vec<String> = lan(all.collect()).iter().map(ToString::to_string).collect();
            addresses.join(" ")
        };
        let docker = ("docker0", "172.17.0.1", false);
        let wlan = ("wlan0", "192.168.1.5", true);
        for (interfaces, expected) in [
            (&[docker, wlan][..], "192.168.1.5"),
            (
                &[
                    docker,
                    ("eth1", "10.0.0.9", false),
                    wlan,
                    ("wlan0", "2001:db8::5", true),
                ],
                "192.168.1.5 2001:db8::5 10.0.0.9",
            ),
            (
                &[("tun0", "10.8.0.2", true), ("wlan0", "192.168.1.5", false)],
                "192.168.1.5",
            ),
            // A bridge with the default route is the network of the machine.
            (&[("br-lan", "192.168.1.5", true), docker], "192.168.1.5"),
            (&[docker], "172.17.0.1"),
            (&[("lo", "127.0.0.1", false), ("eth0", "fe80::1", true)], ""),
        ] {
            assert_eq!(of(interfaces), expected, "{interfaces:?}");
        }
    }
}
