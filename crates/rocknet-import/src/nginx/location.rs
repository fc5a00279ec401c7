//! Translates `location` blocks to routes, redirects and rules.

use crate::directive::Directive;
use crate::document::{Notes, Site, restore};
use crate::note::shown;
use crate::settings::Settings;
use crate::value::Value;

use super::action;
use super::php;
use super::place::{LocationMatch, Locations, matched, patterns};
use super::precedence::{LocationRoute, rank, selected};
use super::response;
use super::restriction::restricts;
use super::scope::{ConfigLevel, Scope, constant};
use super::try_files;
use super::upstream::Upstreams;

/// Translates the locations of a server. `server`: its scope, whose `proxy_…` directives the locations inherit.
pub(super) fn translate(locations: &Locations<'_>, site: &mut Site, server: &Scope<'_>, upstreams: &Upstreams) {
    let base = site.settings.clone();
    let mut root = Settings::default();
    let mut routes: Vec<LocationRoute> = Vec::new();
    let has_php = locations
        .all
        .iter()
        .any(|location| php::php_address(location, upstreams).is_some());
    for location in &locations.all {
        let place = matched(location);
        if matches!(place, LocationMatch::Named) {
            continue;
        }
        if let LocationMatch::Expression(expression, _) = &place {
            if expression.contains("\\.php") && location.children().iter().any(|d| d.is("fastcgi_pass")) {
                php::translate(location, expression, site, upstreams);
                if restricts(location) {
                    note_overridden(location, &["*.php".to_owned()], locations, site);
                }
                continue;
            }
            if is_dotfiles(expression) && is_denied(location) {
                site.unneeded(
                    location,
                    "names that begin with a dot are never served (404), except /.well-known",
                );
                continue;
            }
        }
        let patterns = patterns(location, &place, site);
        if patterns.is_empty() {
            continue;
        }
        if matches!(place, LocationMatch::Expression(..)) && is_denied(location) {
            // A rule is applied before routes, as nginx prefers expressions to prefixes.
            let returned = location.children().iter().find(|d| d.is("return"));
            let status = if returned.is_some_and(|d| d.argument(0) == "404") {
                404
            } else {
                403
            };
            let keys = vec![("path", Value::texts(patterns)), ("respond", Value::Number(status))];
            site.rule(location, keys);
            continue;
        }
        let mut settings = translate_location(location, &patterns, site, server, locations, upstreams);
        if has_php && matches!(place, LocationMatch::Prefix { is_final: true, .. }) {
            without_php(location, &mut settings, site);
        }
        if matches!(place, LocationMatch::Expression(..)) && settings.restricts() {
            note_overridden(location, &patterns, locations, site);
        }
        for pattern in &patterns {
            let pattern = pattern.clone();
            // A folder takes the place of a path with everything below it. That route matches the path itself, too.
            if settings.has("alias") && !pattern.contains('*') && patterns.contains(&format!("{pattern}/*")) {
                continue;
            }
            if pattern == "/*" {
                root.merge(settings.clone());
            } else if !settings.is_empty() || !location.children().iter().any(|d| d.is("return")) {
                routes.push(LocationRoute {
                    rank: rank(&place, &pattern),
                    pattern,
                    settings: settings.clone(),
                    line: location.line,
                });
            }
        }
    }
    if has_php && !root.has("fallback") && !base.has("fallback") {
        // With PHP, RockNet's default is a front controller, and nginx has none without `try_files`.
        root.set("fallback", Value::Flag(false), site.line);
    }
    for LocationRoute {
        pattern,
        mut settings,
        line,
        ..
    } in selected(routes, site)
    {
        restore(&mut settings, &root, &base);
        settings.cancel_inherited_lists(&base, line);
        settings.cancel_inherited_lists(&root, line);
        if settings.is_empty() {
            continue;
        }
        site.route(&pattern, line).merge(settings);
    }
    site.settings.merge(root);
    // Without PHP, there is no default that `fallback = false` would turn off.
    let is_needless = site.settings.get("fallback") == Some(&Value::Flag(false)) && !has_php;
    if is_needless {
        site.settings.remove("fallback");
    }
}

