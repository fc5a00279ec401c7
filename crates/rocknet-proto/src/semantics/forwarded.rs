//! Parses and writes `Forwarded` (RFC 7239), which lists the proxies that a request passed, and parses the addresses of
//! its predecessor `X-Forwarded-For`.

use std::borrow::Cow;
use std::io::Write;
use std::net::{IpAddr, Ipv6Addr};

use super::list::parts;
use crate::bytes::is_token;

/// An element of `Forwarded`, which describes the request that one proxy received. Missing parameters are `None`. Other
/// parameters, such as `by`, are ignored.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Element<'a> {
    /// Node that sent the request to the proxy: an address, `unknown`, or an obfuscated identifier.
    pub for_node: Option<Cow<'a, [u8]>>,
    /// Value of `Host` that the proxy received.
    pub host: Option<Cow<'a, [u8]>>,
    /// Scheme of the request that the proxy received.
    pub proto: Option<Cow<'a, [u8]>>,
}

/// Address of a node, with an optional port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Node {
    /// IP address.
    pub address: IpAddr,
    /// Port; `None` if it is missing or obfuscated.
    pub port: Option<u16>,
}

/// Parses the elements of one field line, from the first proxy to the last. Returns `None` for a malformed line: no
/// part of it can be trusted, because the boundaries of its elements are unclear.
pub fn parse_elements(value: &[u8]) -> Option<Vec<Element<'_>>> {
    parts(value, b',').map(parse_element).collect()
}

/// Parses one element; `None` if it is malformed.
///
/// ```text
/// forwarded-element = [ forwarded-pair ] *( ";" [ forwarded-pair ] )
/// forwarded-pair = token "=" ( token / quoted-string )
/// ```
fn parse_element(text: &[u8]) -> Option<Element<'_>> {
    let mut element = Element::default();
    for pair in parts(text, b';') {
        let equals = memchr::memchr(b'=', pair)?;
        let (name, value) = (&pair[..equals], parse_value(&pair[equals + 1..])?);
        if !is_token(name) {
            return None;
        }
        let slot = if name.eq_ignore_ascii_case(b"for") {
            &mut element.for_node
        } else if name.eq_ignore_ascii_case(b"host") {
            &mut element.host
        } else if name.eq_ignore_ascii_case(b"proto") {
            &mut element.proto
        } else {
            continue;
        };
        // A parameter must occur only once (§4).
        if slot.replace(value).is_some() {
            return None;
        }
    }
    Some(element)
}

/// Parses a token or a quoted string; `None` if the text is neither.
fn parse_value(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    let Some(quoted) = text.strip_prefix(b"\"") else {
        return is_token(text).then_some(Cow::Borrowed(text));
    };
    let inner = quoted.strip_suffix(b"\"")?;
    if !inner.contains(&b'\\') && !inner.contains(&b'"') {
        return Some(Cow::Borrowed(inner));
    }
    let (mut plain, mut bytes) = (Vec::with_capacity(inner.len()), inner.iter());
    while let Some(&byte) = bytes.next() {
        match byte {
            b'\\' => plain.push(*bytes.next()?),
            b'"' => return None,
            byte => plain.push(byte),
        }
    }
    Some(Cow::Owned(plain))
}

/// Parses the address of a node: `192.0.2.1`, `192.0.2.1:4711`, `[2001:db8::1]`, `[2001:db8::1]:4711`, or `2001:db8::1`
/// as in `X-Forwarded-For`. Returns `None` for anything else, including `unknown`.
pub fn parse_node(text: &[u8]) -> Option<Node> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    let (address, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, rest) = rest.split_once(']')?;
            let port = match rest {
                "" => None,
                rest => Some(rest.strip_prefix(':')?),
            };
            (IpAddr::V6(address.parse::<Ipv6Addr>().ok()?), port)
        }
        None => match text.split_once(':') {
            Some((address, port)) if !port.contains(':') => (address.parse().ok()?, Some(port)),
            _ => (text.parse().ok()?, None),
        },
    };
    let port = match port {
        // A port may be obfuscated (§6.3).
        Some(port) if port.starts_with('_') => None,
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => Some(port.parse().ok()?),
        Some(_) => return None,
        None => None,
    };
    Some(Node { address, port })
}

/// Appends an element to the field value in `out`. Without an address, the node is `unknown`. An IPv4-mapped IPv6
/// address is written as IPv4. An empty `host` or `proto` is omitted.
pub fn write_element(out: &mut Vec<u8>, address: Option<IpAddr>, host: &[u8], proto: &[u8]) {
    if !out.is_empty() {
        out.extend_from_slice(b", ");
    }
    out.extend_from_slice(b"for=");
    // Writing to a vector never fails.
    let _ = match address.map(|address| address.to_canonical()) {
        Some(IpAddr::V4(address)) => write!(out, "{address}"),
        // The value is quoted, because colons and brackets are not allowed in a token (§6).
        Some(IpAddr::V6(address)) => write!(out, "\"[{address}]\""),
        None => write!(out, "unknown"),
    };
    for (name, value) in [(&b";host="[..], host), (b";proto=", proto)] {
        if !value.is_empty() {
            out.extend_from_slice(name);
            write_value(out, value);
        }
    }
}

