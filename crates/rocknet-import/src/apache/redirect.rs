//! Translates `Redirect`, `RedirectMatch`, `RedirectPermanent` and `RedirectTemp`.

use crate::condition::{self, Condition};
use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::file_rules;
use crate::hosts::{HostDraft, HttpsRedirect};
use crate::value::Value;

use super::dot_names;
use super::path::prefix;
use super::pcre::normalized;

/// Translates a redirect, or a refusal such as `Redirect 403 /a`, of a host. Returns false for other directives.
pub(super) fn translate(directive: &Directive, host: &mut HostDraft) -> bool {
    let Some((code, from, to)) = parse(directive) else {
        return false;
    };
    let is_match = directive.is("RedirectMatch");
    let site = &mut host.site;
    if (400..600).contains(&code) {
        let ignores_case = false;
        let alternatives = match is_match {
            true => dot_names::path_conditions(&normalized(from), ignores_case),
            false => Some(vec![vec![Condition::new("path", Value::texts(prefix(from)))]]),
        };
        // `None` if the path or one of the alternatives has no counterpart.
        let rules: Option<Vec<_>> = alternatives.and_then(|all| all.iter().map(|one| condition::keys(one)).collect());
        let Some(rules) = rules else {
            site.skip_restriction(
                directive,
                "patterns cannot express the expression: write a rule with `respond`",
            );
            return true;
        };
        for mut keys in rules {
            // A rule for every path needs no `path`.
            keys.retain(|(_, value)| *value != Value::texts(["/*"]));
            keys.extend(file_rules::refusal(code));
            site.rule(directive, keys);
        }
        return true;
    }
    if is_match {
        match crate::regex::rewrite(&normalized(from), to) {
            Some(found) => {
                for pattern in &found.patterns {
                    site.redirect(pattern, &found.target, code, directive.line);
                }
                if let Some(difference) = found.difference {
                    site.differs(directive, difference);
                }
            }
            None => site.skip(
                directive,
                "the expression or its target has no counterpart: write `redirects`",
            ),
        }
        return true;
    }
    // `Redirect / https://a.test/` redirects every path, because Apache adds the rest of the path to the target.
    if let ("/", Some(name)) = (from, to.strip_prefix("https://"))
        && let Some(name) = name.strip_suffix('/').or(Some(name).filter(|name| !name.contains('/')))
        && !name.contains(['/', '%', '$'])
    {
        // `hosts::assemble` uses `https_redirect` for a host without TLS; a host with TLS keeps the entry of
        // `redirects`.
        host.https_redirect = Some(HttpsRedirect {
            host: name.to_owned(),
            status: code,
        });
        site.redirect("/*", &format!("https://{name}/{{*}}"), code, directive.line);
        return true;
    }
    let base = to.strip_suffix('/').unwrap_or(to);
    match from.strip_suffix('/') {
        Some(prefix) => site.redirect(&format!("{prefix}/*"), &format!("{base}/{{*}}"), code, directive.line),
        None => {
            site.redirect(from, to, code, directive.line);
            site.redirect(&format!("{from}/*"), &format!("{base}/{{*}}"), code, directive.line);
        }
    }
    true
}

/// Translates a refusal, such as `Redirect 403 /`, in a section. `patterns`: patterns of the section. Returns false for
/// other directives.
pub(super) fn refusal(directive: &Directive, patterns: &[String], site: &mut Site) -> bool {
    let Some((code @ 400..600, from, _)) = parse(directive) else {
        return false;
    };
    if directive.is("RedirectMatch") && !matches!(from, "^" | "^/" | ".*" | "^.*$" | "^/.*$") {
        site.skip_restriction(directive, "write a rule with `path` and `respond`");
        return true;
    }
    let paths = match from {
        path if path.starts_with('/') && path.len() > 1 && directive.is("Redirect") => prefix(path),
        _ => patterns.to_vec(),
    };
    site.rule(directive, keys(paths, code));
    true
}

/// Returns true if a directive responds with the status of an error, such as `Redirect gone /a`.
pub(super) fn refuses(directive: &Directive) -> bool {
    matches!(parse(directive), Some((400..600, ..)))
}

/// Returns the keys of a rule that refuses the requests for some patterns with a status.
fn keys(patterns: Vec<String>, code: u64) -> Vec<(&'static str, Value)> {
    let mut keys = Vec::from(file_rules::refusal(code));
    if !patterns.iter().any(|pattern| pattern == "/*") {
        keys.insert(0, ("path", Value::texts(patterns)));
    }
    keys
}

/// Returns the status, the path or expression, and the target of a redirect; `None` for other directives. The target of
/// a refusal is empty. A status alone, as in `Redirect 403`, applies to every path.
fn parse(directive: &Directive) -> Option<(u64, &str, &str)> {
    let status = |word: &str| match word.to_ascii_lowercase().as_str() {
        "permanent" => Some(301),
        "temp" => Some(302),
        "seeother" => Some(303),
        "gone" => Some(410),
        word => word.parse::<u64>().ok(),
    };
    let words = directive.words();
    let (code, from, to) = match (directive.name.to_ascii_lowercase().as_str(), &words[..]) {
        ("redirect" | "redirectmatch", [code, from, rest @ ..]) if status(code).is_some() && rest.len() < 2 => (
            status(code).unwrap_or(302),
            *from,
            rest.first().copied().unwrap_or_default(),
        ),
        ("redirect", [code]) if status(code).is_some() => (status(code).unwrap_or(302), "/", ""),
        ("redirect" | "redirectmatch" | "redirecttemp", [from, to]) => (302, *from, *to),
        ("redirectpermanent", [from, to]) => (301, *from, *to),
        _ => return None,
    };
    Some((code, from, to))
}