/// Turns PHP off in a location with `^~`, whose scripts nginx sends as files.
fn without_php(location: &Directive, settings: &mut Settings, site: &mut Site) {
    const HANDLERS: [&str; 5] = ["php", "proxy", "fastcgi", "uwsgi", "scgi"];
    let only_returns = settings.is_empty() && location.children().iter().any(|d| d.is("return"));
    if only_returns || HANDLERS.iter().any(|key| settings.has(key)) {
        return;
    }
    settings.set("php", Value::Flag(false), location.line);
    let message = "PHP does not run here, and scripts are sent as text, as in nginx; `deny` refuses them";
    site.differs(location, message);
}

/// Notes the prefixes whose routes take precedence over the routes of an expression that restricts access.
fn note_overridden(location: &Directive, patterns: &[String], locations: &Locations<'_>, site: &mut Site) {
    // A prefix takes precedence over a shorter prefix, and over every pattern with `*` elsewhere.
    let overrides = |path: &str| {
        patterns.iter().any(|pattern| {
            let start = pattern.split('*').next().unwrap_or_default();
            let is_prefix = pattern.strip_suffix('*') == Some(start) && start.ends_with('/');
            path.starts_with(start) || !is_prefix && pattern.contains('*') && start.starts_with(path)
        })
    };
    let overriding = locations.all.iter().filter_map(|other| match matched(other) {
        LocationMatch::Prefix { path, is_final: false } if path.len() > 1 && !is_denied(other) => Some(path),
        _ => None,
    });
    let overriding: Vec<String> = overriding.filter(|path| overrides(path)).collect();
    if !overriding.is_empty() {
        let message = format!(
            "the routes of these locations take precedence, so restrict them too: {}",
            shown(&overriding.join(" "))
        );
        site.weakens(location, &message);
    }
}

/// Translates the directives of a location. Actions become rules and redirects of the site.
fn translate_location<'a>(
    location: &'a Directive,
    patterns: &[String],
    site: &mut Site,
    server: &Scope<'a>,
    locations: &Locations<'a>,
    upstreams: &Upstreams,
) -> Settings {
    let mut scope = Scope::new(ConfigLevel::Location);
    let own_headers = location.children().iter().any(|d| d.is("proxy_set_header"));
    let inherited = server
        .proxy
        .iter()
        .filter(|d| !(own_headers && d.is("proxy_set_header")));
    scope.proxy = inherited.copied().collect();
    let is_root = patterns.iter().any(|pattern| pattern == "/*");
    // `proxy_…` directives apply to `proxy_pass` wherever they stand.
    let (passes, others): (Vec<_>, Vec<_>) = location.children().iter().partition(|d| d.name.ends_with("_pass"));
    let inherited_count = scope.proxy.len();
    for directive in others.into_iter().chain(passes) {
        let words = directive.words();
        match (directive.name.as_str(), &words[..]) {
            ("return", _) => response::translate(directive, patterns, &mut scope, site, locations),
            ("rewrite", _) => action::rewrite(directive, site, patterns.first().map(String::as_str)),
            ("try_files", _) => try_files::translate(directive, &mut scope, &locations.named, upstreams),
            ("alias", [folder]) => alias(directive, folder, patterns, &mut scope),
            ("internal", []) if is_error_page(site, patterns) => {
                scope.notes.skip(directive, "clients can request the page itself, too");
            }
            ("internal", []) => scope.settings.set("internal", Value::Flag(true), directive.line),
            ("location", _) => nested(directive, &mut scope, upstreams),
            ("if", _) if restricts(directive) => scope.notes.skip_restriction(
                directive,
                "write a rule, [[site.\"…\".rule]], with `path`, a condition and `respond`",
            ),
            ("if", _) => scope.notes.skip(
                directive,
                "write a rule, [[site.\"…\".rule]], with `path` and a condition",
            ),
            ("root", [folder]) if constant(folder).is_none() => {
                scope.settings.close(directive.line);
                let message =
                    "the folder has variables, so `deny = \"all\"` denies every client here: write a constant `root`";
                scope.notes.skip(directive, message);
            }
            _ => scope.read(directive, upstreams),
        }
    }
    scope.finish();
    if scope.settings.has_map("headers") && server.settings_have_headers(site) {
        scope.notes.differs(
            location,
            "the header fields of the site are added too; nginx drops them here",
        );
    }
    if let Some(path) = scope.pass_path.take() {
        strip(location, &path, patterns, &mut scope);
    }
    if scope.pass.is_none() && !is_root {
        for directive in scope.proxy.iter().skip(inherited_count) {
            let message = "the location has no `proxy_pass`";
            scope.notes.skip(directive, message);
        }
    }
    site.notes.append(&mut scope.notes);
    scope.settings
}

