//! Who a request is from, told to an upstream: `X-Forwarded-For`, `-Proto` and `-Host`, and `Forwarded` (RFC 7239).

use std::borrow::Cow;

use rocknet_config::model::{Forwarded, Server, TrustedField};
use rocknet_proto::fields::{Fields, Known};
use rocknet_proto::request::Request;
use rocknet_proto::semantics::forwarded;

use rocknet_handler::address;
use rocknet_handler::exchange::{Client, Exchange};
use rocknet_handler::forwarded::resolve;

/// Values of the four fields; those that are empty are not sent.
#[derive(Default)]
pub struct Origin {
    pub client: Vec<u8>,
    pub proto: Cow<'static, [u8]>,
    host: Host,
    pub forwarded: Vec<u8>,
}

/// The host that was asked for.
#[derive(Default)]
enum Host {
    #[default]
    Untold,
    /// The one that the request names.
    Asked,
    /// What a trusted proxy says.
    Said(Box<[u8]>),
}

impl Origin {
    /// What is told of a request: of one that a trusted proxy has passed on, what that says, with its own address added.
    pub fn new(
        fields: Forwarded,
        view: &Request<'_>,
        exchange: &Exchange,
        server: &Server,
        is_trusted: bool,
    ) -> Origin {
        let peer = exchange.peer;
        let own_proto: &'static [u8] = if exchange.tls.is_some() { b"https" } else { b"http" };
        let said = is_trusted.then(|| resolve(server, peer, view.fields));
        let mut origin = Origin::default();
        if fields.has_x_forwarded() {
            if said.is_some() {
                chain(view.fields, server.trusted_field, &mut origin.client);
            }
            match peer {
                Client::Ip { address, .. } => address::write(address.to_canonical(), &mut origin.client),
                // There is no address, and this machine is where it came from.
                Client::Local => origin.client.extend_from_slice(b"127.0.0.1"),
            }
            let (proto, host) = match &said {
                Some(said) => (said.proto.as_deref(), said.host.as_deref()),
                None => (None, None),
            };
            origin.proto = proto.map_or(Cow::Borrowed(own_proto), |proto| Cow::Owned(proto.to_vec()));
            origin.host = host.map_or(Host::Asked, |host| Host::Said(host.into()));
        }
        if fields.has_standard() {
            if let Some(said) = &said {
                let first = (said.host.as_deref(), said.proto.as_deref());
                steps(view.fields, server.trusted_field, first, &mut origin.forwarded);
            }
            let address = match peer {
                Client::Ip { address, .. } => Some(address),
                Client::Local => Some([127, 0, 0, 1].into()),
            };
            forwarded::write_element(&mut origin.forwarded, address, view.authority, own_proto);
        }
        origin
    }

    /// The value of `X-Forwarded-Host`.
    pub fn host<'a>(&'a self, asked: &Request<'a>) -> &'a [u8] {
        match &self.host {
            Host::Untold => b"",
            Host::Asked => asked.authority,
            Host::Said(host) => host,
        }
    }
}

/// The list of addresses so far, as `X-Forwarded-For` has it.
fn chain(fields: Fields<'_>, field: TrustedField, out: &mut Vec<u8>) {
    let mut add = |value: &[u8]| {
        out.extend_from_slice(value);
        out.extend_from_slice(b", ");
    };
    match field {
        TrustedField::XForwardedFor => {
            let lines = fields.all(Known::XForwardedFor);
            lines.filter(|value| !value.is_empty()).for_each(add);
        }
        TrustedField::Forwarded => {
            for element in fields
                .all(Known::Forwarded)
                .filter_map(forwarded::parse_elements)
                .flatten()
            {
                match element.for_node.as_deref().and_then(forwarded::parse_node) {
                    Some(node) => add(node.address.to_canonical().to_string().as_bytes()),
                    None => add(b"unknown"),
                }
            }
        }
    }
}

/// The same as elements of `Forwarded`. Of its forerunners nobody can say whose word the scheme and the host are; they
/// are about what the client asked for, which is the first step.
fn steps(fields: Fields<'_>, field: TrustedField, first: (Option<&[u8]>, Option<&[u8]>), out: &mut Vec<u8>) {
    match field {
        TrustedField::XForwardedFor => {
            let lines = fields.all(Known::XForwardedFor);
            let items = lines.flat_map(|line| line.split(|&byte| byte == b','));
            let items = items.filter(|item| !item.trim_ascii().is_empty());
            for (number, item) in items.enumerate() {
                let (host, proto) = if number == 0 { first } else { (None, None) };
                let address = forwarded::parse_node(item).map(|node| node.address);
                forwarded::write_element(out, address, host.unwrap_or_default(), proto.unwrap_or_default());
            }
        }
        TrustedField::Forwarded => {
            // What cannot be read as elements might run on into the one that is added.
            let lines = fields.all(Known::Forwarded);
            for line in lines.filter(|line| forwarded::parse_elements(line).is_some_and(|all| !all.is_empty())) {
                if !out.is_empty() {
                    out.extend_from_slice(b", ");
                }
                out.extend_from_slice(line);
            }
        }
    }
}
