//! `php`: who runs it.

use std::path::PathBuf;

use crate::check::listen::MAX_SOCKET_PATH_BYTES;
use crate::check::words::short;
use crate::check::{Check, value};
use crate::file::{Node, Value};
use crate::finding::Code;
use crate::model::{Php, PhpVersion};

/// `None`: nobody, or what is written cannot be meant.
pub(super) fn build(check: &mut Check<'_>, node: &Node, has_root: bool) -> Option<Php> {
    let written = match &node.value {
        Value::Boolean(true) => {
            let message = "`php = true` does not say which PHP";
            check.error(Code::BadValue, node.span, message, EXAMPLE);
            return None;
        }
        Value::Text(written) => written,
        _ => return None,
    };
    let text = written.value.as_str();
    if !has_root {
        let help = "write root = \"/var/www\" beside it";
        check.error(Code::Missing, node.span, "`php` has no root to find scripts in", help);
        return None;
    }
    if let Some(version) = version(text) {
        return Some(Php::Own {
            version,
            socket: PathBuf::new(),
        });
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
            Err(_) if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => {
                "write two numbers, \"8.2\": the newest of its releases is meant".to_owned()
            }
            Err(_) if text.contains('/') => format!("write \"unix:{}\" for a Unix socket", short(text)),
            Err(_) => EXAMPLE.to_owned(),
        };
        check.bad_text(written, node.span, message, help);
    }
    php
}

const EXAMPLE: &str =
    "write \"auto\", a version (\"8.2\"), or where php-fpm listens: \"unix:/run/php/php-fpm.sock\", \"127.0.0.1:9000\"";

/// `auto`, `8`, `8.2`.
fn version(text: &str) -> Option<PhpVersion> {
    if text == "auto" {
        return Some(PhpVersion::Newest);
    }
    let number = |part: &str| {
        let is_number = (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u8>().ok().filter(|_| is_number)
    };
    let (major, minor) = match text.split_once('.') {
        Some((major, minor)) => (number(major)?, Some(number(minor)?)),
        None => (number(text)?, None),
    };
    Some(PhpVersion::Of { major, minor })
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
        for (text, expected, place) in [
            ("auto", Some("auto"), None),
            ("8.2", Some("8.2"), None),
            ("8.10", Some("8.10"), None),
            ("8", Some("8"), None),
            ("8.2.3", None, None),
            ("8.", None, None),
            (".2", None, None),
            ("8.+2", None, None),
            ("127.0.0.1:9000", None, Some("127.0.0.1:9000")),
            ("php:9000", None, Some("php:9000")),
            ("[::1]:9000", None, Some("[::1]:9000")),
            ("::1:9000", None, None),
            ("php:0", None, None),
            ("php:70000", None, None),
            (":9000", None, None),
            ("a/b:9000", None, None),
            ("fpm", None, None),
        ] {
            assert_eq!(version(text).map(|v| v.to_string()).as_deref(), expected, "{text}");
            assert_eq!(tcp(text).map(|php| php.to_string()).as_deref(), place, "{text}");
        }
    }
}
