//! Header fields that describe the client to an upstream: `X-Forwarded-For`, `X-Forwarded-Proto`, `X-Forwarded-Host`,
//! and `Forwarded` (RFC 7239).

use std::borrow::Cow;

use rocknet_config::model::{Forwarded, Server, TrustedField};
use rocknet_proto::fields::{Fields, KnownField};
use rocknet_proto::request::Request;
use rocknet_proto::semantics::forwarded;

use rocknet_handler::address;
use rocknet_handler::exchange::{Client, Exchange};
use rocknet_handler::forwarded::resolve;

/// Values of the four fields, and the scheme that they report. A field with an empty value is not sent.
#[derive(Default)]
pub struct ForwardedFields {
    /// Value of `X-Forwarded-For`.
    pub client: Vec<u8>,
    /// Value of `X-Forwarded-Proto`.
    pub proto: Cow<'static, [u8]>,
    host: ForwardedHost,
    /// Value of `Forwarded`.
    pub forwarded: Vec<u8>,
    /// True if the client uses `https`, as far as this server and a trusted proxy know.
    pub is_secure: bool,
}

/// Value of `X-Forwarded-Host`.
#[derive(Default)]
enum ForwardedHost {
    /// The field is not sent.
    #[default]
    Omitted,
    /// The authority of the request.
    FromRequest,
    /// The host that a trusted proxy reports.
    FromProxy(Box<[u8]>),
}

impl ForwardedFields {
    /// Builds the fields that `fields` selects. Each list of addresses ends with the address of the peer. If the peer
    /// is a trusted proxy (`is_trusted`), the addresses that it reports come first; otherwise they are discarded.
    pub fn new(
        fields: Forwarded,
        request: &Request<'_>,
        exchange: &Exchange,
        server: &Server,
        is_trusted: bool,
    ) -> ForwardedFields {
        let peer = exchange.peer;
        let own_proto: &'static [u8] = if exchange.tls.is_some() { b"https" } else { b"http" };
        let trusted = is_trusted.then(|| resolve(server, peer, request.fields));
        let reported_proto = trusted.as_ref().and_then(|trusted| trusted.proto.as_deref());
        let mut values = ForwardedFields {
            is_secure: reported_proto.unwrap_or(own_proto).eq_ignore_ascii_case(b"https"),
            ..ForwardedFields::default()
        };
        if fields.has_x_forwarded() {
            if trusted.is_some() {
                append_x_forwarded_for(request.fields, server.trusted_field, &mut values.client);
            }
            match peer {
                Client::Ip { address, .. } => address::write(address.to_canonical(), &mut values.client),
                // A Unix socket has no address, and its peer is on this machine.
                Client::Local => values.client.extend_from_slice(b"127.0.0.1"),
            }
            let (proto, host) = match &trusted {
                Some(trusted) => (trusted.proto.as_deref(), trusted.host.as_deref()),
                None => (None, None),
            };
            values.proto = proto.map_or(Cow::Borrowed(own_proto), |proto| Cow::Owned(proto.to_vec()));
            values.host = host.map_or(ForwardedHost::FromRequest, |host| ForwardedHost::FromProxy(host.into()));
        }
        if fields.has_standard() {
            if let Some(trusted) = &trusted {
                let first = (trusted.host.as_deref(), trusted.proto.as_deref());
                append_forwarded(request.fields, server.trusted_field, first, &mut values.forwarded);
            }
            let address = match peer {
                Client::Ip { address, .. } => Some(address),
                Client::Local => Some([127, 0, 0, 1].into()),
            };
            forwarded::write_element(&mut values.forwarded, address, request.authority, own_proto);
        }
        values
    }

    /// Returns the value of `X-Forwarded-Host`.
    pub fn host<'a>(&'a self, request: &Request<'a>) -> &'a [u8] {
        match &self.host {
            ForwardedHost::Omitted => b"",
            ForwardedHost::FromRequest => request.authority,
            ForwardedHost::FromProxy(host) => host,
        }
    }
}

/// Appends the addresses in the trusted field to `out`, in the syntax of `X-Forwarded-For`, each with a trailing comma.
fn append_x_forwarded_for(fields: Fields<'_>, field: TrustedField, out: &mut Vec<u8>) {
    let mut add = |value: &[u8]| {
        out.extend_from_slice(value);
        out.extend_from_slice(b", ");
    };
    match field {
        TrustedField::XForwardedFor => {
            let lines = fields.get_all(KnownField::XForwardedFor);
            lines.filter(|value| !value.is_empty()).for_each(add);
        }
        TrustedField::Forwarded => {
            for element in fields
                .get_all(KnownField::Forwarded)
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

/// Appends the addresses in the trusted field to `out`, as elements of `Forwarded`. `first`: host and protocol that the
/// trusted proxy reports.
///
/// `X-Forwarded-Proto` and `X-Forwarded-Host` do not identify the proxy that wrote them. They describe the client's
/// own request, so their values belong to the first element. A trusted `Forwarded` already contains host and
/// protocol, so `first` is ignored.
fn append_forwarded(fields: Fields<'_>, field: TrustedField, first: (Option<&[u8]>, Option<&[u8]>), out: &mut Vec<u8>) {
    match field {
        TrustedField::XForwardedFor => {
            let lines = fields.get_all(KnownField::XForwardedFor);
            let items = lines.flat_map(|line| line.split(|&byte| byte == b','));
            let items = items.filter(|item| !item.trim_ascii().is_empty());
            for (number, item) in items.enumerate() {
                let (host, proto) = if number == 0 { first } else { (None, None) };
                let address = forwarded::parse_node(item).map(|node| node.address);
                forwarded::write_element(out, address, host.unwrap_or_default(), proto.unwrap_or_default());
            }
        }
        TrustedField::Forwarded => {
            // A malformed line is dropped. An unclosed quotation mark, for example, would make the next element part of
            // its value.
            let lines = fields.get_all(KnownField::Forwarded);
            for line in lines.filter(|line| forwarded::parse_elements(line).is_some_and(|all| !all.is_empty())) {
                if !out.is_empty() {
                    out.extend_from_slice(b", ");
                }
                out.extend_from_slice(line);
            }
        }
    }
}
