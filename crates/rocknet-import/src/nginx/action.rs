//! Translates actions of nginx: `return`, `rewrite` and `if`.

use rocknet_config::template::Scope;

use crate::condition::{self, Condition, Conditions};
use crate::directive::Directive;
use crate::document::{Notes, RuleStage, Site};
use crate::file_rules::RESOLVED;
use crate::hosts::HttpsRedirect;
use crate::marks::{self, MARKS, unmarked};
use crate::placeholder;
use crate::regex;
use crate::value::Value;

use super::area::LocationArea;

/// Result of a `return`.
pub(super) enum ReturnAction {
    /// A redirect to a path or URL, which may have placeholders. `/{*}` at the end of `target` stands for the path of
    /// the request.
    Redirect {
        target: String,
        status: u64,
    },
    Respond {
        status: u64,
        body: Option<String>,
    },
    /// A redirect to HTTPS that keeps the path and the query: `return 301 https://$host$request_uri`.
    Https(HttpsRedirect),
}

/// Returns the action of a `return`; `None` if it has no counterpart, for example because of a variable.
pub(super) fn parse(directive: &Directive) -> Option<ReturnAction> {
    let words = directive.words();
    let (status, text) = match words[..] {
        [status] if status.parse::<u64>().is_ok() => (status.parse().ok()?, None),
        [url] => (302, Some(url)),
        [status, text] => (status.parse().ok()?, Some(text)),
        _ => return None,
    };
    let is_redirect = matches!(status, 301 | 302 | 303 | 307 | 308);
    let Some(text) = text else {
        return (!is_redirect).then_some(ReturnAction::Respond { status, body: None });
    };
    if !is_redirect {
        let body = placeholder::from_nginx(text, Scope::Request)?;
        return Some(ReturnAction::Respond {
            status,
            body: Some(body),
        });
    }
    // A constant address, followed by the path of the request.
    for end in ["$request_uri", "$uri", "$uri$is_args$args"] {
        if let Some(rest) = text.strip_suffix(end) {
            let rest = rest.strip_suffix('/').unwrap_or(rest);
            if let Some(host) = rest.strip_prefix("https://") {
                let is_own = ["$host", "$server_name", "$http_host"].contains(&host);
                if is_own || !host.contains(['$', '/', ':']) {
                    let host = if is_own { String::new() } else { host.to_owned() };
                    return Some(ReturnAction::Https(HttpsRedirect { host, status }));
                }
            }
            let target = format!("{rest}/{{*}}");
            if !rest.contains('$') {
                return Some(ReturnAction::Redirect { target, status });
            }
        }
    }
    let target = text.strip_prefix("$scheme://$host").unwrap_or(text);
    // RockNet keeps the query itself, unless the target has one.
    let target = target.strip_suffix("$is_args$args").unwrap_or(target);
    // The site serves every name of the server, so the requested host takes the place of `$server_name`.
    let target = placeholder::from_nginx(&target.replace("$server_name", "$host"), Scope::Request)?;
    // In the host of a target, RockNet refuses all placeholders but `{host}` and `{authority}`. `{target}` and `{path}`
    // begin with a slash, so they may follow the host directly. `{target}` ends with the query of the request, so
    // RockNet refuses text after a `{target}` in the path, such as `/x{target}?a=1`. In a query, text may follow it.
    let authority = target
        .split_once("://")
        .map_or("", |(_, rest)| rest.split(['/', '?']).next().unwrap_or(""));
    let plain = ["{host}", "{authority}", "{target}", "{path}"]
        .iter()
        .fold(authority.to_owned(), |rest, placeholder| rest.replace(placeholder, ""));
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let is_followed = |at: usize| at + "{target}".len() < target.len();
    if plain.contains('{') || path.find("{target}").is_some_and(is_followed) {
        return None;
    }
    let is_target = ["/", "http://", "https://", "{target}", "{path}"]
        .iter()
        .any(|start| target.starts_with(start));
    is_target.then_some(ReturnAction::Redirect { target, status })
}

