//! Determines the client of a request: the peer, or the address that trusted proxies report (`X-Forwarded-For`,
//! `Forwarded`).
//!
//! Each proxy appends the address from which it received the request. The list is therefore read from its end, for as
//! long as the addresses belong to trusted proxies. The first other address is the client's. All addresses before it
//! were written by that client, and are ignored.

use std::borrow::Cow;

use rocknet_config::model::{Server, TrustedField};
use rocknet_proto::fields::{Fields, KnownField};
use rocknet_proto::semantics::forwarded::{self, Element};

use crate::client::Client;

/// Properties of a request, as trusted proxies report them.
pub struct ForwardedInfo<'a> {
    /// The first address, counted from the end of the list, that is not a trusted proxy. Reading also ends at an
    /// element without a valid address and at the start of the list. The client is then the address that was read last,
    /// or the peer if none was read.
    pub client: Client,
    /// Scheme that the client used, if it is reported.
    pub proto: Option<Cow<'a, [u8]>>,
    /// Host that the client requested, if it is reported.
    pub host: Option<Cow<'a, [u8]>>,
}

/// Returns the client of a request. `peer` is the other end of its connection.
pub fn client(server: &Server, peer: Client, fields: Fields<'_>) -> Client {
    match is_trusted(server, peer) {
        false => peer,
        true => resolve(server, peer, fields).client,
    }
}

/// Returns true if `peer` is a trusted proxy, whose fields about the client are used.
pub fn is_trusted(server: &Server, peer: Client) -> bool {
    peer.is_in(&server.trusted_proxies)
}

/// Evaluates the fields of a request from a trusted `peer`. Check with [`is_trusted`] first.
pub fn resolve<'a>(server: &Server, peer: Client, fields: Fields<'a>) -> ForwardedInfo<'a> {
    let mut info = ForwardedInfo {
        client: peer,
        proto: None,
        host: None,
    };
    match server.trusted_field {
        TrustedField::XForwardedFor => {
            let lines: Vec<&[u8]> = fields.get_all(KnownField::XForwardedFor).collect();
            let items = lines.iter().rev().flat_map(|line| line.rsplit(|&byte| byte == b','));
            for item in items.filter(|item| !item.trim_ascii().is_empty()) {
                if !info.step_back(server, item) {
                    break;
                }
            }
            info.proto = value(fields, KnownField::XForwardedProto);
            info.host = value(fields, KnownField::XForwardedHost);
        }
        TrustedField::Forwarded => {
            let lines: Vec<&[u8]> = fields.get_all(KnownField::Forwarded).collect();
            'lines: for line in lines.iter().rev() {
                let Some(elements) = forwarded::parse_elements(line) else {
                    break;
                };
                for element in elements.into_iter().rev() {
                    let Element { for_node, host, proto } = element;
                    // A trusted proxy wrote this element, although it may hide the address (RFC 7239 §6.3).
                    (info.proto, info.host) = (proto, host);
                    if !info.step_back(server, for_node.as_deref().unwrap_or_default()) {
                        break 'lines;
                    }
                }
            }
        }
    }
    info
}

impl ForwardedInfo<'_> {
    /// Sets the client to `step`, the next address towards the client. Returns false if the addresses before it must
    /// not be used, because `step` is not a trusted proxy or cannot be parsed.
    fn step_back(&mut self, server: &Server, step: &[u8]) -> bool {
        let Some(node) = forwarded::parse_node(step) else {
            return false;
        };
        self.client = Client::Ip {
            address: node.address,
            port: node.port.unwrap_or(0),
        };
        is_trusted(server, self.client)
    }
}

/// Returns the last element of the last line of a field, which the nearest proxy has written; `None` if it is empty.
/// The client may have written the lines and elements before it.
fn value<'a>(fields: Fields<'a>, name: KnownField) -> Option<Cow<'a, [u8]>> {
    let line = fields.get_all(name).last()?;
    let element = line.rsplit(|&byte| byte == b',').next().unwrap_or_default();
    let element = element.trim_ascii();
    (!element.is_empty()).then_some(Cow::Borrowed(element))
}

#[cfg(test)]
mod tests {
    use rocknet_config::model::Network;
    use rocknet_proto::request::{OwnedRequest, Version};

    use super::*;

    fn server(field: TrustedField) -> Server {
        let network = |ip: [u8; 4], length| Network::Ip { ip: ip.into(), length };
        Server {
            trusted_proxies: vec![network([10, 0, 0, 0], 8), Network::Unix],
            trusted_field: field,
            ..Server::default()
        }
    }

    fn client_by(peer: &str, field: TrustedField, lines: &[&str]) -> String {
        let peer = match peer {
            "unix" => Client::Local,
            address => Client::Ip {
                address: address.parse().expect("an address"),
                port: 7,
            },
        };
        let fields: Vec<(KnownField, &[u8])> = lines
            .iter()
            .filter_map(|line| line.split_once(": "))
            .filter_map(|(name, value)| Some((KnownField::from_name(name.as_bytes())?, value.as_bytes())))
            .collect();
        let request = OwnedRequest::synthetic_get(Version::Http11, b"h", b"/", &fields);
        client(&server(field), peer, request.view().fields).to_string()
    }

