//! Translates `return` in a location.

use crate::condition::Conditions;
use crate::directive::Directive;
use crate::document::{Notes, RuleStage, Site};
use crate::value::Value;

use super::action::{self, ReturnAction};
use super::area::LocationArea;
use super::place::Locations;
use super::restriction::refuses;
use super::scope::Scope;

/// Translates `return` to a redirect or a rule. `area`: paths of its location. `guard`: alternative sets of conditions,
/// one of which must hold for nginx to reach the `return`.
pub(super) fn translate(
    directive: &Directive,
    area: &LocationArea,
    guard: &[Conditions],
    scope: &mut Scope<'_>,
    site: &mut Site,
    locations: &Locations<'_>,
) {
    let line = directive.line;
    // nginx executes `return` before access control, and RockNet applies access control first. With 403, the request is
    // refused in either order.
    let depends_on_order = directive.argument(0) != "403";
    if guard.iter().any(|conditions| !conditions.is_empty()) {
        // The access control of the path remains, because requests that do not meet the conditions need it.
        if depends_on_order {
            locations.note_access_first(directive, site);
        }
        match action::keys(directive, area.is_site()) {
            Some(keys) => action::add(directive, site, area.stage, Some(area), &area.patterns, guard, &keys),
            None => skip(directive, scope),
        }
        return;
    }
    // For a single path (`location = /a`), the access control is cancelled below.
    if area.stage != RuleStage::Exact && depends_on_order {
        locations.note_access_first(directive, site);
    }
    let is_translated = respond(directive, area, scope, site);
    if is_translated && area.stage == RuleStage::Exact {
        // The path has no other response, so the route cancels the access control that it would inherit from the site:
        // both lists if the site has one of them, and authentication.
        if ["allow", "deny"].iter().any(|key| locations.has_access(site, key)) {
            scope.settings.set("deny", Value::List(Vec::new()), line);
            scope.settings.set("allow", Value::text("all"), line);
        }
        if locations.has_access(site, "auth") {
            scope.settings.set("auth", Value::Flag(false), line);
        }
    }
}

/// Adds the redirect or rule of a `return`. Returns false if neither was added, or if a route refuses the requests
/// instead.
fn respond(directive: &Directive, area: &LocationArea, scope: &mut Scope<'_>, site: &mut Site) -> bool {
    let line = directive.line;
    let patterns = &area.patterns;
    // True if nginx selects another location for some of the paths. Entries of `redirects` have no exceptions for these
    // paths, so a rule is added then.
    let has_others = !area.is_alone(patterns);
    let always = [Vec::new()];
    match action::parse(directive) {
        // An empty host stands for the host of the request, for which a rule is added below.
        Some(ReturnAction::Https(to)) if !to.host.is_empty() && !has_others => {
            for pattern in patterns {
                redirect_whole(site, directive, pattern, &format!("https://{}", to.host), to.status);
            }
        }
        Some(ReturnAction::Redirect { target, status }) if !has_others => {
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
        // A route refuses the request, so that the routes of other locations keep their own access control. A location
        // for an expression gets a rule instead, because nginx prefers it to prefixes, and rules precede routes.
        Some(ReturnAction::Respond {
            status: 403,
            body: None,
        }) if area.stage != RuleStage::Expression => {
            scope.settings.close(line);
            return false;
        }
        Some(_) => match action::keys(directive, area.is_site()) {
            Some(keys) => {
                action::add(directive, site, area.stage, Some(area), patterns, &always, &keys);
                if scope.settings.has_map("headers") && keys.iter().any(|(key, _)| *key == "respond") {
                    scope.notes.differs(
                        directive,
                        "the response of a rule has the header fields of the site, not of the route",
                    );
                }
            }
            None => {
                skip(directive, scope);
                return false;
            }
        },
        None => {
            skip(directive, scope);
            return false;
        }
    }
    true
}

/// Notes that a `return` is not translated. If it refuses requests, closes the location instead.
fn skip(directive: &Directive, scope: &mut Scope<'_>) {
    if refuses(directive) {
        scope.settings.close(directive.line);
        scope.notes.differs(directive, "clients get 403, without the text");
        return;
    }
    let message = "write a rule, [[site.\"…\".rule]], with `path` and `redirect` or `respond`";
    scope.notes.skip(directive, message);
}

/// Redirects each path of a pattern to `base`, followed by the whole path.
fn redirect_whole(site: &mut Site, directive: &Directive, pattern: &str, base: &str, status: u64) {
    let is_regex = pattern.starts_with('~');
    let target = match pattern.strip_suffix('*') {
        _ if is_regex => format!("{base}{{path}}"),
        Some(prefix) if !prefix.contains('*') => format!("{base}{prefix}{{*}}"),
        None if !pattern.contains('*') => format!("{base}{pattern}"),
        _ => format!("{base}{{path}}"),
    };
    site.redirect(pattern, &target, status, directive.line);
}
