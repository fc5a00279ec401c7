//! Parses patterns of routes and redirects, and the targets of redirects.

use crate::captures::{CaptureNames, TargetPart};
use crate::message::short;
use crate::model::{Pattern, RegexError, RegexPattern};
use crate::template::{Piece, Scope, Template, TemplateError};
use crate::value::host::ValueError;
use crate::value::{path, regex};

/// Maximum length of a pattern or target, in bytes. It is the default limit of request targets, so with this limit a
/// longer pattern could never match.
const MAX_PATTERN_BYTES: usize = 8 * 1024;

/// Maximum number of `*` in one pattern. More stars would make matching expensive and the pattern unreadable.
const MAX_STARS: usize = 8;

/// Parses a pattern: `/exact`, `/prefix/*`, a glob, or a regular expression after `~`.
pub(crate) fn parse(text: &str) -> Result<Pattern, ValueError> {
    let shown = short(text);
    let error = |message: &str, help: &str| Err((format!("\"{shown}\" {message}"), help.to_owned()));
    if text.is_empty() {
        return error("is empty", "write a path such as \"/api/*\"");
    }
    if text.len() > MAX_PATTERN_BYTES {
        return error("is too long", "no request has such a long path");
    }
    if let Some(parsed) = RegexPattern::parse(text) {
        return match parsed {
            Ok(regex) => Ok(Pattern::Regex(regex)),
            Err(RegexError { message, help }) => Err((format!("\"{shown}\" {message}"), help)),
        };
    }
    if text == "*" {
        return error("is not a path", "write \"/*\" for the whole site");
    }
    // A regular expression without `~`, such as `^/a/(.*)$`, or a modifier of nginx, as in `= /a`.
    if let Some(error) = regex::error(text) {
        return Err(error);
    }
    if text.contains("**") {
        return error(
            "contains `**`",
            "`/*` at the end matches everything below; elsewhere write one `*`",
        );
    }
    if !text.starts_with('/') && !text.starts_with('*') {
        let help = format!("write \"/{shown}\", or \"*{shown}\" for every path with this ending");
        return Err((format!("\"{shown}\" does not begin with `/`"), help));
    }
    if let Some(error) = path::path_error(text) {
        return Err(error);
    }
    let stars = text.matches('*').count();
    if stars > MAX_STARS {
        return error("contains too many `*`", "eight are allowed");
    }
    Ok(match text.strip_suffix('*') {
        _ if stars == 0 => Pattern::Exact(text.to_owned()),
        Some(prefix) if stars == 1 && prefix.ends_with('/') => Pattern::Prefix(prefix.to_owned()),
        _ => Pattern::Glob(text.to_owned()),
    })
}

/// Checks the target of a redirect: a path, or an absolute http or https URL. Captures, such as `{*}` for the text that
/// the first `*` of the pattern `from` matched, cannot be part of the host. If they make a path begin with `//`, the
/// slashes are reduced to one when `Location` is written.
pub(crate) fn target(from: &Pattern, text: &str) -> Result<(), ValueError> {
    let names = CaptureNames::of_pattern(from);
    target_form(&names, text)?;
    loop_error(from, &names, text).map_or(Ok(()), Err)
}

/// Returns message and help if a redirect leads to a path that its own pattern matches.
pub(crate) fn loop_error(from: &Pattern, names: &CaptureNames, text: &str) -> Option<ValueError> {
    leads_back(from, names, text).then(|| {
        (
            format!("\"{}\" is matched by the pattern of its own redirect", short(text)),
            "clients would be redirected in a loop; name another path".to_owned(),
        )
    })
}

/// Returns a target with `sample` in place of each capture.
fn with_captures(names: &CaptureNames, target: &str, sample: &str) -> String {
    let parts = names.split(target).into_iter().map(|part| match part {
        TargetPart::Text(text) => text,
        TargetPart::Capture(_) => sample,
    });
    parts.collect()
}

