//! Translates the directives of a location that change paths: `alias`, and those that remove the prefix of the location
//! before `proxy_pass`.

use super::super::area::LocationArea;
use super::super::place::{LocationMatch, Locations, matched};
use super::super::scope::Scope;
use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::value::Value;

/// Returns true for a rewrite that removes the prefix of a location before a proxy, such as `rewrite ^/api/(.*)$ /$1
/// break`.
pub(super) fn is_strip(rewrite: &Directive, location: &Directive, patterns: &[String]) -> bool {
    let [expression, target @ ("/$1" | "$1"), "break"] = rewrite.words()[..] else {
        return false;
    };
    let has_proxy = location.children().iter().any(|d| d.is("proxy_pass"));
    let Some(rest) = expression.strip_prefix('^').filter(|_| has_proxy) else {
        return false;
    };
    let ends = match target {
        "/$1" => &["/(.*)", "/?(.*)", "/(.*)$", "/?(.*)$"][..],
        _ => &["(/.*)", "(/.*)$"],
    };
    let prefix = ends.iter().find_map(|end| rest.strip_suffix(end));
    prefix.is_some_and(|prefix| patterns.contains(&format!("{}/*", prefix.replace("\\", ""))))
}

/// Returns true if a rewrite with `break` leads out of a location that has a folder or back end of its own. nginx
/// serves the new path with the settings of the location, and RockNet by the route of the new path.
pub(super) fn leaves(target: &str, location: &Directive, area: &LocationArea) -> bool {
    let has_own = |d: &Directive| d.name.ends_with("_pass") || matches!(d.name.as_str(), "root" | "alias");
    let start = target.split('$').next().unwrap_or_default();
    let is_inside = area
        .patterns
        .iter()
        .any(|own| start.starts_with(own.trim_end_matches('*')));
    location.children().iter().any(has_own) && !is_inside
}

/// Redirects the path of a location for an application to the same path with a slash at its end, as nginx does.
pub(super) fn add_slash(location: &Directive, patterns: &[String], locations: &Locations<'_>, site: &mut Site) {
    let LocationMatch::Prefix { path, .. } = matched(location) else {
        return;
    };
    let is_app = location.children().iter().any(|d| d.name.ends_with("_pass"));
    let Some(base) = path
        .strip_suffix('/')
        .filter(|base| is_app && !base.is_empty() && !patterns.is_empty())
    else {
        return;
    };
    let has_own = locations.places.iter().any(|place| match place {
        LocationMatch::Exact(path) | LocationMatch::Prefix { path, .. } => path == base,
        _ => false,
    });
    if !has_own {
        site.redirect(base, &path, 308, location.line);
    }
}

/// Translates the path of `proxy_pass`, which replaces the prefix of the location: `location /api/ { proxy_pass
/// http://b/; }` forwards `/x` for `/api/x`. Any other path than `/` or the prefix itself gets a note.
pub(super) fn strip(location: &Directive, path: &str, patterns: &[String], scope: &mut Scope<'_>) {
    let prefix = patterns.iter().find_map(|pattern| pattern.strip_suffix("/*"));
    match (prefix, path) {
        (Some(""), "/") => {}
        (Some(prefix), "/") => {
            let Some(pass) = scope.pass else { return };
            if let Some(value) = scope.settings.get("proxy").cloned() {
                scope.settings.set("proxy", with_strip(value, prefix), pass.line);
            }
        }
        (Some(prefix), path) if path.trim_end_matches('/') == prefix => {}
        _ => {
            let message = "the path is not replaced with that of `proxy_pass`: RockNet forwards the path of the \
                 request unchanged";
            scope.notes.skip(location, message);
        }
    }
}

/// Adds `strip` to the value of `proxy`.
fn with_strip(value: Value, prefix: &str) -> Value {
    let strip = ("strip".to_owned(), Value::text(prefix));
    match value {
        Value::Table(mut entries) => {
            entries.push(strip);
            Value::Table(entries)
        }
        servers => Value::Table(vec![("to".to_owned(), servers), strip]),
    }
}

/// Translates `alias` of a location for a path, or for a path and everything below it.
pub(super) fn alias(directive: &Directive, folder: &str, patterns: &[String], scope: &mut Scope<'_>) {
    let is_prefix = |pattern: &String| pattern.strip_suffix("/*").is_some_and(|prefix| !prefix.contains('*'));
    let is_single = |pattern: &&String| !pattern.contains('*');
    let is_path = patterns.iter().any(is_prefix) || patterns.iter().filter(is_single).count() == patterns.len();
    if !is_path || folder.contains('$') {
        scope.settings.close(directive.line);
        let message = "`alias` takes a constant path and folder, so `deny = \"all\"` denies every client here: write a \
             route with `alias` for each path";
        return scope.notes.skip(directive, message);
    }
    match patterns.iter().any(|pattern| pattern == "/*") {
        true => scope.settings.set("root", Value::text(folder), directive.line),
        false => scope.settings.set("alias", Value::text(folder), directive.line),
    }
}
