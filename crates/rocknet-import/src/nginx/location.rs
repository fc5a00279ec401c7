//! Translates `location` blocks to routes, redirects and rules.

use crate::access::access_of;
use crate::condition::{self, Condition};
use crate::directive::Directive;
use crate::document::{Notes, RuleStage, Site, note_inherited_fields, restore};
use crate::settings::Settings;
use crate::value::Value;

use super::action;
use super::area::LocationArea;
use super::php;
use super::place::{CaseMode, LocationMatch, Locations, is_dotfiles, literal, matched, matches_well_known, patterns};
use super::precedence::{LocationRoute, is_overridden, note_overridden, rank, selected, without_openings};
use super::response;
use super::restriction::{is_denied, restricts};
use super::scope::{ConfigLevel, Scope, constant};
use super::try_files;
use super::upstream::Upstreams;
use super::{cache, clients, conditional, limit};

/// Translates the locations of a server. `server`: its scope, whose `proxy_…` directives the locations inherit.
pub(super) fn translate<'a>(locations: &Locations<'a>, site: &mut Site, server: &Scope<'a>, upstreams: &Upstreams) {
    let base = site.settings.clone();
    let mut root = Settings::default();
    let mut routes: Vec<LocationRoute> = Vec::new();
    // Patterns of the expressions so far that restrict access themselves.
    let mut restricted: Vec<String> = Vec::new();
    let has_php = locations
        .all
        .iter()
        .any(|location| php::php_address(location, upstreams).is_some());
    let forwards = |d: &Directive| {
        ["proxy_pass", "grpc_pass", "fastcgi_pass", "uwsgi_pass", "scgi_pass"].contains(&d.name.as_str())
    };
    let has_upstreams = locations
        .all
        .iter()
        .any(|location| location.children().iter().any(forwards) && php::php_address(location, upstreams).is_none());
    for location in &locations.all {
        let place = matched(location);
        if matches!(place, LocationMatch::Named) {
            continue;
        }
        if let LocationMatch::Expression(expression, case) = &place {
            if expression.contains("\\.php") && location.children().iter().any(|d| d.is("fastcgi_pass")) {
                let outer = (server, &mut root);
                php::translate(location, expression, site, locations, upstreams, &restricted, outer);
                continue;
            }
            // Upstreams get names with a dot too, and files in `/.well-known` are served.
            let is_needed = || has_upstreams || matches_well_known(expression, *case);
            if is_dotfiles(expression) && is_denied(location) && !is_needed() {
                site.unneeded(
                    location,
                    "names that begin with a dot are never served (404), except /.well-known",
                );
                continue;
            }
        }
        let patterns = patterns(location, &place, site, has_upstreams);
        if patterns.is_empty() {
            continue;
        }
        let area = LocationArea::new(location, &patterns, locations);
        if matches!(place, LocationMatch::Expression(..)) && is_denied(location) {
            // A rule is applied before routes, as nginx prefers expressions to prefixes.
            let returned = location.children().iter().find(|d| d.is("return"));
            let status = returned.and_then(|d| d.argument(0).parse().ok()).unwrap_or(403);
            let keys = [("respond", Value::Number(status))];
            action::add(location, site, area.stage, Some(&area), &patterns, &[Vec::new()], &keys);
            if status != 403 {
                locations.note_access_first(location, site);
            }
            continue;
        }
        let mut settings = translate_location(location, &area, site, server, locations, upstreams);
        if has_php && matches!(place, LocationMatch::Prefix { is_final: true, .. }) {
            without_php(location, &mut settings, site);
        }
        let mut is_enforced = false;
        if matches!(place, LocationMatch::Expression(..)) && !settings.is_empty() {
            let is_needed = settings.restricts() && is_overridden(location, &patterns, locations);
            is_enforced = is_needed && clients::refuse(location, &settings, &area, site);
            if !is_enforced {
                note_overridden(location, &patterns, locations, site);
            }
            if settings.restricts() && !is_enforced {
                restricted.extend(patterns.iter().cloned());
            }
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
                    is_enforced,
                });
            }
        }
    }
    if has_php && !root.has("fallback") && !base.has("fallback") {
        // With PHP, RockNet's default is a front controller, and nginx has none without `try_files`.
        root.set("fallback", Value::Flag(false), site.line);
    }
    let mut routes = selected(routes, site);
    let settings = routes.iter().map(|route| &route.settings);
    note_inherited_fields("add_header", (&root, &base), &settings, site);
    for LocationRoute { settings, line, .. } in &mut routes {
        restore(settings, &root, &base);
        settings.cancel_inherited_lists(&base, *line);
        settings.cancel_inherited_lists(&root, *line);
    }
    let mut inherited = access_of(&base);
    inherited.merge(access_of(&root));
    let access = |settings: &Settings| {
        let mut all = inherited.clone();
        all.merge(access_of(settings));
        if let Some(satisfy) = settings.get("satisfy").or(site.settings.get("satisfy")) {
            all.set("satisfy", satisfy.clone(), 0);
        }
        all
    };
    let mut notes = Vec::new();
    for route in without_openings(routes, access, &mut notes) {
        if !route.settings.is_empty() {
            site.route(&route.pattern, route.line).merge(route.settings);
        }
    }
    site.notes.append(&mut notes);
    if base.is_locked() {
        root.cancel_inherited_lists(&base, site.line);
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

/// Translates the directives of a location. Actions become rules and redirects of the site.
fn translate_location<'a>(
    location: &'a Directive,
    area: &LocationArea,
    site: &mut Site,
    server: &Scope<'a>,
    locations: &Locations<'a>,
    upstreams: &Upstreams,
) -> Settings {
    let patterns = &area.patterns[..];
    let mut scope = Scope::new(ConfigLevel::Location);
    // Alternatives under which the directives of rewriting apply.
    let mut guard = vec![Vec::new()];
    let mut strips = false;
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
            ("return", _) => response::translate(directive, area, &mut scope, site, locations),
            ("rewrite", _) if is_strip(directive, location, patterns) => strips = true,
            ("rewrite", [_, target, "break"]) if leaves(target, location, area) => {
                let message = "the rewritten path would get the settings of its own route: write a rule with `rewrite`, \
                     and a route for its target";
                scope.notes.skip(directive, message);
            }
            ("rewrite", _) => action::rewrite(directive, site, Some(area), &guard),
            ("try_files", _) => try_files::translate(directive, &mut scope, &locations.named, upstreams, true),
            ("alias", [folder]) => alias(directive, folder, patterns, &mut scope),
            ("internal", []) if is_error_page(site, patterns) => {
                scope.notes.skip(directive, "clients can request the page itself, too");
            }
            ("internal", []) => scope.settings.set("internal", Value::Flag(true), directive.line),
            ("location", _) => nested(directive, patterns, &mut scope, site, upstreams),
            ("if", _) => conditional::translate(directive, site, Some(area), &mut guard),
            ("limit_except", [_, ..]) => limit_except(directive, area, &mut scope, site),
            ("root", [folder]) if constant(folder).is_none() => {
                scope.settings.close(directive.line);
                let message =
                    "the folder has variables, so `deny = \"all\"` denies every client here: write a constant `root`";
                scope.notes.skip(directive, message);
            }
            _ => scope.read(directive, upstreams),
        }
    }
    scope.finish(Some(server));
    limit::inherit(&mut scope.settings, &site.settings, location.line);
    cache::translate(&server.caches, &scope.caches, &mut scope.settings, &mut scope.notes);
    if scope.settings.get("index") == Some(&Value::List(Vec::new())) {
        // nginx lists a folder only where `try_files` finds it.
        let is_listed = |settings: &Settings| settings.get("browse") == Some(&Value::Flag(true));
        if is_listed(&scope.settings) || is_listed(&site.settings) {
            scope.settings.set("browse", Value::Flag(false), location.line);
        }
    }
    add_slash(location, patterns, locations, site);
    scope.remove_hidden_of_location(&site.settings);
    if strips {
        scope.pass_path.get_or_insert_with(|| "/".to_owned());
    }
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

