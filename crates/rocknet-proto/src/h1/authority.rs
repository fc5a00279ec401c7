//! Validates `uri-host [":" port]` of Host and of the request target (RFC 9110 §7.2, RFC 3986 §3.2.2). Sites are looked
//! up by the stricter [`Authority`](crate::semantics::Authority).

use std::net::Ipv6Addr;

use crate::bytes::{HEX, REG_NAME, is};

/// Maximum size of an authority in bytes. A DNS name has up to 253 characters, and percent-encoding at most triples
/// them. With a colon and a port of up to 5 digits, that makes 765 bytes, rounded up to a power of two.
const MAX_AUTHORITY: usize = 1024;

/// Returns true for a host with an optional port. `@` is not allowed, so userinfo is invalid.
#[inline]
pub(crate) fn is_valid(authority: &[u8]) -> bool {
    if authority.len() > MAX_AUTHORITY {
        return false;
    }
    let mut bytes = authority.iter();
    let end = bytes.position(|&byte| !is(byte, REG_NAME));
    match end.map(|end| authority[end]) {
        None => !authority.is_empty(),
        // `position` has left `bytes` after the colon.
        Some(b':') => end != Some(0) && is_port(bytes.as_slice()),
        Some(_) => is_valid_uncommon(authority),
    }
}

/// Validates the hosts that the fast path of [`is_valid`] does not handle: IP literals and percent-encoded names.
#[cold]
fn is_valid_uncommon(authority: &[u8]) -> bool {
    if let [b'[', rest @ ..] = authority {
        let Some(close) = rest.iter().position(|&byte| byte == b']') else {
            return false;
        };
        return is_ip_literal(&rest[..close])
            && match &rest[close + 1..] {
                [] => true,
                [b':', port @ ..] => is_port(port),
                _ => false,
            };
    }
    let host = match authority.iter().position(|&byte| byte == b':') {
        Some(colon) if !is_port(&authority[colon + 1..]) => return false,
        Some(colon) => &authority[..colon],
        None => authority,
    };
    let mut rest = host;
    loop {
        rest = match rest {
            [] => return !host.is_empty(),
            [b'%', high, low, rest @ ..] if is(*high, HEX) && is(*low, HEX) => rest,
            [byte, rest @ ..] if is(*byte, REG_NAME) => rest,
            _ => return false,
        };
    }
}

/// Accepts IPv6 without a zone, because the zones of RFC 6874 are local to a machine. IPvFuture is refused, because no
/// such address is in use.
fn is_ip_literal(literal: &[u8]) -> bool {
    std::str::from_utf8(literal).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok())
}

/// Returns true for `*DIGIT` of at most five digits whose value fits in 16 bits. The grammar allows an empty port (RFC
/// 3986 §3.2.3).
fn is_port(port: &[u8]) -> bool {
    let mut number = 0;
    for byte in port {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 || port.len() > 5 {
            return false;
        }
        number = number * 10 + u32::from(digit);
    }
    number <= 65535
}

/// Returns true if two valid authorities have the same host and port. `default_port` replaces a missing or empty port.
/// Ports are compared as text, so `080` differs from `80`.
pub(crate) fn same(one: &[u8], other: &[u8], default_port: &[u8]) -> bool {
    let ((host, port), (other_host, other_port)) = (split(one, default_port), split(other, default_port));
    host.eq_ignore_ascii_case(other_host) && port == other_port
}

/// Returns the host and the port of a valid authority. `default_port` replaces a missing or empty port.
fn split<'a>(authority: &'a [u8], default_port: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    // A colon before `]` is a part of an IPv6 address.
    match authority.iter().rposition(|&byte| byte == b':' || byte == b']') {
        Some(position) if authority[position] == b':' => {
            let port = &authority[position + 1..];
            (
                &authority[..position],
                if port.is_empty() { default_port } else { port },
            )
        }
        _ => (authority, default_port),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validates_authorities() {
        // Authority, and true if it is valid.
        let rows: &[(&str, bool)] = &[
            ("example.com", true),
            ("example.com.", true),
            ("EXAMPLE.com:8080", true),
            ("127.0.0.1:8080", true),
            ("a_b-c~d", true),
            ("localhost:", true),
            ("localhost:0", true),
            ("localhost:65535", true),
            ("ex%41mple.com:80", true),
            ("[::1]", true),
            ("[::1]:443", true),
            ("[2001:db8::127.0.0.1]:", true),
            ("", false),
            (":80", false),
            ("localhost:65536", false),
            ("localhost:000080", false),
            ("localhost:+80", false),
            ("localhost:8o", false),
            ("localhost:80:80", false),
            ("user@example.com", false),
            ("user:pw@example.com", false),
            ("exa mple.com", false),
            ("example.com/", false),
            ("example.com?", false),
            ("example.com#", false),
            ("example.com\\", false),
            ("ex%4", false),
            ("ex%zz", false),
            ("%41:8o", false),
            ("[::1", false),
            ("[::1]x", false),
            ("[::1]:x", false),
            ("[]", false),
            ("[fe80::1%eth0]", false),
            ("[1.2.3.4]", false),
            ("::1", false),
            ("b\u{fc}cher.de", false),
            ("a\0b", false),
        ];
        for (authority, valid) in rows {
            assert_eq!(is_valid(authority.as_bytes()), *valid, "{authority:?}");
        }
        assert!(is_valid(&[b'a'; MAX_AUTHORITY]) && !is_valid(&[b'a'; MAX_AUTHORITY + 1]));
    }

    #[test]
    fn authorities_are_compared_by_host_and_port() {
        // Two authorities, the default port, and true if the authorities are the same.
        for (one, other, port, expected) in [
            ("Example.com", "example.COM", "80", true),
            ("example.com:80", "example.com", "80", true),
            ("example.com:", "example.com", "80", true),
            ("example.com:443", "example.com", "80", false),
            ("example.com:443", "example.com", "443", true),
            ("[::1]:80", "[::1]", "80", true),
            ("[::1]", "[::2]", "80", false),
            ("example.com", "example.org", "80", false),
        ] {
            assert_eq!(
                same(one.as_bytes(), other.as_bytes(), port.as_bytes()),
                expected,
                "{one} {other}"
            );
        }
    }
}
