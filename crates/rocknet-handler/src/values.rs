//! Values of a request for the placeholders of templates, and their escaping in header fields.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::net::IpAddr;

use rocknet_config::model::Server;
use rocknet_config::template::{Placeholder, Template, Values};
use rocknet_proto::request::{Request, TargetForm};
use rocknet_proto::semantics::authority::{Authority, HOST_BUFFER};
use rocknet_proto::semantics::safe_path::SafePath;
use rocknet_proto::status::Status;

use crate::client::Client;
use crate::clock::microseconds;
use crate::forwarded;
use crate::response::UpstreamTiming;
use crate::services::Services;
use crate::tls_info::{ClientCertificate, TlsInfo};

/// Header field by which proxies name a request. It is used only if a trusted proxy sends it.
const X_REQUEST_ID: &[u8] = b"X-Request-Id";
/// Maximum length of an identifier that a trusted proxy sends, in bytes.
const MAX_ID: usize = 128;

/// A request with its connection, and its response as far as it is known.
pub struct RequestValues<'a> {
    /// Services of the worker.
    pub services: &'a Services,
    /// Settings of the server, which name the trusted proxies.
    pub server: &'a Server,
    /// Method, target and header fields.
    pub request: &'a Request<'a>,
    /// Client: the one that a trusted proxy reports, else the peer. `None`: determined when it is needed.
    pub client: Option<Client>,
    /// Other end of the connection.
    pub peer: Client,
    /// Parameters of the TLS handshake. `None` for a connection without TLS.
    pub tls: Option<&'a TlsInfo>,
    /// Authenticated user.
    pub user: Option<&'a str>,
    /// Name of the site; empty if the host belongs to none.
    pub site: &'a str,
    /// Identifier of the request.
    pub id: &'a RequestId,
    /// Status of the response, once it is known.
    pub status: Option<Status>,
    /// Upstream that sent the response.
    pub upstream: Option<&'a UpstreamTiming>,
}

impl RequestValues<'_> {
    fn certificate(&self) -> Option<&ClientCertificate> {
        self.tls.and_then(|tls| tls.client.as_ref())
    }

    fn client(&self) -> Client {
        let resolve = || forwarded::client(self.server, self.peer, self.request.fields);
        self.client.unwrap_or_else(resolve)
    }
}

/// Identifier of a request, made when it is first needed.
#[derive(Debug, Clone, Default)]
pub struct RequestId(OnceCell<Box<[u8]>>);

impl RequestId {
    /// Returns the identifier: the one that a trusted `peer` has sent, or a new one.
    pub fn get(&self, services: &Services, server: &Server, peer: Client, request: &Request<'_>) -> &[u8] {
        self.0.get_or_init(|| {
            let sent = request.fields.by_name(X_REQUEST_ID).next();
            let usable = sent.filter(|id| is_id(id) && forwarded::is_trusted(server, peer));
            usable.map_or_else(|| random_id(services), Box::from)
        })
    }
}

/// Returns true for an identifier that is passed on: letters, digits and a few other characters of ASCII, so that it
/// cannot leave its place in a field or a log line.
fn is_id(id: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:+/=@".contains(byte);
    (1..=MAX_ID).contains(&id.len()) && id.iter().all(is_plain)
}

/// Returns 32 random hexadecimal digits. The keys of the hash come from the kernel, so that identifiers of several
/// servers differ.
fn random_id(services: &Services) -> Box<[u8]> {
    let (keys, number) = (RandomState::new(), services.random());
    let (high, low) = (keys.hash_one(number), keys.hash_one(!number));
    format!("{high:016x}{low:016x}").into_bytes().into()
}