/// Translates a `rewrite`. `area`: paths of its location; `None` for a server. `tests`: alternative sets of conditions.
/// The rewrite applies if all conditions of one set hold.
pub(super) fn rewrite(directive: &Directive, site: &mut Site, area: Option<&LocationArea>, tests: &[Conditions]) {
    let words = directive.words();
    let (expression, replacement, flag) = match words[..] {
        [expression, replacement] => (expression, replacement, ""),
        [expression, replacement, flag] => (expression, replacement, flag),
        _ => return site.skip(directive, "it has no known form"),
    };
    let keeps_query = !replacement.ends_with('?');
    let replacement = replacement.strip_suffix('?').unwrap_or(replacement);
    let marked = marked(replacement);
    let found = marked.as_deref().and_then(|marked| regex::rewrite(expression, marked));
    let Some(found) = found else {
        let message =
            "the expression or its target has no counterpart: write [[site.\"…\".rule]] with `path` and `rewrite`";
        return site.skip(directive, message);
    };
    let target = unmarked(&found.target);
    let has_captures = target.contains("{*}") || target.contains("{1}");
    let within = match area {
        None => Some(found.patterns),
        // Only the paths of the location; a pattern for all paths is replaced by those of the location.
        Some(area) => area.within(&found.patterns, has_captures),
    };
    let Some(patterns) = within else {
        return site.skip(directive, "the expression is not limited to its location: write a rule");
    };
    if let Some(difference) = found.difference {
        site.differs(directive, difference);
    }
    // A `?` at the end drops the query of the request. `{target}` contains this query already, so it gets no `?`.
    let target = if keeps_query || target.ends_with("{target}") {
        target
    } else {
        target + "?"
    };
    let is_url = target.starts_with("http://") || target.starts_with("https://");
    let status = match flag {
        "permanent" => Some(301),
        "redirect" => Some(302),
        _ if is_url => Some(302),
        _ => None,
    };
    let is_unconditional =
        matches!(tests, [conditions] if conditions.is_empty()) && area.is_none_or(|area| area.is_alone(&patterns));
    let keys = match status {
        Some(status) if is_unconditional => {
            for pattern in patterns {
                site.redirect(&pattern, &target, status, directive.line);
            }
            return;
        }
        Some(status) => vec![("redirect", Value::Text(target)), ("status", Value::Number(status))],
        None => {
            let mut keys = vec![("rewrite", Value::Text(target))];
            // Outside of a location, both flags end the rules. In a location, neither does: RockNet serves the
            // rewritten path by its own route, so the rules for that path must apply, too (`RuleStage::Rewrite`).
            if matches!(flag, "last" | "break") && area.is_none() {
                keys.push(("last", Value::Flag(true)));
            }
            keys
        }
    };
    let stage = area.map_or(RuleStage::Site, |_| RuleStage::Rewrite);
    add(directive, site, stage, area, &patterns, tests, &keys);
}

/// Returns a replacement with marked placeholders ([`marks`]) in place of the variables that have placeholders. Other
/// variables stay, and [`regex::rewrite`] refuses them. Returns `None` if the text contains braces or a mark, or if
/// `$request_uri` stands anywhere but at its end.
fn marked(replacement: &str) -> Option<String> {
    // RockNet keeps the query of the request anyway.
    let text = ["$is_args$args", "?$args", "?$query_string", "$is_args$query_string"]
        .iter()
        .find_map(|end| replacement.strip_suffix(end))
        .unwrap_or(replacement);
    // A URL of the requested host becomes a path: `$scheme://$host/a` becomes `/a`.
    let text = match text.strip_prefix("$scheme://").and_then(|rest| {
        ["$host", "$http_host", "$server_name"]
            .iter()
            .find_map(|host| rest.strip_prefix(host))
    }) {
        Some(path) if path.starts_with(['/', '$']) => path.to_owned(),
        _ => text.replace("$server_name", "$host"),
    };
    if text.contains(['{', '}']) || text.contains(MARKS.0) {
        return None;
    }
    let mut out = text;
    for (variable, name) in [
        ("$http_host", "authority"),
        ("$host", "host"),
        ("$scheme", "scheme"),
        ("$request_uri", "target"),
        ("$document_uri", "path"),
        ("$uri", "path"),
    ] {
        out = out.replace(variable, &marks::marked(name));
    }
    let target = marks::marked("target");
    let is_at_end = out.find(&target).is_none_or(|at| at + target.len() == out.len());
    is_at_end.then_some(out)
}

