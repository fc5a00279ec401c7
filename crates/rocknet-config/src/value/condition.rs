//! Parses the conditions of rules and of `bypass` of the response cache.

use crate::choice::Choice;
use crate::context::Check;
use crate::file::{Node, Table};
use crate::finding::Code;
use crate::message::short;
use crate::model::{
    Conditions, Existence, ExistenceCondition, HostPattern, RegexError, RegexPattern, RequestScheme, ValuePattern,
};
use crate::source::Span;
use crate::value::{access, field, host, path, pattern, typed};

/// Maximum number of conditions of one kind in a rule. More conditions are hard to read, and each costs a comparison.
const MAX_CONDITIONS: usize = 64;
/// Maximum number of addresses and networks in `client`. It exceeds [`MAX_CONDITIONS`], because they are found by
/// binary search.
const MAX_CLIENTS: usize = access::MAX_RANGES;

/// Reads a table of conditions. Invalid conditions are reported, and a configuration with a reported error is not
/// used. The words of `scheme` and `exists` were checked before, by the table of keys.
pub(crate) fn conditions(check: &mut Check<'_>, table: &Table) -> Conditions {
    let mut when = Conditions {
        headers: patterns(check, table, "header"),
        cookies: patterns(check, table, "cookie"),
        query: patterns(check, table, "query"),
        secure: typed::choice(Some(table), "scheme").map(|scheme: RequestScheme| scheme == RequestScheme::Https),
        ..Conditions::default()
    };
    when.paths = parse_all(check, table, "path", pattern::parse);
    for pattern in parse_all(check, table, "host", host_pattern) {
        match pattern {
            HostCondition::Name(name) => when.hosts.push(name),
            HostCondition::Regex(regex) => when.host_regexes.push(regex),
        }
    }
    when.methods = parse_all(check, table, "method", method);
    if let Some(node) = table.node("client") {
        check_length(check, "client", typed::elements(node).len(), node.span, MAX_CLIENTS);
        when.clients = access::ranges(check, "client", node);
    }
    when.existence = existence(check, table);
    when
}

/// Reads `unless`, one table or several, and returns the conditions of each.
pub(crate) fn exceptions(check: &mut Check<'_>, table: &Table) -> Vec<Conditions> {
    table.node("unless").map_or_else(Vec::new, |node| {
        sets(check, "unless", node, "unless = { path = \"/static/*\" }")
    })
}

/// Reads a key with one table of conditions or several, and returns the conditions of each.
pub(crate) fn sets(check: &mut Check<'_>, key: &str, node: &Node, example: &str) -> Vec<Conditions> {
    let elements = typed::elements(node);
    check_length(check, key, elements.len(), node.span, MAX_CONDITIONS);
    let mut all = Vec::new();
    for (table, span) in elements.iter().filter_map(|item| Some((item.as_table()?, item.span))) {
        if table.entries.is_empty() {
            let help = format!("write a condition, such as {example}, or remove it");
            check.error(Code::BadValue, span, format!("`{key}` has no condition"), help);
        }
        all.push(conditions(check, table));
    }
    all
}

/// Pattern of a host in a rule.
enum HostCondition {
    Name(HostPattern),
    Regex(RegexPattern),
}

/// Parses the pattern of a host: a name, `*.` and a domain, or a regular expression after `~`.
fn host_pattern(text: &str) -> Result<HostCondition, host::ValueError> {
    match regex(text)? {
        Some(regex) => Ok(HostCondition::Regex(regex)),
        None => host::host_pattern(text).map(HostCondition::Name),
    }
}

/// Parses a regular expression; `None` for a text that does not begin with `~`.
fn regex(text: &str) -> Result<Option<RegexPattern>, host::ValueError> {
    RegexPattern::parse(text)
        .transpose()
        .map_err(|RegexError { message, help }| (format!("\"{}\" {message}", short(text)), help))
}

