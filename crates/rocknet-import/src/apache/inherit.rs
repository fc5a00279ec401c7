//! Inheritance of access control between sections of Apache. Routes of RockNet inherit access control only from their
//! site, so the routes of sections get copies of it.

use crate::access::{covers, note_shadowed};
use crate::document::Site;
use crate::settings::Settings;
use crate::value::Value;

/// Keys of access control, each with the value by which a route cancels the value of the site. The values of `allow`
/// and `satisfy` are placeholders for `"all"`, because a constant cannot contain an allocated string; see
/// [`cancelling`].
const ACCESS: [(&str, Value); 4] = [
    ("allow", Value::Text(String::new())),
    ("deny", Value::List(Vec::new())),
    ("auth", Value::Flag(false)),
    ("satisfy", Value::Text(String::new())),
];

/// Returns the access control of settings.
fn access_of(settings: &Settings) -> Settings {
    let mut access = Settings::default();
    for (key, setting) in settings.in_order() {
        if ACCESS.iter().any(|(known, _)| *known == key) {
            access.set(key, setting.value.clone(), setting.line);
        }
    }
    access
}

/// Returns the value that cancels a key of the site. `value`: the value of the key in [`ACCESS`].
fn cancelling(key: &str, value: &Value) -> Value {
    match key {
        "allow" | "satisfy" => Value::text("all"),
        _ => value.clone(),
    }
}

/// Adds the settings of a section to the route of a pattern. `decides`: true if the section has access control. It then
/// replaces the access control of earlier sections for the same paths.
pub(super) fn add(site: &mut Site, pattern: &str, line: usize, settings: &Settings, decides: bool) {
    // A new route without access control gets the access control of the longest prefix route that covers it.
    if pattern != "/*" && !site.has_route(pattern) && !decides {
        let inherited = covering(site, pattern).map(|at| access_of(&site.routes[at].settings));
        if let Some(inherited) = inherited {
            site.route(pattern, line).merge(inherited);
        }
    }
    if !decides {
        return site.route(pattern, line).merge(settings.clone());
    }
    let access = decided(settings, line);
    // The section also decides for the routes of earlier sections whose paths are below its own. A section for the
    // whole site also decides for routes of file names, such as `*.sql`.
    if let Some(prefix) = pattern.strip_suffix('*').filter(|prefix| !prefix.contains('*')) {
        for route in &mut site.routes {
            if prefix == "/" || route.pattern.starts_with(prefix) && route.pattern != pattern {
                replace_access(&mut route.settings, &access);
            }
        }
    }
    let route = site.route(pattern, line);
    replace_access(route, &access);
    let mut rest = settings.clone();
    ACCESS.iter().for_each(|(key, _)| drop(rest.remove(key)));
    route.merge(rest);
}

/// Completes the routes: removes values that cancel nothing, and notes the routes that take precedence over
/// restrictions.
pub(super) fn finish(site: &mut Site) {
    remove_needless(site);
    note_shadowed(site);
}

/// Removes values that cancel nothing, and routes that have no settings left.
fn remove_needless(site: &mut Site) {
    // A route without restrictions below a restricted route keeps `auth = false`. It states that the route is open
    // intentionally, so that `rocknet check` does not warn of it.
    let is_opening: Vec<bool> = site
        .routes
        .iter()
        .map(|route| {
            let covering = covering(site, &route.pattern).map(|at| &site.routes[at].settings);
            route.settings.has("auth") && !route.settings.restricts() && covering.is_some_and(Settings::restricts)
        })
        .collect();
    let own = access_of(&site.settings);
    for (key, value) in &ACCESS {
        let value = cancelling(key, value);
        if site.settings.get(key) == Some(&value) {
            site.settings.remove(key);
        }
        let has_key = own.get(key).is_some_and(|own| *own != value);
        for (route, is_opening) in site.routes.iter_mut().zip(&is_opening) {
            let is_kept = has_key || *is_opening && *key == "auth";
            if !is_kept && route.settings.get(key) == Some(&value) {
                route.settings.remove(key);
            }
        }
    }
    let off = Value::Flag(false);
    if site.settings.get("browse") == Some(&off) {
        site.settings.remove("browse");
    }
    let is_listed = site.settings.has("browse");
    for at in (0..site.routes.len()).rev() {
        let settings = &mut site.routes[at].settings;
        if !is_listed && settings.get("browse") == Some(&off) {
            settings.remove("browse");
        }
        if settings.is_empty() {
            site.remove_route(at);
        }
    }
}

/// Returns the index of the longest prefix route that covers a pattern, if any.
fn covering(site: &Site, pattern: &str) -> Option<usize> {
    (0..site.routes.len())
        .filter(|at| covers(&site.routes[*at].pattern, pattern))
        .max_by_key(|at| site.routes[*at].pattern.len())
}

/// Returns the access control of a section. Each key without a value gets the value that cancels the key of the site.
/// A section with `deny = "all"` only has to cancel `satisfy`: with `satisfy = "any"` of the site, a user could log in.
fn decided(settings: &Settings, line: usize) -> Settings {
    let mut access = access_of(settings);
    let is_closed = access.is_closed();
    for (key, value) in ACCESS.iter().filter(|(key, _)| !is_closed || *key == "satisfy") {
        access.set_default(key, cancelling(key, value), line);
    }
    access
}

fn replace_access(settings: &mut Settings, access: &Settings) {
    ACCESS.iter().for_each(|(key, _)| drop(settings.remove(key)));
    settings.merge(access.clone());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(key: &str, value: Value) -> Settings {
        let mut settings = Settings::default();
        settings.set(key, value, 1);
        settings
    }

    #[test]
    fn access_control_is_inherited_replaced_and_cancelled() {
        let mut site = Site::default();
        add(&mut site, "/*", 1, &section("deny", Value::text("10.0.0.9")), true);
        add(&mut site, "/a/*", 2, &section("allow", Value::text("10.0.0.1")), true);
        add(&mut site, "/a/b/*", 3, &section("browse", Value::Flag(true)), false);
        add(&mut site, "/a/open/*", 4, &Settings::default(), true);
        finish(&mut site);
        let get = |pattern: &str, key: &str| {
            let route = site.routes.iter().find(|route| route.pattern == pattern);
            route.and_then(|route| route.settings.get(key)).cloned()
        };
        assert_eq!(get("/a/b/*", "allow"), Some(Value::text("10.0.0.1")));
        assert_eq!(get("/a/b/*", "deny"), Some(Value::List(Vec::new())));
        assert_eq!((get("/a/b/*", "auth"), get("/a/*", "auth")), (None, None));
        assert_eq!(get("/a/open/*", "auth"), Some(Value::Flag(false)));
        assert_eq!(get("/a/open/*", "allow"), None);
        assert_eq!(get("/a/open/*", "deny"), Some(Value::List(Vec::new())));
        // A later section for the whole site, such as `<Location />`, decides for all paths.
        add(&mut site, "/*", 5, &section("deny", Value::text("all")), true);
        let is_closed = |route: &crate::document::SiteRoute| route.settings.is_closed();
        assert!(site.settings.is_closed() && site.routes.iter().all(is_closed));
    }
}
