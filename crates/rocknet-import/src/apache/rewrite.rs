//! Translates `RewriteCond` and `RewriteRule`: front controllers, redirects to HTTPS, and simple rewrites.

mod block;
mod front;

use crate::condition::{self, Condition, Conditions, both};
use crate::directive::Directive;
use crate::document::{Notes, RuleStage};
use crate::file_rules::refusal;
use crate::hosts::HostDraft;
use crate::value::Value;

use self::block::{RewriteRule, is_about_files};
use self::front::{front, pass_through};
use super::accuracy::OF_FILES;
use super::flags::RewriteFlags;
use super::forwarding::Forwarding;
use super::guard::Guard;
use super::https_redirect;
use super::php::is_script;
use super::proxy::ProxyDirectives;
use super::rule_path::RulePath;
use super::test::{self, ConditionGroups};

pub(super) use self::block::RewriteBlock;

/// Returns true if a rule refuses requests.
pub(super) fn refuses(directive: &Directive) -> bool {
    directive.is("RewriteRule") && RewriteFlags::read(directive.argument(2)).refusal.is_some()
}

/// Translates the rules of a host. Rules that forward requests become proxies.
pub(super) fn translate(block: &RewriteBlock, host: &mut HostDraft, proxies: &mut ProxyDirectives) {
    for directive in &block.others {
        if directive.is("RewriteOptions") {
            host.site
                .unneeded(directive, "rules of a site apply to all its folders");
            continue;
        }
        host.site
            .skip(directive, "write rules, [[site.\"…\".rule]]: docs/configuration.md");
    }
    // Number of the next rules that depend on an earlier one, by its flag `C` (chain) or `S` (skip).
    let mut dependents = 0_usize;
    // Requests that earlier rules, such as `RewriteRule ^api/ - [L]`, have left to the rules that follow.
    let mut guard = Guard::default();
    let (off, rules): (Vec<&RewriteRule>, Vec<&RewriteRule>) = block.rules.iter().partition(|rule| block.is_off(rule));
    for rule in off {
        host.site.unneeded(&rule.directive, "`RewriteEngine Off`");
    }
    for (at, rule) in rules.iter().enumerate() {
        let flags = RewriteFlags::read(rule.directive.argument(2));
        let is_dependent = dependents > 0;
        dependents = dependents.saturating_sub(1);
        dependents = dependents.max(flags.skipped).max(usize::from(flags.is_chained));
        guard.enter(rule.is_in_folder);
        // After a rewrite, Apache applies the rules of a folder again, but not those of a host. RockNet applies each
        // rule once.
        host.site.stage = match rule.is_in_folder {
            true => RuleStage::Rewrite,
            false => RuleStage::Site,
        };
        let precedes_refusal = rules[at + 1..].iter().any(|rule| refuses(&rule.directive));
        let is_translated = !is_dependent
            && flags.unsupported.is_none()
            && translate_rule(rule, &flags, &block.base, &mut guard, host, proxies, precedes_refusal);
        if !is_translated {
            // The site has scripts, although nothing else of the translation may show it.
            host.site.rewrites_to_script |= is_script(rule.directive.argument(1));
            skip(rule, &flags, is_dependent, host);
        }
    }
    for condition in &block.conditions {
        host.site.skip(condition, "no rule follows the condition");
    }
}

/// Notes that a rule is not translated.
fn skip(rule: &RewriteRule, flags: &RewriteFlags, is_dependent: bool, host: &mut HostDraft) {
    let directive = &rule.directive;
    let message = match &flags.unsupported {
        _ if is_dependent => "it depends on the rule before it, which has no counterpart".to_owned(),
        Some(flag) => format!("the flag `{flag}` has no counterpart"),
        None if rule.directive.argument(1) == "-" && flags.refusal.is_none() => {
            "the exception has no exact translation, so the rules that follow apply to these requests too: write \
             `unless` into those rules"
                .to_owned()
        }
        None if flags.is_proxy => "write a route with `proxy`; WebSocket needs no rule of its own".to_owned(),
        None if flags.refusal.is_some() => {
            "its expression or conditions have no exact translation: write a rule with `path` and `respond`".to_owned()
        }
        None => "it has no exact translation: write `redirects`, or a rule with `path` and `rewrite`".to_owned(),
    };
    match flags.refusal {
        Some(_) => host.site.skip_restriction(directive, &message),
        None => host.site.skip(directive, &message),
    }
    for condition in &rule.conditions {
        host.site
            .skip(condition, "the condition belongs to the rule that follows it");
    }
}

