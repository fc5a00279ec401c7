//! Translates front controllers, and rules with the target `-`, which change no path.

use crate::directive::Directive;
use crate::document::Notes;
use crate::hosts::HostDraft;
use crate::value::Value;

use super::super::flags::RewriteFlags;
use super::super::guard::Guard;
use super::super::rule_path::RulePath;
use super::super::test::{self, ConditionGroups};
use super::block::{RewriteRule, is_about_files};

/// Translates a rule that changes no path: it sets a variable, or ends the rules for its requests. `precedes_refusal`:
/// true if a later rule refuses requests. Returns false if the rule has no counterpart.
pub(super) fn pass_through(
    rule: &RewriteRule,
    path: &RulePath<'_>,
    flags: &RewriteFlags,
    guard: &mut Guard,
    host: &mut HostDraft,
    precedes_refusal: bool,
) -> bool {
    let directive = &rule.directive;
    if !flags.variables.is_empty() {
        let reason = match directive.argument(2) {
            // `E=HTTP_…` passes a request field to scripts.
            text if text.contains("HTTP_") => "applications get every header field, Authorization included",
            // `E=BASE:…` sets the folder of a front controller. `front` takes it from `RewriteBase` instead.
            text if text.contains("BASE:") => "the path of the front controller includes its folder",
            _ => return false,
        };
        host.site.unneeded(directive, reason);
        return true;
    }
    // `RewriteRule ^index\.php$ - [L]` keeps Apache from rewriting the front controller again. Before a refusal, it is
    // translated like any other exception, because it also keeps `/index.php` from being refused.
    let is_front = matches!(
        path.expression.as_str(),
        "^index\\.php$" | "^index.php$" | "^/index\\.php$"
    ) && rule.conditions.is_empty();
    if is_front && !precedes_refusal {
        host.site.unneeded(
            directive,
            "existing files are served first, and rules are not applied twice",
        );
        return true;
    }
    let tests = test::alternatives(&rule.conditions, ConditionGroups::Unused, rule.is_in_folder);
    let tests = tests.filter(|_| flags.last);
    // An exception for more requests than in Apache would keep later rules from refusing the additional ones.
    let tests = tests.filter(|tests| tests.accuracy.and(path.accuracy()).adds_none());
    let Some(excluded) = tests.and_then(|tests| path.excluding(tests.alternatives)) else {
        return false;
    };
    guard.exclude(&excluded, flags.ends_all);
    // All conditions of the rule require files, as `RewriteCond %{REQUEST_FILENAME} -f` does.
    let requires_file = |condition: &Directive| is_about_files(condition) && !condition.argument(1).starts_with('!');
    let is_for_files = !rule.conditions.is_empty() && rule.conditions.iter().all(requires_file);
    // A front controller that follows does not need this exception, as the note says. Other rules that follow do, so it
    // remains in `guard`.
    if is_for_files {
        host.site.unneeded(
            directive,
            "existing files are served first, and rules are not applied twice",
        );
    }
    true
}

/// Translates a front controller, such as `RewriteRule . /index.php [L]`, to `fallback`. Returns false if the last
/// segment of its target has no file extension (`/app`), because the target is then possibly not a file.
pub(super) fn front(rule: &RewriteRule, target: &str, base: &str, host: &mut HostDraft) -> bool {
    let directive = &rule.directive;
    let target = target.replace("%{ENV:BASE}", base);
    let target = target.as_str();
    let (path, rest) = target.split_once(['?', '$', '%']).unwrap_or((target, ""));
    let path = path.trim_end_matches('/');
    let path = match path.strip_prefix('/') {
        Some(_) => path.to_owned(),
        None => format!("{base}/{path}"),
    };
    let has_extension = path.rsplit('/').next().is_some_and(|name| name.contains('.'));
    if !has_extension {
        return false;
    }
    if !rest.is_empty() {
        let message = "`fallback` keeps the query of the request; the script reads the path from REQUEST_URI";
        host.site.differs(directive, message);
    }
    host.site.settings.set("fallback", Value::Text(path), directive.line);
    true
}
