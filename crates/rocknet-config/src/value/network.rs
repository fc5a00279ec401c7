//! Parses addresses and networks of trusted peers.

use std::net::IpAddr;

use crate::context::Check;
use crate::file::Node;
use crate::message::short;
use crate::model::Network;
use crate::value::typed;

/// Reads a list of networks.
pub(crate) fn build(check: &mut Check<'_>, node: &Node) -> Vec<Network> {
    let mut all = Vec::new();
    for (written, span) in typed::texts(node) {
        match network(&written.value) {
            // IPv4-mapped addresses of peers are compared as IPv4 addresses, so a network in this form would match no
            // peer.
            Some(Network::Ip { ip, length }) if ip.to_canonical() != ip => {
                let message = format!(
                    "\"{}\" is an IPv4-mapped IPv6 address, which peers never have",
                    short(written.as_written())
                );
                // All IPv4-mapped addresses have the same first 96 bits. The bits after them are the IPv4 address.
                let help = match length.checked_sub(96) {
                    Some(length) => format!("write \"{}/{length}\"", ip.to_canonical()),
                    None => "write the network of IPv4 addresses".to_owned(),
                };
                check.bad_text(written, span, message, help);
            }
            Some(network) => all.push(network),
            None => {
                let message = format!("\"{}\" is not an address or network", short(written.as_written()));
                let help = "write \"192.0.2.7\", \"10.0.0.0/8\", \"2001:db8::/32\" or \"unix\"";
                check.bad_text(written, span, message, help);
            }
        }
    }
    all
}

/// Parses `unix`, an address or a network. Bits after the prefix length may be set, because no comparison uses them.
pub(super) fn network(text: &str) -> Option<Network> {
    if text == "unix" {
        return Some(Network::Unix);
    }
    let (ip, length) = match text.split_once('/') {
        Some((ip, length)) => (ip.parse::<IpAddr>().ok()?, Some(length.parse::<u8>().ok()?)),
        None => (text.parse::<IpAddr>().ok()?, None),
    };
    let bits = if ip.is_ipv4() { 32 } else { 128 };
    let length = length.unwrap_or(bits);
    (length <= bits).then_some(Network::Ip { ip, length })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_parsed() {
        for (text, good) in [
            ("10.0.0.0/8", true),
            ("10.0.0.1", true),
            ("::1", true),
            ("2001:db8::/32", true),
            ("unix", true),
            ("10.0.0.0/33", false),
            ("::/129", false),
            ("10.0.0.0/", false),
            ("10.0.0", false),
            ("localhost", false),
        ] {
            assert_eq!(network(text).is_some(), good, "{text}");
        }
    }
}