/// Translates a rule. `base`: path of `RewriteBase`, without the slash at its end. `precedes_refusal`: true if a later
/// rule refuses requests. Returns false if the rule has no counterpart.
fn translate_rule(
    rule: &RewriteRule,
    flags: &RewriteFlags,
    base: &str,
    guard: &mut Guard,
    host: &mut HostDraft,
    proxies: &mut ProxyDirectives,
    precedes_refusal: bool,
) -> bool {
    let directive = &rule.directive;
    let target = directive.argument(1);
    let path = RulePath::new(directive.argument(0), base, flags.ignores_case, rule.is_in_folder);
    // True if each condition excludes existing files, as `RewriteCond %{REQUEST_FILENAME} !-f` does.
    let only_missing = rule
        .conditions
        .iter()
        .all(|condition| is_about_files(condition) && condition.argument(1).starts_with('!'));
    if let Some(status) = flags.refusal {
        return refuse(rule, &path, (status, flags), guard, host, proxies.forwarding);
    }
    if target == "-" {
        return pass_through(rule, &path, flags, guard, host, precedes_refusal);
    }
    if path.matches_all
        && !flags.is_proxy
        && !rule.conditions.is_empty()
        && https_redirect::translate(directive, &rule.conditions, host)
    {
        return true;
    }
    // A rule without conditions may follow a rule that ends the rules for existing files: `RewriteRule ^ - [L]` with
    // the condition `-f`.
    let is_guarded = rule.conditions.is_empty() && is_about_missing(&guard.alternatives);
    let is_front = path.matches_all && only_missing && !flags.is_proxy && flags.redirect.is_none();
    if is_front && !target.contains("://") && (!rule.conditions.is_empty() || is_guarded) {
        return front(rule, target, base, host);
    }
    let groups = condition_groups(target);
    let Some(found) = test::alternatives(&rule.conditions, groups, rule.is_in_folder) else {
        return false;
    };
    // No request meets the conditions. For example, `%{ENV:REDIRECT_STATUS} 200` holds only when Apache applies the
    // rules again to a rewritten path.
    if found.alternatives.is_empty() {
        host.site.unneeded(directive, "RockNet applies rules once to a request");
        return true;
    }
    let is_rewrite = flags.redirect.is_none() && !target.contains("://");
    let difference = found.visible_difference();
    // A rewrite of more requests than in Apache would hide their paths from the refusals that follow. In a folder, the
    // difference `OF_FILES` of a condition such as `!-f` is harmless. It adds names with a leading dot, which are never
    // served, and paths such as `/a.php/b`, which get the target of the rewrite instead of the script. Links are
    // another case: see `adds_links`.
    let is_harmless = found
        .difference
        .is_none_or(|difference| difference == OF_FILES && rule.is_in_folder && !adds_links(&rule.conditions));
    if is_rewrite && precedes_refusal && !found.accuracy.adds_none() && !is_harmless {
        return false;
    }
    let tests = both(&guard.alternatives, &found.alternatives);
    let Some(found) = path.rewrite(target, &tests, flags.is_proxy) else {
        return false;
    };
    // True if the rule applies to every request for its paths, so that it needs no conditions.
    let is_always = tests == [Conditions::new()] && !path.is_negated;
    for difference in difference.into_iter().chain(found.difference) {
        host.site.differs(directive, difference);
    }
    let (patterns, target) = (found.patterns, found.target);
    let discards_query = flags.discards_query || directive.argument(1).ends_with('?');
    if flags.is_proxy {
        let is_added = is_always && forward(directive, &patterns, &target, proxies);
        if is_added && discards_query {
            host.site.differs(directive, "the query of the request is forwarded");
        }
        return is_added;
    }
    let is_redirect = flags.redirect.is_some() || target.contains("://");
    let has_query = target.contains('?');
    // `?` at the end drops the query of the request.
    let target = if discards_query && !has_query {
        target + "?"
    } else {
        target
    };
    if flags.appends_query && has_query && is_redirect {
        host.site
            .differs(directive, "the query of the target replaces that of the request");
    }
    if !flags.appends_query && has_query && !is_redirect {
        host.site
            .differs(directive, "the query of the request follows that of the target");
    }
    for variable in &flags.variables {
        host.site
            .differs(directive, &format!("the variable `{variable}` is not set"));
    }
    let is_url = target.contains("://");
    let action = match flags.redirect.or_else(|| is_url.then_some(302)) {
        Some(status) if is_always => {
            for pattern in patterns {
                host.site.redirect(&pattern, &target, status, directive.line);
            }
            return true;
        }
        Some(status) => vec![("redirect", Value::Text(target)), ("status", Value::Number(status))],
        None => {
            let mut keys = vec![("rewrite", Value::Text(target))];
            if flags.last {
                keys.push(("last", Value::Flag(true)));
            }
            keys
        }
    };
    let paths = match patterns.is_empty() || patterns.iter().any(|pattern| pattern == "/*") {
        true => Conditions::new(),
        false => vec![Condition::new("path", Value::texts(patterns)).negated_if(path.is_negated)],
    };
    let mut alternatives = both(&[paths], &tests);
    if matches!(action.first(), Some(("rewrite", Value::Text(target))) if target.trim_end_matches('?').ends_with(".php"))
    {
        alternatives.iter_mut().for_each(keep_path_info);
    }
    let is_added = add(directive, host, &alternatives, &action);
    guard.is_stale |= is_added && is_rewrite;
    is_added
}

