//! Request in the form in which it is sent to an upstream: rebuilt from its parsed parts, without connection fields.

use std::borrow::Cow;
use std::rc::Rc;

use rocknet_config::model::Server;
use rocknet_proto::fields::{Field, KnownField, KnownFieldSet};
use rocknet_proto::h1::{ClientConnection, EncodeError, Length, RequestLine, connection_options};
use rocknet_proto::method::Method;
use rocknet_proto::request::{Request, Version};
use rocknet_proto::semantics::cgi_names;

use crate::forwarded::ForwardedFields;
use crate::grpc;
use crate::header_spoofing::is_spoofed;
use crate::response_rewrite::Origin;
use crate::rewrite::{ProxyHeaders, Rewrite};
use crate::target;
use crate::upgrade_request::{UpgradeRequest, WebSocketKey};
use crate::upstream::Upstream;
use rocknet_handler::exchange::Exchange;
use rocknet_handler::forwarded::is_trusted;

/// Fields that are not forwarded: fields that frame a message or control its connection (RFC 9110 §7.6.1), fields that
/// RockNet handles, and fields that it sets. `Proxy` is dropped because a program behind a CGI-like upstream would use
/// its value as the address of a proxy (httpoxy).
const NOT_PASSED: KnownFieldSet = KnownFieldSet::of(&[
    KnownField::Connection,
    KnownField::ContentLength,
    KnownField::Expect,
    KnownField::Forwarded,
    KnownField::Host,
    KnownField::KeepAlive,
    KnownField::Proxy,
    KnownField::ProxyAuthorization,
    KnownField::ProxyConnection,
    KnownField::Te,
    KnownField::Trailer,
    KnownField::TransferEncoding,
    KnownField::Upgrade,
    KnownField::XForwardedFor,
    KnownField::XForwardedHost,
    KnownField::XForwardedProto,
]);

/// Field that names the prefix of a path which a proxy has removed. Applications build their URLs with it.
const FORWARDED_PREFIX: &[u8] = b"X-Forwarded-Prefix";

/// Encoder of a request head for one version of HTTP.
pub trait HeadWriter {
    /// Encodes the head with this request line and these fields.
    fn write<'a>(self, line: &RequestLine<'_>, fields: impl Iterator<Item = Field<'a>>) -> Result<(), EncodeError>;
}

/// Encoder for HTTP/1.1.
struct H1HeadWriter<'h> {
    engine: &'h mut ClientConnection,
    out: &'h mut Vec<u8>,
}

impl HeadWriter for H1HeadWriter<'_> {
    fn write<'a>(self, line: &RequestLine<'_>, fields: impl Iterator<Item = Field<'a>>) -> Result<(), EncodeError> {
        self.engine.encode_request(self.out, line, fields)
    }
}

/// Request to an upstream.
pub struct UpstreamRequest<'p> {
    /// Fields that the configuration sets. A field with an empty value is removed.
    headers: ProxyHeaders,
    /// Configured prefix that is removed from paths that have it, percent-encoded.
    strip: Option<&'p str>,
    /// Number of leading path segments that are removed from the target.
    stripped: usize,
    request: &'p Request<'p>,
    /// Fields that describe the client.
    forwarded: ForwardedFields,
    /// Value of `X-Forwarded-Prefix`: the prefix of the paths that the upstream does not see. Empty if there is no such
    /// prefix, or if the field is not sent.
    forwarded_prefix: Vec<u8>,
    /// True if the peer is a trusted proxy.
    is_trusted: bool,
    /// Protocol switch that the request offers, if any.
    upgrade: Option<Rc<UpgradeRequest>>,
    length: Length,
}

