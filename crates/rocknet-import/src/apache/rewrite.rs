//! Translates `RewriteCond` and `RewriteRule`: front controllers, redirects to HTTPS, and simple rewrites.

use std::net::IpAddr;

use rocknet_config::model::RegexPattern;

use crate::directive::Directive;
use crate::document::Notes;
use crate::hosts::HostDraft;
use crate::regex;
use crate::value::Value;

use super::flags::RewriteFlags;
use super::proxy::ProxyDirectives;

/// Directives of rewriting of one host or folder.
#[derive(Default)]
pub(super) struct RewriteBlock {
    rules: Vec<RewriteRule>,
    /// Conditions that have been read since the last rule.
    conditions: Vec<Directive>,
    /// `RewriteMap` and `RewriteOptions`, which are not translated.
    others: Vec<Directive>,
    /// Path of `RewriteBase`, without the slash at its end.
    base: String,
    /// True after `RewriteEngine off`.
    is_off: bool,
}

/// A rule with its conditions.
struct RewriteRule {
    conditions: Vec<Directive>,
    directive: Directive,
}

impl RewriteBlock {
    /// Reads a directive. Returns false if it does not concern rewriting.
    pub fn read(&mut self, directive: &Directive) -> bool {
        match directive.name.to_ascii_lowercase().as_str() {
            "rewriteengine" => self.is_off = directive.argument(0).eq_ignore_ascii_case("off"),
            "rewritebase" => self.base = directive.argument(0).trim_end_matches('/').to_owned(),
            "rewritecond" => self.conditions.push(directive.clone()),
            "rewriterule" => self.rules.push(RewriteRule {
                conditions: std::mem::take(&mut self.conditions),
                directive: directive.clone(),
            }),
            "rewritemap" | "rewriteoptions" => self.others.push(directive.clone()),
            _ => return false,
        }
        true
    }
}

/// Returns true if a rule refuses requests.
pub(super) fn refuses(directive: &Directive) -> bool {
    directive.is("RewriteRule") && RewriteFlags::read(directive.argument(2)).refusal.is_some()
}

/// Translates the rules of a host. Rules that forward requests become proxies.
pub(super) fn translate(block: &RewriteBlock, host: &mut HostDraft, proxies: &mut ProxyDirectives) {
    for directive in &block.others {
        host.site
            .skip(directive, "write rules, [[site.\"…\".rule]]: docs/configuration.md");
    }
    let mut is_chained = false;
    for rule in &block.rules {
        if block.is_off {
            host.site.unneeded(&rule.directive, "`RewriteEngine Off`");
            continue;
        }
        let flags = RewriteFlags::read(rule.directive.argument(2));
        let is_dependent = std::mem::replace(&mut is_chained, flags.is_chained);
        if is_dependent || flags.unsupported.is_some() || !translate_rule(rule, &flags, &block.base, host, proxies) {
            skip(rule, &flags, is_dependent, host);
        }
    }
    for condition in &block.conditions {
        host.site.skip(condition, "no rule follows the condition");
    }
}

/// Notes that a rule is not translated.
fn skip(rule: &RewriteRule, flags: &RewriteFlags, is_dependent: bool, host: &mut HostDraft) {
    let directive = &rule.directive;
    let message = match &flags.unsupported {
        _ if is_dependent => "it depends on the rule before it, which has no counterpart".to_owned(),
        Some(flag) => format!("the flag `{flag}` has no counterpart"),
        None if flags.is_proxy => "write a route with `proxy`; WebSocket needs no rule of its own".to_owned(),
        None if flags.refusal.is_some() => {
            "patterns cannot express it: write a rule with `path` and `respond`".to_owned()
        }
        None => "no rule can express this: write `redirects`, or a rule with `path` and `rewrite`".to_owned(),
    };
    match flags.refusal {
        Some(_) => host.site.skip_restriction(directive, &message),
        None => host.site.skip(directive, &message),
    }
    for condition in &rule.conditions {
        host.site
            .skip(condition, "the condition belongs to the rule that follows it");
    }
}

