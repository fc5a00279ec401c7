//! Translates `location` blocks to routes, redirects and rules.

mod inherited_access;
mod inner;
mod path;

use self::inherited_access::{ACCESS, ScriptLocation, keep_root_access, restore_except_access, restore_scripts};
use crate::access::access_of;
use crate::condition::{self, Condition};
use crate::directive::Directive;
use crate::document::{Notes, Site, note_inherited_fields, restore};
use crate::settings::Settings;
use crate::value::Value;

use super::action;
use super::area::LocationArea;
use super::php;
use super::place::{LocationMatch, Locations, is_dotfiles, matched, matches_well_known, patterns};
use super::precedence::{
    LocationRank, LocationRoute, access_of_prefix, is_after_root, is_overridden, keep_earlier_restrictions,
    note_cancelled, note_overridden, prefix_with_inner, rank, selected,
};
use super::response;
use super::restriction::{denied_status, is_denied, refuses, restricts};
use super::scope::{ConfigLevel, Scope, constant};
use super::try_files;
use super::upstream::Upstreams;
use super::{cache, clients, conditional, param_users};

/// Keys of handlers.
const HANDLERS: [&str; 5] = ["php", "proxy", "fastcgi", "uwsgi", "scgi"];

/// Translates the locations of a server. `server`: its scope, whose `proxy_…` directives the locations inherit.
pub(super) fn translate<'a>(locations: &Locations<'a>, site: &mut Site, server: &Scope<'a>, upstreams: &Upstreams) {
    // Settings outside of all locations.
    let base = site.settings.clone();
    // Settings of locations for every path, such as `location /`. They become settings of the site.
    let mut root = Settings::default();
    // Rank of the location that takes precedence among them.
    let mut root_rank: Option<LocationRank> = None;
    // True if an expression for every path has a restriction without a counterpart. nginx prefers it to prefixes.
    let mut is_root_locked = false;
    let mut routes: Vec<LocationRoute> = Vec::new();
    // Patterns of the earlier `location ~` blocks that restrict access by their routes alone, without a rule. The route
    // of a later block could take precedence over such a route, and so open its paths.
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
    let mut scripts: Vec<ScriptLocation<'_>> = Vec::new();
    for (at, location) in locations.all.iter().enumerate() {
        let place = matched(location);
        if matches!(place, LocationMatch::Named) {
            continue;
        }
        if let LocationMatch::Expression(expression, case) = &place {
            if expression.contains("\\.php") && location.children().iter().any(|d| d.is("fastcgi_pass")) {
                let outer = (server, &mut root);
                let may_have_route =
                    php::translate(location, expression, site, locations, upstreams, &restricted, outer);
                let is_after_root = is_after_root(at, &["*.php".to_owned()], locations);
                scripts.push(ScriptLocation {
                    location,
                    may_have_route,
                    is_after_root,
                });
                continue;
            }
            // The refusal is needed in these cases, because RockNet forwards names with a leading dot to upstreams, and
            // serves files in `/.well-known`.
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
            let status = denied_status(location);
            let keys = [("respond", Value::Number(status))];
            action::add(location, site, area.stage, Some(&area), &patterns, &[Vec::new()], &keys);
            area.note_reopened(location, site);
            // Access control refuses requests, too, so its order makes no difference to a 403.
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
        // `note_overridden` has noted all prefixes otherwise.
        if matches!(place, LocationMatch::Expression(..)) && (is_enforced || !settings.restricts()) {
            note_cancelled(location, &settings, &patterns, locations, site);
        }
        let is_refusal = |d: &Directive| match d.name.as_str() {
            "return" => refuses(d),
            "if" | "limit_except" => restricts(d),
            _ => false,
        };
        if is_enforced || location.children().iter().any(is_refusal) {
            area.note_reopened(location, site);
        }
        for pattern in &patterns {
            let pattern = pattern.clone();
            // For a folder at `/a/*`, RockNet adds the route for `/a` itself.
            if settings.has("alias") && !pattern.contains('*') && patterns.contains(&format!("{pattern}/*")) {
                continue;
            }
            if pattern == "/*" {
                is_root_locked |= settings.is_locked() && matches!(place, LocationMatch::Expression(..));
                let rank = rank(&place, pattern.as_str());
                if root_rank.is_some_and(|known| known <= rank) {
                    let better = std::mem::replace(&mut root, settings.clone());
                    root.merge(better);
                } else {
                    root.merge(settings.clone());
                    root_rank = Some(rank);
                }
            } else if !settings.is_empty() || !conditional::always_returns(location) {
                // A location without settings gets a route, too, which cancels the settings of `location /`. It needs
                // none if a `return` responds to every request.
                routes.push(LocationRoute {
                    rank: rank(&place, &pattern),
                    pattern,
                    settings: settings.clone(),
                    line: location.line,
                    is_enforced,
                    is_after_root: is_after_root(at, &patterns, locations),
                });
            }
        }
    }
    if has_php && !root.has("fallback") && !base.has("fallback") {
        // With PHP, RockNet's default is a front controller, and nginx has none without `try_files`.
        root.set("fallback", Value::Flag(false), site.line);
    }
    // The lists `allow` and `deny` of `location /` replace both lists of the server. But if a restriction of the server
    // has no counterpart, the server has `deny = "all"`. This call then replaces the lists of `location /` by it, so
    // that the site stays closed.
    root.cancel_inherited_lists(&base, site.line);
    restore_scripts(&scripts, (&root, is_root_locked), &base, site);
    let mut routes = selected(routes, locations, site);
    let mut effective = base.clone();
    effective.merge(root.clone());
    let settings = routes.iter().map(|route| &route.settings);
    note_inherited_fields("add_header", (&root, &base), &settings, site);
    // Restricted prefix of each route over which nginx may prefer an expression inside this prefix, with the access
    // control that applies to both.
    let prefixes: Vec<_> = routes
        .iter()
        .map(|route| {
            let prefix = prefix_with_inner(&route.pattern, locations)?;
            let is_expression = route.rank == LocationRank::Expression;
            is_expression.then(|| access_of_prefix(prefix, &routes, &base))
        })
        .collect();
    for (route, prefix) in routes.iter_mut().zip(prefixes) {
        if let Some(access) = prefix {
            let name = Directive::new("location", vec![route.pattern.clone()], route.line);
            let has_own = ACCESS.iter().chain(&HANDLERS).any(|key| route.settings.has(key));
            let result = match access.filter(|_| !has_own) {
                Some(access) => {
                    route.settings.merge(access);
                    "the access control of the prefix applies here, too: write `allow`, `deny` or `auth` for another"
                }
                None => {
                    route.settings.close(route.line);
                    "`deny = \"all\"` denies every client here: write `allow`, `deny` or `auth`"
                }
            };
            let message = format!(
                "an expression inside a prefix takes precedence in nginx, at least for some paths, so {result}"
            );
            site.differs(&name, &message);
        }
        if route.is_after_root && effective.restricts() {
            let name = Directive::new("location", vec![route.pattern.clone()], route.line);
            keep_root_access(&name, &mut route.settings, (&effective, &base), site);
            restore_except_access(&mut route.settings, &root, &base);
            continue;
        }
        let LocationRoute {
            settings, line, rank, ..
        } = route;
        // `location ^~ /` turns PHP off for its own paths only.
        if matches!(rank, LocationRank::Prefix | LocationRank::Below)
            && root.get("php") == Some(&Value::Flag(false))
            && !HANDLERS.iter().any(|key| settings.has(key))
            && let Some(php) = site.settings.get("php")
        {
            settings.set("php", php.clone(), *line);
        }
        // The lists of the location replace both lists of the server. This call precedes `restore`, because the lists
        // that `restore` adds are those of the server, and replace nothing.
        settings.cancel_inherited_lists(&base, *line);
        restore(settings, &root, &base);
        // An expression for every path applies here, too. Its `deny = "all"`, for a restriction without a counterpart,
        // is in `root`. This call replaces the lists of the route by `deny = "all"`, so that none of them, not even a
        // restored one, opens the route. The `deny = "all"` of `location /` does not apply to other locations.
        if is_root_locked {
            settings.cancel_inherited_lists(&root, *line);
        }
    }
    let mut inherited = access_of(&base);
    inherited.merge(access_of(&root));
    let access = |settings: &Settings| {
        let mut all = inherited.clone();
        all.merge(access_of(settings));
        if let Some(satisfy) = settings.get("satisfy").or(site.settings.get("satisfy")) {
            // `keep_earlier_restrictions` only compares values, so the line does not matter.
            all.set("satisfy", satisfy.clone(), 0);
        }
        all
    };
    let mut notes = Vec::new();
    for route in keep_earlier_restrictions(routes, access, &mut notes) {
        if !route.settings.is_empty() {
            site.route(&route.pattern, route.line).merge(route.settings);
        }
    }
    site.notes.append(&mut notes);
    site.settings.merge(root);
    // The empty `deny` of `location /` has replaced the `deny` of the server. An empty `deny` is the default.
    if site.settings.get("deny") == Some(&Value::List(Vec::new())) {
        site.settings.remove("deny");
    }
    // Without PHP, there is no default that `fallback = false` would turn off.
    let is_needless = site.settings.get("fallback") == Some(&Value::Flag(false)) && !has_php;
    if is_needless {
        site.settings.remove("fallback");
    }
}