impl Values for RequestValues<'_> {
    fn value(&self, placeholder: &Placeholder) -> Cow<'_, [u8]> {
        let request = self.request;
        let text = |text: Option<&'static str>| Cow::Borrowed(text.unwrap_or_default().as_bytes());
        let owned = |text: String| Cow::Owned(text.into_bytes());
        match placeholder {
            Placeholder::ClientIp => address(self.client()),
            Placeholder::PeerIp => address(self.peer),
            Placeholder::ClientPort => match self.client() {
                Client::Ip { port, .. } if port > 0 => owned(port.to_string()),
                _ => Cow::Borrowed(b""),
            },
            Placeholder::Host => host(request.authority),
            Placeholder::Authority => match Authority::parse(request.authority) {
                Some(_) => Cow::Borrowed(request.authority),
                None => Cow::Borrowed(b""),
            },
            Placeholder::Scheme => text(Some(if self.tls.is_some() { "https" } else { "http" })),
            Placeholder::Protocol => text(Some(request.version.as_str())),
            Placeholder::Method => Cow::Borrowed(request.method_name),
            Placeholder::Path => path(request.path),
            Placeholder::Query => Cow::Borrowed(request.query.unwrap_or_default()),
            Placeholder::QueryParameter(name) => Cow::Borrowed(parameter(request, name.as_bytes()).unwrap_or_default()),
            Placeholder::Target => origin_target(request),
            Placeholder::RequestHeader(name) => {
                let mut values = request.fields.by_name(name.as_bytes());
                Cow::Borrowed(values.next().unwrap_or_default())
            }
            Placeholder::RequestCookie(name) => Cow::Borrowed(cookie(request, name.as_bytes()).unwrap_or_default()),
            Placeholder::RequestId => Cow::Borrowed(self.id.get(self.services, self.server, self.peer, request)),
            Placeholder::TlsVersion => text(self.tls.and_then(TlsInfo::protocol)),
            Placeholder::TlsCipher => text(self.tls.and_then(TlsInfo::cipher)),
            Placeholder::TlsServerName => {
                let name = self.tls.and_then(|tls| tls.server_name.as_deref());
                Cow::Borrowed(name.unwrap_or_default().as_bytes())
            }
            Placeholder::TlsClientSubject => {
                let client = self.certificate();
                Cow::Borrowed(client.map_or(&b""[..], |client| client.subject.as_bytes()))
            }
            Placeholder::TlsClientVerify => text(self.tls.map(|tls| match tls.client {
                Some(_) => "SUCCESS",
                None => "NONE",
            })),
            Placeholder::TlsClientIssuer => {
                owned(self.certificate().map_or_else(String::new, ClientCertificate::issuer))
            }
            Placeholder::TlsClientSerial => {
                let names = self.certificate().and_then(|certificate| certificate.names.as_ref());
                Cow::Borrowed(names.map_or(&b""[..], |names| names.serial.as_bytes()))
            }
            Placeholder::TlsClientFingerprint => owned(
                self.certificate()
                    .map_or_else(String::new, ClientCertificate::fingerprint),
            ),
            Placeholder::TlsClientCertificate => owned(
                self.certificate()
                    .map_or_else(String::new, ClientCertificate::byte_sequence),
            ),
            Placeholder::TlsClientPem => owned(
                self.certificate()
                    .map_or_else(String::new, ClientCertificate::escaped_pem),
            ),
            Placeholder::User => Cow::Borrowed(self.user.unwrap_or_default().as_bytes()),
            Placeholder::Site => Cow::Borrowed(self.site.as_bytes()),
            Placeholder::UnixTime => {
                let now = self.services.clock.unix_ms();
                owned(format!("{}.{:03}", now / 1000, now % 1000))
            }
            Placeholder::Status => self
                .status
                .map_or(Cow::Borrowed(b""), |status| owned(status.code().to_string())),
            Placeholder::Upstream => {
                Cow::Borrowed(self.upstream.map_or(&b""[..], |upstream| upstream.address.as_bytes()))
            }
            Placeholder::UpstreamDuration => match self.upstream.and_then(|upstream| upstream.head) {
                Some(duration) => owned(seconds(microseconds(duration))),
                None => Cow::Borrowed(b""),
            },
            // Only the access log knows these values, and it does not query them here.
            Placeholder::CacheStatus
            | Placeholder::Time
            | Placeholder::ClfTime
            | Placeholder::BytesSent
            | Placeholder::BytesReceived
            | Placeholder::Duration => Cow::Borrowed(b""),
        }
    }
}

/// Returns microseconds as seconds with six decimals.
pub fn seconds(microseconds: u64) -> String {
    format!("{}.{:06}", microseconds / 1_000_000, microseconds % 1_000_000)
}

/// Renders a template as the value of a header field. Bytes of values that fields cannot have, or that are not ASCII,
/// are percent-encoded.
pub fn field_value(template: &Template, values: &dyn Values) -> String {
    let mut out = Vec::new();
    template.render(values, &mut out, |value, out| {
        for &byte in value {
            match byte {
                b' '..=b'~' => out.push(byte),
                _ => {
                    let _ = write!(out, "%{byte:02X}");
                }
            }
        }
    });
    String::from_utf8_lossy(out.trim_ascii()).into_owned()
}

/// Returns the address of a client; empty for a Unix socket.
fn address(client: Client) -> Cow<'static, [u8]> {
    match client {
        Client::Ip { address, .. } => {
            // A proxy may report the address of an IPv4 client in IPv4-mapped form.
            let address: IpAddr = address.to_canonical();
            Cow::Owned(address.to_string().into_bytes())
        }
        Client::Local => Cow::Borrowed(b""),
    }
}

