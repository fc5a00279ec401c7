//! Addresses and networks as text.

use std::net::{IpAddr, Ipv6Addr};

use rocknet_config::client_ranges::client_network;
use rocknet_config::model::Network;

/// Length of the IPv6 prefix that counts as one client.
const CLIENT_PREFIX: u8 = 64;

/// Parses an address or a network. Bits after the prefix are cleared.
///
/// # Errors
///
/// Fails if the text is not an address or network, or if the network contains every address or every IPv4 address. The
/// message quotes the text.
pub fn parse(text: &str) -> Result<Network, String> {
    let shown = || rocknet_control::text::sanitized(text, 64);
    let invalid = || {
        format!(
            "\"{}\" is not an address or network such as 192.0.2.7 or 192.0.2.0/24",
            shown()
        )
    };
    let (ip, length) = match text.split_once('/') {
        Some((ip, length)) if length.bytes().all(|byte| byte.is_ascii_digit()) => (ip, Some(length)),
        Some(_) => return Err(invalid()),
        None => (text, None),
    };
    let ip: IpAddr = ip.parse().map_err(|_| invalid())?;
    let bits: u8 = if ip.is_ipv4() { 32 } else { 128 };
    let length = length.map_or(Ok(bits), str::parse::<u8>).map_err(|_| invalid())?;
    if length > bits {
        return Err(invalid());
    }
    let too_large = |all: &str| format!("\"{}\" contains every {all}", shown());
    if length == 0 {
        return Err(too_large("address"));
    }
    // An IPv4-mapped address is compared as the IPv4 address. With a prefix of at most 96 bits, its network contains
    // every IPv4 address, so it is refused.
    let (ip, length) = match (ip.to_canonical(), length.checked_sub(96)) {
        (mapped @ IpAddr::V4(_), Some(length)) if bits == 128 && length > 0 => (mapped, length),
        (IpAddr::V4(_), _) if bits == 128 => return Err(too_large("IPv4 address")),
        (ip, _) => (ip, length),
    };
    let ip = match ip {
        IpAddr::V4(ip) => IpAddr::V4((ip.to_bits() & u32::MAX << (32 - u32::from(length))).into()),
        IpAddr::V6(ip) => IpAddr::V6((ip.to_bits() & u128::MAX << (128 - u32::from(length))).into()),
    };
    Ok(Network::Ip { ip, length })
}

/// Returns the key of the only client in a network; `None` if the network contains several clients.
pub fn client_of(network: Network) -> Option<u128> {
    match network {
        Network::Ip {
            ip: IpAddr::V4(ip),
            length: 32,
        } => Some(client_network(IpAddr::V4(ip))),
        Network::Ip {
            ip: IpAddr::V6(ip),
            length: CLIENT_PREFIX..,
        } => Some(client_network(IpAddr::V6(ip))),
        _ => None,
    }
}

/// Returns the first address of a network.
pub fn first_address(network: Network) -> IpAddr {
    match network {
        Network::Ip { ip, .. } => ip,
        // Unix sockets have no address. Bans never have this value, because `parse` does not return it.
        Network::Unix => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

/// Returns a network as text.
pub fn text(network: Network) -> String {
    match network {
        Network::Ip { ip, length } => format!("{ip}/{length}"),
        Network::Unix => "unix".to_owned(),
    }
}

/// Returns a client as text: an IPv4 address, or the IPv6 network that counts as one client.
pub fn client_text(client: u128) -> String {
    match IpAddr::V6(Ipv6Addr::from_bits(client)).to_canonical() {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("{ip}/{CLIENT_PREFIX}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_networks_are_parsed() {
        for (written, expected, client) in [
            ("192.0.2.7", "192.0.2.7/32", Some("192.0.2.7")),
            ("192.0.2.7/24", "192.0.2.0/24", None),
            ("::ffff:192.0.2.7", "192.0.2.7/32", Some("192.0.2.7")),
            ("::ffff:192.0.2.0/120", "192.0.2.0/24", None),
            ("2001:db8::1", "2001:db8::1/128", Some("2001:db8::/64")),
            ("2001:db8::/64", "2001:db8::/64", Some("2001:db8::/64")),
            ("2001:db8::/32", "2001:db8::/32", None),
        ] {
            let network = parse(written).unwrap();
            assert_eq!(text(network), expected, "{written}");
            assert_eq!(client_of(network).map(client_text).as_deref(), client, "{written}");
        }
        for written in ["", "a", "192.0.2.7/33", "192.0.2.7/", "192.0.2.7/+8", "::1/129", "unix"] {
            let error = parse(written).expect_err(written);
            assert!(error.contains("is not an address or network"), "{error}");
        }
        for (written, all) in [
            ("0.0.0.0/0", "every address"),
            ("::/0", "every address"),
            ("::ffff:0:0/96", "every IPv4 address"),
        ] {
            let error = parse(written).expect_err(written);
            assert_eq!(error, format!("\"{written}\" contains {all}"));
        }
    }
}
