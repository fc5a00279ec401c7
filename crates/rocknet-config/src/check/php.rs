//! `php`: who runs it.

use crate::check::listen::MAX_SOCKET_PATH_BYTES;
use crate::check::words::short;
use crate::check::{Check, keys, value};
use crate::file::{Node, Value};
use crate::finding::Code;
use crate::model::Php;

/// `None`: nobody, or what is written cannot be meant.
pub(super) fn build(check: &mut Check<'_>, node: &Node, has_root: bool) -> Option<Php> {
    let written = match &node.value {
        Value::Boolean(true) => {
            let message = "`php = true` does not say where PHP is";
            check.error(Code::BadValue, node.span, message, EXAMPLE);
            return None;
        }
        Value::Text(written) => written,
        _ => return None,
    };
    let text = written.value.as_str();
    if text == "auto" || is_version(text) {
        let what = format!("php = \"{}\"", short(text));
        keys::not_yet(check, &what, "PHP that RockNet starts itself", node.span, EXAMPLE);
        return None;
    }
    if !has_root {
        let help = "write root = \"/var/www\" beside it";
        check.error(Code::Missing, node.span, "`php` has no root to find scripts in", help);
        return None;
    }
    if let Some(path) = text
        .strip_prefix("unix:")
        .or_else(|| text.starts_with('/').then_some(text))
    {
        return unix(check, path, node);
    }
    let php = tcp(text);
    if php.is_none() {
        let message = format!("`php` cannot be \"{}\"", short(value::shown(node)));
        let help = match text.parse::<u16>() {
            Ok(port) => format!("add the host: \"127.0.0.1:{port}\""),
            Err(_) if text.contains('/') => format!("write \"unix:{}\" for a Unix socket", short(text)),
            Err(_) => EXAMPLE.to_owned(),
        };
        check.bad_text(written, node.span, message, help);
    }
    php
}

const EXAMPLE: &str = "write the socket of php-fpm, \"unix:/run/php/php-fpm.sock\", or its \"127.0.0.1:9000\"";

/// `8`, `8.2`.
fn is_version(text: &str) -> bool {
    let mut parts = text.split('.');
    let is_number = |part: &str| (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.next().is_some_and(is_number) && parts.next().is_none_or(is_number) && parts.next().is_none()
}

fn unix(check: &mut Check<'_>, path: &str, node: &Node) -> Option<Php> {
    let resolved = check.resolve(node.span, path);
    if path.is_empty() || path.ends_with('/') || path.contains(|c: char| c.is_control()) {
        check.error(Code::BadValue, node.span, "`php` takes the path of a socket", EXAMPLE);
        return None;
    }
    if resolved.as_os_str().len() > MAX_SOCKET_PATH_BYTES {
        let message = format!("the path of a socket has at most {MAX_SOCKET_PATH_BYTES} bytes");
        check.error(
            Code::BadValue,
            node.span,
            message,
            "have php-fpm listen at a shorter one",
        );
        return None;
    }
    Some(Php::Unix(resolved))
}

fn tcp(text: &str) -> Option<Php> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port != 0)?;
    let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => address.parse::<std::net::Ipv6Addr>().ok()?.to_string(),
        None => {
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
            (!host.is_empty() && host.len() <= MAX_NAME && host.bytes().all(is_name)).then(|| host.to_owned())?
        }
    };
    Some(Php::Tcp { host, port })
}

/// Longest name of the DNS.
const MAX_NAME: usize = 253;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_places_are_told_apart() {
        for (text, version, place) in [
            ("8.2", true, None),
            ("8", true, None),
            ("8.2.3", false, None),
            ("127.0.0.1:9000", false, Some("127.0.0.1:9000")),
            ("php:9000", false, Some("php:9000")),
            ("[::1]:9000", false, Some("[::1]:9000")),
            ("::1:9000", false, None),
            ("php:0", false, None),
            ("php:70000", false, None),
            (":9000", false, None),
            ("a/b:9000", false, None),
            ("fpm", false, None),
        ] {
            assert_eq!(is_version(text), version, "{text}");
            assert_eq!(tcp(text).map(|php| php.to_string()).as_deref(), place, "{text}");
        }
    }
}