/// Translates a location in a location. Only its PHP is translated, because without PHP its scripts would be sent as
/// files. The rest gets a note.
fn nested(directive: &Directive, scope: &mut Scope<'_>, upstreams: &Upstreams) {
    let address = php::php_address(directive, upstreams).and_then(|group| group.servers.into_iter().next());
    if let Some(server) = address {
        scope.settings.set("php", Value::text(server.url), directive.line);
        scope.notes.differs(
            directive,
            "`php` runs every `*.php` file of the place, and the other directives of the block have no effect",
        );
    } else if !restricts(directive) {
        let message = "nested locations are not translated: write a route of its own";
        return scope.notes.skip(directive, message);
    }
    if restricts(directive) {
        let message = "nested locations are not translated: write a route with `deny`";
        scope.notes.skip_restriction(directive, message);
    }
}

impl Scope<'_> {
    /// Returns true if a site has header fields that its routes inherit.
    fn settings_have_headers(&self, site: &Site) -> bool {
        site.settings.has_map("headers") || self.settings.has_map("headers")
    }
}

/// Translates the path of `proxy_pass`, which replaces the prefix of the location.
fn strip(location: &Directive, path: &str, patterns: &[String], scope: &mut Scope<'_>) {
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
fn alias(directive: &Directive, folder: &str, patterns: &[String], scope: &mut Scope<'_>) {
    let is_prefix = |pattern: &String| pattern.strip_suffix("/*").is_some_and(|prefix| !prefix.contains('*'));
    let is_single = |pattern: &&String| !pattern.contains('*');
    let is_path = patterns.iter().any(is_prefix) || patterns.iter().filter(is_single).count() == patterns.len();
    if !is_path || folder.contains('$') {
        scope.settings.close(directive.line);
        let message = "a folder takes the place of a constant path: write a route with `alias`, and remove `deny`";
        return scope.notes.skip(directive, message);
    }
    match patterns.iter().any(|pattern| pattern == "/*") {
        true => scope.settings.set("root", Value::text(folder), directive.line),
        false => scope.settings.set("alias", Value::text(folder), directive.line),
    }
}

/// Returns true for the expression of locations that protect names with a leading dot, such as `/\.ht`.
fn is_dotfiles(expression: &str) -> bool {
    let rest = expression.strip_prefix('^').unwrap_or(expression);
    let rest = rest.strip_prefix("(^|/)").or_else(|| rest.strip_prefix('/'));
    // An alternative outside of groups, such as in `/\.ht|/private`, matches other names, too.
    let mut depth = 0_i32;
    let has_alternative = expression.replace("(^|/)", "").chars().any(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == '|' && depth == 0
    });
    rest.is_some_and(|rest| rest.starts_with("\\.")) && !has_alternative
}

/// Returns true if a location denies every request.
fn is_denied(location: &Directive) -> bool {
    let denies = |d: &Directive| {
        d.is("deny") && d.argument(0) == "all" || d.is("return") && matches!(d.argument(0), "403" | "404" | "444")
    };
    let is_log = |d: &Directive| matches!(d.name.as_str(), "access_log" | "log_not_found");
    location.children().iter().any(denies) && location.children().iter().all(|d| denies(d) || is_log(d))
}

/// Returns true if a location is the page of an error status, which `errors` of the site names.
fn is_error_page(site: &Site, patterns: &[String]) -> bool {
    let mut errors = site
        .settings
        .in_order()
        .into_iter()
        .filter(|(key, _)| key.starts_with("errors."));
    errors.any(|(_, setting)| matches!(&setting.value, Value::Text(page) if patterns.contains(page)))
}
