//! Matching of client addresses with `allow` and `deny`.

use std::fmt;
use std::net::IpAddr;

use rocknet_config::client_ranges::ClientRanges;
use rocknet_config::model;

/// Client of a request: the peer, or the client that a trusted proxy names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Client {
    /// A client with an IP address.
    Ip(IpAddr),
    /// A client on a Unix socket, which has no address.
    Unix,
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Client::Ip(ip) => ip.fmt(f),
            Client::Unix => f.write_str("on a Unix socket"),
        }
    }
}

/// The `allow` and `deny` lists of a route.
#[derive(Debug, Clone, Default)]
pub struct Addresses {
    /// `None` if all addresses are allowed.
    allow: Option<ClientRanges>,
    deny: ClientRanges,
}

impl Addresses {
    /// Prepares the lists for lookups.
    pub fn new(access: &model::Access) -> Addresses {
        let allow = &access.allow;
        Addresses {
            allow: (!allow.is_empty()).then(|| ClientRanges::new(allow)),
            deny: ClientRanges::new(&access.deny),
        }
    }

    /// Returns true if the client is allowed: it is not in `deny`, and it is in `allow` or there is no `allow`.
    pub fn admit(&self, client: Client) -> bool {
        let ip = client.ip();
        !self.deny.contain(ip) && self.allow.as_ref().is_none_or(|allow| allow.contain(ip))
    }
}

impl Client {
    /// Returns the IP address; `None` for a client on a Unix socket.
    fn ip(self) -> Option<IpAddr> {
        match self {
            Client::Ip(ip) => Some(ip),
            Client::Unix => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use rocknet_config::model::{ClientRange, Network};

    use super::*;

    fn range(text: &str) -> ClientRange {
        match text {
            "all" => ClientRange::All,
            "private" => ClientRange::Private,
            "unix" => ClientRange::Network(Network::Unix),
            text => {
                let (ip, length) = text.split_once('/').unwrap();
                let (ip, length) = (ip.parse().unwrap(), length.parse().unwrap());
                ClientRange::Network(Network::Ip { ip, length })
            }
        }
    }

    fn addresses(allow: &str, deny: &str) -> Addresses {
        let list = |text: &str| text.split_whitespace().map(range).collect();
        Addresses::new(&model::Access {
            allow: list(allow),
            deny: list(deny),
        })
    }

    fn client(text: &str) -> Client {
        match text {
            "unix" => Client::Unix,
            text => Client::Ip(text.parse().unwrap()),
        }
    }

    #[test]
    fn deny_comes_before_allow() {
        // (allow, deny, allowed addresses, denied addresses)
        let rows = [
            ("", "", "192.0.2.1 2001:db8::1 unix", ""),
            (
                "10.0.0.0/8",
                "",
                "10.0.0.0 10.255.255.255 ::ffff:10.1.1.1",
                "11.0.0.0 9.255.255.255 ::1 unix",
            ),
            ("", "10.0.0.0/8", "11.0.0.0 ::1 unix", "10.0.0.1 ::ffff:10.0.0.1"),
            ("10.0.0.0/8", "10.9.0.0/16", "10.8.0.1 10.10.0.1", "10.9.0.1 192.0.2.1"),
            ("", "all", "", "192.0.2.1 ::1 unix"),
            ("unix", "", "unix", "127.0.0.1 ::1"),
            (
                "private",
                "",
                "127.0.0.1 10.1.1.1 172.16.0.1 172.31.255.255 192.168.1.1 169.254.1.1 ::1 fd00::1 fe80::1",
                "172.32.0.0 172.15.255.255 100.64.0.1 192.0.2.1 2001:db8::1 ::2 unix",
            ),
            (
                "2001:db8::/32 192.0.2.7/32",
                "",
                "2001:db8:1::1 192.0.2.7",
                "2001:db9::1 192.0.2.6",
            ),
            ("", "0.0.0.0/0", "::1 unix", "0.0.0.0 255.255.255.255"),
        ];
        for (allow, deny, inside, outside) in rows {
            let addresses = addresses(allow, deny);
            for (list, expected) in [(inside, true), (outside, false)] {
                for text in list.split_whitespace() {
                    assert_eq!(
                        addresses.admit(client(text)),
                        expected,
                        "allow {allow}, deny {deny}: {text}"
                    );
                }
            }
        }
    }
}
