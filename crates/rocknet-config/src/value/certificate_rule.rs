//! Parses `certificate` of `auth`: the requirements of client certificates.

use std::collections::BTreeMap;

use crate::context::Check;
use crate::file::{Node, Table, Text, Value};
use crate::finding::Code;
use crate::message::short;
use crate::model::{CertificateRule, CertificateUser, DistinguishedName, NameRule, attribute_kind};
use crate::source::Span;
use crate::value::proxy::headers;
use crate::value::typed;

/// Maximum number of names in one list. A certificate is compared with each of them.
const MAX_LIST: usize = 1_000;

/// Keys of other ways to authenticate clients, which cannot be combined with `certificate`.
const OTHERS: [&str; 10] = [
    "oidc",
    "users",
    "file",
    "realm",
    "forward",
    "headers",
    "user_field",
    "sign_in",
    "timeout",
    "signed",
];

/// Reads the rule of an `auth` with the key `certificate`. `node`: value of `certificate`. Returns `None` if it is
/// `false` or of the wrong type. Invalid names in a table are reported and left out.
pub(crate) fn build(check: &mut Check<'_>, auth: &Table, node: &Node) -> Option<CertificateRule> {
    for other in OTHERS {
        if let Some(entry) = auth.entries.get(other) {
            let message = format!("`certificate` cannot be combined with `{other}`");
            let help = match other {
                "headers" => "write it inside: certificate = { headers = { X-Client = \"{tls.client.subject}\" } }",
                _ => "remove one of them; `client = \"required\"` of `tls` demands a certificate beside a password",
            };
            check.error(Code::Conflict, entry.key, message, help);
        }
    }
    let table = match &node.value {
        Value::Boolean(true) => return Some(CertificateRule::default()),
        Value::Table(table) => table,
        Value::Boolean(false) => {
            let help = "write auth = false to admit every client";
            check.error(
                Code::BadValue,
                node.span,
                "`certificate = false` requires nothing",
                help,
            );
            return None;
        }
        _ => return None,
    };
    Some(CertificateRule {
        subject: names(check, table, "subject"),
        issuer: names(check, table, "issuer"),
        dns: list(check, table, "dns", "\"ci.example.com\" or \"*.ops.example.com\"", dns),
        email: list(check, table, "email", "\"bob@example.com\" or \"*@example.com\"", email),
        uri: list(check, table, "uri", "\"spiffe://example.org/ns/prod/*\"", uri),
        fingerprint: list(check, table, "fingerprint", FINGERPRINT_HELP, fingerprint),
        user: typed::choice::<CertificateUser>(Some(table), "user"),
        // `true`: the fields may have placeholders.
        headers: headers::build(check, table, true),
    })
}

const FINGERPRINT_HELP: &str = "the SHA-256 of `openssl x509 -noout -fingerprint -sha256`";

/// Reads a list of texts. An invalid or empty list is reported, because it would require nothing.
fn list<T>(
    check: &mut Check<'_>,
    table: &Table,
    key: &str,
    example: &str,
    read: fn(&str) -> Result<T, &'static str>,
) -> Vec<T> {
    let Some(node) = table.node(key) else { return Vec::new() };
    let texts: Vec<_> = typed::texts(node).collect();
    check_length(check, key, texts.len(), node.span);
    let mut found = Vec::new();
    for (text, span) in texts {
        match read(&text.value) {
            Ok(value) => found.push(value),
            Err(reason) => bad(check, key, (text, span), reason, &format!("write {example}")),
        }
    }
    found
}

/// Reports a list that is empty or too long.
fn check_length(check: &mut Check<'_>, key: &str, length: usize, span: Span) {
    if length == 0 || length > MAX_LIST {
        let message = format!("`{key}` must have 1 to {MAX_LIST} entries");
        let help = match length {
            0 => "remove it, or write the values to accept",
            _ => "shorten the list",
        };
        check.error(Code::BadValue, span, message, help);
    }
}

fn bad(check: &mut Check<'_>, key: &str, (text, span): (&Text, Span), reason: &str, help: &str) {
    let message = format!("`{key}`: \"{}\" {reason}", short(&text.value));
    check.bad_text(text, span, message, help.to_owned());
}

/// Reads `subject` or `issuer`: whole names, or a table of attributes.
fn names(check: &mut Check<'_>, table: &Table, key: &str) -> Vec<NameRule> {
    let Some(node) = table.node(key) else { return Vec::new() };
    if let Value::Table(attributes) = &node.value {
        return attributes_of(check, key, node, attributes);
    }
    let texts: Vec<_> = typed::texts(node).collect();
    check_length(check, key, texts.len(), node.span);
    let mut rules = Vec::new();
    for (text, span) in texts {
        match DistinguishedName::parse(&text.value) {
            Ok(name) => rules.push(NameRule::Whole(name)),
            Err(reason) => {
                let help =
                    "write the whole name, as `openssl x509 -noout -subject` shows it, or attributes: { CN = \"bob\" }";
                bad(check, key, (text, span), reason, help);
            }
        }
    }
    rules
}

