//! Parses `headers` of a proxy, of its health checks, of `certificate` and of `[tracing]`: header fields that are set
//! or removed in requests.

use std::collections::BTreeMap;

use crate::context::Check;
use crate::file::Table;
use crate::finding::Code;
use crate::message::short;
use crate::template::{Scope, Template, TemplateError};
use crate::value::field::{is_reserved, is_token};

/// Reads `headers` of a table; an empty value removes a field. Fields that only the server may set are refused.
/// `may_have_placeholders`: false if the requests are not made for a request of a client.
pub(crate) fn build(check: &mut Check<'_>, table: &Table, may_have_placeholders: bool) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    for (name, entry) in table.table("headers").map(Table::in_order).unwrap_or_default() {
        let Some(written) = entry.node.written() else { continue };
        let (error, help) = if !is_token(name) {
            (
                "is not a header field name",
                "use letters, digits and `-`: \"X-Api-Key\"",
            )
        } else if is_reserved(name) {
            (
                "can be set only by the server, because it frames messages or concerns one connection",
                "remove it",
            )
        } else if all.keys().any(|other| other.eq_ignore_ascii_case(name)) {
            ("is defined twice; names are not case-sensitive", "keep one of the two")
        } else {
            let is_value = |text: &str| text.chars().all(|c| (' '..='~').contains(&c) || c == '\t');
            let is_host = |text: &str| !text.is_empty() && !text.contains([' ', '/', '@', ',', '\t']);
            if may_have_placeholders
                && let Err(TemplateError { message, help }) = Template::parse(&written.value, Scope::Request)
            {
                let message = format!("`{}`: {message}", short(name));
                check.bad_text(written, entry.node.span, message, help);
                continue;
            }
            match written.value.trim() {
                text if is_value(text) && (!name.eq_ignore_ascii_case("host") || is_host(text)) => {
                    all.insert(name.to_owned(), text.to_owned());
                }
                _ => {
                    let message = format!("the value of `{}` is invalid", short(name));
                    check.bad_text(
                        written,
                        entry.node.span,
                        message,
                        "write one line of ASCII; for `Host`, a name and optionally a port",
                    );
                }
            }
            continue;
        };
        check.error(Code::BadValue, entry.key, format!("\"{}\" {error}", short(name)), help);
    }
    all
}
