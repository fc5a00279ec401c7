//! Another protocol that an upstream is asked for, and whether it has agreed.
//!
//! Upstreams are asked by `Upgrade`, whatever the client used. A request that came by extended CONNECT has no key for WebSocket's
//! handshake (RFC 8441 §5), so it is made here, and the answer to it is checked here.

use aws_lc_rs::{digest, rand};
use rocknet_proto::fields::{Fields, Known};
use rocknet_proto::method::Method;
use rocknet_proto::request::Request;

/// The protocol that an upstream is asked for by `Upgrade`.
pub struct Wish {
    /// A list, as it is written in `Upgrade`.
    pub protocols: Vec<u8>,
    /// Made here, where the client did not bring one.
    pub key: Option<Key>,
}

/// What the key is hashed with (RFC 6455 §1.3).
const WEBSOCKET_GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// `Sec-WebSocket-Key`.
pub struct Key([u8; 24]);

impl Wish {
    /// What a request asks for, but for other versions of HTTP and for TLS: behind those the upstream would be asked for
    /// things that no rule of this server has seen.
    pub fn of(request: &Request<'_>) -> Option<Wish> {
        let all = items(request.upgrade?);
        let passed: Vec<&[u8]> = all.filter(|name| !is_of_http(name)).collect();
        let is_websocket = passed.iter().any(|name| name.eq_ignore_ascii_case(b"websocket"));
        (!passed.is_empty()).then(|| Wish {
            protocols: passed.join(&b", "[..]),
            key: (request.method == Method::Connect && is_websocket).then(Key::new),
        })
    }

    /// The protocol that was agreed on; `None` where the answer is none to this wish.
    pub fn agreed(&self, fields: Fields<'_>) -> Option<Vec<u8>> {
        let protocol = fields.get(Known::Upgrade)?;
        let is_asked = items(&self.protocols).any(|asked| asked.eq_ignore_ascii_case(protocol));
        let is_accepted = self.key.as_ref().is_none_or(|key| {
            let mut accepts = fields.by_name(ACCEPT);
            accepts.next() == Some(&key.accept()[..]) && accepts.next().is_none()
        });
        (is_asked && is_accepted).then(|| protocol.to_vec())
    }

    /// Returns whether a field of the response is for the peer that generated the key.
    pub fn is_own(&self, name: &[u8]) -> bool {
        self.key.is_some() && name.eq_ignore_ascii_case(ACCEPT)
    }
}

const ACCEPT: &[u8] = b"sec-websocket-accept";

/// The names in a list of protocols (RFC 9110 §7.8).
fn items(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let all = list.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    all.filter(|name| !name.is_empty())
}

fn is_of_http(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 4] = [b"h2", b"h3", b"http", b"tls"];
    NAMES.iter().any(|known| {
        let start = name.get(..known.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(known))
    })
}

impl Key {
    fn new() -> Key {
        let mut bytes = [0; 16];
        // One that can be guessed opens nothing: it only shows that the answer is one to this request.
        let _ = rand::fill(&mut bytes);
        let mut key = [0; 24];
        key.copy_from_slice(&base64(&bytes));
        Key(key)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn accept(&self) -> Vec<u8> {
        let mut hash = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
        hash.update(&self.0);
        hash.update(WEBSOCKET_GUID);
        base64(hash.finish().as_ref())
    }
}

/// RFC 4648 §4.
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
    fn base64_and_the_answer_to_a_key() {
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
        let key = Key(*b"dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(key.accept(), b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_ne!(Key::new().0, Key::new().0);
    }

    fn wish(method: Method, upgrade: Option<&str>) -> Option<Wish> {
        let owned = OwnedRequest::synthetic_get(Version::Http11, b"h", b"/", &[]);
        Wish::of(&Request {
            method,
            upgrade: upgrade.map(str::as_bytes),
            ..owned.view()
        })
    }

    #[test]
    fn other_versions_of_http_are_not_asked_for() {
        for (upgrade, expected) in [
            (None, None),
            (Some("h2c"), None),
            (Some("H2C, HTTP/2.0, h3, TLS/1.0"), None),
            (Some("websocket"), Some("websocket")),
            (Some("h2c, WebSocket ,foo/1"), Some("WebSocket, foo/1")),
        ] {
            let protocols = wish(Method::Get, upgrade).map(|wish| wish.protocols);
            assert_eq!(protocols.as_deref(), expected.map(str::as_bytes), "{upgrade:?}");
        }
        let has_key = |method, upgrade| wish(method, Some(upgrade)).is_some_and(|wish| wish.key.is_some());
        assert!(has_key(Method::Connect, "websocket"));
        assert!(!has_key(Method::Get, "websocket") && !has_key(Method::Connect, "other"));
    }

    #[test]
    fn only_what_was_asked_for_is_agreed_to() {
        let made = wish(Method::Connect, Some("websocket")).unwrap();
        let accept = String::from_utf8(made.key.as_ref().unwrap().accept()).unwrap();
        let brought = wish(Method::Get, Some("foo, websocket")).unwrap();
        for (wish, upgrade, accepts, expected) in [
            (&brought, "websocket", &[][..], true),
            (&brought, "FOO", &[], true),
            (&brought, "bar", &[], false),
            (&brought, "foo, websocket", &[], false),
            (&made, "websocket", &[&*accept], true),
            (&made, "websocket", &[], false),
            (&made, "websocket", &["s3pPLMBiTxaQ9kYGzzhZRbK+xOo="], false),
            (&made, "websocket", &[&*accept, &*accept], false),
        ] {
            let (mut bytes, mut index) = (Vec::new(), FieldIndex::default());
            let mut put = |text: &str| {
                let start = bytes.len();
                bytes.extend_from_slice(text.as_bytes());
                rocknet_proto::fields::Span::new(start, bytes.len())
            };
            let (name, value) = (put("upgrade"), put(upgrade));
            index.push(name, Some(Known::Upgrade), value);
            for accept in accepts {
                let (name, value) = (put("Sec-WebSocket-Accept"), put(accept));
                index.push(name, None, value);
            }
            let agreed = wish.agreed(index.view(&bytes));
            assert_eq!(agreed.is_some(), expected, "{upgrade} {accepts:?}");
        }
    }
}
