//! Translates directives that end or change a request: `redir`, `respond`, `rewrite`, `error` and `abort`.

use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::value::Value;

use super::matcher::PathMatcher;
use super::place::BlockPlace;

/// Translates an action. Returns false for other directives.
pub(super) fn translate(
    directive: &Directive,
    matcher: &PathMatcher,
    words: &[&str],
    place: &BlockPlace,
    site: &mut Site,
) -> bool {
    match directive.name.as_str() {
        "redir" | "respond" | "rewrite" | "error" | "abort" => {}
        _ => return false,
    }
    let denies = match (directive.name.as_str(), words) {
        ("abort", []) => true,
        ("respond" | "error", words) => words.contains(&"403") || words.contains(&"401"),
        _ => false,
    };
    if let (Some(clients), true) = (&matcher.clients, denies) {
        deny(directive, matcher, clients, place, site);
        return true;
    }
    let within = place.within(matcher);
    let (Some(patterns), Some(mut keys)) = (within, matcher.keys()) else {
        let reason = matcher
            .error
            .as_deref()
            .unwrap_or("the matcher has no counterpart here");
        let message = match denies {
            true => format!("THIS RESTRICTS ACCESS, and was left out: {reason}"),
            false => format!("{reason}: write a rule, [[site.\"…\".rule]]"),
        };
        site.skip(directive, &message);
        return true;
    };
    keys.retain(|(key, _)| *key != "path");
    let has_all = patterns.iter().any(|pattern| pattern == "/*");
    if !has_all {
        keys.insert(0, ("path", Value::texts(patterns.iter())));
    }
    match directive.name.as_str() {
        "redir" => redirect(directive, words, &patterns, keys, site),
        "rewrite" => rewrite(directive, words, keys, site),
        _ => respond(directive, words, &patterns, keys, site),
    }
    true
}

/// Translates a refusal of clients by their address.
fn deny(
    directive: &Directive,
    matcher: &PathMatcher,
    (ranges, is_negated): &(Vec<String>, bool),
    place: &BlockPlace,
    site: &mut Site,
) {
    let has_more = !matcher.hosts.is_empty() || !matcher.conditions.is_empty() || matcher.error.is_some();
    let Some(patterns) = place.within(matcher).filter(|_| !has_more) else {
        return site.skip(
            directive,
            "THIS RESTRICTS ACCESS, and was left out: write `allow` or `deny`",
        );
    };
    for pattern in patterns {
        let settings = site.route(&pattern, directive.line);
        let key = if *is_negated { "allow" } else { "deny" };
        settings.set(key, Value::texts(ranges.iter()), directive.line);
    }
    site.differs(directive, "clients get the error page of status 403");
}

