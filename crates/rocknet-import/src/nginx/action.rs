//! Translates actions of nginx: `return`, `rewrite` and `if`.

use rocknet_config::model::RegexPattern;
use rocknet_config::template::Scope;

use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::placeholder;
use crate::regex;
use crate::value::Value;

/// Result of a `return`.
pub(super) enum ReturnAction {
    Redirect {
        target: String,
        status: u64,
    },
    Respond {
        status: u64,
        body: Option<String>,
    },
    /// A redirect of every path to `https://`, with the host; empty for the host of the request.
    Https(String),
}

/// Returns the action of a `return`; `None` if it has variables that cannot be translated.
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
    for end in ["$request_uri", "$uri", "$uri$is_args$args"] {
        if let Some(rest) = text.strip_suffix(end) {
            let rest = rest.strip_suffix('/').unwrap_or(rest);
            if let Some(host) = rest.strip_prefix("https://") {
                let is_own = ["$host", "$server_name", "$http_host"].contains(&host);
                if is_own || !host.contains(['$', '/', ':']) {
                    return Some(ReturnAction::Https(if is_own {
                        String::new()
                    } else {
                        host.to_owned()
                    }));
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
    // Every name of the server is served by this site.
    let target = placeholder::from_nginx(&target.replace("$server_name", "$host"), Scope::Request)?;
    let authority = target
        .split_once("://")
        .map_or("", |(_, rest)| rest.split(['/', '?']).next().unwrap_or(""));
    let plain = ["{host}", "{authority}", "{target}", "{path}"]
        .iter()
        .fold(authority.to_owned(), |rest, placeholder| rest.replace(placeholder, ""));
    if plain.contains('{') || target.contains("{target}") && !target.ends_with("{target}") {
        return None;
    }
    let is_target = ["/", "http://", "https://", "{target}", "{path}"]
        .iter()
        .any(|start| target.starts_with(start));
    is_target.then_some(ReturnAction::Redirect { target, status })
}

/// Translates a `rewrite` of a server or location. `within`: pattern of the location; `None` for a server.
pub(super) fn rewrite(directive: &Directive, site: &mut Site, within: Option<&str>) {
    let words = directive.words();
    let (expression, replacement, flag) = match words[..] {
        [expression, replacement] => (expression, replacement, ""),
        [expression, replacement, flag] => (expression, replacement, flag),
        _ => return site.skip(directive, "it has no known form"),
    };
    let keeps_query = !replacement.ends_with('?');
    let replacement = replacement.strip_suffix('?').unwrap_or(replacement);
    let plain = replacement.replace("$request_uri", "");
    let found = regex::rewrite(expression, replacement);
    let Some((patterns, target)) = found.filter(|_| plain == replacement) else {
        let message =
            "the expression or its target has no counterpart: write [[site.\"…\".rule]] with `path` and `rewrite`";
        return site.skip(directive, message);
    };
    let prefix = within.map(|pattern| pattern.trim_end_matches('*'));
    if prefix.is_some_and(|prefix| !patterns.iter().all(|pattern| pattern.starts_with(prefix))) {
        return site.skip(directive, "the expression is not limited to its location: write a rule");
    }
    // `?` at the end drops the query of the request.
    let target = if keeps_query { target } else { target + "?" };
    let is_url = replacement.starts_with("http://") || replacement.starts_with("https://");
    let status = match flag {
        "permanent" => Some(301),
        "redirect" => Some(302),
        _ if is_url => Some(302),
        _ => None,
    };
    match status {
        Some(status) => {
            for pattern in patterns {
                site.redirect(&pattern, &target, status, directive.line);
            }
        }
        None => {
            let mut keys = vec![("path", Value::texts(patterns)), ("rewrite", Value::Text(target))];
            if matches!(flag, "last" | "break") {
                keys.push(("last", Value::Flag(true)));
            }
            site.rule(directive, keys);
        }
    }
}

/// Result of an `if` of a server.
pub(super) enum IfAction<'a> {
    /// Redirect to HTTPS for one host, or for all hosts.
    Https(Option<&'a str>),
    /// Redirect of all requests of one host.
    RedirectHost { host: &'a str, target: String, status: u64 },
    /// Response to one method, host or header field.
    Respond {
        condition: (&'static str, Value),
        status: u64,
    },
    /// Front controller for missing files.
    Front(&'a Directive),
}

/// Returns the condition for a header field that matches an expression; `None` if it has no counterpart.
fn header_condition(variable: &str, pattern: &str, ignores_case: bool) -> Option<Value> {
    let header = match variable {
        "$http_user_agent" => "User-Agent",
        "$http_referer" => "Referer",
        "$http_cookie" => "Cookie",
        _ => return None,
    };
    let regex = RegexPattern::new(pattern.trim_matches(['"', '\'']), ignores_case).ok()?;
    // In nginx, an absent field is an empty text. RockNet compares only fields that are present.
    (!regex.matches(b"")).then(|| Value::Table(vec![(header.to_owned(), Value::Text(regex.to_string()))]))
}

/// Returns the action of an `if`; `None` if it has no counterpart.
pub(super) fn condition(block: &Directive) -> Option<IfAction<'_>> {
    let condition = block.arguments.join(" ");
    let condition = condition.strip_prefix('(')?.strip_suffix(')')?.trim();
    let [inner] = block.children() else { return None };
    let words: Vec<&str> = condition.split_whitespace().collect();
    if let ["!-e" | "!-f", "$request_filename"] = words[..] {
        let is_front = inner.is("rewrite") && inner.argument(1).starts_with("/index.php");
        return is_front.then_some(IfAction::Front(inner));
    }
    if let [variable, operator @ ("~" | "~*"), pattern] = words[..] {
        let action = inner.is("return").then(|| parse(inner))??;
        let ReturnAction::Respond { status, body: None } = action else {
            return None;
        };
        let condition = ("header", header_condition(variable, pattern, operator == "~*")?);
        return Some(IfAction::Respond { condition, status });
    }
    let [variable, "=", value] = words[..] else { return None };
    let value = value.trim_matches(['"', '\'']);
    // The action must borrow from `block`, but `value` borrows from the joined text. Therefore the equal word of the
    // directive is used, such as the host in the condition of certbot, `$host = www.example.com`.
    let host = block
        .arguments
        .iter()
        .map(|word| word.trim_matches([')', '"', '\'']))
        .find(|word| *word == value)?;
    let action = inner.is("return").then(|| parse(inner))??;
    match (variable, action) {
        ("$scheme", ReturnAction::Https(to)) if value == "http" && to.is_empty() => Some(IfAction::Https(None)),
        ("$host" | "$http_host", ReturnAction::Https(to)) if to.is_empty() || to == host => {
            Some(IfAction::Https(Some(host)))
        }
        ("$host" | "$http_host", ReturnAction::Https(to)) => Some(IfAction::RedirectHost {
            host,
            target: format!("https://{to}/{{*}}"),
            status: 301,
        }),
        ("$host" | "$http_host", ReturnAction::Redirect { target, status }) => {
            Some(IfAction::RedirectHost { host, target, status })
        }
        ("$request_method", ReturnAction::Respond { status, body: None }) => Some(IfAction::Respond {
            condition: ("method", Value::text(value)),
            status,
        }),
        ("$host" | "$http_host", ReturnAction::Respond { status, body: None }) => Some(IfAction::Respond {
            condition: ("host", Value::text(value)),
            status,
        }),
        _ => None,
    }
}
