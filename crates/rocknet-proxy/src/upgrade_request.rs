//! Protocol switch that is requested from an upstream by `Upgrade`, and the check of the upstream's response.
//!
//! Upstreams receive `Upgrade` even if the client sent extended CONNECT. Extended CONNECT has no key for the WebSocket
//! handshake (RFC 8441 §5, RFC 9220 §3), so the proxy generates the key and verifies the upstream's
//! `Sec-WebSocket-Accept`.

use aws_lc_rs::{digest, rand};
use rocknet_proto::fields::{Fields, KnownField};
use rocknet_proto::method::Method;
use rocknet_proto::request::Request;

/// Protocols offered to an upstream.
pub struct UpgradeRequest {
    /// Value of `Upgrade`.
    pub protocols: Vec<u8>,
    /// Key that the proxy generated for a WebSocket requested by extended CONNECT; otherwise `None`.
    pub key: Option<WebSocketKey>,
}

/// GUID that is appended to the key before hashing (RFC 6455 §1.3).
const WEBSOCKET_GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Value of `Sec-WebSocket-Key`.
pub struct WebSocketKey([u8; 24]);

impl UpgradeRequest {
    /// Returns the protocols that a request offers, except TLS and other HTTP versions. Requests inside TLS or another
    /// HTTP version would reach the upstream without passing the rules of this server. Returns `None` if no protocol is
    /// left.
    pub fn from_request(request: &Request<'_>) -> Option<UpgradeRequest> {
        let all = items(request.upgrade?);
        let passed: Vec<&[u8]> = all.filter(|name| !is_http_or_tls(name)).collect();
        let is_websocket = passed.iter().any(|name| name.eq_ignore_ascii_case(b"websocket"));
        (!passed.is_empty()).then(|| UpgradeRequest {
            protocols: passed.join(&b", "[..]),
            key: (request.method == Method::Connect && is_websocket).then(WebSocketKey::new),
        })
    }

    /// Returns the protocol that the response selects. Returns `None` if that protocol was not offered, or if the
    /// response does not confirm the key of the proxy.
    pub fn accepted_protocol(&self, fields: Fields<'_>) -> Option<Vec<u8>> {
        let protocol = fields.get(KnownField::Upgrade)?;
        let is_offered = items(&self.protocols).any(|offered| offered.eq_ignore_ascii_case(protocol));
        let is_accepted = self.key.as_ref().is_none_or(|key| {
            let mut accepts = fields.by_name(ACCEPT);
            accepts.next() == Some(&key.accept()[..]) && accepts.next().is_none()
        });
        (is_offered && is_accepted).then(|| protocol.to_vec())
    }

    /// Returns true if the response field with this name is meant for the proxy. This is the case only for
    /// `Sec-WebSocket-Accept`, and only if the proxy generated the key.
    pub fn is_for_proxy(&self, name: &[u8]) -> bool {
        self.key.is_some() && name.eq_ignore_ascii_case(ACCEPT)
    }
}

/// Name of the response field that confirms the key.
const ACCEPT: &[u8] = b"sec-websocket-accept";

/// Returns the names in a list of protocols (RFC 9110 §7.8).
fn items(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let all = list.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    all.filter(|name| !name.is_empty())
}

/// Returns true if the name of a protocol begins like the name of HTTP or TLS. This includes variants such as `h2c`
/// and versions such as `HTTP/2.0`.
fn is_http_or_tls(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 4] = [b"h2", b"h3", b"http", b"tls"];
    NAMES.iter().any(|known| {
        let start = name.get(..known.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(known))
    })
}

