//! Reads the addresses of this machine from the kernel's tables: IPv4 addresses from `/proc/net/fib_trie`, their
//! interfaces from the routes in `/proc/net/route`, and IPv6 addresses with their interfaces from `/proc/net/if_inet6`.
//! The default interface of IPv6 is that of a default route in `/proc/net/ipv6_route`.

use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::interface_address::InterfaceAddress;

/// Maximum number of bytes read from a table. A router's table can be larger; its addresses after this limit are not
/// found.
const MAX_TABLE_BYTES: u64 = 1024 * 1024;

/// Returns the addresses in both address tables, including loopback addresses. An address may occur twice.
pub(super) fn addresses() -> Vec<IpAddr> {
    let mut all = v4(&read("/proc/net/fib_trie"));
    all.extend(v6(&read("/proc/net/if_inet6")).into_iter().map(|(address, _)| address));
    all
}

/// Returns the addresses in both address tables with their interfaces.
pub(super) fn interface_addresses() -> Vec<InterfaceAddress> {
    let routes = v4_routes(&read("/proc/net/route"));
    let default = default_interface(routes.iter().filter(|route| route.mask == 0));
    let mut all: Vec<InterfaceAddress> = v4(&read("/proc/net/fib_trie"))
        .into_iter()
        .map(|address| {
            let interface = v4_interface(&routes, address).unwrap_or_default();
            InterfaceAddress {
                is_default: default == Some(interface) && !interface.is_empty(),
                interface: interface.to_owned(),
                address,
            }
        })
        .collect();
    let v6_routes = v6_default_routes(&read("/proc/net/ipv6_route"));
    let default = default_interface(v6_routes.iter());
    all.extend(
        v6(&read("/proc/net/if_inet6"))
            .into_iter()
            .map(|(address, interface)| InterfaceAddress {
                is_default: default == Some(&*interface),
                interface,
                address,
            }),
    );
    all
}

/// A route of the kernel.
#[derive(Debug, PartialEq, Eq)]
struct Route {
    interface: String,
    destination: u32,
    mask: u32,
    metric: u32,
    /// True if the destination is reached by a gateway.
    has_gateway: bool,
}

/// Parses `route`, without the routes that refuse packets. Addresses are hexadecimal numbers whose bytes in memory are
/// those of the address.
fn v4_routes(table: &str) -> Vec<Route> {
    let parse = |line: &str| {
        // The columns: interface, destination, gateway, flags, references, uses, metric, mask.
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let number = |at: usize| u32::from_str_radix(fields.get(at)?, 16).ok();
        let flags = number(3)?;
        Some(Route {
            interface: (*fields.first()?).to_owned(),
            destination: u32::from_be_bytes(number(1)?.to_ne_bytes()),
            mask: u32::from_be_bytes(number(7)?.to_ne_bytes()),
            metric: fields.get(6)?.parse().ok()?,
            has_gateway: flags & RTF_GATEWAY != 0,
        })
        .filter(|_| flags & RTF_REJECT == 0)
    };
    table.lines().skip(1).filter_map(parse).collect()
}

/// Parses the default routes in `ipv6_route`, without those that refuse packets or lead to loopback.
fn v6_default_routes(table: &str) -> Vec<Route> {
    let parse = |line: &str| {
        // The columns: destination and source, each with the length of its prefix; next hop, metric, references, uses,
        // flags, interface.
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_default = fields.first()?.bytes().all(|digit| digit == b'0') && *fields.get(1)? == "00";
        let flags = u32::from_str_radix(fields.get(8)?, 16).ok()?;
        let route = Route {
            interface: (*fields.get(9)?).to_owned(),
            destination: 0,
            mask: 0,
            metric: u32::from_str_radix(fields.get(5)?, 16).ok()?,
            has_gateway: flags & RTF_GATEWAY != 0,
        };
        (is_default && flags & RTF_REJECT == 0 && route.interface != "lo").then_some(route)
    };
    table.lines().filter_map(parse).collect()
}

/// Returns the interface of the route with the lowest metric.
fn default_interface<'r>(routes: impl Iterator<Item = &'r Route>) -> Option<&'r str> {
    let route = routes.min_by_key(|route| route.metric)?;
    Some(&route.interface)
}

