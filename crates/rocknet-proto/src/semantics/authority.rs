//! Parses the host of a request from `Host` or `:authority` (RFC 9110 §7.2, RFC 3986 §3.2).

use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Maximum length in bytes of a DNS name in text form, without a trailing dot. On the wire, a name may have up to 255
/// bytes (RFC 1035 §2.3.4). Two of them are not in the text: the length of the first label, and the zero at the end.
const MAX_NAME: usize = 253;

/// Maximum length of a label of a DNS name, in bytes (RFC 1035 §2.3.4).
const MAX_LABEL: usize = 63;

/// Size of a buffer for [`Authority::lower_host`], in bytes, with room for every parsed host.
pub const HOST_BUFFER: usize = 256;

/// A host with an optional port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Authority<'a> {
    /// Host as sent, with its original case, its trailing dot, and the brackets of an IPv6 address. It is ASCII, and
    /// has no byte that could end a field or break out of a URL.
    pub host: &'a [u8],
    /// Port, if present and not empty.
    pub port: Option<u16>,
    /// Kind of the host.
    pub kind: HostKind,
}

/// Kind of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostKind {
    /// DNS name.
    Name,
    /// IPv4 address.
    Ipv4,
    /// IPv6 address in brackets.
    Ipv6,
}

impl<'a> Authority<'a> {
    /// Parses `host [":" port]`; an empty port counts as missing. Returns `None` if the host or the port is invalid.
    ///
    /// Names are stricter than in RFC 3986: only letters, digits, `-`, `_` and dots are valid. Percent-encoding and
    /// sub-delims are refused, because DNS names do not contain them, and no site can be configured with such a name.
    /// Such bytes could also do harm in redirects and logs, which contain the host.
    ///
    /// A name must not end with a number unless it is an IPv4 address. Browsers read `127.1` and `0x7f.1` as addresses,
    /// which would bypass a rule on the address. IPv6 addresses with a zone and IPvFuture are refused.
    pub fn parse(authority: &'a [u8]) -> Option<Authority<'a>> {
        if authority.first() == Some(&b'[') {
            let end = memchr::memchr(b']', authority)?;
            ipv6(&authority[1..end])?;
            let (host, rest) = authority.split_at(end + 1);
            let port = match rest {
                b"" => None,
                [b':', digits @ ..] => port(digits)?,
                _ => return None,
            };
            return Some(Authority {
                host,
                port,
                kind: HostKind::Ipv6,
            });
        }
        let (host, port) = match memchr::memchr(b':', authority) {
            Some(colon) => (&authority[..colon], port(&authority[colon + 1..])?),
            None => (authority, None),
        };
        Some(Authority {
            host,
            port,
            kind: name_kind(host)?,
        })
    }

    /// Returns the canonical form for comparisons: lower case, without the trailing dot of a rooted name. An IPv6
    /// address has the form of RFC 5952, in brackets.
    pub fn lower_host<'b>(&self, buffer: &'b mut [u8; HOST_BUFFER]) -> &'b str {
        let length = match self.kind {
            HostKind::Ipv6 => self.write_ipv6(buffer),
            HostKind::Name | HostKind::Ipv4 => {
                let host = self.host.strip_suffix(b".").unwrap_or(self.host);
                // A parsed host has at most MAX_NAME bytes here and is never truncated. The limit applies to values
                // constructed without `parse`.
                let host = &host[..host.len().min(HOST_BUFFER)];
                buffer[..host.len()].copy_from_slice(host);
                buffer[..host.len()].make_ascii_lowercase();
                host.len()
            }
        };
        std::str::from_utf8(&buffer[..length]).unwrap_or_default()
    }

    /// Writes the canonical form of the IPv6 address and returns its length; 0 if the host is not an IPv6 address.
    fn write_ipv6(&self, buffer: &mut [u8; HOST_BUFFER]) -> usize {
        let inner = self.host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]"));
        let Some(address) = inner.and_then(ipv6) else { return 0 };
        let mut rest = &mut buffer[..];
        match write!(rest, "[{address}]") {
            Ok(()) => HOST_BUFFER - rest.len(),
            Err(_) => 0,
        }
    }
}

