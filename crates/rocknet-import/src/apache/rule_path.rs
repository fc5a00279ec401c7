//! Translates the path expression of a `RewriteRule`, and its target.

use crate::condition::{self, Condition, Conditions};
use crate::marks::{self, MARKS, unmarked};
use crate::regex::{self, PathRewrite};
use crate::value::Value;

use super::accuracy::Accuracy;
use super::dot_names;
use super::expression::{absolute, has_anchor, is_wider, may_match_base};
use super::forwarding::Forwarding;
use super::pcre::normalized;

/// Expressions that match every path. In a folder, this is not exact for those of [`NOT_EMPTY`] and for
/// [`NEVER_IN_FOLDER`].
const EVERY: [&str; 16] = [
    "", "^", ".", ".?", ".*", "^.*", "^.*$", "^(.*)$", "(.*)", "^(.*)", "^(.+)$", "(.+)", "^/(.*)$", "^/?(.*)$",
    "^/?(.*)", ".+",
];

/// Expressions in [`EVERY`] that do not match an empty path.
const NOT_EMPTY: [&str; 4] = [".", "^(.+)$", "(.+)", ".+"];

/// Expression in [`EVERY`] that never matches in a folder, because paths begin without a slash there.
const NEVER_IN_FOLDER: &str = "^/(.*)$";

/// Expression of a rule.
pub(super) struct RulePath<'a> {
    /// The expression without the `!` of a negation.
    pub expression: String,
    pub is_negated: bool,
    /// True if the rule applies to every path.
    pub matches_all: bool,
    base: &'a str,
    ignores_case: bool,
    is_in_folder: bool,
}