/// Returns the interface of the network that an address belongs to, by the narrowest route without a gateway.
fn v4_interface(routes: &[Route], address: IpAddr) -> Option<&str> {
    let IpAddr::V4(address) = address else { return None };
    let bits = address.to_bits();
    let of_network =
        |route: &&Route| !route.has_gateway && route.mask != 0 && bits & route.mask == route.destination & route.mask;
    let route = routes.iter().filter(of_network).max_by_key(|route| route.mask)?;
    Some(&route.interface)
}

/// Flag of a route that leads to a gateway.
const RTF_GATEWAY: u32 = 0x2;
/// Flag of a route that refuses packets.
const RTF_REJECT: u32 = 0x200;

/// Returns the text of a table; an empty string if it cannot be read.
fn read(table: &str) -> String {
    let mut text = String::new();
    if let Ok(file) = File::open(table) {
        let _ = file.take(MAX_TABLE_BYTES).read_to_string(&mut text);
    }
    text
}

/// Parses `fib_trie`: a leaf `|-- 192.168.1.5` is followed by `/32 host LOCAL` if the address is the machine's own.
fn v4(table: &str) -> Vec<IpAddr> {
    let mut leaf: Option<Ipv4Addr> = None;
    let mut found = Vec::new();
    for line in table.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            leaf = address.parse().ok();
        } else if line.starts_with("/32 host LOCAL") {
            found.extend(leaf.map(IpAddr::V4));
        }
    }
    found
}

/// Parses `if_inet6`: each line begins with the address in 32 hexadecimal digits and ends with the interface.
fn v6(table: &str) -> Vec<(IpAddr, String)> {
    let parse = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let digits = fields.next().filter(|digits| digits.len() == 32)?;
        let bits = u128::from_str_radix(digits, 16).ok()?;
        let interface = fields.next_back().unwrap_or_default().to_owned();
        Some((IpAddr::V6(Ipv6Addr::from_bits(bits)), interface))
    };
    table.lines().filter_map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_kernel_tables() {
        let table = "Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 127.0.0.0/8 2 0 2
           |-- 127.0.0.1
              /32 host LOCAL
     |-- 192.168.1.0
        /24 link UNICAST
     |-- 192.168.1.5
        /32 host LOCAL
     |-- 192.168.1.255
        /32 link BROADCAST
";
        let expected: Vec<IpAddr> = ["127.0.0.1", "192.168.1.5"].map(|text| text.parse().unwrap()).into();
        assert_eq!(v4(table), expected);
        let table = "00000000000000000000000000000001 01 80 10 80       lo
20010db8000000000000000000000005 02 40 00 80     eth0
short 02 40
";
        let expected: Vec<(IpAddr, String)> = [("::1", "lo"), ("2001:db8::5", "eth0")]
            .map(|(text, interface)| (text.parse().unwrap(), interface.to_owned()))
            .into();
        assert_eq!(v6(table), expected);
        assert_eq!((v4(""), v6("")), (vec![], vec![]));
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn routes_lead_to_the_interfaces() {
        let table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                     eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
                     wlan0\t00000000\t0102A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n\
                     docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n\
                     eth0\t0001A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n\
                     broken\n";
        let routes = v4_routes(table);
        assert_eq!(routes.len(), 4);
        let default = default_interface(routes.iter().filter(|route| route.mask == 0));
        assert_eq!(default, Some("eth0"));
        for (address, expected) in [
            ("192.168.1.5", Some("eth0")),
            ("172.17.0.1", Some("docker0")),
            ("10.0.0.1", None),
        ] {
            assert_eq!(v4_interface(&routes, address.parse().unwrap()), expected, "{address}");
        }
        let zero = "0".repeat(32);
        let line = |plen: &str, flags: &str, interface: &str| {
            format!("{zero} {plen} {zero} 00 {zero} 00000400 00000001 00000000 {flags} {interface}\n")
        };
        let table = line("00", "00000003", "eth0") + &line("00", "00200200", "lo") + &line("40", "00000001", "eth1");
        let routes = v6_default_routes(&table);
        assert_eq!(default_interface(routes.iter()), Some("eth0"));
        assert_eq!(routes.len(), 1);
    }
}