/// Checks the syntax of a target. `names`: captures that it may contain.
pub(crate) fn target_form(names: &CaptureNames, text: &str) -> Result<(), ValueError> {
    let shown = short(text);
    let error = |message: &str, help: &str| Err((format!("\"{shown}\" {message}"), help.to_owned()));
    if text.is_empty() {
        return error("is empty", "write a path such as \"/new\"");
    }
    if text.len() > MAX_PATTERN_BYTES {
        return error("is too long", "clients do not follow such a long target");
    }
    // These characters are refused, and braces are checked below. The remaining characters that URLs cannot have (RFC
    // 3986 §2), such as `|`, are percent-encoded when `Location` is written.
    if text.contains(|c: char| c.is_control() || c == ' ' || c == '\\' || c == '"' || c == '<' || c == '>') {
        return error(
            "contains a character that URLs cannot have",
            "percent-encode it: a space is %20",
        );
    }
    if !text.is_ascii() {
        return error(
            "is not ASCII",
            "percent-encode it, as a browser does when a URL is copied from the address bar",
        );
    }
    // Two slashes at the beginning are followed by a host name, so the redirect would lead to another server.
    if text.starts_with("//") {
        return error(
            "leads to another host",
            "begin a path with one `/`, another host with https://",
        );
    }
    if let Some(name) = foreign_placeholder(text) {
        let message = format!("\"{shown}\" contains `{name}`, which is not a placeholder");
        return Err((
            message,
            "write {*} for the part that the first `*` of the path matched, or {1} for a group of a regular expression"
                .to_owned(),
        ));
    }
    if let Some((message, help)) = names.error(text) {
        return error(&message, &help);
    }
    let plain = with_captures(names, text, "");
    let template = match Template::parse(&plain, Scope::Request) {
        Ok(template) => template,
        Err(TemplateError { message, help }) => return Err((format!("\"{shown}\": {message}"), help)),
    };
    let path = plain.split(['?', '#']).next().unwrap_or_default();
    let is_followed = |at: usize| at + "{target}".len() < plain.len();
    if path.find("{target}").is_some_and(is_followed) {
        return error(
            "has text after {target}, which ends with the query of the request",
            "end it in {target}, or write {path}",
        );
    }
    let mut texts = template.pieces().iter().filter_map(|piece| match piece {
        Piece::Text(text) => Some(text),
        Piece::Value(_) => None,
    });
    if texts.any(|text| text.contains(['{', '}'])) {
        return error(
            "contains a brace that begins no placeholder",
            "write {*} or {host}; percent-encode other braces as %7B and %7D",
        );
    }
    let after_scheme = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match after_scheme {
        Some(rest) => {
            let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
            // The values of these placeholders begin with a slash.
            let end = [authority.find("{path}"), authority.find("{target}")];
            let authority = &authority[..end.into_iter().flatten().min().unwrap_or(authority.len())];
            // Both values are hosts.
            let authority = authority.replace("{host}", "h").replace("{authority}", "h");
            let authority = authority.as_str();
            if authority.is_empty() {
                return error("names no host", "write https://example.com/path");
            }
            // `https://example.com{*}` with `.evil.org` for `{*}` would redirect to any host.
            if with_captures(names, authority, "") != authority {
                return error(
                    "has a capture in its host",
                    "write a `/` before it: https://example.com/{*}",
                );
            }
            if authority.contains('@') {
                return error("has a user in its host", "remove the part before `@`");
            }
            if authority.contains('{') {
                return error(
                    "has a placeholder in its host",
                    "only {host} and {authority} can be part of a host",
                );
            }
            let good = |b: u8| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b);
            if authority.starts_with(':') || !authority.bytes().all(good) {
                return error("names no valid host", "write https://example.com/path");
            }
        }
        None if !["/", "{path}", "{target}"].iter().any(|start| text.starts_with(start)) => {
            return error("is neither a path nor a URL", "begin it with `/`, https:// or http://");
        }
        None => {}
    }
    Ok(())
}

/// Returns a capture in the syntax of another server, `$1` or `{R:1}`; `None` if there is no such capture. If the
/// target contains `$`, only the name after the first `$` is examined.
fn foreign_placeholder(text: &str) -> Option<&str> {
    // Returns the end of the longest run of characters from `start` that `taken` accepts.
    let end = |start: usize, taken: fn(&char) -> bool| {
        let length: usize = text[start..].chars().take_while(taken).map(char::len_utf8).sum();
        start + length
    };
    if let Some(at) = text.find('$') {
        let end = end(at + 1, |c| c.is_ascii_alphanumeric() || *c == '_');
        let name = &text[at..end];
        let is_number = name.len() == 2 && name.ends_with(|c: char| c.is_ascii_digit());
        return is_number.then_some(name);
    }
    text.contains("{R:1}").then_some("{R:1}")
}

