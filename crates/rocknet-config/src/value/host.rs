//! Names of sites: host names, wildcards, and the forms that are addresses instead.

use std::net::{IpAddr, SocketAddr};

use crate::message::short;
use crate::model::HostPattern;

/// The form of a site's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SiteName {
    /// `example.com`, `*.example.com`
    Host(HostPattern),
    /// `:8081`, and with an address `10.0.0.1:8081`
    Port(Option<IpAddr>, u16),
    /// `10.0.0.1`
    Address(IpAddr),
    /// `default`
    Default,
}

/// Message and help for a text that cannot be read.
pub(crate) type ValueError = (String, String);

pub(crate) fn site_name(text: &str) -> Result<SiteName, ValueError> {
    if text == "default" {
        return Ok(SiteName::Default);
    }
    let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(SiteName::Address(address));
    }
    if let Some(port) = text.strip_prefix(':') {
        let help = "write [site.\":8081\"] for a site that has port 8081 to itself".to_owned();
        return match self::port(port) {
            Some(port) => Ok(SiteName::Port(None, port)),
            None => Err((format!("\"{}\" is no port", short(text)), help)),
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

fn port(text: &str) -> Option<u16> {
    // Rust reads `+80` as a number, and no other tool does.
    if text.bytes().all(|b| b.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}

/// A host name (RFC 1123 §2.1, and `_` as the DNS allows), or `*.` and one.
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
            "is no host name",
            "write a name such as \"example.com\", or \"default\"".to_owned(),
        );
    }
    if name.contains('*') {
        let help = "a `*` stands first and for whole names: \"*.example.com\"".to_owned();
        return error("has a `*` where none may be", help);
    }
    if !name.is_ascii() {
        let help = "write its ASCII form, which begins with xn--; that is what browsers send".to_owned();
        return error("is not in ASCII", help);
    }
    if let Some(rest) = name.strip_suffix('.') {
        let star = if wildcard { "*." } else { "" };
        return error(
            "ends with a dot",
            format!("write \"{star}{rest}\"; names with the dot reach it too"),
        );
    }
    if name.len() > MAX_HOST_BYTES || name.split('.').any(|label| label.len() > MAX_LABEL_BYTES) {
        return error(
            "is too long",
            format!("a name has at most {MAX_HOST_BYTES} characters, a part {MAX_LABEL_BYTES}"),
        );
    }
    let good = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    for label in name.split('.') {
        if label.is_empty() {
            return error("has an empty part", "remove the dot too many".to_owned());
        }
        if !label.bytes().all(good) {
            return error("is no host name", "names hold letters, digits, `-` and dots".to_owned());
        }
        if label.starts_with('-') || label.ends_with('-') {
            return error("has a part that begins or ends with `-`", "remove the `-`".to_owned());
        }
    }
    // Browsers take a name whose last part is a number, decimal or hexadecimal, for an address, and refuse it when it is
    // none; so does the server.
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

/// RFC 1035 §2.3.4, less the root's own byte and length bytes at both ends.
const MAX_HOST_BYTES: usize = 253;

/// RFC 1035 §2.3.4.
const MAX_LABEL_BYTES: usize = 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_a_site_is() {
        let exact = |name: &str| Ok(SiteName::Host(HostPattern::Exact(name.to_owned())));
        let long = "a".repeat(64);
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
            (":", Err("no port")),
            (":+80", Err("no port")),
            (":65536", Err("no port")),
            ("example.com:80", Err("name with a port")),
            ("https://example.com/x", Err("is a URL")),
            ("", Err("no host name")),
            ("*", Err("`*`")),
            ("*.", Err("no host name")),
            ("a*.com", Err("`*`")),
            ("a.*.com", Err("`*`")),
            ("bücher.de", Err("ASCII")),
            ("example.com.", Err("dot")),
            ("a..b", Err("empty part")),
            ("-a.com", Err("`-`")),
            ("a b", Err("no host name")),
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
