//! Translates `allow` and `deny` of a location with a regular expression to rules:
//! `location ~ \.pdf$ { allow 10.0.0.0/8; deny all; }`.
//!
//! The route of the location has the same settings, but another route could take precedence over it.

use crate::condition::{Condition, Conditions};
use crate::directive::Directive;
use crate::document::Site;
use crate::settings::Settings;
use crate::value::Value;

use super::action;
use super::area::LocationArea;

/// Adds rules that refuse the clients which `allow` and `deny` of a location refuse. Rules are applied before routes,
/// as nginx prefers expressions to prefixes. Returns false if rules cannot express the restriction; then only the route
/// has it. `settings`: those of the route.
pub(super) fn refuse(location: &Directive, settings: &Settings, area: &LocationArea, site: &mut Site) -> bool {
    let has_auth = settings.get("auth").is_some_and(|auth| *auth != Value::Flag(false));
    let has_satisfy = [settings, &site.settings]
        .iter()
        .any(|settings| settings.has("satisfy"));
    // A rule cannot admit clients by a password, and has no `internal`. Locked settings stand for a restriction that
    // cannot be expressed at all.
    if settings.is_locked() || has_auth || has_satisfy || settings.has("internal") {
        return false;
    }
    let clients = |value: &Value| Condition::new("client", value.clone());
    let is_all = |value: &Value| *value == Value::text("all");
    let mut tests: Vec<Conditions> = Vec::new();
    match settings.get("deny") {
        // No conditions: the rule applies to every client.
        Some(deny) if is_all(deny) => tests.push(Vec::new()),
        Some(deny) if *deny != Value::List(Vec::new()) => tests.push(vec![clients(deny)]),
        _ => {}
    }
    if let Some(allow) = settings.get("allow").filter(|allow| !is_all(allow)) {
        tests.push(vec![clients(allow).negated_if(true)]);
    }
    if tests.is_empty() || area.exceptions(&area.patterns, true).is_none() {
        return false;
    }
    let keys = [("respond", Value::Number(403))];
    action::add(location, site, area.stage, Some(area), &area.patterns, &tests, &keys);
    true
}
