//! Access control of routes. A route inherits access control from its site, and not from other routes.

use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::note::shown;
use crate::settings::Settings;
use crate::value::Value;

/// Keys of access control.
const KEYS: [&str; 3] = ["allow", "deny", "auth"];

/// Returns the access control of settings.
pub(crate) fn access_of(settings: &Settings) -> Settings {
    let mut access = Settings::default();
    for (key, setting) in settings.in_order() {
        if KEYS.contains(&key) {
            access.set(key, setting.value.clone(), setting.line);
        }
    }
    access
}

/// Returns true if a route for a prefix would also apply to the paths of another pattern.
pub(crate) fn covers(route: &str, pattern: &str) -> bool {
    let prefix = route.strip_suffix('*').filter(|prefix| !prefix.contains('*'));
    route != pattern && prefix.is_some_and(|prefix| pattern.starts_with(prefix))
}

/// Adds access control to each route that a restricted pattern covers. In Caddy, `basic_auth /a/* { … }` also applies
/// to `handle /a/b/* { … }`, but the route `/a/b/*` does not inherit from the route `/a/*`.
///
/// `restricted`: the restricted patterns with their access control. `base`: settings of the site, which all routes
/// inherit. A list of a route would replace that of `base`, so the two are combined.
pub(crate) fn restrict_covered(site: &mut Site, base: &Settings, restricted: &[(String, Settings)]) {
    let inherited = access_of(base);
    let mut closed = Vec::new();
    for route in &mut site.routes {
        let mut is_combined = true;
        for (_, access) in restricted.iter().filter(|(pattern, _)| covers(pattern, &route.pattern)) {
            is_combined &= combine(&mut route.settings, access, MissingKeys::Add);
        }
        is_combined &= combine(&mut route.settings, &inherited, MissingKeys::Inherit);
        if !is_combined {
            closed.push(Directive::new("route", vec![route.pattern.clone()], route.line));
        }
    }
    for directive in closed {
        let message = "two lists of allowed clients, or two logins, apply here, so `deny = \"all\"` denies every client \
             here: write `allow` with the clients in both, or one `auth`";
        site.skip(&directive, message);
    }
}

/// Treatment of restrictions whose key the settings of a route do not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissingKeys {
    /// The restrictions are added to the route.
    Add,
    /// The restrictions are left out, because the route inherits them from the site.
    Inherit,
}

/// Adds the restrictions `access` of the site or of another route to the settings of a route, so that both apply.
///
/// Two different values of `allow` or of `auth` cannot be combined. In that case, denies every client (`deny = "all"`)
/// and returns false.
pub(crate) fn combine(settings: &mut Settings, access: &Settings, missing: MissingKeys) -> bool {
    let mut is_combined = true;
    for (key, setting) in access.in_order() {
        match settings.get(key).filter(|value| !is_open(key, value)).cloned() {
            // The settings have no value, or one that permits every client.
            None if missing == MissingKeys::Add || settings.has(key) => {
                settings.set(key, setting.value.clone(), setting.line);
            }
            Some(value) if key == "deny" => {
                settings.set(key, union(&value, &setting.value), setting.line);
            }
            Some(value)
                if matches!(key, "allow" | "auth") && value != setting.value && !is_open(key, &setting.value) =>
            {
                settings.close(setting.line);
                is_combined = false;
            }
            // The key is not to be added, or its values need no combination.
            _ => {}
        }
    }
    if settings.is_closed() {
        settings.remove("allow");
    }
    is_combined
}

/// Returns true if a value permits every client.
fn is_open(key: &str, value: &Value) -> bool {
    match value {
        Value::Flag(false) => true,
        Value::Text(text) => key == "allow" && text == "all",
        Value::List(list) => list.is_empty(),
        _ => false,
    }
}

/// Returns the entries of two lists. `all` needs no other entry.
fn union(left: &Value, right: &Value) -> Value {
    let entries = |value: &Value| match value {
        Value::List(list) => list.clone(),
        single => vec![single.clone()],
    };
    let mut all = entries(left);
    for entry in entries(right) {
        if !all.contains(&entry) {
            all.push(entry);
        }
    }
    match all.contains(&Value::text("all")) {
        true => Value::text("all"),
        false => Value::one_or_list(all),
    }
}