/// Returns true if translated conditions may hold for symbolic links that `!-l` excludes. Further conditions can
/// exclude the links to files and folders.
fn adds_links(conditions: &[Directive]) -> bool {
    let has = |test: &str| conditions.iter().any(|condition| condition.argument(1) == test);
    let is_or = |condition: &Directive| condition.argument(2).to_ascii_lowercase().contains("or");
    has("!-l") && (!has("!-f") || !has("!-d") || conditions.iter().any(is_or))
}

/// Adds a condition to a rewrite of missing files to a script, so that paths such as `/update.php/selection` are not
/// rewritten. For Apache, the file of such a path is the script `/update.php`. For RockNet, it has no file.
fn keep_path_info(all: &mut Conditions) {
    let nothing = Value::text("nothing");
    let has_nothing = |value: &Value| match value {
        Value::List(values) => values.contains(&nothing),
        value => *value == nothing,
    };
    let is_missing = |condition: &Condition| {
        let mut keys = condition.keys.iter();
        !condition.is_negated && keys.any(|(key, value)| *key == "exists" && has_nothing(value))
    };
    if all.iter().any(is_missing) {
        all.push(Condition::new("path", Value::text("~\\.php/")).negated_if(true));
    }
}

/// Adds a rule for each alternative. Returns false if a rule cannot express one of them.
fn add(
    directive: &Directive,
    host: &mut HostDraft,
    alternatives: &[Conditions],
    action: &[(&'static str, Value)],
) -> bool {
    let rules: Option<Vec<_>> = alternatives.iter().map(|all| condition::keys(all)).collect();
    let Some(rules) = rules else { return false };
    for mut keys in rules {
        keys.extend(action.iter().cloned());
        host.site.rule(directive, keys);
    }
    true
}

/// Returns the use of the groups of the last condition in a target, such as `%1`.
fn condition_groups(target: &str) -> ConditionGroups {
    let mut parts = target.split('%').skip(1);
    match parts.any(|part| part.starts_with(|c: char| c.is_ascii_digit())) {
        true => ConditionGroups::Named,
        false => ConditionGroups::Unused,
    }
}

/// Returns true if each alternative holds only for paths without a file.
fn is_about_missing(guard: &[Conditions]) -> bool {
    let excludes_file = |condition: &Condition| {
        // With `exists_at`, the condition is about another path. An exception for `file` and `nothing` leaves folders,
        // and not missing files.
        let [("exists", value)] = &condition.keys[..] else {
            return false;
        };
        let has = |kind: &str| match value {
            Value::List(kinds) => kinds.contains(&Value::text(kind)),
            value => *value == Value::text(kind),
        };
        condition.is_negated && has("file") && !has("nothing")
    };
    !guard.is_empty() && guard.iter().all(|conditions| conditions.iter().any(excludes_file))
}

/// Adds a proxy for a rule with the flag `P`. Returns false if the rule does not forward all paths below a prefix.
fn forward(directive: &Directive, patterns: &[String], target: &str, proxies: &mut ProxyDirectives) -> bool {
    let Some(url) = target.strip_suffix("{*}").filter(|url| url.contains("://")) else {
        return false;
    };
    if patterns.iter().any(|pattern| pattern.starts_with('~')) {
        return false;
    }
    let prefixes: Option<Vec<&str>> = patterns.iter().map(|pattern| pattern.strip_suffix('*')).collect();
    for prefix in prefixes.iter().flatten() {
        proxies.add(prefix, url, directive);
    }
    prefixes.is_some()
}

/// Translates a rule that refuses requests. `forwarding`: ways by which requests may reach an upstream or a program
/// instead of a file. Returns false if the rule has no counterpart.
fn refuse(
    rule: &RewriteRule,
    path: &RulePath<'_>,
    (status, flags): (u64, &RewriteFlags),
    guard: &Guard,
    host: &mut HostDraft,
    forwarding: Forwarding,
) -> bool {
    let directive = &rule.directive;
    if path.is_never_served(forwarding) {
        let message = "names that begin with a dot are never served (404), except /.well-known";
        host.site.unneeded(directive, message);
        return true;
    }
    let Some(tests) = test::alternatives(&rule.conditions, ConditionGroups::Unused, rule.is_in_folder) else {
        return false;
    };
    let accuracy = tests.accuracy.and(path.accuracy());
    // No request meets the translated conditions. They miss no request of the original ones, so none meets those.
    if tests.alternatives.is_empty() && accuracy.misses_none() {
        host.site.unneeded(directive, "RockNet applies rules once to a request");
        return true;
    }
    let Some(paths) = path.refused().filter(|_| !tests.alternatives.is_empty()) else {
        return false;
    };
    let mut all = both(&paths, &tests.alternatives);
    // After a rewrite, the conditions of the guard would test the rewritten path. The rule does without them, so that
    // it refuses more requests rather than fewer.
    if guard.is_stale && !guard.is_empty() {
        let message = "the rule also applies to requests that an earlier rule excludes by the path before a rewrite";
        host.site.differs(directive, message);
    } else {
        all = both(&guard.alternatives, &all);
    }
    // `THE_REQUEST` is the request line of the client. It stays the same while Apache looks for the index of a folder,
    // so such a rule gets no `resolved`, which would apply it to the index.
    let names_line = rule
        .conditions
        .iter()
        .any(|condition| condition.argument(0).contains("THE_REQUEST"));
    let action = match flags.skips_subrequests || names_line {
        true => vec![("respond", Value::Number(status))],
        false => Vec::from(refusal(status)),
    };
    let is_added = add(directive, host, &all, &action);
    if is_added && !accuracy.misses_none() {
        host.site.weakens(
            directive,
            tests.difference.unwrap_or("the rule applies to fewer requests"),
        );
    }
    is_added
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_become_settings_or_notes() {
        let rows: &[(&str, Option<(&str, &str)>)] = &[
            (
                "RewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule . /index.php [L]",
                Some(("fallback", "/index.php")),
            ),
            (
                "RewriteCond %{REQUEST_FILENAME} !-d\nRewriteRule ^(.*)$ index.php?q=$1 [L,QSA]",
                Some(("fallback", "/index.php")),
            ),
            (
                "RewriteRule ^old/(.*)$ /new/$1 [R=308,L]",
                Some(("redirects.\"/old/*\"", "/new/{*}")),
            ),
            ("RewriteRule ^a/(?!x)$ b.php?id=$1", None),
            (
                "RewriteRule ^old/([0-9]+)/(.*)$ /new/$2/$1 [R=308,L]",
                Some(("redirects.\"~^/old/([0-9]+)/(.*)$\"", "/new/{2}/{1}")),
            ),
        ];
        for (text, expected) in rows {
            let mut block = RewriteBlock::default();
            for directive in &super::super::read(text).unwrap() {
                assert!(block.read(directive));
            }
            let mut host = HostDraft::default();
            translate(&block, &mut host, &mut ProxyDirectives::default());
            match expected {
                Some((key, value)) => {
                    assert_eq!(host.site.settings.get(key), Some(&Value::text(*value)), "{text}");
                }
                None => assert!(host.site.settings.is_empty() && !host.site.notes.is_empty(), "{text}"),
            }
        }
    }
}