/// Parses `*DIGIT` up to 65535. Returns `Some(None)` for no digits, and `None` if the port is invalid.
fn port(digits: &[u8]) -> Option<Option<u16>> {
    if digits.is_empty() {
        return Some(None);
    }
    let value = digits.iter().try_fold(0_u16, |sum, &b| {
        let digit = b.is_ascii_digit().then(|| u16::from(b - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })?;
    Some(Some(value))
}

/// Returns the kind of a host without brackets; `None` if the host is invalid.
fn name_kind(host: &[u8]) -> Option<HostKind> {
    if host.strip_suffix(b".").unwrap_or(host).len() > MAX_NAME {
        return None;
    }
    // The check takes one pass over the host, because it runs for every request.
    let (mut label_start, mut last_label) = (0, &host[..0]);
    for (at, &byte) in host.iter().enumerate() {
        if LABEL[usize::from(byte)] {
            continue;
        }
        last_label = &host[label_start..at];
        if byte != b'.' || last_label.is_empty() || last_label.len() > MAX_LABEL {
            return None;
        }
        label_start = at + 1;
    }
    // The label after a trailing dot is empty and denotes the DNS root, so the label before it counts as the last.
    if label_start < host.len() {
        last_label = &host[label_start..];
    }
    // Only an empty host has an empty last label.
    if last_label.is_empty() || last_label.len() > MAX_LABEL {
        return None;
    }
    if !is_number(last_label) {
        return Some(HostKind::Name);
    }
    // An address has no trailing dot. The parser of the standard library requires four parts without leading zeros.
    let address: Option<Ipv4Addr> = std::str::from_utf8(host).ok().and_then(|text| text.parse().ok());
    address.map(|_| HostKind::Ipv4)
}

/// Bytes that are valid in a label.
const LABEL: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < 0x80 {
        table[byte as usize] = byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        byte += 1;
    }
    table
};

/// Returns true for a decimal or hexadecimal number, by the "ends in a number" checker of the URL standard.
fn is_number(label: &[u8]) -> bool {
    match label {
        [b'0', b'x' | b'X', digits @ ..] => digits.iter().all(u8::is_ascii_hexdigit),
        _ => label.iter().all(u8::is_ascii_digit),
    }
}

/// Parses an IPv6 address without its brackets; `None` for other bytes.
fn ipv6(address: &[u8]) -> Option<Ipv6Addr> {
    std::str::from_utf8(address).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::HostKind::{Ipv4, Ipv6, Name};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_valid_hosts_are_parsed() {
        type ParseCase = (&'static str, Option<(&'static str, Option<u16>, HostKind)>);
        // Authority, and the expected host, port and kind, or `None` if it is invalid.
        let rows: &[ParseCase] = &[
            ("example.com", Some(("example.com", None, Name))),
            ("EXAMPLE.com:8080", Some(("EXAMPLE.com", Some(8080), Name))),
            ("example.com.", Some(("example.com.", None, Name))),
            ("example.com.:443", Some(("example.com.", Some(443), Name))),
            ("example.com:", Some(("example.com", None, Name))),
            ("example.com:0", Some(("example.com", Some(0), Name))),
            ("example.com:65535", Some(("example.com", Some(65535), Name))),
            ("example.com:00080", Some(("example.com", Some(80), Name))),
            ("localhost", Some(("localhost", None, Name))),
            ("my_host-1", Some(("my_host-1", None, Name))),
            ("xn--bcher-kva.example", Some(("xn--bcher-kva.example", None, Name))),
            ("1.example", Some(("1.example", None, Name))),
            ("127.0.0.1", Some(("127.0.0.1", None, Ipv4))),
            ("127.0.0.1:80", Some(("127.0.0.1", Some(80), Ipv4))),
            ("[::1]", Some(("[::1]", None, Ipv6))),
            ("[::1]:8443", Some(("[::1]", Some(8443), Ipv6))),
            ("[::1]:", Some(("[::1]", None, Ipv6))),
            (
                "[2001:DB8::ffff:1.2.3.4]",
                Some(("[2001:DB8::ffff:1.2.3.4]", None, Ipv6)),
            ),
            ("", None),
            (":80", None),
            (".", None),
            (".example.com", None),
            ("a..b", None),
            ("example.com..", None),
            ("example.com:65536", None),
            ("example.com:99999999999999999999", None),
            ("example.com:80:80", None),
            ("example.com:+80", None),
            ("example.com:8o", None),
            ("user@example.com", None),
            ("example.com/path", None),
            ("example.com?x", None),
            ("example.com#x", None),
            ("exa mple.com", None),
            (" example.com", None),
            ("example.com,example.org", None),
            ("ex\u{e4}mple.com", None),
            ("exam%70le.com", None),
            ("a\\b", None),
            ("a'b", None),
            ("a\0b", None),
            ("127.0.0.1.", None),
            ("127.0.0.01", None),
            ("256.0.0.1", None),
            ("1.2.3", None),
            ("127.1", None),
            ("2130706433", None),
            ("0x7f.1", None),
            ("127.0.0.0x1", None),
            ("a.0x", None),
            ("::1", None),
            ("[::1", None),
            ("[]", None),
            ("[::1]x", None),
            ("[::1]80", None),
            ("[fe80::1%25eth0]", None),
            ("[fe80::1%eth0]", None),
            ("[v1.x]", None),
            ("[127.0.0.1]", None),
            ("[1:2:3:4:5:6:7:8:9]", None),
        ];
        for &(authority, expected) in rows {
            let parsed = Authority::parse(authority.as_bytes());
            let expected = expected.map(|(host, port, kind)| Authority {
                host: host.as_bytes(),
                port,
                kind,
            });
            assert_eq!(parsed, expected, "{authority}");
        }
    }

    #[test]
    fn names_and_labels_are_limited() {
        let label = "a".repeat(MAX_LABEL);
        let name = format!("{label}.{label}.{label}.{}", "a".repeat(61));
        assert_eq!(name.len(), MAX_NAME);
        assert!(Authority::parse(name.as_bytes()).is_some());
        assert!(Authority::parse(format!("{name}.").as_bytes()).is_some());
        assert!(Authority::parse(format!("{name}a").as_bytes()).is_none());
        assert!(Authority::parse(format!("{name}a.").as_bytes()).is_none());
        assert!(Authority::parse(format!("{label}a").as_bytes()).is_none());
    }

    #[test]
    fn hosts_have_one_canonical_form() {
        // Authority, and the canonical form of its host.
        let rows: &[(&str, &str)] = &[
            ("EXAMPLE.Com", "example.com"),
            ("example.com.", "example.com"),
            ("Example.COM.:8080", "example.com"),
            ("127.0.0.1:80", "127.0.0.1"),
            ("[::1]", "[::1]"),
            ("[0:0:0:0:0:0:0:1]:80", "[::1]"),
            ("[2001:DB8::000A]", "[2001:db8::a]"),
        ];
        for &(authority, expected) in rows {
            let parsed = Authority::parse(authority.as_bytes()).unwrap();
            assert_eq!(parsed.lower_host(&mut [0; HOST_BUFFER]), expected, "{authority}");
        }
        let constructed = Authority {
            host: &[b'A'; 400],
            port: None,
            kind: Name,
        };
        assert_eq!(constructed.lower_host(&mut [0; HOST_BUFFER]), "a".repeat(HOST_BUFFER));
        let constructed = Authority {
            host: b"x",
            port: None,
            kind: Ipv6,
        };
        assert_eq!(constructed.lower_host(&mut [0; HOST_BUFFER]), "");
    }

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Some(authority) = Authority::parse(&bytes) {
                let harmless = |b: &u8| b.is_ascii_alphanumeric() || b"-_.[]:".contains(b);
                prop_assert!(authority.host.iter().all(harmless) && !authority.host.is_empty());
            }
        }

        #[test]
        fn each_address_has_one_host_form(address: std::net::Ipv6Addr, port: u16) {
            let long: Vec<String> = address.segments().iter().map(|part| format!("{part:04X}")).collect();
            let text = format!("[{}]:{port}", long.join(":"));
            let authority = Authority::parse(text.as_bytes()).unwrap();
            let mut buffer = [0; HOST_BUFFER];
            prop_assert_eq!(authority.lower_host(&mut buffer), format!("[{address}]"));
            prop_assert_eq!(authority.port, Some(port));
        }
    }
}