impl<'p> UpstreamRequest<'p> {
    /// Prepares the request to an upstream from `request`, which is the request of `exchange`.
    pub fn new(
        rewrite: &'p Rewrite,
        request: &'p Request<'p>,
        exchange: &Exchange,
        server: &Server,
    ) -> UpstreamRequest<'p> {
        let length = if exchange.body.is_empty() {
            Length::None
        } else {
            let stated = request.fields.get(KnownField::ContentLength);
            let stated = stated.and_then(|length| std::str::from_utf8(length).ok()?.parse().ok());
            stated.map_or(Length::Unknown, Length::Exact)
        };
        let is_trusted = is_trusted(server, exchange.peer);
        // The prefix begins with a slash, so it has as many segments as slashes.
        let stripped = match &rewrite.strip {
            Some(prefix) => match exchange.path.strip_prefix(prefix.as_str()) {
                Some(rest) if rest.is_empty() || rest.starts_with('/') => prefix.matches('/').count(),
                _ => 0,
            },
            None => 0,
        };
        let forwarded_prefix = match rewrite.encoded_strip.as_deref() {
            Some(prefix) if stripped > 0 && rewrite.forwarded.has_x_forwarded() => {
                // A trusted proxy may have removed a prefix before.
                let outer = request.fields.by_name(FORWARDED_PREFIX).next();
                let outer = outer.filter(|outer| is_trusted && is_prefix(outer));
                let outer = outer.map(|outer| outer.strip_suffix(b"/").unwrap_or(outer));
                [outer.unwrap_or_default(), prefix.as_bytes()].concat()
            }
            _ => Vec::new(),
        };
        UpstreamRequest {
            forwarded_prefix,
            headers: rewrite.headers(&exchange.values(request)),
            strip: rewrite.encoded_strip.as_deref(),
            stripped,
            request,
            forwarded: ForwardedFields::new(rewrite.forwarded, request, exchange, server, is_trusted),
            is_trusted,
            upgrade: UpgradeRequest::from_request(request).map(Rc::new),
            length,
        }
    }

    /// Returns the method for the upstream. Extended CONNECT (RFC 8441, RFC 9220) becomes a GET request with `Upgrade`.
    pub fn method(&self) -> Method {
        match self.request.method {
            Method::Connect => Method::Get,
            method => method,
        }
    }

    /// Returns the fields that the configuration sets. A field with an empty value is removed.
    pub fn proxy_headers(&self) -> &ProxyHeaders {
        &self.headers
    }

    /// Returns the addresses by which the upstream and the client know the resource of this request.
    pub fn origin<'a>(&'a self, upstream: &'a Upstream) -> Origin<'a> {
        let configured = |wanted: &[u8]| {
            let mut headers = self.headers.iter();
            let found = headers.find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(wanted));
            found.map(|(_, value)| value.as_str())
        };
        let sent_prefix = || std::str::from_utf8(&self.forwarded_prefix).unwrap_or_default();
        Origin {
            upstream: upstream.origin_host(),
            configured_host: configured(b"Host").filter(|host| !host.is_empty()),
            public_hosts: [self.request.authority, self.forwarded.host(self.request)],
            is_secure: self.forwarded.is_secure,
            target: (self.request.path, self.request.query),
            prefix: self.strip.filter(|_| self.stripped > 0),
            announced_prefix: configured(FORWARDED_PREFIX)
                .unwrap_or_else(sent_prefix)
                .trim_end_matches('/'),
        }
    }

    /// Returns the protocol switch that the request offers, if any.
    pub fn upgrade(&self) -> Option<&Rc<UpgradeRequest>> {
        self.upgrade.as_ref()
    }

    /// Returns true if sending the request twice has the same effect as sending it once (RFC 9110 §9.2.2).
    pub fn is_idempotent(&self) -> bool {
        self.method().is_idempotent()
    }

    /// Returns the length of the request body; `None` if it is not known, or if there is no body.
    pub fn length(&self) -> Option<u64> {
        match self.length {
            Length::Exact(length) => Some(length),
            _ => None,
        }
    }

    /// Returns true for a gRPC call. Its client may pause between two messages.
    pub fn is_grpc_call(&self) -> bool {
        grpc::is_call(self.request)
    }

    /// Returns true if the request has a body, even if its length is unknown.
    pub fn has_body(&self) -> bool {
        self.length != Length::None
    }

    /// Sets the length of a request body that was received completely. With trailers no length is set, because they
    /// require chunked coding.
    pub fn set_length(&mut self, length: u64, has_trailers: bool) {
        if !has_trailers {
            self.length = Length::Exact(length);
        }
    }

    /// Returns true if the client accepts trailers (`TE`, RFC 9110 §10.1.4).
    pub fn wants_trailers(&self) -> bool {
        let lines = self.request.fields.get_all(KnownField::Te);
        let mut codings = lines.flat_map(|line| line.split(|byte| *byte == b','));
        codings.any(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"trailers"))
    }

    /// Encodes the head for HTTP/1.1.
    pub fn encode(
        &self,
        engine: &mut ClientConnection,
        upstream: &Upstream,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        self.write(upstream, H1HeadWriter { engine, out })
    }

    /// Encodes the head with `writer`, the encoder of an HTTP version.
    pub fn write(&self, upstream: &Upstream, writer: impl HeadWriter) -> Result<(), EncodeError> {
        let request = self.request;
        let fields = request.fields;
        let target = self.target();
        let configured = |name: &str| {
            let mut headers = self.headers.iter();
            headers.find(|(other, _)| other.eq_ignore_ascii_case(name))
        };
        let host = match (configured("Host"), request.authority) {
            (Some((_, host)), _) => host.as_bytes(),
            (None, b"") => upstream.host.as_bytes(),
            (None, authority) => authority,
        };
        let line = RequestLine {
            method: match request.method {
                Method::Connect => b"GET",
                _ => request.method_name,
            },
            target: &target,
            host,
            length: self.length,
            upgrade: self.upgrade.as_ref().map(|upgrade| &upgrade.protocols[..]),
            close: false,
        };
        let nominates = fields.contains(KnownField::Connection);
        let is_nominated =
            |name: &[u8]| nominates && connection_options(fields).any(|nominated| name.eq_ignore_ascii_case(nominated));
        // Cookie fields that an HTTP/2 client has split are joined into one (RFC 9113 §8.2.3).
        let has_several_cookies = fields.is_repeated(KnownField::Cookie);
        let cookie = if has_several_cookies {
            fields.get_all(KnownField::Cookie).collect::<Vec<_>>().join(&b"; "[..])
        } else {
            Vec::new()
        };
        // Key that RockNet has generated for extended CONNECT; otherwise empty.
        let key = self.upgrade.as_ref().and_then(|upgrade| upgrade.key.as_ref());
        let key = key.map_or(&b""[..], WebSocketKey::as_bytes);
        let is_passed = |field: &Field<'_>| match field.known {
            Some(known) if NOT_PASSED.contains(known) => false,
            Some(KnownField::XRealIp) if !self.is_trusted => false,
            Some(KnownField::Cookie) => !has_several_cookies,
            Some(KnownField::SecWebSocketKey) if !key.is_empty() => false,
            None if is_spoofed(field.name) => false,
            None if cgi_names::are_same(field.name, FORWARDED_PREFIX) => {
                // An underscore in the name would pass for the same field in a CGI-like upstream.
                self.is_trusted && self.forwarded_prefix.is_empty() && !field.name.contains(&b'_')
            }
            _ => !is_nominated(field.name),
        };
        let headers = &self.headers;
        let is_set = |field: &[u8]| {
            headers
                .iter()
                .any(|(name, _)| cgi_names::are_same(field, name.as_bytes()))
        };
        let own = |known: KnownField, name, value| Field {
            known: Some(known),
            name,
            value,
        };
        let own = [
            own(KnownField::SecWebSocketKey, &b"Sec-WebSocket-Key"[..], key),
            own(KnownField::Cookie, b"Cookie", &cookie),
            own(KnownField::XForwardedFor, b"X-Forwarded-For", &self.forwarded.client),
            own(KnownField::XForwardedProto, b"X-Forwarded-Proto", &self.forwarded.proto),
            own(
                KnownField::XForwardedHost,
                b"X-Forwarded-Host",
                self.forwarded.host(request),
            ),
            Field::new(FORWARDED_PREFIX, &self.forwarded_prefix),
            own(KnownField::Forwarded, b"Forwarded", &self.forwarded.forwarded),
            own(KnownField::Via, b"Via", via(request.version)),
        ];
        let own = own.into_iter().filter(|field| !field.value.is_empty());
        let all = fields.lines().filter(is_passed).chain(own);
        // A configured field replaces each field that a CGI-like upstream cannot distinguish from it.
        let all = all.filter(|field| headers.is_empty() || !is_set(field.name));
        let added = headers
            .iter()
            .filter(|(name, value)| !value.is_empty() && !name.eq_ignore_ascii_case("host"));
        let added = added.map(|(name, value)| Field::new(name.as_bytes(), value.as_bytes()));
        writer.write(&line, all.chain(added))
    }

    /// Returns the request target. It differs from the client's target if a rewrite rule was applied, a prefix is
    /// stripped, or dot segments are resolved.
    fn target(&self) -> Cow<'p, [u8]> {
        let Request { path, query, .. } = *self.request;
        if self.stripped == 0 && query.is_none() && !target::may_have_dots(path) {
            return Cow::Borrowed(path);
        }
        let mut target = Vec::with_capacity(path.len() + query.map_or(0, |query| 1 + query.len()));
        target::write(path, &mut target);
        target::strip(&mut target, self.stripped);
        if let Some(query) = query {
            target.push(b'?');
            target.extend_from_slice(query);
        }
        Cow::Owned(target)
    }
}

/// Returns true if the value of `X-Forwarded-Prefix` is a path that applications can put before their own paths. Two
/// slashes would make the result an address at another host.
fn is_prefix(value: &[u8]) -> bool {
    let is_of_path = |byte: &u8| byte.is_ascii_graphic() && !b"\"#,<>?\\^`{|}".contains(byte);
    value.starts_with(b"/") && !value.starts_with(b"//") && value.iter().all(is_of_path)
}

/// Returns the value of `Via` for the version of the client's request (RFC 9110 §7.6.3).
fn via(version: Version) -> &'static [u8] {
    match version {
        Version::Http10 => b"1.0 RockNet",
        Version::Http11 => b"1.1 RockNet",
        Version::Http2 => b"2 RockNet",
        Version::Http3 => b"3 RockNet",
    }
}
