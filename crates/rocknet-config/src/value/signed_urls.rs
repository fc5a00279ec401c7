//! Parses `signed` of `auth`: the keys of signed URLs.

use std::path::PathBuf;

use crate::context::Check;
use crate::file::{Node, Table, Value};
use crate::finding::{Code, Severity};
use crate::model::{PasswordHash, SignedUrls};
use crate::value::path;

/// Reads an `auth` with the key `signed`. `node`: value of `signed`. Returns `None` if it is `false` or invalid, which
/// is an error.
pub(crate) fn build(check: &mut Check<'_>, table: &Table, node: &Node) -> Option<SignedUrls> {
    for (name, entry) in &table.entries {
        if name != "signed" {
            let message = format!("`signed` cannot be combined with `{name}`");
            let help = "remove one of them, or use a route of its own for signed URLs";
            check.error(Code::Conflict, entry.key, message, help);
        }
    }
    match &node.value {
        Value::Boolean(true) => Some(SignedUrls::Generated),
        Value::Boolean(false) => {
            let help = "write auth = false to admit every request";
            check.error(Code::BadValue, node.span, "`signed = false` names no clients", help);
            None
        }
        _ => file(check, node).map(SignedUrls::File),
    }
}

/// Reads the path of a key file. An unusable file is a site error; see [`Check::site_error`]. A hash is refused,
/// because it was probably written for a user named `signed`.
fn file(check: &mut Check<'_>, node: &Node) -> Option<PathBuf> {
    if node.as_text().is_some_and(|text| PasswordHash::parse(text).is_ok()) {
        let help = "for a user named `signed`, write auth = { users = { signed = \"…\" } }";
        check.error(
            Code::BadValue,
            node.span,
            "`signed` takes the path of a file, not a hash",
            help,
        );
        return None;
    }
    let path = path::file(check, "auth.signed", node)?;
    if check.env.kind(&path).is_some() {
        for finding in check.env.url_key_findings(&path) {
            match finding.severity {
                Severity::Error => check.site_error(Code::BadValue, node.span, finding.message, finding.help),
                Severity::Warning => check.warning(Code::Dangerous, node.span, finding.message, finding.help),
            }
        }
    }
    Some(path)
}
