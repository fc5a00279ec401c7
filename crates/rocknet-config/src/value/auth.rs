//! Parses `auth`: users and the hashes of their passwords, or another way to authenticate clients.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::context::Check;
use crate::file::{Node, Table, Value};
use crate::finding::{Code, Severity};
use crate::message::short;
use crate::model::{
    Auth, DEFAULT_REALM, HashError, MAX_USER_BYTES, PasswordAuth, PasswordHash, Settings, is_user_name,
};
use crate::source::Span;
use crate::value::{certificate_rule, forward_auth, oidc, path, signed_urls};

/// Maximum number of users in one `auth`. A larger number belongs in a password file, whose changes take effect
/// without a reload.
const MAX_USERS: usize = 1_000;

/// Maximum length of a realm, in bytes. Browsers show about this much of a realm.
const MAX_REALM_BYTES: usize = 128;

/// Keys of the long form of passwords.
const PASSWORD_KEYS: [&str; 3] = ["realm", "users", "file"];

/// Reads the value of a key in the long form of `auth` that selects how clients are authenticated. The arguments are
/// the table, the value, and what the settings inherit. Returns `None` after an error.
type ReadAuth = fn(&mut Check<'_>, &Table, &Node, Option<Auth>) -> Option<Auth>;

/// Ways to authenticate clients other than by password, by their key in the long form of `auth`. The first one whose
/// key is written applies. Its function reports keys of all other ways. `oidc::report_unused` reports those of OpenID
/// Connect; `signed` does not call it, because `signed_urls::build` reports every other key.
const WAYS: [(&str, ReadAuth); 4] = [
    ("certificate", |check, table, rule, _| {
        oidc::report_unused(check, table);
        certificate_rule::build(check, table, rule).map(Auth::Certificate)
    }),
    ("signed", |check, table, signed, _| {
        signed_urls::build(check, table, signed).map(Auth::Signed)
    }),
    ("oidc", |check, table, provider, inherited| {
        let inherited = match inherited {
            Some(Auth::Oidc(inherited)) => Some(inherited),
            _ => None,
        };
        oidc::build(check, table, provider, inherited).map(Auth::Oidc)
    }),
    ("forward", |check, table, forward, _| {
        oidc::report_unused(check, table);
        forward_auth::build(check, table, forward).map(Auth::Forward)
    }),
];

/// Reads `auth` into the settings, and replaces what they inherit. Nothing is set if `auth` is off or invalid.
pub(crate) fn read(check: &mut Check<'_>, node: &Node, settings: &mut Settings) {
    let inherited = settings.auth.take();
    let table = match &node.value {
        Value::Table(table) => Some(table),
        _ => None,
    };
    let mut ways = WAYS.iter();
    let way = table.and_then(|table| ways.find_map(|(key, read)| Some((table, table.node(key)?, read))));
    settings.auth = match way {
        Some((table, value, read)) => read(check, table, value, inherited),
        None => passwords(check, node).map(Auth::Passwords),
    };
}

/// Reads users and passwords; `None` if `auth` is off or invalid.
fn passwords(check: &mut Check<'_>, node: &Node) -> Option<PasswordAuth> {
    let table = match &node.value {
        Value::Boolean(true) => {
            let message = "`auth = true` names no users";
            check.error(Code::BadValue, node.span, message, EXAMPLE);
            return None;
        }
        Value::Table(table) => table,
        _ => return None,
    };
    let (names, file, realm) = match is_long_form(table) {
        true => {
            forward_auth::report_unused(check, table);
            oidc::report_unused(check, table);
            (table.table("users"), table.node("file"), table.node("realm"))
        }
        false => (Some(table), None, None),
    };
    if file.is_none() && names.is_none_or(|names| names.entries.is_empty()) {
        check.error(Code::Missing, node.span, "`auth` names no user", EXAMPLE);
        return None;
    }
    Some(PasswordAuth {
        realm: realm
            .and_then(|node| self::realm(check, node))
            .unwrap_or_else(|| DEFAULT_REALM.to_owned()),
        users: names.map(|names| users(check, names)).unwrap_or_default(),
        file: file.and_then(|node| self::file(check, node)),
    })
}

/// Returns true if a table has a key of the long form. Any other table maps users to hashes.
fn is_long_form(table: &Table) -> bool {
    let ways = WAYS.iter().map(|(key, _)| *key);
    ways.chain(PASSWORD_KEYS).any(|key| table.node(key).is_some())
}

/// Reads the path of a password file. An unusable file is a site error; see [`Check::site_error`]. A hash is refused,
/// because it was probably written for a user named `file`.
fn file(check: &mut Check<'_>, node: &Node) -> Option<PathBuf> {
    if node.as_text().is_some_and(|text| PasswordHash::parse(text).is_ok()) {
        let help = "for a user named `file`, write auth = { users = { file = \"…\" } }";
        check.error(
            Code::BadValue,
            node.span,
            "`file` takes the path of a file, not a hash",
            help,
        );
        return None;
    }
    let path = path::file(check, "auth.file", node)?;
    if check.env.kind(&path).is_some() {
        for finding in check.env.password_file_findings(&path) {
            match finding.severity {
                Severity::Error => check.site_error(Code::BadValue, node.span, finding.message, finding.help),
                Severity::Warning => check.warning(Code::Dangerous, node.span, finding.message, finding.help),
            }
        }
    }
    Some(path)
}

/// Reads `realm`; `None` after an error.
fn realm(check: &mut Check<'_>, node: &Node) -> Option<String> {
    let written = node.written()?;
    let text = &written.value;
    let is_plain = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if text.is_empty() || text.len() > MAX_REALM_BYTES || !is_plain {
        let message = format!("`realm` takes 1 to {MAX_REALM_BYTES} printable ASCII characters");
        check.bad_text(written, node.span, message, "write realm = \"staff only\"");
        return None;
    }
    Some(text.clone())
}

/// Reads a table of users and hashes. Invalid entries are reported and left out.
fn users(check: &mut Check<'_>, table: &Table) -> BTreeMap<String, PasswordHash> {
    let mut users = BTreeMap::new();
    for (at, (name, entry)) in table.in_order().into_iter().enumerate() {
        if at == MAX_USERS {
            let help = "keep them in a file: auth = { file = \"/etc/rocknet/htpasswd\" }";
            check.error(Code::BadValue, entry.key, format!("more than {MAX_USERS} users"), help);
            break;
        }
        if !is_user_name(name) {
            let message = match name {
                "" => "a user name is empty".to_owned(),
                name => format!("\"{}\" is not a valid user name", short(name)),
            };
            let help = format!("user names have 1 to {MAX_USER_BYTES} bytes, without `:` and control characters");
            check.error(Code::BadValue, entry.key, message, help);
            continue;
        }
        let Some(written) = entry.node.written() else { continue };
        let what = format!("the password of `{}`", short(name));
        if let Some(hash) = password_hash(check, &written.value, entry.node.span, &what) {
            users.insert(name.to_owned(), hash);
        }
    }
    users
}

/// Parses the hash of a password. `what`: subject of the error message, such as "the password".
pub(crate) fn password_hash(check: &mut Check<'_>, text: &str, span: Span, what: &str) -> Option<PasswordHash> {
    match PasswordHash::parse(text) {
        Ok(hash) => Some(hash),
        Err(error) => {
            let help = match error {
                HashError::TooCostly(_) => "create a new hash with `rocknet hash-password`",
                HashError::Empty | HashError::PlainText | HashError::Refused(_) | HashError::Malformed(_) => {
                    "write a hash from `rocknet hash-password`"
                }
            };
            check.error(Code::BadValue, span, format!("{what} {error}"), help);
            None
        }
    }
}

/// Help for an `auth` without users.
const EXAMPLE: &str = "write auth = { bob = \"…\" } with a hash from `rocknet hash-password`, or auth = { file = \"/etc/rocknet/htpasswd\" }";
