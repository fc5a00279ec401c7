//! Translates directives that end or change a request: `redir`, `respond`, `rewrite`, `error` and `abort`.

use rocknet_config::template::Scope;

use crate::access::{MissingKeys, combine};
use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::placeholder;
use crate::settings::Settings;
use crate::value::Value;

use super::matcher::PathMatcher;
use super::place::BlockPlace;

/// Translates an action. `words`: its arguments without the matcher. Returns false for other directives.
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
    let denies = refuses(directive, words);
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
        match denies {
            true => site.skip_restriction(directive, &format!("it was left out: {reason}")),
            false => site.skip(directive, &format!("{reason}: write a rule, [[site.\"…\".rule]]")),
        }
        return true;
    };
    // The patterns within this place replace those of the matcher.
    keys.retain(|(key, _)| *key != "path");
    let has_all = patterns.iter().any(|pattern| pattern == "/*");
    if !has_all {
        keys.insert(0, ("path", Value::texts(patterns.iter())));
    }
    match directive.name.as_str() {
        "redir" => redirect(directive, words, &patterns, keys, place, site),
        "rewrite" => rewrite(directive, words, keys, site),
        _ => respond(directive, words, &patterns, keys, site),
    }
    true
}

/// Returns true if an action refuses requests. `words`: its arguments without the matcher.
pub(super) fn refuses(directive: &Directive, words: &[&str]) -> bool {
    match directive.name.as_str() {
        "abort" => true,
        "respond" | "error" => words
            .iter()
            .any(|word| word.len() == 3 && word.parse::<u64>().is_ok_and(|status| status >= 400)),
        _ => false,
    }
}

/// Translates a refusal of clients by their address to `deny`. If it refuses all clients but those of the matcher, the
/// result is `allow`: `@others not remote_ip 10.0.0.0/8` with `abort @others`.
fn deny(
    directive: &Directive,
    matcher: &PathMatcher,
    (ranges, is_negated): &(Vec<String>, bool),
    place: &BlockPlace,
    site: &mut Site,
) {
    let has_more = !matcher.hosts.is_empty() || !matcher.conditions.is_empty() || matcher.error.is_some();
    let Some(patterns) = place.within(matcher).filter(|_| !has_more) else {
        return site.skip_restriction(directive, "it was left out: write `allow` or `deny`");
    };
    let mut access = Settings::default();
    let key = if *is_negated { "allow" } else { "deny" };
    access.set(key, Value::texts(ranges.iter()), directive.line);
    let mut is_combined = true;
    for pattern in patterns {
        is_combined &= combine(site.route(&pattern, directive.line), &access, MissingKeys::Add);
    }
    if is_combined {
        return site.differs(directive, "clients get the error page of status 403");
    }
    let message = "another list of allowed clients applies to this path, and two lists cannot be combined, so every \
         client is denied (`deny = \"all\"`): write one `allow` with the clients that are in both lists";
    site.skip(directive, message);
}

