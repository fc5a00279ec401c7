//! Parses `redirects`, `cookie_paths` and `cookie_domains` of a proxy: pairs of an address and its replacement, such as
//! `redirects = { "http://app.internal:8080/two/" = "/two/" }`.

use crate::context::Check;
use crate::file::{Entry, Table, Value};
use crate::finding::Code;
use crate::message::short;
use crate::model::AddressRewrites;
use crate::value::path::site_path_error;

/// Maximum number of pairs of one key. Each pair is compared with each address.
const MAX_PAIRS: usize = 64;

/// Side of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PairSide {
    /// The beginning of an address, which is replaced.
    From,
    /// Its replacement.
    To,
}

/// Message and help for a value that is not an address.
type PairError = (String, String);

/// Reads `redirects`.
pub(super) fn redirects(check: &mut Check<'_>, table: Option<&Table>) -> AddressRewrites {
    let mut rewrites = pairs(check, table, "redirects", |text, _| address_error(text));
    if let Some(node) = table.and_then(|table| table.node("redirects"))
        && rewrites.pairs.iter().any(|(from, to)| is_scheme(from) != is_scheme(to))
    {
        let message = "`redirects`: a scheme alone is replaced only by a scheme alone";
        let help = "write \"http://\" = \"https://\", or addresses with a host";
        check.error(Code::BadValue, node.span, message, help);
    }
    for (from, to) in rewrites.pairs.iter_mut().filter(|(from, _)| !is_scheme(from)) {
        trim_slash(from);
        trim_slash(to);
    }
    rewrites
}

/// Reads `cookie_paths`.
pub(super) fn cookie_paths(check: &mut Check<'_>, table: Option<&Table>) -> AddressRewrites {
    let mut rewrites = pairs(check, table, "cookie_paths", |text, _| {
        let separator = || {
            let message = format!(
                "\"{}\" contains `;` or `,`, which end the path of a cookie",
                short(text)
            );
            text.contains([';', ',']).then(|| (message, "remove it".to_owned()))
        };
        text_error(text).or_else(|| site_path_error(text)).or_else(separator)
    });
    for (from, to) in &mut rewrites.pairs {
        trim_slash(from);
        trim_slash(to);
    }
    rewrites
}

/// Reads `cookie_domains`.
pub(super) fn cookie_domains(check: &mut Check<'_>, table: Option<&Table>) -> AddressRewrites {
    let mut rewrites = pairs(check, table, "cookie_domains", |text, side| {
        let message = format!("\"{}\" is not a domain", short(text));
        let help = "write a host name such as \"app.internal\"; an empty value removes the domain".to_owned();
        let is_valid = is_domain(text) || text.is_empty() && side == PairSide::To;
        (!is_valid).then_some((message, help))
    });
    for (from, to) in &mut rewrites.pairs {
        for domain in [from, to] {
            *domain = domain.trim_start_matches('.').to_ascii_lowercase();
        }
    }
    rewrites
}

/// Reads a switch or a map. `error` returns the message and help for an invalid text of a side.
fn pairs(
    check: &mut Check<'_>,
    table: Option<&Table>,
    key: &str,
    error: impl Fn(&str, PairSide) -> Option<PairError>,
) -> AddressRewrites {
    let Some(node) = table.and_then(|table| table.node(key)) else {
        return AddressRewrites::default();
    };
    let map = match &node.value {
        Value::Boolean(false) => return AddressRewrites::OFF,
        Value::Table(map) => map.in_order(),
        _ => return AddressRewrites::default(),
    };
    if map.len() > MAX_PAIRS {
        let message = format!("`{key}` has more than {MAX_PAIRS} pairs");
        check.error(
            Code::BadValue,
            node.span,
            message,
            "write pairs with shorter beginnings",
        );
        return AddressRewrites::default();
    }
    let mut all = AddressRewrites::default();
    for (from, entry) in map {
        if let Some(pair) = pair(check, key, from, entry, &error) {
            all.pairs.push(pair);
        }
    }
    // The longest beginning is the most specific one.
    all.pairs.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
    all
}

/// Reads one pair; `None` after an error.
fn pair(
    check: &mut Check<'_>,
    key: &str,
    from: &str,
    entry: &Entry,
    error: impl Fn(&str, PairSide) -> Option<PairError>,
) -> Option<(String, String)> {
    let written = entry.node.written()?;
    if let Some((message, help)) = error(from, PairSide::From) {
        check.error(Code::BadValue, entry.key, format!("`{key}`: {message}"), help);
        return None;
    }
    if let Some((message, help)) = error(&written.value, PairSide::To) {
        check.bad_text(written, entry.node.span, format!("`{key}`: {message}"), help);
        return None;
    }
    Some((from.to_owned(), written.value.clone()))
}

/// Returns the error of a text that is neither a path, nor a URL, nor a scheme with `://`.
fn address_error(text: &str) -> Option<PairError> {
    if let Some(error) = text_error(text) {
        return Some(error);
    }
    if text.starts_with('/') && !text.starts_with("//") {
        return site_path_error(text);
    }
    let rest = ["http://", "https://"]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme));
    let Some(rest) = rest else {
        let message = format!("\"{}\" is neither a path nor a URL", short(text));
        return Some((message, "write \"/path/\" or \"http://host/path/\"".to_owned()));
    };
    let (host, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
    if (host.is_empty() && !path.is_empty()) || host.contains(['@', '?', '#', '\\']) {
        let message = format!("\"{}\" has no valid host", short(text));
        return Some((message, "write \"http://host/path/\"".to_owned()));
    }
    site_path_error(path).filter(|_| !path.is_empty())
}

/// Returns the error of a text with a character that an address in a header field cannot contain.
fn text_error(text: &str) -> Option<PairError> {
    let is_variable = text.contains(['$', '{', '}']);
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && !b"\"<>^`|".contains(&byte);
    let help = match is_variable {
        // Replacements for nginx often begin with `$scheme://$host/`.
        true => "write the path alone: a redirect to a path leads to the host that the client requested",
        false => "percent-encode it",
    };
    (is_variable || !text.bytes().all(is_allowed)).then(|| {
        let message = format!(
            "\"{}\" contains a character that an address cannot contain",
            short(text)
        );
        (message, help.to_owned())
    })
}

/// Returns true for `http://` and `https://`.
fn is_scheme(text: &str) -> bool {
    matches!(text, "http://" | "https://")
}

/// Removes the slash at the end. It is implied, because a pair applies only if the address ends after the beginning or
/// continues with `/`, `?` or `#`.
fn trim_slash(text: &mut String) {
    if text.ends_with('/') {
        text.pop();
    }
}

fn is_domain(text: &str) -> bool {
    let text = text.strip_prefix('.').unwrap_or(text);
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    !text.is_empty() && text.len() <= 253 && text.bytes().all(is_allowed)
}