/// Returns true for a rewrite that removes the prefix of a location before a proxy, such as `rewrite ^/api/(.*)$ /$1
/// break`.
fn is_strip(rewrite: &Directive, location: &Directive, patterns: &[String]) -> bool {
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

/// Returns true if a rewrite with `break` leads out of its location. nginx serves the new path with the settings of the
/// location, and RockNet by the route of the new path.
fn leaves(target: &str, location: &Directive, area: &LocationArea) -> bool {
    let has_own = |d: &Directive| d.name.ends_with("_pass") || matches!(d.name.as_str(), "root" | "alias");
    let start = target.split('$').next().unwrap_or_default();
    let is_inside = area
        .patterns
        .iter()
        .any(|own| start.starts_with(own.trim_end_matches('*')));
    location.children().iter().any(has_own) && !is_inside
}

/// Translates `limit_except` that denies requests with other methods; `allow` in it names exceptions.
fn limit_except(block: &Directive, area: &LocationArea, scope: &mut Scope<'_>, site: &mut Site) {
    let (deny, allow): (Vec<&Directive>, Vec<&Directive>) = block.children().iter().partition(|d| d.is("deny"));
    let is_plain = matches!(deny[..], [deny] if deny.argument(0) == "all") && allow.iter().all(|d| d.is("allow"));
    if !is_plain {
        scope.settings.close(block.line);
        let message = "only `allow` and `deny all` in it have a counterpart, so `deny = \"all\"` denies every client here: \
             write a rule with `method`";
        return scope.notes.skip(block, message);
    }
    let mut test = vec![condition::methods_of(block).negated_if(true)];
    if !allow.is_empty() {
        let clients = allow.iter().map(|d| d.argument(0));
        test.push(Condition::new("client", Value::texts(clients)).negated_if(true));
    }
    let keys = [("respond", Value::Number(403))];
    action::add(block, site, area.stage, Some(area), &area.patterns, &[test], &keys);
}

/// Translates a location by expression in a location. Its PHP is translated, because without PHP its scripts would be
/// sent as files, and so is a refusal. The rest gets a note. Other locations in locations have been moved out of them.
fn nested(directive: &Directive, patterns: &[String], scope: &mut Scope<'_>, site: &mut Site, upstreams: &Upstreams) {
    let address = php::php_address(directive, upstreams).and_then(|group| group.servers.into_iter().next());
    if let Some(server) = address {
        scope.settings.set("php", Value::text(server.url), directive.line);
        scope.notes.differs(
            directive,
            "`php` runs every `*.php` file of the place, and the other directives of the block have no effect",
        );
        if restricts(directive) {
            scope.notes.skip_restriction(directive, "write a route with `deny`");
        }
        return;
    }
    let limited = match matched(directive) {
        LocationMatch::Expression(expression, case) if is_denied(directive) => limited(&expression, case, patterns),
        _ => None,
    };
    if let Some((regex, outside)) = limited {
        let keys = [("respond", Value::Number(403))];
        let exceptions = outside.map(|paths| Condition::new("path", Value::text(paths)).negated_if(true));
        let tests = [exceptions.into_iter().collect()];
        return action::add(directive, site, RuleStage::Expression, None, &[regex], &tests, &keys);
    }
    match restricts(directive) {
        true => scope.notes.skip_restriction(
            directive,
            "a location by expression in another one is not translated: write a route with `deny`",
        ),
        false => scope.notes.skip(
            directive,
            "a location by expression in another one is not translated: write a route of its own",
        ),
    }
}

/// Returns the expression of a location within a prefix, and an expression for exceptions if it matches paths outside
/// of the prefix, too; `None` if it has no form.
fn limited(expression: &str, case: CaseMode, patterns: &[String]) -> Option<(String, Option<String>)> {
    let prefix = patterns.iter().find_map(|pattern| pattern.strip_suffix('*'))?;
    if prefix.contains('*') || prefix.starts_with('~') {
        return None;
    }
    let base = prefix.strip_suffix('/')?;
    let compiled = |text: &str| super::place::regex_of(text, case);
    let is_anchored_inside = expression.starts_with('^') && literal(&format!("~{expression}")).starts_with(prefix);
    if base.is_empty() || is_anchored_inside {
        return Some((compiled(expression)?, None));
    }
    // nginx searches the whole path, so that a match may begin in the prefix.
    let flag = if case == CaseMode::Ignored { "*" } else { "" };
    let start = literal(&format!("~{flag}^{expression}"));
    let begins_in = |rest: &str| start.starts_with(rest) || rest.starts_with(&start);
    let mut ends = base.char_indices().map(|(at, _)| &prefix[at..]);
    if start.is_empty() || expression.starts_with('^') || ends.any(begins_in) {
        return Some((compiled(expression)?, Some(outside(prefix))));
    }
    let base = condition::escaped(base);
    let text = match start.starts_with('/') {
        true => format!("^{base}(?:/.*?)?(?:{expression})"),
        false => format!("^{base}/.*?(?:{expression})"),
    };
    Some((compiled(&text)?, None))
}

/// Returns an expression for the paths that do not begin with a prefix.
fn outside(prefix: &str) -> String {
    let mut text = String::new();
    for c in prefix.chars().rev() {
        let c = condition::escaped(&c.to_string());
        text = match text.is_empty() {
            true => format!("(?:$|[^{c}])"),
            false => format!("(?:$|[^{c}]|{c}{text})"),
        };
    }
    format!("~^{text}")
}

impl Scope<'_> {
    /// Returns true if a site has header fields that its routes inherit.
    fn settings_have_headers(&self, site: &Site) -> bool {
        site.settings.has_map("headers") || self.settings.has_map("headers")
    }
}

/// Redirects the path of a location for an application to the same path with a slash at its end, as nginx does.
fn add_slash(location: &Directive, patterns: &[String], locations: &Locations<'_>, site: &mut Site) {
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

/// Returns true if a location is the page of an error status, which `errors` of the site names.
fn is_error_page(site: &Site, patterns: &[String]) -> bool {
    let mut errors = site
        .settings
        .in_order()
        .into_iter()
        .filter(|(key, _)| key.starts_with("errors."));
    errors.any(|(_, setting)| matches!(&setting.value, Value::Text(page) if patterns.contains(page)))
}
