//! Paths to which the `return`, `rewrite` and `if` of a location apply.

use rocknet_config::model::RegexPattern;

use crate::condition::Condition;
use crate::directive::Directive;
use crate::document::{Notes, RuleStage, Site};
use crate::file_rules;
use crate::note::shown;
use crate::value::Value;

use super::place::{LocationMatch, Locations, is_for_every_script, literal_start, matched};
use super::restriction::is_denied;

/// Maximum number of patterns in one exception, as in the check of the configuration.
const MAX_PATTERNS: usize = 64;

/// Maximum number of patterns of other locations. Rules with more exceptions are not written, because they would be
/// large.
const MAX_OTHERS: usize = 512;

/// Paths of a location, without the paths for which nginx selects another location.
pub(super) struct LocationArea {
    pub patterns: Vec<String>,
    /// Patterns of the locations that take precedence; `None` if there are more than [`MAX_OTHERS`]. Empty if no
    /// directive of the location becomes a rule.
    others: Option<Vec<String>>,
    /// Expressions of earlier locations for all scripts. Their paths are exceptions only of redirects and rewrites.
    scripts: Vec<String>,
    /// Prefixes inside a prefix with `^~`. nginx tries the expression of this area below them, but the exception for
    /// the outer prefix also excludes them. Prefixes that deny every request are left out.
    reopened: Vec<String>,
    pub stage: RuleStage,
}

impl LocationArea {
    /// Returns the area of a location with these patterns.
    pub fn new(location: &Directive, patterns: &[String], locations: &Locations<'_>) -> LocationArea {
        let place = matched(location);
        // Empty for an expression, which may match any path.
        let own_prefix = match &place {
            LocationMatch::Prefix { path, .. } => path.as_str(),
            _ => "",
        };
        let (mut others, mut scripts, mut reopened) = (Vec::new(), Vec::new(), Vec::new());
        let is_expression = matches!(place, LocationMatch::Expression(..));
        // Directives that become rules. The `deny` of a prefix becomes a setting of its route.
        let acts = |d: &Directive| match d.name.as_str() {
            "return" | "rewrite" | "if" | "limit_except" => true,
            "deny" => is_expression,
            _ => false,
        };
        let is_needed = location.children().iter().any(acts) && !matches!(place, LocationMatch::Exact(_));
        let all = if is_needed { &locations.all[..] } else { &[] };
        let is_inside = |path: &str| path.starts_with(own_prefix);
        // True for the locations that precede this one in the file.
        let mut is_before = true;
        for (at, other) in all.iter().enumerate() {
            if others.len() > MAX_OTHERS {
                break;
            }
            if other.line == location.line && other.arguments == location.arguments {
                is_before = false;
                continue;
            }
            match (&place, &locations.places[at]) {
                (LocationMatch::Exact(_) | LocationMatch::Named, _) | (_, LocationMatch::Named) => {}
                (_, LocationMatch::Exact(path)) if is_inside(path) => others.push(path.clone()),
                (LocationMatch::Prefix { .. }, LocationMatch::Prefix { path, .. })
                    if path.len() > own_prefix.len() && is_inside(path) =>
                {
                    others.extend(prefix(path));
                }
                (LocationMatch::Prefix { is_final: false, .. }, LocationMatch::Expression(..)) => {
                    others.extend(locations.regexes[at].clone());
                }
                (LocationMatch::Expression(..), LocationMatch::Prefix { path, is_final: true }) => {
                    others.extend(prefix(path));
                }
                (LocationMatch::Expression(..), LocationMatch::Prefix { path, .. }) if !is_denied(other) => {
                    let is_around = |outer: &LocationMatch| match outer {
                        LocationMatch::Prefix {
                            path: outer,
                            is_final: true,
                        } => {
                            let rest = path.strip_prefix(outer.as_str());
                            rest.is_some_and(|rest| outer.ends_with('/') || rest.starts_with('/'))
                        }
                        _ => false,
                    };
                    let is_shared = |pattern: &String| overlaps(pattern, &format!("{path}*"));
                    if locations.places.iter().any(is_around) && patterns.iter().any(is_shared) {
                        reopened.push(path.clone());
                    }
                }
                // Of two expressions that match, nginx uses the first one. An expression that refuses every request
                // needs no exception, because its own rule refuses these requests.
                (LocationMatch::Expression(..), LocationMatch::Expression(expression, _))
                    if is_before && !is_denied(other) =>
                {
                    // An expression for all scripts, such as `\.php$`, becomes the key `php`. Refusals of this location
                    // apply to scripts too, which is stricter than nginx.
                    match is_for_every_script(expression) {
                        true => scripts.extend(locations.regexes[at].clone()),
                        false => others.extend(locations.regexes[at].clone()),
                    }
                }
                _ => {}
            }
        }
        others.dedup();
        LocationArea {
            patterns: patterns.to_vec(),
            others: Some(others).filter(|others| others.len() <= MAX_OTHERS),
            scripts,
            reopened,
            stage: match place {
                LocationMatch::Exact(_) => RuleStage::Exact,
                LocationMatch::Expression(..) => RuleStage::Expression,
                LocationMatch::Prefix { .. } | LocationMatch::Named => RuleStage::Prefix,
            },
        }
    }