/// Adds a note to each restricted route for file names (`*.sql`) or for an expression (`~…`). A route for a prefix,
/// such as `/a/*`, takes precedence over it, so that `/a/x.sql` is not restricted. Prefixes that deny every client are
/// left out of the note.
pub(crate) fn note_shadowed(site: &mut Site) {
    let prefixes: Vec<String> = site
        .routes
        .iter()
        .filter(|route| route.pattern.starts_with('/') && route.pattern.ends_with("/*") && !route.settings.is_closed())
        .map(|route| route.pattern.clone())
        .collect();
    let shadowed: Vec<Directive> = site
        .routes
        .iter()
        .filter(|route| route.pattern.starts_with(['*', '~']) && route.settings.restricts())
        .map(|route| Directive::new("route", vec![route.pattern.clone()], route.line))
        .collect();
    for directive in shadowed.iter().filter(|_| !prefixes.is_empty()) {
        let routes = shown(&prefixes.join(" "));
        site.weakens(
            directive,
            &format!("these routes take precedence, so restrict them too: {routes}"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(key: &str, values: &[&str]) -> Settings {
        let mut settings = Settings::default();
        settings.set(key, Value::texts(values.iter().copied()), 1);
        settings
    }

    #[test]
    fn restrictions_of_two_places_both_apply() {
        let mut settings = list("deny", &["10.0.0.1"]);
        assert!(combine(&mut settings, &list("deny", &["10.0.0.2"]), MissingKeys::Add));
        assert_eq!(settings.get("deny"), Some(&Value::texts(["10.0.0.1", "10.0.0.2"])));
        let mut settings = list("allow", &["10.0.0.1"]);
        assert!(combine(&mut settings, &list("allow", &["10.0.0.1"]), MissingKeys::Add) && !settings.is_closed());
        assert!(!combine(&mut settings, &list("allow", &["10.0.0.2"]), MissingKeys::Add) && settings.is_closed());
        let mut settings = list("allow", &["all"]);
        assert!(combine(
            &mut settings,
            &list("allow", &["10.0.0.2"]),
            MissingKeys::Inherit
        ));
        assert_eq!(settings.get("allow"), Some(&Value::text("10.0.0.2")));
        let mut settings = Settings::default();
        assert!(combine(&mut settings, &list("allow", &["10.0.0.2"]), MissingKeys::Inherit) && settings.is_empty());
        let file = |name: &str| {
            let mut settings = Settings::default();
            settings.set("auth", Value::Table(vec![("file".to_owned(), Value::text(name))]), 1);
            settings
        };
        let mut settings = file("/a");
        assert!(combine(&mut settings, &file("/a"), MissingKeys::Add) && !settings.is_closed());
        let mut off = Settings::default();
        off.set("auth", Value::Flag(false), 1);
        assert!(combine(&mut settings, &off, MissingKeys::Add) && settings == file("/a"));
        assert!(combine(&mut off, &file("/a"), MissingKeys::Inherit) && off == file("/a"));
        assert!(!combine(&mut settings, &file("/b"), MissingKeys::Add) && settings.is_closed());
    }

    #[test]
    fn covered_routes_are_restricted_too() {
        let mut site = Site::default();
        for pattern in ["/a/*", "/a/b/*", "/c/*", "*.zip"] {
            site.route(pattern, 1).set("browse", Value::Flag(true), 1);
        }
        restrict_covered(
            &mut site,
            &Settings::default(),
            &[("/a/*".to_owned(), list("deny", &["10.0.0.1"]))],
        );
        let restricted: Vec<&str> = site
            .routes
            .iter()
            .filter(|route| route.settings.restricts())
            .map(|route| route.pattern.as_str())
            .collect();
        assert_eq!(restricted, ["/a/b/*"]);
    }
}