/// Translates a rule. Returns false if it has no counterpart.
fn translate_rule(
    rule: &RewriteRule,
    flags: &RewriteFlags,
    base: &str,
    host: &mut HostDraft,
    proxies: &mut ProxyDirectives,
) -> bool {
    let directive = &rule.directive;
    let (expression, target) = (directive.argument(0), directive.argument(1));
    let matches_all = [
        "^", ".", ".*", "^.*$", "^(.*)$", "(.*)", "^(.*)", "^(.+)$", "^/(.*)$", "^/?(.*)$", "^/?(.*)",
    ]
    .contains(&expression);
    let about_files = rule.conditions.iter().all(is_about_files);
    if let Some(status) = flags.refusal {
        return refuse(rule, expression, flags, status, host);
    }
    if target == "-" {
        return pass_through(rule, expression, flags, about_files, host);
    }
    if matches_all && !flags.is_proxy && !rule.conditions.is_empty() && translate_https_redirect(rule, target, host) {
        return true;
    }
    if matches_all && about_files && !flags.is_proxy && flags.redirect.is_none() && !target.contains("://") {
        return front(rule, target, base, host);
    }
    // In a folder, expressions match paths without the slash at the beginning, so it is added.
    let expression = match expression.strip_prefix('^') {
        Some(rest) if !rest.starts_with(['/', '(']) && !rest.is_empty() => format!("^{base}/{rest}"),
        Some(rest) if rest.starts_with("/?") => format!("^/{}", &rest[2..]),
        // A group that begins with a name or a class, not with `/` or `.`.
        Some(rest) if rest.starts_with('(') && !rest[1..].starts_with(['/', '.', '?']) => format!("^{base}/{rest}"),
        _ => expression.to_owned(),
    };
    let target = match target.starts_with('/') || target.contains("://") {
        true => target.to_owned(),
        false => format!("{base}/{target}"),
    };
    let target = match target.strip_suffix("%{REQUEST_URI}") {
        Some(start) if matches_all && start.contains("://") => format!("{start}/$1"),
        _ => target,
    };
    let expression = if matches_all { "^(.*)$".to_owned() } else { expression };
    let Some((patterns, target)) = regex::rewrite(&expression, target.trim_end_matches('?')) else {
        return false;
    };
    let Some(mut keys) = conditions(&rule.conditions) else {
        return false;
    };
    if flags.is_proxy {
        return keys.is_empty() && forward(directive, &patterns, &target, proxies);
    }
    let is_redirect = flags.redirect.is_some() || target.contains("://");
    let discards_query = flags.discards_query || directive.argument(1).ends_with('?');
    let has_query = target.contains('?');
    // `?` at the end drops the query of the request.
    let target = if discards_query && !has_query {
        target + "?"
    } else {
        target
    };
    if flags.appends_query && has_query && is_redirect {
        host.site
            .differs(directive, "the query of the target replaces that of the request");
    }
    if !flags.appends_query && has_query && !is_redirect {
        host.site
            .differs(directive, "the query of the request follows that of the target");
    }
    note_case(directive, flags, host);
    for variable in &flags.variables {
        host.site
            .differs(directive, &format!("the variable `{variable}` is not set"));
    }
    let is_url = target.contains("://");
    let status = flags.redirect.or_else(|| is_url.then_some(302));
    match status {
        Some(status) if keys.is_empty() => {
            for pattern in patterns {
                host.site.redirect(&pattern, &target, status, directive.line);
            }
        }
        Some(status) => {
            keys.push(("path", Value::texts(patterns)));
            keys.push(("redirect", Value::Text(target)));
            keys.push(("status", Value::Number(status)));
            host.site.rule(directive, keys);
        }
        None => {
            keys.push(("path", Value::texts(patterns)));
            keys.push(("rewrite", Value::Text(target)));
            if flags.last {
                keys.push(("last", Value::Flag(true)));
            }
            host.site.rule(directive, keys);
        }
    }
    true
}

/// Notes that patterns distinguish upper and lower case.
fn note_case(directive: &Directive, flags: &RewriteFlags, host: &mut HostDraft) {
    if flags.ignores_case && directive.argument(0).contains(|c: char| c.is_ascii_alphabetic()) {
        let message = "patterns distinguish upper and lower case";
        match flags.refusal {
            Some(_) => host.site.weakens(directive, message),
            None => host.site.differs(directive, message),
        }
    }
}

/// Adds a proxy for a rule with the flag `P`. Returns false if the rule does not forward all paths below a prefix.
fn forward(directive: &Directive, patterns: &[String], target: &str, proxies: &mut ProxyDirectives) -> bool {
    let Some(url) = target.strip_suffix("{*}").filter(|url| url.contains("://")) else {
        return false;
    };
    if patterns.iter().any(|pattern| pattern.starts_with('~')) {
        return false;
    }
    let prefixes: Option<Vec<&str>> = patterns.iter().map(|pattern| pattern.strip_suffix('*')).collect();
    for prefix in prefixes.iter().flatten() {
        proxies.add(prefix, url, directive);
    }
    prefixes.is_some()
}