/// Turns PHP off in a location with `^~`, whose scripts nginx sends as files.
fn without_php(location: &Directive, settings: &mut Settings, site: &mut Site) {
    let only_returns = settings.is_empty() && conditional::always_returns(location);
    if only_returns || HANDLERS.iter().any(|key| settings.has(key)) {
        return;
    }
    settings.set("php", Value::Flag(false), location.line);
    let message = "PHP does not run here, so scripts are sent as text, as in nginx: to refuse them, write a rule with \
         `path` and `respond = 403`";
    site.differs(location, message);
}

/// Returns the settings for the routes of a location. Its actions, such as `return`, become rules and redirects of the
/// site.
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
    // Alternative sets of conditions under which nginx reaches the next `rewrite` or `if`: at first one set without
    // conditions, which always holds. A `break` in an `if` adds conditions.
    let mut guard = vec![Vec::new()];
    // True if a `rewrite`, such as `rewrite ^/api/(.*)$ /$1 break`, removes the prefix of the location.
    let mut strips = false;
    // nginx inherits `proxy_set_header` only if the location has none.
    let own_headers = location.children().iter().any(|d| d.is("proxy_set_header"));
    let inherited = server
        .proxy
        .iter()
        .filter(|d| !(own_headers && d.is("proxy_set_header")));
    scope.proxy = inherited.copied().collect();
    scope.outer_params = server.inherited_params();
    // `proxy_…` directives apply to `proxy_pass` wherever they stand, so `proxy_pass` is read last.
    let (passes, others): (Vec<_>, Vec<_>) = location.children().iter().partition(|d| d.name.ends_with("_pass"));
    let inherited_count = scope.proxy.len();
    for directive in others.into_iter().chain(passes) {
        let words = directive.words();
        match (directive.name.as_str(), &words[..]) {
            ("return", _) => response::translate(directive, area, &guard, &mut scope, site, locations),
            ("rewrite", _) if path::is_strip(directive, location, patterns) => strips = true,
            ("rewrite", [_, target, "break"]) if path::leaves(target, location, area) => {
                let message = "the rewritten path would get the settings of its own route: write a rule with `rewrite`, \
                     and a route for its target";
                scope.notes.skip(directive, message);
            }
            ("rewrite", _) => action::rewrite(directive, site, Some(area), &guard),
            ("try_files", _) => {
                let is_for_all = true;
                try_files::translate(directive, &mut scope, locations, upstreams, is_for_all);
            }
            ("alias", [folder]) => path::alias(directive, folder, patterns, &mut scope),
            ("internal", []) if is_error_page(site, patterns) => {
                scope.notes.skip(directive, "clients can request the page itself, too");
            }
            ("internal", []) => scope.settings.set("internal", Value::Flag(true), directive.line),
            ("location", _) => inner::translate(directive, patterns, &mut scope, site, locations, upstreams),
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
    scope.inherit_limits(&site.settings, location.line);
    cache::translate(&server.caches, &scope.caches, &mut scope.settings, &mut scope.notes);
    if scope.settings.get("index") == Some(&Value::List(Vec::new())) {
        // The empty list comes from a `try_files` without `$uri/`. nginx then looks for no folders, so it lists none.
        let is_listed = |settings: &Settings| settings.get("browse") == Some(&Value::Flag(true));
        if is_listed(&scope.settings) || is_listed(&site.settings) {
            scope.settings.set("browse", Value::Flag(false), location.line);
        }
    }
    path::add_slash(location, patterns, locations, site);
    scope.remove_hidden_of_location(&site.settings);
    scope.remove_compression(&site.settings);
    if strips {
        scope.pass_path.get_or_insert_with(|| "/".to_owned());
    }
    // In nginx, a location with an `add_header` of its own inherits none. Other directives that set fields, such as
    // `expires`, have no such effect.
    let is_dropped =
        |name: &String| site.settings.has_entry("headers", name) && !scope.settings.has_entry("headers", name);
    if !scope.added.is_empty() && server.added.iter().any(is_dropped) {
        scope.notes.differs(
            location,
            "the header fields of the site are added too; nginx drops them here",
        );
    }
    if let Some(path) = scope.pass_path.take() {
        path::strip(location, &path, patterns, &mut scope);
    }
    let inner: Vec<&Directive> = location.children().iter().collect();
    param_users::note(&scope.params, scope.pass, &inner, upstreams, &mut scope.notes);
    if scope.pass.is_none() {
        // `nested::flatten` has copied the directives into the locations that this one contained. A `proxy_pass` there
        // may use them.
        let is_used = |directive: &&&Directive| {
            let mut users = locations
                .all
                .iter()
                .filter(|d| d.children().iter().any(|d| d.is("proxy_pass")));
            users.any(|user| user.children().contains(directive))
        };
        for directive in scope.proxy.iter().skip(inherited_count).filter(|d| !is_used(d)) {
            let message = "the location has no `proxy_pass`";
            scope.notes.skip(directive, message);
        }
    }
    site.notes.append(&mut scope.notes);
    scope.settings
}

/// Translates `limit_except` to a rule that refuses requests with other methods: `limit_except GET { allow 10.0.0.1;
/// deny all; }`. Clients of `allow` are exceptions.
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

/// Returns true if a location is the page of an error status, which `errors` of the site names.
fn is_error_page(site: &Site, patterns: &[String]) -> bool {
    let mut errors = site
        .settings
        .in_order()
        .into_iter()
        .filter(|(key, _)| key.starts_with("errors."));
    errors.any(|(_, setting)| matches!(&setting.value, Value::Text(page) if patterns.contains(page)))
}
