//! Parses `php`: the FastCGI application that runs PHP scripts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::binding::{self, Section};
use crate::context::Check;
use crate::file::{Node, Table, Value};
use crate::finding::Code;
use crate::message::short;
use crate::model::{Php, PhpSettings, PhpVersion};
use crate::value::{address, params, typed};

/// Maximum lengths of the name and of the value of a setting, in bytes. PHP itself has no settings as long.
const MAX_NAME: usize = 128;
const MAX_VALUE: usize = 4096;

/// Reads `php`; `None` if PHP is off or the value is invalid. `has_root`: true if the site or route has a root.
pub(crate) fn build(check: &mut Check<'_>, node: &Node, has_root: bool) -> Option<Php> {
    if !matches!(node.value, Value::Boolean(true) | Value::Text(_) | Value::Table(_)) {
        return None;
    }
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
    match &node.value {
        Value::Table(table) => in_table(check, table),
        Value::Text(written) => match version(&written.value) {
            Some(version) => Some(managed(version, PhpSettings::default())),
            None if looks_like_version(&written.value) => {
                refuse_version(check, "php", node);
                None
            }
            None => address::build(check, "php", node, EXAMPLE).map(Php::External),
        },
        // `true`
        _ => Some(managed(PhpVersion::Newest, PhpSettings::default())),
    }
}

/// Reads the table of `php`.
fn in_table(check: &mut Check<'_>, table: &Table) -> Option<Php> {
    let mut settings = PhpSettings {
        ini: ini(check, table),
        env: params::variables(check, table, "env"),
        ..PhpSettings::default()
    };
    binding::read(check, Section::Php, Some(table), &mut settings);
    let Some(node) = table.node("version") else {
        return Some(managed(PhpVersion::Newest, settings));
    };
    let written = node.written()?;
    if let Some(version) = version(&written.value) {
        return Some(managed(version, settings));
    }
    if written.value.contains(['/', ':']) {
        let message = "`version` takes a version, not an address".to_owned();
        let help = "the settings of a php-fpm that you run yourself are in its own files; write its address without a \
                    table: php = \"unix:/path\"";
        check.bad_text(written, node.span, message, help.to_owned());
    } else {
        refuse_version(check, "version", node);
    }
    None
}

fn managed(version: PhpVersion, settings: PhpSettings) -> Php {
    Php::Managed {
        version,
        settings: Box::new(settings),
        // Set later by the PHP manager.
        socket: PathBuf::new(),
    }
}

/// Reads the settings of `ini`.
fn ini(check: &mut Check<'_>, table: &Table) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (name, entry) in table.table("ini").map(Table::in_order).unwrap_or_default() {
        if !is_setting_name(name) {
            let message = format!("\"{}\" is not the name of a PHP setting", short(name).escape_debug());
            let help = match is_reserved(name) {
                true => "php.ini reads this word as a value",
                false => "names begin with a letter and contain letters, digits, `_`, `.` and `-`: memory_limit",
            };
            check.error(Code::BadValue, entry.key, message, help);
            continue;
        }
        let value = match &entry.node.value {
            // PHP reads 1 as on and 0 as off.
            Value::Boolean(is_on) => u8::from(*is_on).to_string(),
            Value::Integer(number) => number.to_string(),
            Value::Text(written) => {
                let value = &written.value;
                if value.len() > MAX_VALUE || value.contains(|c: char| c.is_control()) {
                    let message = format!("the value of `{name}` is too long or has a control character");
                    let help = format!("write one line of at most {MAX_VALUE} bytes");
                    check.bad_text(written, entry.node.span, message, help);
                    continue;
                }
                // The pool file has no quotes in which all of these characters stand for themselves.
                if value.contains('\'') && value.contains(['"', '\\', '$']) {
                    let message = format!("the value of `{name}` has a single quote together with `\"`, `\\` or `$`");
                    let help = "php-fpm cannot read such a value: write it into php.ini or .user.ini".to_owned();
                    check.bad_text(written, entry.node.span, message, help);
                    continue;
                }
                value.clone()
            }
            _ => continue,
        };
        all.insert(name.to_owned(), value);
    }
    all
}

/// Words that stand for values in `php.ini`. php-fpm does not start if a setting has such a name.
const RESERVED: [&str; 8] = ["null", "yes", "no", "true", "false", "on", "off", "none"];

/// Returns true for a text that can be the name of a setting of PHP.
fn is_setting_name(name: &str) -> bool {
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.len() <= MAX_NAME
        && name.bytes().all(is_name_byte)
        && !is_reserved(name)
}

fn is_reserved(name: &str) -> bool {
    RESERVED.iter().any(|word| name.eq_ignore_ascii_case(word))
}

/// Help for a `php` that is neither a version nor an address.
const EXAMPLE: &str = "write \"auto\", a version (\"8.2\"), or the address of php-fpm: \"unix:/run/php/php-fpm.sock\", \"127.0.0.1:9000\"";

/// Returns true for numbers and dots, such as `8.2.3`.
fn looks_like_version(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && text.contains('.')
}

/// Reports a text that is not a version. `key`: its key.
fn refuse_version(check: &mut Check<'_>, key: &str, node: &Node) {
    let Some(written) = node.written() else { return };
    let message = format!("`{key}` cannot be \"{}\"", short(typed::as_written(node)));
    let help = match looks_like_version(&written.value) {
        true => "write two numbers, \"8.2\", for its newest release",
        false => "write \"auto\" or a version: \"8.2\"",
    };
    check.bad_text(written, node.span, message, help.to_owned());
}

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
    fn names_of_settings_are_distinguished_from_values() {
        for name in [
            "memory_limit",
            "opcache.memory_consumption",
            "a",
            "x-y",
            "nullable",
            "null.x",
        ] {
            assert!(is_setting_name(name), "{name}");
        }
        let long = "a".repeat(MAX_NAME + 1);
        for name in [
            "",
            "null",
            "NULL",
            "off",
            ".",
            "-x",
            "1",
            "_",
            "a b",
            "a]",
            "a\n",
            "é",
            long.as_str(),
        ] {
            assert!(!is_setting_name(name), "{name}");
        }
    }

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