impl WebSocketKey {
    fn new() -> WebSocketKey {
        let mut bytes = [0; 16];
        // A failure is ignored, because the key need not be secret: it only shows that the response belongs to this
        // request.
        let _ = rand::fill(&mut bytes);
        let mut key = [0; 24];
        key.copy_from_slice(&base64(&bytes));
        WebSocketKey(key)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the value of `Sec-WebSocket-Accept` that confirms this key.
    fn accept(&self) -> Vec<u8> {
        let mut hash = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
        hash.update(&self.0);
        hash.update(WEBSOCKET_GUID);
        base64(hash.finish().as_ref())
    }
}

/// Encodes bytes in Base64 (RFC 4648 §4).
fn base64(bytes: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let at = |place: usize| u32::from(group.get(place).copied().unwrap_or(0));
        let all = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let digit = DIGITS[(all >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { digit } else { b'=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use rocknet_proto::fields::FieldIndex;
    use rocknet_proto::request::{OwnedRequest, Version};

    use super::*;

    #[test]
    fn base64_and_sec_websocket_accept_match_the_standards() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text.as_bytes(), "{bytes}");
        }
        // RFC 6455 §1.3
        let key = WebSocketKey(*b"dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(key.accept(), b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_ne!(WebSocketKey::new().0, WebSocketKey::new().0);
    }

    fn requested(method: Method, upgrade: Option<&str>) -> Option<UpgradeRequest> {
        let owned = OwnedRequest::synthetic_get(Version::Http11, b"h", b"/", &[]);
        UpgradeRequest::from_request(&Request {
            method,
            upgrade: upgrade.map(str::as_bytes),
            ..owned.view()
        })
    }

    #[test]
    fn other_http_versions_and_tls_are_not_requested() {
        for (upgrade, expected) in [
            (None, None),
            (Some("h2c"), None),
            (Some("H2C, HTTP/2.0, h3, TLS/1.0"), None),
            (Some("websocket"), Some("websocket")),
            (Some("h2c, WebSocket ,foo/1"), Some("WebSocket, foo/1")),
        ] {
            let protocols = requested(Method::Get, upgrade).map(|upgrade| upgrade.protocols);
            assert_eq!(protocols.as_deref(), expected.map(str::as_bytes), "{upgrade:?}");
        }
        let has_key = |method, upgrade| requested(method, Some(upgrade)).is_some_and(|upgrade| upgrade.key.is_some());
        assert!(has_key(Method::Connect, "websocket"));
        assert!(!has_key(Method::Get, "websocket") && !has_key(Method::Connect, "other"));
    }

    #[test]
    fn only_an_offered_protocol_is_accepted() {
        let with_generated_key = requested(Method::Connect, Some("websocket")).unwrap();
        let accept = String::from_utf8(with_generated_key.key.as_ref().unwrap().accept()).unwrap();
        let with_client_key = requested(Method::Get, Some("foo, websocket")).unwrap();
        for (request, upgrade, accepts, expected) in [
            (&with_client_key, "websocket", &[][..], true),
            (&with_client_key, "FOO", &[], true),
            (&with_client_key, "bar", &[], false),
            (&with_client_key, "foo, websocket", &[], false),
            (&with_generated_key, "websocket", &[&*accept], true),
            (&with_generated_key, "websocket", &[], false),
            (
                &with_generated_key,
                "websocket",
                &["s3pPLMBiTxaQ9kYGzzhZRbK+xOo="],
                false,
            ),
            (&with_generated_key, "websocket", &[&*accept, &*accept], false),
        ] {
            let (mut bytes, mut index) = (Vec::new(), FieldIndex::default());
            let mut put = |text: &str| {
                let start = bytes.len();
                bytes.extend_from_slice(text.as_bytes());
                rocknet_proto::fields::ByteSpan::new(start, bytes.len())
            };
            let (name, value) = (put("upgrade"), put(upgrade));
            index.push(name, Some(KnownField::Upgrade), value);
            for accept in accepts {
                let (name, value) = (put("Sec-WebSocket-Accept"), put(accept));
                index.push(name, None, value);
            }
            let accepted_protocol = request.accepted_protocol(index.view(&bytes));
            assert_eq!(accepted_protocol.is_some(), expected, "{upgrade} {accepts:?}");
        }
    }
}