/// Returns the host of an authority in lower case; empty if it is invalid.
pub fn host(authority: &[u8]) -> Cow<'static, [u8]> {
    let mut buffer = [0; HOST_BUFFER];
    match Authority::parse(authority) {
        Some(authority) => Cow::Owned(authority.lower_host(&mut buffer).as_bytes().to_vec()),
        None => Cow::Borrowed(b""),
    }
}

/// Returns a path decoded and normalized, as rules match it; as sent if it is malformed.
fn path(raw: &[u8]) -> Cow<'_, [u8]> {
    match SafePath::parse(raw).map(SafePath::into_str) {
        Ok(Cow::Borrowed(path)) => Cow::Borrowed(path.as_bytes()),
        Ok(Cow::Owned(path)) => Cow::Owned(path.into_bytes()),
        // No file can have the path, but an application can.
        Err(_) => SafePath::for_rules(raw).map_or(Cow::Borrowed(raw), |path| Cow::Owned(path.into_bytes())),
    }
}

/// Returns path and query of the target as received; `/` for an absolute target without a path.
pub fn origin_form<'r>(request: &Request<'r>) -> &'r [u8] {
    if request.form != TargetForm::Absolute {
        return request.target;
    }
    let after_scheme = memchr::memmem::find(request.target, b"://").map_or(0, |at| at + 3);
    let rest = &request.target[after_scheme..];
    match memchr::memchr2(b'/', b'?', rest) {
        Some(at) if rest[at] == b'/' => &rest[at..],
        // The path is empty, which means `/`. A query after an empty path is left out; `origin_target` keeps it.
        _ => b"/",
    }
}

/// Returns the target in origin form, with the query also if the path is empty, as in `http://example.com?a=1`.
pub fn origin_target<'r>(request: &Request<'r>) -> Cow<'r, [u8]> {
    let target = origin_form(request);
    if request.form != TargetForm::Absolute || target != b"/" {
        return Cow::Borrowed(target);
    }
    match memchr::memchr(b'?', request.target) {
        Some(mark) => Cow::Owned([b"/", &request.target[mark..]].concat()),
        None => Cow::Borrowed(target),
    }
}

/// Returns the value of the first query parameter with a name, as sent.
fn parameter<'r>(request: &Request<'r>, name: &[u8]) -> Option<&'r [u8]> {
    let mut parameters = request.query?.split(|byte| *byte == b'&');
    parameters.find_map(|parameter| parameter.strip_prefix(name)?.strip_prefix(b"="))
}

/// Returns the value of the first cookie with a name (RFC 6265 §5.4).
fn cookie<'r>(request: &Request<'r>, name: &[u8]) -> Option<&'r [u8]> {
    let fields = request.fields.by_name(b"cookie");
    let mut cookies = fields.flat_map(|field| field.split(|byte| *byte == b';'));
    cookies.find_map(|cookie| cookie.trim_ascii().strip_prefix(name)?.strip_prefix(b"="))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rocknet_config::template::Scope;

    use super::*;

    /// Has one value for all placeholders.
    struct All<'v>(&'v [u8]);

    impl Values for All<'_> {
        fn value(&self, _: &Placeholder) -> Cow<'_, [u8]> {
            Cow::Borrowed(self.0)
        }
    }

    #[test]
    fn the_path_is_decoded() {
        for (raw, expected) in [
            ("/a", "/a"),
            ("/a%20b//c/../d", "/a b/d"),
            // No file can have this path.
            ("/wiki/Special%3ASearch", "/wiki/Special:Search"),
            // A malformed path is not decoded.
            ("/%00%41", "/%00%41"),
        ] {
            assert_eq!(String::from_utf8_lossy(&path(raw.as_bytes())), expected, "{raw}");
        }
    }

    proptest! {
        #[test]
        fn no_value_ends_a_field(value in proptest::collection::vec(any::<u8>(), 0..24)) {
            let template = Template::parse("a {user};{path}", Scope::Request).expect("a template");
            let field = field_value(&template, &All(&value));
            prop_assert!(field.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{field:?}");
            prop_assert_eq!(field.trim(), &field);
        }

        #[test]
        fn identifiers_that_are_passed_on_need_no_escaping(id in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(!is_id(&id) || id.len() <= MAX_ID && id.iter().all(u8::is_ascii_graphic));
        }

        #[test]
        fn hosts_have_no_other_part_of_a_url(authority in r"[a-zA-Z0-9.:/?#@\\\[\] \r\n%-]{0,20}") {
            let host = host(authority.as_bytes());
            prop_assert!(!host.iter().any(|byte| b"/?#@\\ \r\n".contains(byte)), "{authority:?}");
        }
    }
}