fn redirect(
    directive: &Directive,
    words: &[&str],
    patterns: &[String],
    keys: Vec<(&'static str, Value)>,
    place: &BlockPlace,
    site: &mut Site,
) {
    let (target, code) = match words {
        [target] => (*target, 302),
        [target, "permanent"] => (*target, 301),
        [target, "temporary"] => (*target, 302),
        [target, code] if code.parse::<u64>().is_ok() => (*target, code.parse().unwrap_or(302)),
        _ => return site.skip(directive, "write `redirects`"),
    };
    let target = match place.scheme {
        Some(scheme) => target.replacen("{scheme}://", &format!("{scheme}://"), 1),
        None => target.to_owned(),
    };
    let target = with_groups(&target);
    let host = ["{host}", "{http.request.host}"]
        .iter()
        .find(|host| target.contains(**host));
    let Some(host) = host else {
        return redirect_to(directive, &target, code, patterns, keys, site);
    };
    // The matcher may select one of the names of the site itself.
    let own = keys.iter().position(|(key, _)| *key == "host");
    // A redirect is added for each name, with the name in place of the placeholder.
    let names: Vec<String> = match own.map(|at| &keys[at].1) {
        Some(Value::Text(name)) => vec![name.clone()],
        Some(_) => Vec::new(),
        None => place.hosts.clone(),
    };
    if names.is_empty() || names.iter().any(|name| name.contains('*')) {
        return site.skip(
            directive,
            "targets have no placeholder for the host: write a redirect for each name",
        );
    }
    // In Caddy, an HTTPS site with this directive redirects to itself without end. The directive was meant for requests
    // without TLS, which both servers redirect to HTTPS without a directive.
    let is_loop = target.starts_with(&format!("https://{host}{{")) && place.scheme == Some("https");
    if is_loop {
        return site.unneeded(
            directive,
            "sites with TLS redirect from http:// by themselves (308): `tls.redirect`",
        );
    }
    for name in &names {
        let mut keys = keys.clone();
        if own.is_none() && names.len() > 1 {
            keys.push(("host", Value::text(name)));
        }
        redirect_to(directive, &target.replace(host, name), code, patterns, keys, site);
    }
}

/// Adds a redirect. Apart from groups of expressions, the target may have only one placeholder: the path at its end.
fn redirect_to(
    directive: &Directive,
    target: &str,
    code: u64,
    patterns: &[String],
    mut keys: Vec<(&'static str, Value)>,
    site: &mut Site,
) {
    let base = ["{uri}", "{http.request.uri}", "{path}"]
        .iter()
        .find_map(|end| target.strip_suffix(end));
    let base = base.map(|base| base.strip_suffix('/').unwrap_or(base));
    if !has_only_captures(base.unwrap_or(target), &keys) {
        return site.skip(
            directive,
            "a placeholder of the target has no counterpart: write a redirect for each of its values",
        );
    }
    let is_plain = keys.is_empty() || matches!(keys[..], [("path", _)]);
    if base.is_none() && !target.contains('?') {
        site.differs(directive, "RockNet adds the query of the request to the target");
    }
    // Target for one pattern. With `redir /a/* https://b{uri}`, it is `https://b/a/{*}`. Only the part of the path that
    // a `*` at the end of the pattern matches is available, as `{*}`.
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
            "a target can contain the path only if the pattern has no `*`, or one at its end: write `redirects`",
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

/// Returns a target in which references to the groups of an expression have the form of RockNet: `{1}` for
/// `{re.name.1}`.
fn with_groups(target: &str) -> String {
    let (mut out, mut rest) = (String::new(), target);
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        let group = ["re.", "http.regexp."]
            .iter()
            .find_map(|start| name.strip_prefix(start));
        let group = group.map(|group| group.rsplit('.').next().unwrap_or(group));
        out.push_str(before);
        out.push_str(&format!("{{{}}}", group.unwrap_or(name)));
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Returns true if a target has no placeholders but `{*}` and groups of the expressions for the path.
fn has_only_captures(target: &str, keys: &[(&'static str, Value)]) -> bool {
    let has_regex = keys
        .iter()
        .any(|(key, value)| *key == "path" && matches!(value, Value::Text(path) if path.starts_with('~')));
    let mut names = target
        .split('{')
        .skip(1)
        .map(|rest| rest.split('}').next().unwrap_or(rest));
    names.all(|name| name == "*" || has_regex && name.len() == 1 && name.bytes().all(|byte| byte.is_ascii_digit()))
}

fn rewrite(directive: &Directive, words: &[&str], mut keys: Vec<(&'static str, Value)>, site: &mut Site) {
    let [target] = words else {
        return site.skip(directive, "write a rule with `rewrite`");
    };
    let target = &with_groups(target);
    // For every path, `rewrite /a{path}` becomes `/a/{*}`.
    let is_whole = keys.is_empty();
    let target = match target.strip_suffix("{path}").or_else(|| target.strip_suffix("{uri}")) {
        Some(start) if is_whole && start.starts_with('/') => format!("{}/{{*}}", start.trim_end_matches('/')),
        _ => target.clone(),
    };
    // RockNet adds the query of the request by itself.
    let target = target.strip_suffix("?{query}").unwrap_or(&target).to_owned();
    if !has_only_captures(&target, &keys) {
        return site.skip(directive, "a placeholder of the target has no counterpart: write rules");
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
        // With this status, RockNet closes the connection without a response.
        ("abort", []) => (None, 444),
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
    let translated = body.map(|body| placeholder::from_caddy(body, Scope::Request));
    let is_untranslated = matches!(translated, Some(None));
    let body = translated.flatten();
    if is_untranslated && status >= 400 {
        site.differs(
            directive,
            "a placeholder of the body has no counterpart: the page of `errors` is sent",
        );
    } else if is_untranslated {
        return site.skip(
            directive,
            "a placeholder of the body has no counterpart: write a rule with `body` and placeholders of docs/placeholders.md",
        );
    }
    // A rule is applied before routes. A rule for every path would hide the routes of other `handle` blocks, and the
    // content of the site.
    let is_catch_all = patterns.iter().any(|pattern| pattern == "/*") && keys.is_empty();
    const CONTENT: [&str; 4] = ["root", "proxy", "php", "redirects"];
    let has_content = CONTENT
        .iter()
        .any(|key| site.settings.has(key) || site.settings.has_map(key));
    if is_catch_all && (!site.routes.is_empty() || has_content) {
        if status >= 400 {
            // Without a root and a proxy, RockNet responds with 404 to all paths that have no route. PHP has a root,
            // and redirects concern only their own paths.
            let is_default = status == 404 && !site.settings.has("root") && !site.settings.has("proxy");
            if is_default {
                return site.unneeded(directive, "paths without a route get 404 by themselves");
            }
            // Denies every client by a key of the site. In the routes of other blocks, `document::restore` cancels the
            // key.
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
            .map(|body| ("body", Value::Text(body))),
    );
    site.rule(directive, keys);
}