/// Adds a rule with the keys of `action` for each set of conditions in `tests`, on the paths of `patterns`. Paths for
/// which nginx selects another location than that of `area` are exceptions of the rule. If a rule cannot express one of
/// the sets, adds only a note.
pub(super) fn add(
    directive: &Directive,
    site: &mut Site,
    stage: RuleStage,
    area: Option<&LocationArea>,
    patterns: &[String],
    tests: &[Conditions],
    action: &[(&'static str, Value)],
) {
    let is_whole = patterns.iter().any(|pattern| pattern == "/*");
    let patterns = if is_whole { &[] } else { patterns };
    let mut rules = Vec::new();
    let exceptions = area.map_or_else(
        || Some(Vec::new()),
        |area| area.exceptions(patterns, refuses_by(action)),
    );
    for test in tests {
        let mut conditions = Conditions::new();
        if !patterns.is_empty() {
            conditions.push(Condition::new("path", Value::texts(patterns)));
        }
        conditions.extend(test.iter().cloned());
        conditions.extend(exceptions.iter().flatten().cloned());
        let Some(mut keys) = condition::keys(&conditions).filter(|_| exceptions.is_some()) else {
            let message = "a rule cannot have these conditions together: write several rules";
            return match refuses_by(action) {
                true => site.skip_restriction(directive, message),
                false => site.skip(directive, message),
            };
        };
        keys.extend(action.iter().cloned());
        // After an internal redirect, such as that to the index of a folder, nginx evaluates its directives again.
        // Therefore a refusal also applies to the file that a path leads to.
        if refuses_by(action) && !keys.iter().any(|(key, _)| *key == RESOLVED) {
            keys.push((RESOLVED, Value::Flag(true)));
        }
        rules.push(keys);
    }
    let outer = std::mem::replace(&mut site.stage, stage);
    rules.into_iter().for_each(|keys| site.rule(directive, keys));
    site.stage = outer;
}

fn refuses_by(action: &[(&'static str, Value)]) -> bool {
    let is_error = |value: &Value| matches!(value, Value::Number(status) if *status >= 400);
    action.iter().any(|(key, value)| *key == "respond" && is_error(value))
}

/// Returns the keys of a rule with the action of a `return`; `None` if a rule has no such action. `is_whole`: true if
/// the rule applies to every path.
pub(super) fn keys(directive: &Directive, is_whole: bool) -> Option<Vec<(&'static str, Value)>> {
    let redirect = |target: String, status| {
        Some(vec![
            ("redirect", Value::Text(target)),
            ("status", Value::Number(status)),
        ])
    };
    match parse(directive)? {
        ReturnAction::Https(HttpsRedirect { host, status }) => {
            let host = if host.is_empty() { "{host}" } else { &host };
            redirect(format!("https://{host}{{target}}"), status)
        }
        // `{*}` is the rest of the whole path only in a rule without patterns.
        ReturnAction::Redirect { target, status } => match target.strip_suffix("/{*}") {
            Some(base) if !is_whole => redirect(format!("{base}{{target}}"), status),
            _ => redirect(target, status),
        },
        ReturnAction::Respond { status, .. } if (300..400).contains(&status) => None,
        ReturnAction::Respond { status, body } => {
            let mut keys = vec![("respond", Value::Number(status))];
            keys.extend(
                body.filter(|body| !body.is_empty())
                    .map(|body| ("body", Value::Text(body))),
            );
            Some(keys)
        }
    }
}

/// Action of an `if` of a server in one of the common forms. `conditional` translates all other forms.
pub(super) enum IfAction<'a> {
    /// Redirect to HTTPS for one host, or for all hosts if `None`, with its status:
    /// `if ($host = a.example) { return 301 https://$host$request_uri; }`.
    Https(Option<&'a str>, u64),
    /// Redirect of all requests of one host.
    RedirectHost { host: &'a str, target: String, status: u64 },
    /// Front controller for missing files, with the `rewrite` to it:
    /// `if (!-e $request_filename) { rewrite ^ /index.php last; }`.
    Front(&'a Directive),
}

/// Returns the action of an `if` in one of the common forms; `None` for all other forms.
pub(super) fn condition(block: &Directive) -> Option<IfAction<'_>> {
    let condition = block.arguments.join(" ");
    let condition = condition.strip_prefix('(')?.strip_suffix(')')?.trim();
    let [inner] = block.children() else { return None };
    let words: Vec<&str> = condition.split_whitespace().collect();
    if let ["!-e" | "!-f", "$request_filename"] = words[..] {
        let is_front = inner.is("rewrite") && inner.argument(1).starts_with("/index.php");
        return is_front.then_some(IfAction::Front(inner));
    }
    let [variable, "=", value] = words[..] else { return None };
    let value = value.trim_matches(['"', '\'']);
    // The result must borrow from `block`, but `value` borrows from the joined text. Therefore the argument of `block`
    // that equals `value` is used.
    let word = block
        .arguments
        .iter()
        .map(|word| word.trim_matches([')', '"', '\'']))
        .find(|word| *word == value)?;
    let action = inner.is("return").then(|| parse(inner))??;
    match (variable, action) {
        ("$scheme", ReturnAction::Https(to)) if value == "http" && to.host.is_empty() => {
            Some(IfAction::Https(None, to.status))
        }
        ("$host" | "$http_host", ReturnAction::Https(to)) if to.host.is_empty() || to.host == word => {
            Some(IfAction::Https(Some(word), to.status))
        }
        ("$host" | "$http_host", ReturnAction::Https(to)) => Some(IfAction::RedirectHost {
            host: word,
            target: format!("https://{}/{{*}}", to.host),
            status: to.status,
        }),
        ("$host" | "$http_host", ReturnAction::Redirect { target, status }) => Some(IfAction::RedirectHost {
            host: word,
            target,
            status,
        }),
        _ => None,
    }
}