/// Translates a rule that refuses requests.
fn refuse(rule: &RewriteRule, expression: &str, flags: &RewriteFlags, status: u64, host: &mut HostDraft) -> bool {
    let directive = &rule.directive;
    let is_negated = expression.starts_with('!');
    let found = match expression {
        "^" | "." | ".*" | "^.*$" | "^(.*)$" | "(.*)" | "^.*" | "^(.*)" => Some(Vec::new()),
        _ => {
            let rest = expression.strip_prefix('^').filter(|rest| !rest.starts_with('/'));
            let expression = rest.map_or_else(|| expression.to_owned(), |rest| format!("^/{rest}"));
            let found = regex::patterns(&expression).filter(|_| !is_negated);
            found.map(|mut found| {
                if let Some(difference) = found.difference {
                    host.site.weakens(directive, difference);
                }
                // The expression also refused longer names that begin with the path, such as `/api2` for `^/api`.
                found.patterns.append(&mut found.beginnings);
                found.patterns
            })
        }
    };
    let (Some(patterns), Some(mut keys)) = (found, conditions(&rule.conditions)) else {
        return false;
    };
    note_case(directive, flags, host);
    if !patterns.is_empty() {
        keys.push(("path", Value::texts(patterns)));
    }
    keys.push(("respond", Value::Number(status)));
    host.site.rule(directive, keys);
    true
}

/// Translates a rule that changes no path: it sets a variable, or ends the rules.
fn pass_through(
    rule: &RewriteRule,
    expression: &str,
    flags: &RewriteFlags,
    about_files: bool,
    host: &mut HostDraft,
) -> bool {
    let directive = &rule.directive;
    if !flags.variables.is_empty() {
        let is_authorization = directive.argument(2).contains("HTTP_");
        if is_authorization {
            host.site
                .unneeded(directive, "applications get every header field, Authorization included");
        }
        return is_authorization;
    }
    let is_front =
        matches!(expression, "^index\\.php$" | "^index.php$" | "^/index\\.php$") && rule.conditions.is_empty();
    let is_static = about_files && !rule.conditions.is_empty();
    if is_front || is_static {
        host.site.unneeded(
            directive,
            "existing files are served first, and rules are not applied twice",
        );
    }
    is_front || is_static
}

/// Translates a front controller, such as `RewriteRule . /index.php [L]`.
fn front(rule: &RewriteRule, target: &str, base: &str, host: &mut HostDraft) -> bool {
    let directive = &rule.directive;
    let (path, rest) = target.split_once(['?', '$', '%']).unwrap_or((target, ""));
    let path = path.trim_end_matches('/');
    let path = match path.strip_prefix('/') {
        Some(_) => path.to_owned(),
        None => format!("{base}/{path}"),
    };
    let is_page = path.rsplit('/').next().is_some_and(|name| name.contains('.'));
    // Without conditions, files would not be served.
    if !is_page || rule.conditions.is_empty() {
        return false;
    }
    if !rest.is_empty() {
        let message = "`fallback` keeps the query of the request; the script reads the path from REQUEST_URI";
        host.site.differs(directive, message);
    }
    host.site.settings.set("fallback", Value::Text(path), directive.line);
    true
}

/// Returns true if a condition tests for an existing file, folder or link.
fn is_about_files(condition: &Directive) -> bool {
    let subject = condition.argument(0);
    let is_file = subject == "%{REQUEST_FILENAME}" || subject == "%{DOCUMENT_ROOT}%{REQUEST_URI}";
    is_file && matches!(condition.argument(1), "!-f" | "!-d" | "!-l" | "-f" | "-d" | "-s" | "-l")
}

/// Translates a redirect to HTTPS. Returns false for other rules.
fn translate_https_redirect(rule: &RewriteRule, target: &str, host: &mut HostDraft) -> bool {
    let Some(rest) = target.strip_prefix("https://") else {
        return false;
    };
    let is_whole = ["%{REQUEST_URI}", "/$1", "$1", "/%{REQUEST_URI}"]
        .iter()
        .find_map(|end| rest.strip_suffix(end));
    let Some(name) = is_whole else { return false };
    let is_own = ["%{HTTP_HOST}", "%{SERVER_NAME}"].contains(&name);
    if !is_own && name.contains(['%', '$', '/']) {
        return false;
    }
    let is_clear = |condition: &Directive| {
        let words = (condition.argument(0), condition.argument(1).to_ascii_lowercase());
        match (words.0, words.1.as_str()) {
            ("%{HTTPS}", "off" | "=off" | "!=on" | "!on" | "^off$" | "!^on$") => true,
            ("%{SERVER_PORT}", "80" | "=80" | "^80$" | "!443" | "!^443$" | "!=443") => true,
            ("%{REQUEST_SCHEME}", "http" | "=http" | "!https" | "!=https") => true,
            // Certbot writes a condition for each name of the host.
            ("%{SERVER_NAME}", name) => name.starts_with('=') && is_own,
            _ => false,
        }
    };
    if !rule.conditions.iter().all(is_clear) {
        return false;
    }
    let target = if is_own { String::new() } else { name.to_owned() };
    // A file without `<VirtualHost>`, such as `.htaccess`, names no listeners.
    let is_folder = host.directive.is_empty();
    if is_folder || host.is_tls() {
        let message = "sites with TLS redirect from http:// by themselves (308): `tls.redirect`";
        host.site.unneeded(&rule.directive, message);
    } else {
        host.https_redirect = Some(target);
    }
    true
}