fn redirect(
    directive: &Directive,
    words: &[&str],
    patterns: &[String],
    mut keys: Vec<(&'static str, Value)>,
    site: &mut Site,
) {
    let (target, code) = match words {
        [target] => (*target, 302),
        [target, "permanent"] => (*target, 301),
        [target, "temporary"] => (*target, 302),
        [target, code] if code.parse::<u64>().is_ok() => (*target, code.parse().unwrap_or(302)),
        _ => return site.skip(directive, "write `redirects`"),
    };
    let base = ["{uri}", "{http.request.uri}", "{path}"]
        .iter()
        .find_map(|end| target.strip_suffix(end));
    let base = base.map(|base| base.strip_suffix('/').unwrap_or(base));
    if base.unwrap_or(target).contains('{') {
        return site.skip(
            directive,
            "targets have no placeholders but the part of the path: write one for each host",
        );
    }
    let is_plain = keys.is_empty() || matches!(keys[..], [("path", _)]);
    if base.is_none() && !target.contains('?') {
        site.differs(directive, "RockNet adds the query of the request to the target");
    }
    let whole = |pattern: &str| match (base, pattern.strip_suffix('*')) {
        (Some(base), Some(prefix)) if !prefix.contains('*') => Some(format!("{base}{prefix}{{*}}")),
        (Some(_), _) if pattern.contains('*') => None,
        (Some(base), _) => Some(format!("{base}{pattern}")),
        (None, _) => Some(target.to_owned()),
    };
    let targets: Option<Vec<String>> = patterns.iter().map(|pattern| whole(pattern)).collect();
    let Some(targets) = targets else {
        return site.skip(
            directive,
            "the part of the path is not known for this pattern: write `redirects`",
        );
    };
    if is_plain {
        for (pattern, target) in patterns.iter().zip(&targets) {
            site.redirect(pattern, target, code, directive.line);
        }
        return;
    }
    let [target] = &targets[..] else {
        return site.skip(directive, "write a rule for each path");
    };
    keys.push(("redirect", Value::text(target)));
    keys.push(("status", Value::Number(code)));
    site.rule(directive, keys);
}

fn rewrite(directive: &Directive, words: &[&str], mut keys: Vec<(&'static str, Value)>, site: &mut Site) {
    let [target] = words else {
        return site.skip(directive, "write a rule with `rewrite`");
    };
    let is_whole = keys.is_empty();
    let target = match target.strip_suffix("{path}").or_else(|| target.strip_suffix("{uri}")) {
        Some(start) if is_whole && start.starts_with('/') => format!("{}/{{*}}", start.trim_end_matches('/')),
        _ => (*target).to_owned(),
    };
    let target = target.strip_suffix("?{query}").unwrap_or(&target).to_owned();
    if target.replace("{*}", "").contains('{') {
        return site.skip(
            directive,
            "targets have no placeholders but the part of the path: write rules",
        );
    }
    keys.push(("rewrite", Value::Text(target)));
    site.rule(directive, keys);
}

fn respond(
    directive: &Directive,
    words: &[&str],
    patterns: &[String],
    mut keys: Vec<(&'static str, Value)>,
    site: &mut Site,
) {
    let is_status = |word: &str| word.len() == 3 && word.parse::<u64>().is_ok();
    let (body, status) = match (directive.name.as_str(), words) {
        ("abort", []) => {
            site.differs(
                directive,
                "clients get 403; RockNet does not close connections without a response",
            );
            (None, 403)
        }
        ("error", [status]) if is_status(status) => (None, status.parse().unwrap_or(500)),
        ("error", [_, status]) if is_status(status) => (None, status.parse().unwrap_or(500)),
        ("respond", []) => (
            directive
                .children()
                .iter()
                .find(|inner| inner.is("body"))
                .map(|b| b.argument(0)),
            200,
        ),
        ("respond", [status]) if is_status(status) => (
            directive
                .children()
                .iter()
                .find(|inner| inner.is("body"))
                .map(|body| body.argument(0)),
            status.parse().unwrap_or(200),
        ),
        ("respond", [body]) => (Some(*body), 200),
        ("respond", [body, status]) if is_status(status) => (Some(*body), status.parse().unwrap_or(200)),
        _ => return site.skip(directive, "write a rule with `respond`"),
    };
    if body.is_some_and(|body| body.contains('{') && body.contains('}')) {
        return site.skip(
            directive,
            "bodies have no placeholders: write a rule with a constant `body`",
        );
    }
    // A rule is applied before routes, and would hide those of other `handle` blocks.
    let is_catch_all = patterns.iter().any(|pattern| pattern == "/*") && keys.is_empty();
    if is_catch_all && (!site.routes.is_empty() || !site.settings.is_empty()) {
        if status >= 400 {
            let is_default = status == 404 && !site.settings.has("root") && !site.settings.has("proxy");
            if is_default {
                return site.unneeded(directive, "paths without a route get 404 by themselves");
            }
            site.settings.close(directive.line);
            return site.differs(directive, "clients get 403; a rule would also match the routes");
        }
        return site.skip(
            directive,
            "a rule for every path would hide the routes: write it with `path`",
        );
    }
    keys.push(("respond", Value::Number(status)));
    keys.extend(
        body.filter(|body| !body.is_empty())
            .map(|body| ("body", Value::text(body))),
    );
    site.rule(directive, keys);
}