impl<'a> RulePath<'a> {
    /// Reads the first argument of a rule. `base`: path of `RewriteBase`, without the slash at its end. `is_in_folder`:
    /// true for a rule of a folder, which matches paths without the slash at their beginning.
    pub fn new(expression: &'a str, base: &'a str, ignores_case: bool, is_in_folder: bool) -> RulePath<'a> {
        let (is_negated, expression) = match expression.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, expression),
        };
        let expression = normalized(expression);
        RulePath {
            is_negated,
            matches_all: !is_negated && EVERY.contains(&expression.as_str()),
            expression,
            // `RewriteBase` has no effect outside of folders.
            base: if is_in_folder { base } else { "" },
            ignores_case,
            is_in_folder,
        }
    }

    /// Returns the patterns of the expression, without its `!`, in the folder of the rule; `None` if RockNet cannot
    /// compile it.
    pub fn patterns(&self) -> Option<Vec<String>> {
        dot_names::patterns(&self.absolute(self.base), self.ignores_case)
    }

    fn absolute(&self, base: &str) -> String {
        absolute(&self.expression, base, self.is_in_folder)
    }

    /// Returns the accuracy of the condition for the path, compared with the expression of the rule.
    pub fn accuracy(&self) -> Accuracy {
        let is_wider = match self.matches_all && self.expression != NEVER_IN_FOLDER {
            true => self.is_in_folder && NOT_EMPTY.contains(&self.expression.as_str()),
            false => is_wider(&self.expression, self.is_in_folder) || may_match_base(&self.expression, self.base),
        };
        // The patterns match all paths of the expression, and possibly others.
        let misses_none = true;
        Accuracy::of(misses_none, !is_wider).negated_if(self.is_negated)
    }

    /// Returns the paths that the rule refuses, as alternative conditions; `None` if RockNet has no counterpart.
    ///
    /// The folder of an `.htaccess` becomes the root of the site, so paths of the site may lack the base. With
    /// `RewriteBase /app`, the expression `^old/` therefore refuses both `/app/old/` and `/old/`. An expression without
    /// `^`, such as `old/`, needs no condition with the base, because it also matches in the middle of a path.
    pub fn refused(&self) -> Option<Vec<Conditions>> {
        if self.matches_all {
            return Some(vec![Conditions::new()]);
        }
        if !self.is_negated && !has_anchor(&self.expression) {
            // Matches below the base, too.
            return dot_names::path_conditions(&self.absolute(""), self.ignores_case);
        }
        let mut all = dot_names::path_conditions(&self.absolute(self.base), self.ignores_case)?;
        if !self.base.is_empty() && !self.is_negated {
            all.extend(dot_names::path_conditions(&self.absolute(""), self.ignores_case)?);
        }
        if self.is_negated {
            // The negation of several alternatives or conditions is not computed.
            let [conditions] = &mut all[..] else { return None };
            let [condition] = &mut conditions[..] else { return None };
            condition.is_negated = !condition.is_negated;
        }
        Some(all)
    }

    /// Returns true if RockNet never serves the paths, because they have names with a leading dot. `forwarding`: ways
    /// by which requests for such paths may reach an upstream or a program, which could serve them.
    pub fn is_never_served(&self, forwarding: Forwarding) -> bool {
        // `is_first_name`: true if the name with the dot is the first one of the path, as in `/.git/config`.
        let reaches = |is_first_name| forwarding.reaches_paths(is_first_name);
        !self.is_negated && dot_names::is_never_served(&self.absolute(""), reaches)
    }

    /// Returns patterns and target of a rewrite or redirect; `None` if there is no counterpart. The patterns of a
    /// negated rule are those of its expression without the `!`, so the caller must negate the condition for the path.
    ///
    /// `tests`: alternative conditions of the rule. `is_proxy`: true for the flag `P`. A proxy needs patterns that are
    /// prefixes.
    pub fn rewrite(&self, target: &str, tests: &[Conditions], is_proxy: bool) -> Option<PathRewrite> {
        let without_difference = |patterns, target| PathRewrite {
            patterns,
            target,
            difference: None,
        };
        // A `?` at the end drops the query of the request, in Apache as in RockNet. The caller appends this `?` to the
        // translated target again.
        let target = target.trim_end_matches('?');
        let target = match target.starts_with(['/', '%']) || target.contains("://") {
            true => target.to_owned(),
            false => format!("{}/{target}", self.base),
        };
        let target = marked(&target, self.base)?;
        if self.is_negated {
            let patterns = self.patterns()?;
            return (!target.contains('$')).then(|| without_difference(patterns, unmarked(&target)));
        }
        // The path of the rule may be in a condition: `RewriteCond %{REQUEST_URI} (.+)/$` with the target `%1`.
        let is_of_path = |condition: &Condition| !condition.is_negated && condition.keys[0].0 == "path";
        let has_path = tests.iter().flatten().any(is_of_path);
        // Beginning of the text by which `marked` replaces a reference such as `%1`.
        let group = format!("{}c", MARKS.0);
        if self.matches_all && has_path && target.starts_with(&group) {
            // A target begins with a slash, and the group may begin with another one. RockNet reduces several slashes
            // at the beginning of a target to one.
            return Some(without_difference(Vec::new(), format!("/{}", unmarked(&target))));
        }
        let (expression, target) = match self.matches_all {
            true => {
                // In a folder, the group has no slash at its beginning. `$0`, the whole match, equals the group.
                let every = if self.is_in_folder { "^/(.*)$" } else { "^(.*)$" };
                (every.to_owned(), target.replace("$0", "$1"))
            }
            false => (self.absolute(self.base), target),
        };
        let has_case = self.ignores_case && expression.contains(|c: char| c.is_ascii_alphabetic());
        let found = match has_case {
            true => regex::rewrite_ignoring_case(&expression, &target)?,
            false if is_proxy => regex::rewrite_of_prefix(&expression, &target)?,
            false => regex::rewrite(&expression, &target)?,
        };
        let target = unmarked(&found.target);
        // With an expression for the path in a condition, there is no `*` that `{*}` could stand for.
        let target = if has_path {
            target.replace("/{*}", "{path}")
        } else {
            target
        };
        Some(PathRewrite { target, ..found })
    }

    /// Returns negated conditions that together exclude the requests to which the rule applies, one for each
    /// alternative in `tests`. Returns `None` if there is no counterpart.
    pub fn excluding(&self, tests: Vec<Conditions>) -> Option<Conditions> {
        let mut excluded = Conditions::new();
        for mut conditions in tests {
            if !self.matches_all {
                let patterns = self.patterns().filter(|_| !self.is_negated)?;
                conditions.insert(0, Condition::new("path", Value::texts(patterns)));
            }
            // Each alternative becomes one `unless`, which cannot contain another one.
            let is_positive = !conditions.is_empty() && !conditions.iter().any(|condition| condition.is_negated);
            let keys = condition::keys(&conditions).filter(|_| is_positive)?;
            excluded.push(Condition { keys, is_negated: true });
        }
        Some(excluded)
    }
}

/// Returns a target with marked placeholders ([`marks`]) in place of its variables and of references to conditions,
/// such as `%1`. Returns `None` if a variable has no placeholder.
fn marked(target: &str, base: &str) -> Option<String> {
    // The query and the host of the request are kept anyway.
    let target = target.strip_suffix("?%{QUERY_STRING}").unwrap_or(target);
    // The rules of Symfony set the variable `BASE` to the path of the folder: `RewriteRule .* - [E=BASE:%1]`. This path
    // is assumed here; the rules that set the variable are not examined.
    let target = target
        .replace("%{ENV:BASE}", base)
        .replace("%{REQUEST_SCHEME}://%{HTTP_HOST}", "");
    if target.contains(MARKS.0) {
        return None;
    }
    // The path begins with a slash itself.
    let target = target.replace("/%{REQUEST_URI}", "%{REQUEST_URI}");
    let (mut out, mut rest) = (String::new(), target.as_str());
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        if let Some(inner) = after.strip_prefix('{') {
            let (name, after) = inner.split_once('}')?;
            out.push_str(&marks::marked(match name {
                "HTTP_HOST" | "SERVER_NAME" => "host",
                "REQUEST_URI" => "path",
                "REQUEST_SCHEME" => "scheme",
                _ => return None,
            }));
            rest = after;
        } else {
            let digit = after.chars().next().filter(char::is_ascii_digit)?;
            // `pcre::named_groups` gives these names to the groups of the condition.
            out.push_str(&marks::marked(&format!("c{digit}")));
            rest = &after[1..];
        }
    }
    out.push_str(rest);
    Some(out)
}
