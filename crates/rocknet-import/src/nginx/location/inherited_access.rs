//! Restores the access control of the server in routes. They would inherit that of `location /`, because its settings
//! become those of the site.

use super::super::place::{LocationMatch, is_for_every_script, matched};
use crate::directive::Directive;
use crate::document::{Notes, Site, restore};
use crate::settings::Settings;
use crate::value::Value;

/// Keys of access control.
pub(super) const ACCESS: [&str; 5] = ["allow", "deny", "auth", "internal", "satisfy"];

/// Location for PHP.
pub(super) struct ScriptLocation<'a> {
    pub location: &'a Directive,
    /// True if it may have a route for scripts.
    pub may_have_route: bool,
    /// See `LocationRoute::is_after_root`.
    pub is_after_root: bool,
}

/// Removes the access control of a route, which then inherits from the location for every path. RockNet cannot express
/// which of two restrictions nginx applies, so the route is closed in two cases: it has another restriction, or the
/// location for every path cancels a restriction of the server.
///
/// `effective`: settings of the location for every path, with those that it inherits. `base`: those of the server.
pub(super) fn keep_root_access(
    name: &Directive,
    settings: &mut Settings,
    (effective, base): (&Settings, &Settings),
    site: &mut Site,
) {
    let is_other = |key: &&str| settings.has(key) && settings.get(key) != effective.get(key);
    let has_own = settings.restricts() && (effective.has("satisfy") || ACCESS.iter().any(is_other));
    let is_lost = |key: &&str| base.has(key) && base.get(key) != effective.get(key);
    let is_weaker = base.restricts() && (effective.has("satisfy") != base.has("satisfy") || ACCESS.iter().any(is_lost));
    ACCESS.iter().for_each(|key| drop(settings.remove(key)));
    if has_own || is_weaker && !effective.is_closed() {
        settings.close(name.line);
        let message = "a location for every path takes precedence in nginx, at least for some paths, so \
             `deny = \"all\"` denies every client here: write `allow`, `deny` or `auth`";
        return site.differs(name, message);
    }
    let message = "a location for every path takes precedence in nginx, at least for some paths, so its access control \
         applies here, too: write `allow`, `deny` or `auth` for other access control";
    site.differs(name, message);
}

/// Restores settings as [`restore`] does, except for access control.
pub(super) fn restore_except_access(settings: &mut Settings, root: &Settings, base: &Settings) {
    let mut others = root.clone();
    ACCESS.iter().for_each(|key| drop(others.remove(key)));
    restore(settings, &others, base);
}

/// Restores access control and compression of the server in the route for scripts, because settings of `location /`
/// become those of the site. `scripts`: locations for PHP. `root` and `base`: as in [`restore`]. `is_root_locked`: true
/// if scripts stay closed like the site.
pub(super) fn restore_scripts(
    scripts: &[ScriptLocation<'_>],
    (root, is_root_locked): (&Settings, bool),
    base: &Settings,
    site: &mut Site,
) {
    let mut changed = Settings::default();
    for (key, setting) in root.in_order() {
        if ["allow", "deny", "auth", "satisfy", "compress"].contains(&key) {
            changed.set(key, setting.value.clone(), setting.line);
        }
    }
    let changes_access = changed.in_order().iter().any(|(key, _)| *key != "compress");
    let mut effective = base.clone();
    effective.merge(root.clone());
    for script in scripts {
        let location = script.location;
        let known = site.routes.iter().find(|route| route.pattern == "*.php");
        let known = known.map(|route| route.settings.clone()).unwrap_or_default();
        let mut own = known.clone();
        if script.is_after_root && effective.restricts() {
            keep_root_access(location, &mut own, (&effective, base), site);
            if !own.has_same_values(&known) {
                *site.route("*.php", location.line) = own;
            }
            continue;
        }
        // The order of these calls is explained in `translate`.
        own.cancel_inherited_lists(base, location.line);
        restore(&mut own, &changed, base);
        if is_root_locked {
            own.cancel_inherited_lists(root, location.line);
        }
        if own.has_same_values(&known) {
            continue;
        }
        // The route `*.php` applies to every script. If this location is only for some scripts, a route that cancels a
        // restriction would open the other scripts too.
        let is_for_all = matches!(matched(location), LocationMatch::Expression(text, _) if is_for_every_script(&text));
        let is_open = own.get("allow") == Some(&Value::text("all")) || own.get("auth") == Some(&Value::Flag(false));
        let is_open = is_open || own.get("deny") == Some(&Value::List(Vec::new()));
        if script.may_have_route && (is_for_all || !is_open) {
            site.route("*.php", location.line).merge(own);
        } else if own.restricts() && changes_access {
            site.weakens(
                location,
                "scripts have the access control of `location /`: write a route for `*.php`",
            );
        } else if own.restricts() {
            site.differs(location, "the lists of the site apply too");
        }
    }
}