/// Reads a table of attributes, each with one accepted value or several.
fn attributes_of(check: &mut Check<'_>, key: &str, node: &Node, attributes: &Table) -> Vec<NameRule> {
    let mut required: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, entry) in attributes.in_order() {
        let Some(kind) = attribute_kind(name) else {
            let message = format!("`{key}`: \"{}\" is no attribute of a name", short(name));
            let help = "write CN, O, OU, C, L, ST, emailAddress, UID, DC, serialNumber or an object identifier";
            check.error(Code::BadValue, entry.key, message, help);
            continue;
        };
        let texts: Vec<_> = typed::texts(&entry.node).collect();
        check_length(check, name, texts.len(), entry.node.span);
        let mut accepted = Vec::new();
        for (text, span) in texts {
            match text.value.is_empty() || text.value.contains(char::is_control) {
                true => bad(
                    check,
                    name,
                    (text, span),
                    "is no value of an attribute",
                    "write its exact value",
                ),
                false => accepted.push(text.value.clone()),
            }
        }
        // `CN`, `cn` and `2.5.4.3` are one attribute.
        if required.insert(kind, accepted).is_some() {
            let message = format!("`{key}`: `{}` is defined twice", short(name));
            check.error(Code::Conflict, entry.key, message, "keep one of the two");
        }
    }
    check_length(check, key, required.len(), node.span);
    vec![NameRule::Attributes(required)]
}

fn dns(text: &str) -> Result<String, &'static str> {
    let name = text.strip_prefix("*.").unwrap_or(text);
    let is_label = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    match name.split('.').all(is_label) {
        true => Ok(text.to_ascii_lowercase()),
        false => Err("is no DNS name"),
    }
}

fn email(text: &str) -> Result<String, &'static str> {
    match text.rsplit_once('@') {
        Some((user, domain)) if is_graphic(user) && dns(domain).is_ok() && !domain.contains('*') => Ok(text.to_owned()),
        _ => Err("is no email address"),
    }
}

fn uri(text: &str) -> Result<String, &'static str> {
    let path = text.strip_suffix("/*").unwrap_or(text);
    let has_scheme = path
        .split_once(':')
        .is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty());
    // A pattern must name its authority. `spiffe://*` would accept any: without `/*` it is `spiffe:/`, which is refused
    // below because of its last slash.
    let has_authority = path
        .split_once("://")
        .is_none_or(|(_, rest)| !rest.is_empty() && !rest.starts_with('/'));
    match is_graphic(path) && !path.contains('*') && has_scheme && has_authority && !path.ends_with('/') {
        true => Ok(text.to_owned()),
        false => Err("is no URI"),
    }
}

fn is_graphic(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn fingerprint(text: &str) -> Result<[u8; 32], &'static str> {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b':').collect();
    let mut fingerprint = [0; 32];
    if digits.len() != 2 * fingerprint.len() {
        return Err("is no SHA-256, which has 64 hexadecimal digits");
    }
    for (byte, pair) in fingerprint.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else {
            return Err("has characters that are no hexadecimal digits");
        };
        *byte = (high * 16 + low) as u8;
    }
    Ok(fingerprint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_names_are_accepted() {
        for (text, is_valid) in [
            ("a.test", true),
            ("*.a.test", true),
            ("*", false),
            ("*.", false),
            ("a.*", false),
            ("a..test", false),
            (".a", false),
            ("a.test.", false),
            ("a b", false),
            ("", false),
        ] {
            assert_eq!(dns(text).is_ok(), is_valid, "{text}");
        }
        for (text, is_valid) in [
            ("bob@a.test", true),
            ("*@a.test", true),
            ("@a.test", false),
            ("bob", false),
            ("bob@", false),
            ("bob@*.test", false),
            ("b b@a.test", false),
        ] {
            assert_eq!(email(text).is_ok(), is_valid, "{text}");
        }
        for (text, is_valid) in [
            ("spiffe://a.test/x", true),
            ("spiffe://a.test/*", true),
            ("urn:x:1", true),
            ("spiffe://*", false),
            ("spiffe:///*", false),
            ("/x", false),
            ("spiffe://a*/x", false),
            ("spiffe://a/x/", false),
            ("*", false),
            ("spiffe:/*", false),
        ] {
            assert_eq!(uri(text).is_ok(), is_valid, "{text}");
        }
        let hex = "0a".repeat(32);
        assert_eq!(fingerprint(&hex), Ok([10; 32]));
        assert_eq!(fingerprint(&["0A"; 32].join(":")), Ok([10; 32]));
        assert!(fingerprint(&"0a".repeat(20)).is_err() && fingerprint(&"0g".repeat(32)).is_err());
    }
}
