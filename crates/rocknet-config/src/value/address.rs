//! Parses the address of an application: `unix:/path`, `/path`, or `host:port`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::context::Check;
use crate::file::Node;
use crate::message::short;
use crate::model::Host;
use crate::value::host::MAX_HOST_BYTES;
use crate::value::socket::{self, Help};
use crate::value::typed;

/// Reads the address of `key`; `None` after an error. `example`: help for an invalid address.
pub(crate) fn build(check: &mut Check<'_>, key: &str, node: &Node, example: &str) -> Option<Host> {
    let written = node.written()?;
    let text = written.value.as_str();
    let path = text.strip_prefix("unix:");
    if let Some(path) = path.or_else(|| text.starts_with('/').then_some(text)) {
        let shorter = "let the application listen on a shorter path";
        let help = Help { example, shorter };
        return socket::path(check, key, path, node.span, help).map(Host::Unix);
    }
    let host = tcp(text);
    if host.is_none() {
        let message = format!("`{key}` cannot be \"{}\"", short(typed::as_written(node)));
        let help = match text.parse::<u16>() {
            Ok(port) => format!("add the host: \"127.0.0.1:{port}\""),
            Err(_) if text.contains("://") => "write the address without a scheme: \"127.0.0.1:9000\"".to_owned(),
            Err(_) if text.contains('/') => format!("write \"unix:{}\" for a Unix socket", short(text)),
            Err(_) => example.to_owned(),
        };
        check.bad_text(written, node.span, message, help);
    }
    host
}

/// Parses `127.0.0.1:9000`, `[::1]:9000` or `app.internal:9000`.
pub(crate) fn tcp(text: &str) -> Option<Host> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port != 0)?;
    if let Some(address) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return Some(Host::Address(address.parse::<Ipv6Addr>().ok()?.into(), port));
    }
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        return Some(Host::Address(IpAddr::V4(address), port));
    }
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    // A name whose last label is a number would be parsed as an IPv4 address by other programs.
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
    let is_valid_name = !host.is_empty() && host.len() <= MAX_HOST_BYTES && host.bytes().all(is_name) && !is_number;
    is_valid_name.then(|| Host::Name(host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_parsed() {
        for (text, expected) in [
            ("127.0.0.1:9000", Some("127.0.0.1:9000")),
            ("php:9000", Some("php:9000")),
            ("[::1]:9000", Some("[::1]:9000")),
            ("::1:9000", None),
            ("php:0", None),
            ("php:70000", None),
            (":9000", None),
            ("a/b:9000", None),
            ("fpm", None),
            ("256.0.0.1:9000", None),
            ("app.1:9000", None),
            ("8.2", None),
        ] {
            assert_eq!(tcp(text).map(|host| host.to_string()).as_deref(), expected, "{text}");
        }
        assert!(matches!(tcp("10.0.0.1:1"), Some(Host::Address(..))));
    }
}
