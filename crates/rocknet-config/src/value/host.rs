//! Parses names of sites: host names, wildcards, ports and addresses.

use std::net::{IpAddr, SocketAddr};

use crate::message::short;
use crate::model::HostPattern;

/// Name of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SiteName {
    /// `example.com` or `*.example.com`.
    Host(HostPattern),
    /// `:8081`, or with an address `10.0.0.1:8081`.
    Port(Option<IpAddr>, u16),
    /// `10.0.0.1`.
    Address(IpAddr),
    /// `default`.
    Default,
}

/// Message and help of the finding for an invalid value.
pub(crate) type ValueError = (String, String);

/// Parses the name of a site.
pub(crate) fn site_name(text: &str) -> Result<SiteName, ValueError> {
    if text == "default" {
        return Ok(SiteName::Default);
    }
    let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(SiteName::Address(address));
    }
    if let Some(port) = text.strip_prefix(':') {
        let help = "write [site.\":8081\"] for the site of port 8081".to_owned();
        return match self::port(port) {
            Some(port) => Ok(SiteName::Port(None, port)),
            None => Err((format!("\"{}\" is not a port", short(text)), help)),
        };
    }
    if let Ok(socket) = text.parse::<SocketAddr>() {
        return Ok(SiteName::Port(Some(socket.ip()), socket.port()));
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        let host = rest.split('/').next().unwrap_or(rest);
        let message = format!("\"{}\" is a URL, not a name", short(text));
        return Err((
            message,
            format!("write the host alone: [site.\"{}\"], without {scheme}://", short(host)),
        ));
    }
    if let Some((host, number)) = text.rsplit_once(':')
        && let (Ok(_), Some(number)) = (host_pattern(host), port(number))
    {
        let message = format!("\"{}\" is a name with a port", short(text));
        return Err((
            message,
            format!("write [site.\"{}\"] and below it listen = [{number}]", short(host)),
        ));
    }
    host_pattern(text).map(SiteName::Host)
}

/// Parses a port of decimal digits.
fn port(text: &str) -> Option<u16> {
    // Rust would parse `+80` as a number, but other tools would not.
    if text.bytes().all(|b| b.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}

/// Parses a host name (RFC 1123 §2.1, and `_` as in the DNS), optionally after `*.`.
pub(crate) fn host_pattern(text: &str) -> Result<HostPattern, ValueError> {
    let lower = text.to_ascii_lowercase();
    let (name, wildcard) = match lower.strip_prefix("*.") {
        Some(rest) => (rest, true),
        None => (lower.as_str(), false),
    };
    let shown = short(text);
    let error = |message: &str, help: String| Err((format!("\"{shown}\" {message}"), help));
    if name.is_empty() {
        return error(
            "is not a host name",
            "write a name such as \"example.com\", or \"default\"".to_owned(),
        );
    }
    if name.contains('*') {
        let help = "`*` is only allowed as the first label: \"*.example.com\"".to_owned();
        return error("has a misplaced `*`", help);
    }
    if !name.is_ascii() {
        let help = "write its ASCII form, which begins with xn-- and is what browsers send".to_owned();
        return error("is not ASCII", help);
    }
    if let Some(rest) = name.strip_suffix('.') {
        let star = if wildcard { "*." } else { "" };
        return error(
            "ends with a dot",
            format!("write \"{star}{rest}\"; it matches requests with the dot too"),
        );
    }
    if name.len() > MAX_HOST_BYTES || name.split('.').any(|label| label.len() > MAX_LABEL_BYTES) {
        return error(
            "is too long",
            format!("a name has at most {MAX_HOST_BYTES} characters, a label {MAX_LABEL_BYTES}"),
        );
    }
    let good = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    for label in name.split('.') {
        if label.is_empty() {
            return error("has an empty label", "remove the extra dot".to_owned());
        }
        if !label.bytes().all(good) {
            return error(
                "is not a host name",
                "names contain letters, digits, `-`, `_` and dots".to_owned(),
            );
        }
        if label.starts_with('-') || label.ends_with('-') {
            return error("has a label that begins or ends with `-`", "remove the `-`".to_owned());
        }
    }
    // Browsers parse a name whose last label is a decimal or hexadecimal number as an IPv4 address, and so does the
    // server.
    let number = |last: &str| match last.strip_prefix("0x") {
        Some(digits) => digits.bytes().all(|b| b.is_ascii_hexdigit()),
        None => last.bytes().all(|b| b.is_ascii_digit()),
    };
    if name.rsplit('.').next().is_some_and(number) {
        return error(
            "is neither an address nor a name",
            "write four numbers, or a name that ends in letters".to_owned(),
        );
    }
    Ok(if wildcard {
        HostPattern::Wildcard(name.to_owned())
    } else {
        HostPattern::Exact(name.to_owned())
    })
}

/// Maximum length of a host name, in bytes: the 255 bytes of RFC 1035 §2.3.4 without the first length byte and the root
/// label.
pub(crate) const MAX_HOST_BYTES: usize = 253;

/// Maximum length of a label, in bytes (RFC 1035 §2.3.4).
pub(crate) const MAX_LABEL_BYTES: usize = 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn site_names_are_parsed() {
        let exact = |name: &str| Ok(SiteName::Host(HostPattern::Exact(name.to_owned())));
        let long = "a".repeat(64);
        // (name, parsed name or a part of the message)
        let rows: &[(&str, Result<SiteName, &str>)] = &[
            ("Example.COM", exact("example.com")),
            ("localhost", exact("localhost")),
            ("my_host.test", exact("my_host.test")),
            (
                "*.example.com",
                Ok(SiteName::Host(HostPattern::Wildcard("example.com".into()))),
            ),
            ("default", Ok(SiteName::Default)),
            (":8081", Ok(SiteName::Port(None, 8081))),
            (":0", Ok(SiteName::Port(None, 0))),
            ("10.0.0.1", Ok(SiteName::Address([10, 0, 0, 1].into()))),
            ("::1", Ok(SiteName::Address("::1".parse().unwrap()))),
            ("[::1]", Ok(SiteName::Address("::1".parse().unwrap()))),
            ("[::1]:80", Ok(SiteName::Port(Some("::1".parse().unwrap()), 80))),
            ("10.0.0.1:81", Ok(SiteName::Port(Some([10, 0, 0, 1].into()), 81))),
            (":", Err("not a port")),
            (":+80", Err("not a port")),
            (":65536", Err("not a port")),
            ("example.com:80", Err("name with a port")),
            ("https://example.com/x", Err("is a URL")),
            ("", Err("not a host name")),
            ("*", Err("`*`")),
            ("*.", Err("not a host name")),
            ("a*.com", Err("`*`")),
            ("a.*.com", Err("`*`")),
            ("bücher.de", Err("ASCII")),
            ("example.com.", Err("dot")),
            ("a..b", Err("empty label")),
            ("-a.com", Err("`-`")),
            ("a b", Err("not a host name")),
            ("10.0.0", Err("neither")),
            ("256.0.0.1", Err("neither")),
            ("a.0x1F", Err("neither")),
            ("a.0x", Err("neither")),
            ("a.0x1g", exact("a.0x1g")),
            (&long, Err("too long")),
        ];
        for (text, want) in rows {
            match (site_name(text), want) {
                (Ok(got), Ok(name)) => assert_eq!(got, *name, "{text}"),
                (Err((message, help)), Err(part)) => {
                    assert!(message.contains(part), "{text}: {message}");
                    assert!(!help.is_empty(), "{text}");
                }
                (got, want) => panic!("{text}: {got:?}, not {want:?}"),
            }
        }
    }
}