/// Reads `exists` and `exists_at`.
fn existence(check: &mut Check<'_>, table: &Table) -> Option<ExistenceCondition> {
    let Some(node) = table.node("exists") else {
        if let Some(entry) = table.entries.get("exists_at") {
            let help = "write exists = \"file\", or remove `exists_at`";
            check.error(
                Code::Missing,
                entry.key,
                "`exists_at` has no effect without `exists`",
                help,
            );
        }
        return None;
    };
    check_length(check, "exists", typed::elements(node).len(), node.span, MAX_CONDITIONS);
    let kinds = typed::texts(node).filter_map(|(text, _)| Existence::of(&text.value));
    let at = table
        .node("exists_at")
        .and_then(|node| Some((node.written()?, node.span)));
    if let Some((written, span)) = at
        && let Err((message, help)) = path::path_template(&written.value)
    {
        check.bad_text(written, span, format!("`exists_at`: {message}"), help);
    }
    Some(ExistenceCondition {
        kinds: kinds.collect(),
        // `{path}` alone is the path of the request, which is the default.
        at: at
            .map(|(written, _)| written.value.clone())
            .filter(|at| at != path::PATH_PLACEHOLDER),
    })
}

/// Reads the strings of a key and parses each with `read`. Invalid strings are reported and left out.
fn parse_all<T>(
    check: &mut Check<'_>,
    table: &Table,
    key: &str,
    read: impl Fn(&str) -> Result<T, host::ValueError>,
) -> Vec<T> {
    let Some(node) = table.node(key) else {
        return Vec::new();
    };
    check_length(check, key, typed::elements(node).len(), node.span, MAX_CONDITIONS);
    let mut all = Vec::new();
    for (text, span) in typed::texts(node) {
        match read(&text.value) {
            Ok(one) => all.push(one),
            Err((message, help)) => check.bad_text(text, span, format!("`{key}`: {message}"), help),
        }
    }
    all
}

/// Reports an empty list, which would match every request, and a list that is too long.
fn check_length(check: &mut Check<'_>, key: &str, length: usize, span: Span, maximum: usize) {
    if length == 0 {
        let help = format!("remove `{key}` to match every request");
        check.error(Code::BadValue, span, format!("`{key}` is empty"), help);
    } else if length > maximum {
        let message = format!("`{key}` has more than {maximum} entries");
        check.error(Code::BadValue, span, message, "write a second rule");
    }
}

/// Parses the name of a method, which must be in upper case.
fn method(text: &str) -> Result<String, host::ValueError> {
    let shown = short(text);
    if text.is_empty() || !text.bytes().all(field::is_token_byte) {
        return Err((format!("\"{shown}\" is not a method"), "write \"GET\"".to_owned()));
    }
    // Methods are case-sensitive (RFC 9110 §9.1), and all methods in use are in upper case.
    if text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        let help = format!("write \"{}\"", shown.to_ascii_uppercase());
        return Err((format!("\"{shown}\" is not in upper case"), help));
    }
    Ok(text.to_owned())
}

/// Reads the table of a key. Returns pairs of the name of a header field, cookie or query parameter and the pattern of
/// its value. Invalid names of fields and cookies are reported and left out.
fn patterns(check: &mut Check<'_>, table: &Table, key: &str) -> Vec<(String, ValuePattern)> {
    let Some((node, written)) = table.node(key).and_then(|node| Some((node, node.as_table()?))) else {
        return Vec::new();
    };
    check_length(check, key, written.entries.len(), node.span, MAX_CONDITIONS);
    let mut all = Vec::new();
    for (name, entry) in written.in_order() {
        let Some(written) = entry.node.written() else { continue };
        let kind = match key {
            "header" => Some(("a header field name", "use letters, digits and `-`: \"User-Agent\"")),
            // The names of cookies are tokens as well (RFC 6265 §4.1.1).
            "cookie" => Some(("a cookie name", "use letters, digits, `-` and `_`: \"session_id\"")),
            _ => None,
        };
        if let Some((what, help)) = kind
            && (name.is_empty() || !name.bytes().all(field::is_token_byte))
        {
            let message = format!("\"{}\" is not {what}", short(name));
            check.error(Code::BadValue, entry.key, message, help);
            continue;
        }
        match regex(&written.value) {
            Ok(Some(regex)) => all.push((name.to_owned(), ValuePattern::Regex(regex))),
            Ok(None) => all.push((name.to_owned(), ValuePattern::Wildcard(written.value.clone()))),
            Err((message, help)) => check.bad_text(written, entry.node.span, format!("`{key}`: {message}"), help),
        }
    }
    all
}