/// Returns true if a redirect leads to a path that its own pattern matches.
fn leads_back(from: &Pattern, names: &CaptureNames, to: &str) -> bool {
    let path = to.split(['?', '#']).next().unwrap_or(to);
    // The values of placeholders are unknown here.
    let is_known = path.starts_with('/') && !with_captures(names, path, "").contains('{');
    if !is_known {
        return false;
    }
    // The values of captures are unknown here, so a sample name replaces them.
    from.matches(&with_captures(names, path, "x"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_exact_prefix_or_glob() {
        let exact = |text: &str| Ok(Pattern::Exact(text.to_owned()));
        let prefix = |text: &str| Ok(Pattern::Prefix(text.to_owned()));
        let glob = |text: &str| Ok(Pattern::Glob(text.to_owned()));
        // (pattern, parsed pattern or a part of the message)
        let rows: &[(&str, Result<Pattern, &str>)] = &[
            ("/", exact("/")),
            ("/hello", exact("/hello")),
            ("/*", prefix("/")),
            ("/api/*", prefix("/api/")),
            ("/api*", glob("/api*")),
            ("*.zip", glob("*.zip")),
            ("/a/*/*", glob("/a/*/*")),
            ("/users/*/photo", glob("/users/*/photo")),
            ("/100%", exact("/100%")),
            ("", Err("empty")),
            ("*", Err("not a path")),
            ("api", Err("begin with `/`")),
            ("/a/**", Err("`**`")),
            ("/a//b", Err("`//`")),
            ("/a/../b", Err("`..`")),
            ("/a?x=1", Err("query")),
            ("/a%20b", Err("percent")),
            ("/a\\b", Err("backslash")),
            ("/a\n", Err("control")),
            ("/*a*a*a*a*a*a*a*a*a", Err("too many")),
            ("~^/a(b", Err("at character 4, `(b`: unclosed group")),
            ("~*", Err("no text")),
        ];
        for (text, want) in rows {
            match (parse(text), want) {
                (Ok(got), Ok(pattern)) => assert_eq!(got, *pattern, "{text}"),
                (Err((message, _)), Err(part)) => assert!(message.contains(part), "{text}: {message}"),
                (got, want) => panic!("{text}: {got:?}, not {want:?}"),
            }
        }
    }

    #[test]
    fn targets_are_checked() {
        // (pattern, target, a part of the message if the target is refused)
        let rows: &[(&str, &str, Result<(), &str>)] = &[
            ("/old", "/new", Ok(())),
            ("/old", "https://example.com", Ok(())),
            ("/old/*", "/new/{*}?x=1#y", Ok(())),
            ("/old/*", "/{*}", Ok(())),
            ("/old/*", "https://example.com/{*}", Ok(())),
            ("/old", "//evil.org", Err("another host")),
            ("/old", "/\\evil.org", Err("character")),
            ("/old", "/a b", Err("character")),
            ("/old", "/a\r\nX: y", Err("character")),
            ("/old", "/ä", Err("ASCII")),
            ("/old", "", Err("empty")),
            ("/old", "new", Err("neither")),
            ("/old", "javascript:alert(1)", Err("neither")),
            ("/old", "ftp://example.com/", Err("neither")),
            ("/old", "/new/{*}", Err("no `*`")),
            ("/old/*", "{*}", Err("neither")),
            ("/old/*", "/{*}/{*}", Ok(())),
            ("/old/*", "/{1}", Err("no regular expression")),
            ("~^/old/(\\d+)$", "/new/{1}", Ok(())),
            ("~^/old/(\\d+)$", "/new/{2}", Err("is {1}")),
            ("~^/old/(?<id>\\d+)$", "/new/{id}", Ok(())),
            ("~^/old", "/older/{0}", Err("its own redirect")),
            ("/old/*", "/{x}", Err("`{x}` is not a placeholder")),
            ("/old/*", "/{}", Err("brace")),
            ("/old/*", "https://{host}{target}", Ok(())),
            ("/old/*", "https://www.{host}/{*}?{query}&ip={client.ip}", Ok(())),
            ("/old/*", "{path}.html", Ok(())),
            ("/old/*", "{target}.html", Err("text after {target}")),
            ("/old/*", "/x{target}?a=1", Err("text after {target}")),
            ("/old/*", "/x{target}?next={target}", Err("text after {target}")),
            ("/old/*", "/x{target}{target}", Err("text after {target}")),
            ("/old/*", "/x{target}", Ok(())),
            ("/old/*", "/login?next={target}&x", Ok(())),
            ("/old/*", "https://{user}/", Err("placeholder in its host")),
            ("/old/*", "/{status}", Err("before the response")),
            ("/old/*", "/new/$1", Err("`$1`, which is not a placeholder")),
            ("/old/*", "https://example.com$request_uri", Err("`$request_uri`")),
            ("/old/*", "/new{uri}", Err("`{uri}` is not a placeholder")),
            ("/old/*", "/price$", Ok(())),
            ("/old/*", "/a$b/$10", Ok(())),
            ("/old/*", "https://example.com{*}", Err("in its host")),
            ("/old/*", "https://a@example.com/", Err("user")),
            ("/old/*", "https:///x", Err("names no host")),
            ("/old/*", "https://:80/x", Err("names no valid host")),
            ("/old/*", "https://a,b/x", Err("names no valid host")),
            ("/old/*", "https://[::1]:8080/x", Ok(())),
            ("/old", "/old", Err("its own redirect")),
            ("/old", "/old?again", Err("its own redirect")),
            ("/*", "/new", Err("its own redirect")),
            ("/old/*", "/old/new/{*}", Err("its own redirect")),
            ("*.php", "/index.php", Err("its own redirect")),
            ("/a*", "/b/a", Ok(())),
        ];
        for (from, to, want) in rows {
            let from = parse(from).unwrap();
            match (target(&from, to), want) {
                (Ok(()), Ok(())) => {}
                (Err((message, _)), Err(part)) => assert!(message.contains(part), "{to}: {message}"),
                (got, want) => panic!("{from:?} {to}: {got:?}, not {want:?}"),
            }
        }
    }
}