/// Appends a value, which is quoted unless it is a token.
fn write_value(out: &mut Vec<u8>, value: &[u8]) {
    if is_token(value) {
        return out.extend_from_slice(value);
    }
    out.push(b'"');
    for &byte in value {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `FOR HOST PROTO` for each element, with `-` for a missing parameter.
    fn parsed(value: &str) -> Option<Vec<String>> {
        let shown = |text: &Option<Cow<'_, [u8]>>| match text {
            Some(text) => String::from_utf8_lossy(text).into_owned(),
            None => "-".to_owned(),
        };
        let all = parse_elements(value.as_bytes())?;
        let all = all.iter().map(|element| {
            let Element { for_node, host, proto } = element;
            format!("{} {} {}", shown(for_node), shown(host), shown(proto))
        });
        Some(all.collect())
    }

    #[test]
    fn parses_elements() {
        // Field value, and its elements as `parsed` returns them; `None` if it is malformed.
        let rows: &[(&str, Option<&[&str]>)] = &[
            ("for=192.0.2.1", Some(&["192.0.2.1 - -"])),
            (
                "For=\"[2001:db8::1]:4711\";proto=https;HOST=a.test",
                Some(&["[2001:db8::1]:4711 a.test https"]),
            ),
            (
                "for=192.0.2.43,for=198.51.100.17;by=203.0.113.60 ; proto=http",
                Some(&["192.0.2.43 - -", "198.51.100.17 - http"]),
            ),
            ("for=_hidden, for=unknown", Some(&["_hidden - -", "unknown - -"])),
            (r#"for="a\"b, c""#, Some(&[r#"a"b, c - -"#])),
            ("", Some(&[])),
            (";;", Some(&["- - -"])),
            ("secret=x;for=_a", Some(&["_a - -"])),
            ("for", None),
            ("for=", None),
            ("for=a b", None),
            ("for =a", None),
            ("for=[::1]", None),
            ("for=a;for=b", None),
            ("for=\"a", None),
            ("for=\"a, for=192.0.2.1", None),
            (r#"for="a\""#, None),
            (r#"for="a"b"#, None),
            (r#"for="a"b""#, None),
        ];
        for (value, expected) in rows {
            let expected = expected.map(|all| all.iter().map(|text| (*text).to_owned()).collect());
            assert_eq!(parsed(value), expected, "{value}");
        }
    }

    #[test]
    fn parses_nodes() {
        // Text, and the expected address and port. There is no address if the text is not the address of a node.
        for (text, address, port) in [
            ("192.0.2.1", Some("192.0.2.1"), None),
            (" 192.0.2.1:80 ", Some("192.0.2.1"), Some(80)),
            ("192.0.2.1:_hidden", Some("192.0.2.1"), None),
            ("2001:db8::1", Some("2001:db8::1"), None),
            ("[2001:db8::1]", Some("2001:db8::1"), None),
            ("[2001:db8::1]:443", Some("2001:db8::1"), Some(443)),
            ("[192.0.2.1]", None, None),
            ("[::1", None, None),
            ("[::1]80", None, None),
            ("192.0.2.1:", None, None),
            ("192.0.2.1:+1", None, None),
            ("192.0.2.1:70000", None, None),
            ("192.0.2.1, 192.0.2.2", None, None),
            ("unknown", None, None),
            ("_name", None, None),
            ("", None, None),
            ("\u{e9}", None, None),
        ] {
            let expected = address.map(|address: &str| Node {
                address: address.parse().expect("an address"),
                port,
            });
            assert_eq!(parse_node(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn written_elements_are_read_back() {
        // Address (empty for an unknown node), host, scheme, and the expected field value.
        for (address, host, proto, expected) in [
            ("192.0.2.1", "", "", "for=192.0.2.1"),
            (
                "::ffff:192.0.2.1",
                "a.test",
                "http",
                "for=192.0.2.1;host=a.test;proto=http",
            ),
            (
                "2001:db8::1",
                "a.test:81",
                "https",
                "for=\"[2001:db8::1]\";host=\"a.test:81\";proto=https",
            ),
            ("", "[::1]", "", "for=unknown;host=\"[::1]\""),
            ("", "a\"b\\", "", r#"for=unknown;host="a\"b\\""#),
        ] {
            let mut out = Vec::new();
            write_element(&mut out, address.parse().ok(), host.as_bytes(), proto.as_bytes());
            assert_eq!(String::from_utf8_lossy(&out), expected);
            write_element(&mut out, address.parse().ok(), host.as_bytes(), proto.as_bytes());
            let all = parse_elements(&out).expect("well-formed");
            assert!(all.len() == 2 && all[0] == all[1], "{all:?}");
            assert_eq!(all[0].host.as_deref().unwrap_or_default(), host.as_bytes());
            assert_eq!(all[0].proto.as_deref().unwrap_or_default(), proto.as_bytes());
        }
    }
}
