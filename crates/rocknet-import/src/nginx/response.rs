//! Translates `return` in a location.

use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::value::Value;

use super::action::{self, ReturnAction};
use super::place::{LocationMatch, Locations, matched};
use super::restriction::refuses;
use super::scope::Scope;

/// Translates `return` to a redirect, a rule, or a restriction that denies every client (`close`). `patterns` are the
/// patterns of its location.
pub(super) fn translate(
    directive: &Directive,
    patterns: &[String],
    scope: &mut Scope<'_>,
    site: &mut Site,
    locations: &Locations<'_>,
) {
    let line = directive.line;
    let is_exact = patterns.iter().all(|pattern| !pattern.ends_with('*'));
    // Prefix that the location matches. Without a prefix, use NUL, because no path begins with it.
    let prefix = patterns
        .iter()
        .find_map(|pattern| pattern.strip_suffix('*'))
        .unwrap_or("\u{0}");
    // True if another location matches some of the paths of this one. An expression counts only if this one is `/`.
    let has_inner = locations.all.iter().any(|location| match matched(location) {
        LocationMatch::Exact(path) | LocationMatch::Prefix { path, .. } => {
            path.len() > prefix.len() && path.starts_with(prefix)
        }
        LocationMatch::Expression(..) => prefix == "/",
        LocationMatch::Named => false,
    });
    match action::parse(directive) {
        // An empty host stands for the host of the request. The last arm reports that form as not translated.
        Some(ReturnAction::Https(host)) if !host.is_empty() => {
            for pattern in patterns {
                redirect_whole(site, directive, pattern, &format!("https://{host}"), 301);
            }
        }
        Some(ReturnAction::Redirect { target, status }) => {
            for pattern in patterns {
                // `{*}` stands for the text that the `*` of the pattern matches.
                match target.strip_suffix("/{*}") {
                    Some(base) => redirect_whole(site, directive, pattern, base, status),
                    None => site.redirect(pattern, &target, status, line),
                }
            }
            if !target.contains(['?', '{']) {
                scope
                    .notes
                    .differs(directive, "RockNet adds the query of the request to the target");
            }
        }
        Some(ReturnAction::Respond { status: 403, .. }) => scope.settings.close(line),
        Some(ReturnAction::Respond { status, .. }) if has_inner && status >= 400 => {
            scope.settings.close(line);
            scope.notes.differs(
                directive,
                "clients get 403; a rule would also match the locations below",
            );
        }
        Some(ReturnAction::Respond { status, body }) if !has_inner || is_exact => {
            let mut keys = vec![
                ("path", Value::texts(patterns.iter().cloned())),
                ("respond", Value::Number(status)),
            ];
            keys.extend(body.map(|body| ("body", Value::Text(body))));
            site.rule(directive, keys);
            let has_header = scope.settings.has_map("headers");
            if has_header {
                scope.notes.differs(
                    directive,
                    "the response of a rule has the header fields of the site, not of the route",
                );
            }
        }
        _ if refuses(directive) => {
            scope.settings.close(line);
            scope.notes.differs(directive, "clients get 403, without the text");
        }
        _ => {
            let message = "write a rule, [[site.\"…\".rule]], with `path` and `redirect` or `respond`";
            scope.notes.skip(directive, message);
        }
    }
}

/// Redirects each path of a pattern to `base`, followed by the whole path.
fn redirect_whole(site: &mut Site, directive: &Directive, pattern: &str, base: &str, status: u64) {
    let target = match pattern.strip_suffix('*') {
        Some(prefix) => format!("{base}{prefix}{{*}}"),
        None => format!("{base}{pattern}"),
    };
    site.redirect(pattern, &target, status, directive.line);
}
