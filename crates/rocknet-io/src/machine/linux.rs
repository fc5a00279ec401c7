//! Reads the addresses of the interfaces from the kernel's tables `/proc/net/fib_trie` and `/proc/net/if_inet6`.

use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Maximum number of bytes read from a table. A router's table can be larger; its addresses after this limit are not
/// found.
const MAX_TABLE_BYTES: u64 = 1024 * 1024;

/// Returns the addresses in both tables, including loopback addresses. An address may occur twice.
pub(super) fn addresses() -> Vec<IpAddr> {
    let mut all = v4(&read("/proc/net/fib_trie"));
    all.extend(v6(&read("/proc/net/if_inet6")));
    all
}

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

/// Parses `if_inet6`: each line begins with the address in 32 hexadecimal digits.
fn v6(table: &str) -> Vec<IpAddr> {
    let digits = table.lines().filter_map(|line| line.split_ascii_whitespace().next());
    let bits = digits
        .filter(|digits| digits.len() == 32)
        .map(|digits| u128::from_str_radix(digits, 16));
    bits.flatten()
        .map(|bits| IpAddr::V6(Ipv6Addr::from_bits(bits)))
        .collect()
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
        let expected: Vec<IpAddr> = ["::1", "2001:db8::5"].map(|text| text.parse().unwrap()).into();
        assert_eq!(v6(table), expected);
        assert_eq!((v4(""), v6("")), (vec![], vec![]));
    }
}