/// Returns the conditions of a rule as keys; `None` if one has no counterpart.
fn conditions(conditions: &[Directive]) -> Option<Vec<(&'static str, Value)>> {
    let mut keys: Vec<(&'static str, Value)> = Vec::new();
    for condition in conditions {
        let (subject, pattern) = (condition.argument(0), condition.argument(1));
        let flags = condition.argument(2).to_ascii_lowercase();
        if flags.contains("or") {
            return None;
        }
        let (key, value) = match header_of(subject) {
            Some(header) => (
                "header",
                Value::Table(vec![(header.to_owned(), header_pattern(pattern, &flags)?)]),
            ),
            None => literal_condition(subject, pattern)?,
        };
        if keys.iter().any(|(known, _)| *known == key) {
            return None;
        }
        keys.push((key, value));
    }
    Some(keys)
}

/// Returns the header field whose value a condition compares.
fn header_of(subject: &str) -> Option<&'static str> {
    match subject {
        "%{HTTP_USER_AGENT}" => Some("User-Agent"),
        "%{HTTP_REFERER}" => Some("Referer"),
        "%{HTTP_COOKIE}" => Some("Cookie"),
        "%{HTTP_ACCEPT}" => Some("Accept"),
        "%{HTTP:Accept-Language}" => Some("Accept-Language"),
        _ => None,
    }
}

/// Returns the pattern of a field's value; `None` if it is negated or no expression of RockNet.
fn header_pattern(pattern: &str, flags: &str) -> Option<Value> {
    if pattern == "^$" {
        return Some(Value::text(""));
    }
    let is_expression = !pattern.starts_with(['!', '=', '<', '>', '-']);
    let ignores_case = flags.contains("nc");
    let regex = RegexPattern::new(pattern, ignores_case)
        .ok()
        .filter(|_| is_expression)?;
    // In Apache, an absent field is an empty text. RockNet compares only fields that are present.
    (!regex.matches(b"")).then(|| Value::Text(regex.to_string()))
}

/// Returns the condition for a value that is compared as a whole.
fn literal_condition(subject: &str, pattern: &str) -> Option<(&'static str, Value)> {
    let literal = pattern.strip_prefix('=').map(str::to_owned).or_else(|| {
        let inner = pattern.strip_prefix('^')?.strip_suffix('$')?;
        let plain = inner.replace("\\.", ".").replace("\\-", "-");
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        plain.chars().all(is_plain).then_some(plain)
    })?;
    Some(match subject {
        "%{HTTP_HOST}" | "%{SERVER_NAME}" => ("host", Value::Text(literal.to_ascii_lowercase())),
        "%{REQUEST_METHOD}" => ("method", Value::Text(literal)),
        "%{HTTPS}" if literal.eq_ignore_ascii_case("off") => ("scheme", Value::text("http")),
        "%{HTTPS}" if literal.eq_ignore_ascii_case("on") => ("scheme", Value::text("https")),
        "%{REMOTE_ADDR}" if literal.parse::<IpAddr>().is_ok() => ("client", Value::Text(literal)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_become_settings_or_notes() {
        let rows: &[(&str, Option<(&str, &str)>)] = &[
            (
                "RewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule . /index.php [L]",
                Some(("fallback", "/index.php")),
            ),
            (
                "RewriteCond %{REQUEST_FILENAME} !-d\nRewriteRule ^(.*)$ index.php?q=$1 [L,QSA]",
                Some(("fallback", "/index.php")),
            ),
            ("RewriteRule ^ index.php [L]", None),
            (
                "RewriteRule ^old/(.*)$ /new/$1 [R=308,L]",
                Some(("redirects.\"/old/*\"", "/new/{*}")),
            ),
            ("RewriteRule ^a/(?!x)$ b.php?id=$1", None),
            (
                "RewriteRule ^old/([0-9]+)/(.*)$ /new/$2/$1 [R=308,L]",
                Some(("redirects.\"~^/old/([0-9]+)/(.*)$\"", "/new/{2}/{1}")),
            ),
        ];
        for (text, expected) in rows {
            let mut block = RewriteBlock::default();
            for directive in &super::super::read(text).unwrap() {
                assert!(block.read(directive));
            }
            let mut host = HostDraft::default();
            translate(&block, &mut host, &mut ProxyDirectives::default());
            match expected {
                Some((key, value)) => {
                    assert_eq!(host.site.settings.get(key), Some(&Value::text(*value)), "{text}");
                }
                None => assert!(host.site.settings.is_empty() && !host.site.notes.is_empty(), "{text}"),
            }
        }
    }
}
