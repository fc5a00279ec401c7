//! Translates locations with regular expressions inside other locations.

use super::super::php;
use super::super::place::{CaseMode, LocationMatch, Locations, literal_start, matched, regex_of};
use super::super::restriction::{denied_status, is_denied, restricts};
use super::super::scope::Scope;
use super::super::upstream::Upstreams;
use super::action;
use crate::condition::{self, Condition};
use crate::directive::Directive;
use crate::document::{Notes, RuleStage, Site};
use crate::value::Value;

/// Translates a location with a regular expression inside another one: `location /a/ { location ~ \.php$ { … } }`.
///
/// Two forms have a counterpart. A location for PHP becomes the key `php` of the outer location, because scripts would
/// otherwise be sent as files. A location that refuses every request becomes a rule. Any other location gets a note.
/// `patterns`: patterns of the outer location.
pub(super) fn translate(
    directive: &Directive,
    patterns: &[String],
    scope: &mut Scope<'_>,
    site: &mut Site,
    locations: &Locations<'_>,
    upstreams: &Upstreams,
) {
    let group = php::php_address(directive, upstreams);
    if let Some((group, server)) = group.as_ref().and_then(|group| Some((group, group.first_active()?))) {
        scope.settings.set("php", Value::text(&server.url), directive.line);
        php::note_servers(group, directive, &mut scope.notes);
        scope.notes.differs(
            directive,
            "`php` runs every `*.php` file of the outer location, and the other directives of the block have no effect",
        );
        if restricts(directive) {
            scope.notes.skip_restriction(directive, "write a route with `deny`");
        }
        return;
    }
    let refusal = match matched(directive) {
        LocationMatch::Expression(expression, case) if is_denied(directive) => limited(&expression, case, patterns),
        _ => None,
    };
    if let Some((regex, outside)) = refusal {
        let status = denied_status(directive);
        // Access control refuses requests, too, so its order makes no difference to a 403.
        if status != 403 {
            locations.note_access_first(directive, site);
        }
        let keys = [("respond", Value::Number(status))];
        let exceptions = outside.map(|paths| Condition::new("path", Value::text(paths)).negated_if(true));
        let tests = [exceptions.into_iter().collect()];
        return action::add(directive, site, RuleStage::Expression, None, &[regex], &tests, &keys);
    }
    match restricts(directive) {
        true => scope.notes.skip_restriction(
            directive,
            "a regular expression inside another location is not translated: write a route with `deny`",
        ),
        false => scope.notes.skip(
            directive,
            "a regular expression inside another location is not translated: write a route of its own",
        ),
    }
}

/// Returns a pattern for the paths that an expression matches within the prefix of its outer location. The second value
/// is a pattern for exceptions, if the first one also matches paths outside of the prefix. Returns `None` if RockNet
/// has no such pattern. `patterns`: patterns of the outer location.
fn limited(expression: &str, case: CaseMode, patterns: &[String]) -> Option<(String, Option<String>)> {
    let prefix = patterns.iter().find_map(|pattern| pattern.strip_suffix('*'))?;
    if prefix.contains('*') || prefix.starts_with('~') {
        return None;
    }
    let base = prefix.strip_suffix('/')?;
    let compiled = |text: &str| regex_of(text, case);
    let flag = if case == CaseMode::Ignored { "*" } else { "" };
    let is_anchored = expression.starts_with('^');
    let is_anchored_inside = is_anchored && literal_start(&format!("~{flag}{expression}")).starts_with(prefix);
    if base.is_empty() || is_anchored_inside {
        return Some((compiled(expression)?, None));
    }
    // nginx searches the whole path, so a match may begin in the prefix, as a match of `/b/x` in a location `/a/b/`.
    // In this case, the expression itself is the pattern, and the paths outside of the prefix are exceptions.
    // Text with which every match of the expression begins, such as `/b` for `/b/?x`. `literal_start` returns text only
    // for an expression with `^`, so `^` is added here, even if a match may begin anywhere in a path.
    let start = literal_start(&format!("~{flag}^{expression}"));
    // True if a match may begin where `rest`, the end of the prefix, begins.
    let begins_in = |rest: &str| start.starts_with(rest) || rest.starts_with(&start);
    let mut ends = base.char_indices().map(|(at, _)| &prefix[at..]);
    if start.is_empty() || is_anchored || ends.any(begins_in) {
        return Some((compiled(expression)?, Some(outside(prefix))));
    }
    let base = condition::escaped(base);
    // A match that begins with `/` may begin at the slash that ends the prefix.
    let text = match start.starts_with('/') {
        true => format!("^{base}(?:/.*?)?(?:{expression})"),
        false => format!("^{base}/.*?(?:{expression})"),
    };
    Some((compiled(&text)?, None))
}

/// Returns an expression for the paths that do not begin with a prefix: `~^(?:$|[^/]|/(?:$|[^a]))` for `/a`.
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
