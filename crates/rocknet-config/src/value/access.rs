//! Parses lists of client addresses, such as `allow`, `deny` and the condition `client` of rules.

use std::net::IpAddr;

use crate::context::Check;
use crate::file::{Node, Value};
use crate::finding::Code;
use crate::message::short;
use crate::model::{ClientRange, Network};
use crate::value::{network, typed};

/// Maximum number of addresses in one list. A country has about 10,000 networks, and each route has a copy of the list.
pub(crate) const MAX_RANGES: usize = 20_000;

/// Reads the allowed addresses. An empty result, such as that of `"all"`, allows every client.
pub(crate) fn allow(check: &mut Check<'_>, node: &Node) -> Vec<ClientRange> {
    let allow = ranges(check, "allow", node);
    if typed::elements(node).is_empty() && !matches!(node.value, Value::Broken) {
        let help = "write allow = \"all\" to allow every client, or deny = \"all\" to deny every client";
        check.error(Code::BadValue, node.span, "`allow` has no address", help);
    }
    let is_all = allow.contains(&ClientRange::All);
    if is_all { Vec::new() } else { allow }
}

/// Reads the denied addresses.
pub(crate) fn deny(check: &mut Check<'_>, node: &Node) -> Vec<ClientRange> {
    ranges(check, "deny", node)
}

/// Reads a list of client addresses. Invalid elements are reported and left out.
pub(crate) fn ranges(check: &mut Check<'_>, key: &str, node: &Node) -> Vec<ClientRange> {
    if typed::elements(node).len() > MAX_RANGES {
        let message = format!("`{key}` has more than {MAX_RANGES} addresses");
        check.error(
            Code::BadValue,
            node.span,
            message,
            "combine adjacent addresses into networks",
        );
        return Vec::new();
    }
    let mut all = Vec::new();
    for (written, span) in typed::texts(node) {
        match range(&written.value) {
            Ok(range) => all.push(range),
            Err(RangeError::Unknown) => {
                let message = format!("\"{}\" is not an address or network", short(written.as_written()));
                let help = "write \"192.0.2.7\", \"10.0.0.0/8\", \"2001:db8::/32\", \"private\", \"unix\" or \"all\"";
                check.bad_text(written, span, message, help);
            }
            Err(RangeError::HostBits { network, address }) => {
                let message = format!(
                    "\"{}\" is not a network: it has bits set after the prefix length",
                    short(written.as_written())
                );
                let help = format!("write \"{network}\" for the network, or \"{address}\" for the address");
                check.bad_text(written, span, message, help);
            }
            Err(RangeError::Mapped(address)) => {
                let message = format!(
                    "\"{}\" is an IPv4-mapped IPv6 address, which clients never have",
                    short(written.as_written())
                );
                let help = format!("write the IPv4 address: \"{address}\"");
                check.bad_text(written, span, message, help);
            }
        }
    }
    all
}

/// Reason why a text is not a range of client addresses.
#[derive(Debug, PartialEq, Eq)]
enum RangeError {
    /// Neither an address, a network nor a known word.
    Unknown,
    /// Network with bits set after the prefix length. `network`: the same network with these bits cleared. `address`:
    /// the address before the slash, as written.
    HostBits { network: String, address: IpAddr },
    /// IPv4-mapped IPv6 address, with its IPv4 address.
    Mapped(IpAddr),
}

/// Parses one element of an access list.
fn range(text: &str) -> Result<ClientRange, RangeError> {
    match text {
        "all" => return Ok(ClientRange::All),
        "private" => return Ok(ClientRange::Private),
        _ => {}
    }
    let network = network::network(text).ok_or(RangeError::Unknown)?;
    if let Network::Ip { ip, length } = network {
        if ip.to_canonical() != ip {
            return Err(RangeError::Mapped(ip.to_canonical()));
        }
        let first = first_address(ip, length);
        if first != ip {
            let network = format!("{first}/{length}");
            return Err(RangeError::HostBits { network, address: ip });
        }
    }
    Ok(ClientRange::Network(network))
}

/// Returns the address with every bit after the first `length` cleared.
fn first_address(ip: IpAddr, length: u8) -> IpAddr {
    let length = u32::from(length);
    // For a length of 0, the shift is as wide as the type, which `checked_shl` refuses. No bit is kept then.
    match ip {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - length.min(32)).unwrap_or(0);
            IpAddr::V4((ip.to_bits() & mask).into())
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - length.min(128)).unwrap_or(0);
            IpAddr::V6((ip.to_bits() & mask).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_parsed() {
        let network = |ip: &str, length| {
            let ip = ip.parse().unwrap();
            Ok(ClientRange::Network(Network::Ip { ip, length }))
        };
        let host_bits = |network: &str, address: &str| {
            let (network, address) = (network.to_owned(), address.parse().unwrap());
            Err(RangeError::HostBits { network, address })
        };
        for (text, expected) in [
            ("all", Ok(ClientRange::All)),
            ("private", Ok(ClientRange::Private)),
            ("unix", Ok(ClientRange::Network(Network::Unix))),
            ("10.0.0.0/8", network("10.0.0.0", 8)),
            ("0.0.0.0/0", network("0.0.0.0", 0)),
            ("::/0", network("::", 0)),
            ("192.0.2.7", network("192.0.2.7", 32)),
            ("2001:db8::/32", network("2001:db8::", 32)),
            ("10.0.0.1/8", host_bits("10.0.0.0/8", "10.0.0.1")),
            ("2001:db8::1/64", host_bits("2001:db8::/64", "2001:db8::1")),
            ("::1/0", host_bits("::/0", "::1")),
            ("::ffff:10.0.0.1", Err(RangeError::Mapped([10, 0, 0, 1].into()))),
            ("Private", Err(RangeError::Unknown)),
            ("localhost", Err(RangeError::Unknown)),
            ("10.0.0.0/33", Err(RangeError::Unknown)),
            ("", Err(RangeError::Unknown)),
        ] {
            assert_eq!(range(text), expected, "{text}");
        }
    }
}
