//! Parses `php`: the FastCGI application that runs PHP scripts.

use std::path::PathBuf;

use crate::context::Check;
use crate::file::{Node, Value};
use crate::finding::Code;
use crate::message::short;
use crate::model::{Php, PhpVersion};
use crate::value::{address, typed};

/// Reads `php`; `None` if PHP is off or the value is invalid. `has_root`: true if the site or route has a root.
pub(crate) fn build(check: &mut Check<'_>, node: &Node, has_root: bool) -> Option<Php> {
    let written = match &node.value {
        Value::Boolean(true) => {
            let message = "`php = true` names no version or address";
            check.error(Code::BadValue, node.span, message, EXAMPLE);
            return None;
        }
        Value::Text(written) => written,
        _ => return None,
    };
    let text = written.value.as_str();
    if !has_root {
        let help = "write root = \"/var/www\" beside it";
        check.error(
            Code::Missing,
            node.span,
            "`php` needs a `root` that contains the scripts",
            help,
        );
        return None;
    }
    if let Some(version) = version(text) {
        return Some(Php::Managed {
            version,
            // Set later by the PHP manager.
            socket: PathBuf::new(),
        });
    }
    // Numbers and dots that are not a version of one or two parts, such as `8.2.3`.
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && text.contains('.') {
        let message = format!("`php` cannot be \"{}\"", short(typed::as_written(node)));
        let help = "write two numbers, \"8.2\", for its newest release".to_owned();
        check.bad_text(written, node.span, message, help);
        return None;
    }
    address::build(check, "php", node, EXAMPLE).map(Php::External)
}

/// Help for a `php` that is neither a version nor an address.
const EXAMPLE: &str = "write \"auto\", a version (\"8.2\"), or the address of php-fpm: \"unix:/run/php/php-fpm.sock\", \"127.0.0.1:9000\"";

/// Parses `auto`, `8` or `8.2`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_distinguished_from_addresses() {
        for (text, expected) in [
            ("auto", Some("auto")),
            ("8.2", Some("8.2")),
            ("8.10", Some("8.10")),
            ("8", Some("8")),
            ("8.2.3", None),
            ("8.", None),
            (".2", None),
            ("8.+2", None),
            ("127.0.0.1:9000", None),
            ("fpm", None),
        ] {
            assert_eq!(version(text).map(|v| v.to_string()).as_deref(), expected, "{text}");
        }
    }
}