    /// Returns true if the area is the whole site, except for other locations.
    pub fn is_site(&self) -> bool {
        self.patterns.iter().any(|pattern| pattern == "/*")
    }

    /// Returns the exceptions for the other locations that can match a path of these patterns; without patterns, for
    /// all other locations. `is_refusal`: true for a rule that refuses requests, which also applies to scripts. Returns
    /// `None` if there are too many.
    pub fn exceptions(&self, patterns: &[String], is_refusal: bool) -> Option<Vec<Condition>> {
        let is_overlapping =
            |other: &&String| patterns.is_empty() || patterns.iter().any(|pattern| overlaps(pattern, other));
        let scripts = self.scripts.iter().filter(|script| {
            !is_refusal && (patterns.is_empty() || patterns.iter().any(|pattern| !ends_differently(pattern, script)))
        });
        let others = self.others.as_ref()?.iter().chain(scripts);
        let paths: Vec<&String> = others.filter(is_overlapping).collect();
        let of_paths = |paths: &[&String]| Condition::new("path", Value::texts(paths.iter().copied())).negated_if(true);
        Some(paths.chunks(MAX_PATTERNS).map(of_paths).collect())
    }

    /// Notes the prefixes below which the rules of an expression do not apply, unlike in nginx.
    pub fn note_reopened(&self, location: &Directive, site: &mut Site) {
        if !self.reopened.is_empty() {
            let paths = shown(&self.reopened.join(" "));
            let message = format!("the rule does not apply in these locations, so restrict them, too: {paths}");
            site.weakens(location, &message);
        }
    }

    /// Returns true if no other location can match a path of these patterns, or any path if there are no patterns.
    pub fn is_alone(&self, patterns: &[String]) -> bool {
        self.exceptions(patterns, false)
            .is_some_and(|exceptions| exceptions.is_empty())
    }

    /// Returns the patterns of a rule for a `rewrite` in the location; `None` if they would match paths outside of the
    /// area. `patterns`: those of the expression of the `rewrite`.
    ///
    /// The patterns of the area replace the pattern `/*`, unless the target needs the captures of `/*`
    /// (`has_captures`). In a location for an expression, they also replace `patterns` that include all of them.
    pub fn within(&self, patterns: &[String], has_captures: bool) -> Option<Vec<String>> {
        if self.is_site() {
            return Some(patterns.to_vec());
        }
        if patterns == ["/*"] && !has_captures {
            return Some(self.patterns.clone());
        }
        if self.stage == RuleStage::Expression {
            // The expression of a rewrite usually repeats the one of its location. It may have further alternatives,
            // which are outside of the area.
            if self.patterns.iter().all(|own| patterns.contains(own)) {
                return Some(self.patterns.clone());
            }
            let is_inside = |pattern: &String| self.patterns.iter().any(|own| continues(own, pattern));
            return patterns.iter().all(is_inside).then(|| patterns.to_vec());
        }
        let prefixes: Vec<&str> = self.patterns.iter().map(|own| own.trim_end_matches('*')).collect();
        let is_inside = |pattern: &String| prefixes.iter().any(|prefix| literal_start(pattern).starts_with(prefix));
        patterns.iter().all(is_inside).then(|| patterns.to_vec())
    }
}

/// Returns true if an expression begins with another one, so that it matches only paths that the other one matches.
fn continues(own: &str, pattern: &str) -> bool {
    let Some(rest) = pattern.strip_prefix(own).filter(|_| own.starts_with('~')) else {
        return false;
    };
    !own.contains('|') && !rest.contains('|') && !rest.starts_with(['*', '+', '?', '{'])
}

/// Returns the patterns of a prefix.
fn prefix(path: &str) -> Vec<String> {
    match path.ends_with('/') {
        true => vec![format!("{path}*")],
        false => vec![path.to_owned(), format!("{path}/*")],
    }
}

/// Returns true if a path may match both patterns.
fn overlaps(left: &str, right: &str) -> bool {
    let is_exact = |pattern: &str| !pattern.starts_with('~') && !pattern.contains('*');
    for (exact, other) in [(left, right), (right, left)] {
        if is_exact(exact) {
            return matches(other, exact);
        }
    }
    let (left, right) = (literal_start(left), literal_start(right));
    left.starts_with(&right) || right.starts_with(&left)
}

/// Returns true if the names that two patterns match have different endings, such as `*.css` and `~\.php$`.
fn ends_differently(left: &str, right: &str) -> bool {
    let known = |pattern: &str| match pattern.strip_prefix('~') {
        Some(expression) => file_rules::endings(expression),
        None => {
            let (_, ending) = pattern.rsplit_once('.')?;
            (!ending.contains(['*', '/'])).then(|| vec![ending.to_owned()])
        }
    };
    let (Some(left), Some(right)) = (known(left), known(right)) else {
        return false;
    };
    !left
        .iter()
        .any(|ending| right.iter().any(|other| other.eq_ignore_ascii_case(ending)))
}

/// Returns true if a pattern matches a path, or might match it.
fn matches(pattern: &str, path: &str) -> bool {
    match RegexPattern::parse(pattern) {
        Some(Ok(regex)) => regex.matches(path.as_bytes()),
        Some(Err(_)) => false,
        None if !pattern.contains('*') => pattern == path,
        None => path.starts_with(&literal_start(pattern)),
    }
}