    #[test]
    fn lists_are_read_from_the_end_while_proxies_are_trusted() {
        // Peer, fields of the request, and the client that is found. The trusted field is `X-Forwarded-For`; trusted
        // proxies are those in 10.0.0.0/8 and at Unix sockets.
        for (peer, lines, expected) in [
            ("10.0.0.1", &[][..], "10.0.0.1"),
            ("10.0.0.1", &["X-Forwarded-For: 192.0.2.1"], "192.0.2.1"),
            ("192.0.2.9", &["X-Forwarded-For: 192.0.2.1"], "192.0.2.9"),
            ("unix", &["X-Forwarded-For: 192.0.2.1"], "192.0.2.1"),
            (
                "10.0.0.1",
                &["X-Forwarded-For: 1.1.1.1, 192.0.2.1, 10.0.0.3"],
                "192.0.2.1",
            ),
            (
                "10.0.0.1",
                &["X-Forwarded-For: 1.1.1.1", "X-Forwarded-For: 192.0.2.1,10.0.0.3"],
                "192.0.2.1",
            ),
            (
                "10.0.0.1",
                &["X-Forwarded-For: 192.0.2.1", "X-Forwarded-For: , ,"],
                "192.0.2.1",
            ),
            ("10.0.0.1", &["X-Forwarded-For: 10.0.0.9, 10.0.0.8"], "10.0.0.9"),
            (
                "10.0.0.1",
                &["X-Forwarded-For: 192.0.2.1, nonsense, 10.0.0.8"],
                "10.0.0.8",
            ),
            ("10.0.0.1", &["X-Forwarded-For: 2001:db8::1"], "2001:db8::1"),
            ("10.0.0.1", &["X-Forwarded-For: [2001:db8::1]:80"], "2001:db8::1"),
            // The other field is ignored.
            ("10.0.0.1", &["Forwarded: for=192.0.2.1"], "10.0.0.1"),
        ] {
            assert_eq!(
                client_by(peer, TrustedField::XForwardedFor, lines),
                expected,
                "{peer} {lines:?}"
            );
        }
        // The same, with `Forwarded` as the trusted field.
        for (peer, lines, expected) in [
            ("10.0.0.1", &["Forwarded: for=192.0.2.1"][..], "192.0.2.1"),
            ("192.0.2.9", &["Forwarded: for=192.0.2.1"], "192.0.2.9"),
            (
                "10.0.0.1",
                &[
                    "Forwarded: for=1.1.1.1, for=\"[2001:db8::1]:99\"",
                    "Forwarded: for=10.2.2.2",
                ],
                "2001:db8::1",
            ),
            ("10.0.0.1", &["Forwarded: for=192.0.2.1, for=_hidden"], "10.0.0.1"),
            (
                "10.0.0.1",
                &["Forwarded: for=192.0.2.1, for=unknown, for=10.0.0.8"],
                "10.0.0.8",
            ),
            (
                "10.0.0.1",
                &["Forwarded: for=\"evil", "Forwarded: for=192.0.2.1"],
                "192.0.2.1",
            ),
            (
                "10.0.0.1",
                &["Forwarded: for=192.0.2.1", "Forwarded: for=\"evil, for=10.0.0.2"],
                "10.0.0.1",
            ),
            ("10.0.0.1", &["X-Forwarded-For: 192.0.2.1"], "10.0.0.1"),
        ] {
            assert_eq!(
                client_by(peer, TrustedField::Forwarded, lines),
                expected,
                "{peer} {lines:?}"
            );
        }
    }

    #[test]
    fn the_nearest_proxy_has_written_the_last_element() {
        // Lines of `X-Forwarded-Proto`, and the scheme that is reported.
        for (lines, expected) in [
            (&["https"][..], Some("https")),
            (&["http", "https"], Some("https")),
            (&["http, https"], Some("https")),
            (&["https", "a,b , http "], Some("http")),
            // An empty line or element of the proxy does not make one of the client count.
            (&["https", ""], None),
            (&["https,"], None),
            (&[], None),
        ] {
            let fields = lines.iter().flat_map(|line| {
                let line = line.as_bytes();
                [(KnownField::XForwardedProto, line), (KnownField::XForwardedHost, line)]
            });
            let fields: Vec<_> = fields.collect();
            let request = OwnedRequest::synthetic_get(Version::Http11, b"h", b"/", &fields);
            let server = server(TrustedField::XForwardedFor);
            let info = resolve(&server, Client::Local, request.view().fields);
            for value in [info.proto, info.host] {
                assert_eq!(value.as_deref(), expected.map(str::as_bytes), "{lines:?}");
            }
        }
    }
}
