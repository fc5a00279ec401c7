//! Translates regular expressions for paths. Many of them belong to refusals of names that begin with a dot.
//!
//! RockNet never serves files with such names, except those in `/.well-known`. Expressions for them often have a
//! look-ahead, such as `/\.(?!well-known)`. RockNet does not support look-aheads, so this one becomes an exception
//! (`unless`).

use rocknet_config::model::RegexPattern;

use crate::condition::{Condition, Conditions};
use crate::regex;
use crate::value::Value;

use super::pcre::{alternatives, split_group};

/// Expressions that match before a name anywhere in a path.
const ANY_NAME: [&str; 7] = ["/", "(^|/)", "(?:^|/)", "(/|^)", "(^/|/)", "(?:^/|/)", "(/|^/)"];

/// Beginning of a negative look-ahead.
const LOOK_AHEAD: &str = "(?!";

/// Returns the alternatives for paths that an expression matches. Each has a condition for `path`, unless the
/// expression matches every path. An alternative with a look-ahead also has an exception. Returns `None` if RockNet
/// cannot express it.
pub(super) fn path_conditions(expression: &str, ignores_case: bool) -> Option<Vec<Conditions>> {
    if let Some(found) = patterns(expression, ignores_case) {
        return Some(match found.iter().any(|pattern| pattern == "/*") {
            true => vec![Conditions::new()],
            false => vec![vec![Condition::new("path", Value::texts(found))]],
        });
    }
    let mut all = Vec::new();
    let mut plain = Vec::new();
    for alternative in alternatives(expression).into_iter().flat_map(spread) {
        match alternative.contains(LOOK_AHEAD) {
            true => all.push(with_exception(&alternative, ignores_case)?),
            false => plain.push(alternative),
        }
    }
    if !plain.is_empty() {
        let found = patterns(&plain.join("|"), ignores_case)?;
        all.insert(0, vec![Condition::new("path", Value::texts(found))]);
    }
    Some(all)
}

/// Returns patterns such as `/a/*` if they match exactly the paths of an expression; otherwise the expression itself as
/// the only pattern. Returns `None` if RockNet cannot compile the expression.
pub(super) fn patterns(expression: &str, ignores_case: bool) -> Option<Vec<String>> {
    // `difference` describes the paths for which patterns with `*` are not exact. Such patterns never ignore case.
    let found = regex::patterns(expression).filter(|found| found.difference.is_none() && !ignores_case);
    match found {
        Some(found) => Some(found.patterns),
        None => Some(vec![RegexPattern::new(expression, ignores_case).ok()?.to_string()]),
    }
}

/// Returns the alternatives of a group with a look-ahead as alternatives of their own: `^/a(?!b)` and `^/c` for
/// `^/(a(?!b)|c)`.
fn spread(alternative: &str) -> Vec<String> {
    let whole = || vec![alternative.to_owned()];
    let Some(at) = alternative.find(LOOK_AHEAD) else {
        return whole();
    };
    let groups = alternative[..at].match_indices('(').map(|(at, _)| at);
    for start in groups {
        let inner = &alternative[start + 1..];
        let inner = inner.strip_prefix("?:").unwrap_or(inner);
        let Some((group, after)) = split_group(inner) else {
            continue;
        };
        if group.contains(LOOK_AHEAD) && !after.starts_with(['?', '*', '+', '{']) {
            let before = &alternative[..start];
            return alternatives(group)
                .into_iter()
                .map(|inner| format!("{before}{inner}{after}"))
                .collect();
        }
    }
    whole()
}

/// Returns the conditions of an alternative such as `/\.(?!well-known).*`; `None` for other forms of a look-ahead.
fn with_exception(alternative: &str, ignores_case: bool) -> Option<Conditions> {
    let (before, rest) = alternative.split_once(LOOK_AHEAD)?;
    let (name, after) = split_group(rest)?;
    let is_name = !name.is_empty() && name.trim_end_matches('/').bytes().all(is_name_byte);
    // Only a part that matches every text may follow, so that the expression depends only on the beginning of the name.
    if !is_name || name.ends_with("//") || !matches!(after, "" | ".*" | ".*$" | "(.*)" | "(.*)$") {
        return None;
    }
    let (start, exception) = match before.strip_suffix("\\.")? {
        start if ANY_NAME.contains(&start) => ("/", names_other_than(name, "")),
        // In `.htaccess`, Apache matches an expression with a path that has no slash at its beginning: `a/.git` for
        // `/a/.git`. There, `/\.` requires a character before the slash, so it matches `a/.git`, but not `.git`.
        // `expression::absolute` translates it to `./\.`, with `.` for that character. The first name of the path may
        // therefore begin with a dot.
        "./" => ("./", names_other_than(name, "/[^/]*")),
        start => {
            let constant = start.strip_prefix("^/")?;
            if !constant.bytes().all(|byte| is_name_byte(byte) || byte == b'/') {
                return None;
            }
            (start, format!("{before}{name}"))
        }
    };
    let path = RegexPattern::new(&format!("{start}\\."), ignores_case).ok()?;
    let unless = patterns(&exception, ignores_case)?;
    Some(vec![
        Condition::new("path", Value::text(path.to_string())),
        Condition::new("path", Value::texts(unless)).negated_if(true),
    ])
}

/// Returns an expression for the paths without names that begin with a dot, apart from the name of a look-ahead. For
/// `(?!well-known)`, these are paths such as `/a/b`, `/a/.well-known/b` and `/.well-known-x`. `first`: expression for
/// the first name of the path if that may begin with a dot; otherwise empty.
fn names_other_than(name: &str, first: &str) -> String {
    // `(?!well-known/)` excepts only the whole name with a slash after it, and not `/.well-known-x`.
    let slashes = if name.ends_with('/') { "/+" } else { "/*" };
    let name = format!("\\.{}{slashes}", name.trim_end_matches('/'));
    format!("^{first}(?:/+(?:{name})?[^./][^/]*)*(?:/+(?:{name})?)?$")
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

/// Returns true if an expression matches only paths with names that RockNet never serves, so that a refusal of them is
/// not needed. `reaches`: returns true if requests for such paths may reach an upstream or a program. Its argument is
/// true if the name with the dot is the first one of the path.
pub(super) fn is_never_served(expression: &str, reaches: impl Fn(bool) -> bool) -> bool {
    // Samples of the paths in `/.well-known`, which are served.
    let paths = ["/.well-known", "/.well-known/x", "/.well-known/acme-challenge/x"];
    alternatives(expression).into_iter().all(|alternative| {
        let is_served = || {
            let regex = RegexPattern::new(alternative, true);
            // An expression that RockNet cannot compile may match them.
            regex.map_or(true, |regex| paths.iter().any(|path| regex.matches(path.as_bytes())))
        };
        let exempts = |inner: &String| inner.contains("(?!well-known)") || inner.contains("(?!well-known/)");
        let is_exempt = spread(alternative).iter().all(exempts);
        matches_only_dot_names(alternative)
            && (is_exempt || !is_served())
            && !reaches(alternative.starts_with("^/\\.") || alternative.starts_with("^\\."))
    })
}

/// Returns an expression for names of files without the alternatives that match only names with a leading dot; `None`
/// if no alternative is left.
pub(super) fn without_dot_names(expression: &str) -> Option<String> {
    let all: Vec<String> = alternatives(expression).into_iter().flat_map(spread).collect();
    let kept = all.iter().filter(|alternative| !matches_only_dot_names(alternative));
    let kept: Vec<&str> = kept.map(String::as_str).collect();
    match kept.len() {
        0 => None,
        count if count == all.len() => Some(expression.to_owned()),
        _ => Some(kept.join("|")),
    }
}

/// Returns an expression for names of files without a look-ahead for `.well-known`. That is the name of a folder, so
/// the look-ahead excepts no file.
pub(super) fn without_look_ahead(expression: &str) -> String {
    expression
        .replace("\\.(?!well-known/)", "\\.")
        .replace("\\.(?!well-known)", "\\.")
}

/// Returns true if an alternative matches only names that begin with a dot. Returns false if it contains `well-known`
/// outside of a look-ahead. An alternative such as `/\.` also matches `.well-known`, for which [`is_never_served`] has
/// a test of its own.
fn matches_only_dot_names(alternative: &str) -> bool {
    let other = alternative.replace("(?!well-known/)", "").replace("(?!well-known)", "");
    if other.contains("well-known") {
        return false;
    }
    let is_dot_name = |text: &str| {
        let rest = text.strip_prefix("\\.");
        // In `\.?a`, the dot may be missing, so other names match too.
        rest.is_some_and(|rest| !rest.starts_with(['?', '*', '{']))
    };
    let mut starts = ANY_NAME.iter().chain(&["^/", "^", "./"]);
    let Some(name) = starts.find_map(|start| alternative.strip_prefix(start)) else {
        return false;
    };
    if is_dot_name(name) {
        return true;
    }
    // A group, as in `^/(\.git|\.env)`: each of its names must begin with a dot.
    let inner = name.strip_prefix("(?:").or_else(|| name.strip_prefix('('));
    let Some((group, after)) = inner.and_then(split_group) else {
        return false;
    };
    !after.starts_with(['?', '*', '{']) && alternatives(group).into_iter().all(is_dot_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns true if one of the alternatives holds for a path.
    fn holds(all: &[Conditions], path: &str) -> bool {
        let matches = |condition: &Condition| {
            let Value::Text(pattern) = &condition.keys[0].1 else {
                panic!("{condition:?}");
            };
            let found = match RegexPattern::parse(pattern) {
                Some(regex) => regex.unwrap().matches(path.as_bytes()),
                None => path.starts_with(pattern.strip_suffix('*').unwrap_or(pattern)),
            };
            found != condition.is_negated
        };
        all.iter().any(|conditions| conditions.iter().all(matches))
    }

    #[test]
    fn look_ahead_becomes_an_exception() {
        for (expression, refused, permitted) in [
            (
                r"(^|/)\.(?!well-known)",
                &["/.git", "/a/.env", "/.well-known/.x", "/.wel"][..],
                &[
                    "/",
                    "/a.b/c",
                    "/.well-known",
                    "/.well-known/acme-challenge/x",
                    "/a/.well-known/b/",
                ][..],
            ),
            (
                r"/\.(?!well-known/).*",
                &["/.git", "/.well-known", "/.well-known/.x", "/.well-knownx/a"],
                &["/.well-known/", "/.well-known/x/y", "/a/.well-known/x"],
            ),
            (
                r"^/(?:\.(?!well-known)|autotest|occ).*",
                &["/.git", "/.x/.well-known", "/autotest", "/occ/x"],
                &["/.well-known/x", "/.well-known/.x", "/a/.git", "/a/occ"],
            ),
            (
                r"./\.(?!well-known)",
                &["/a/.git", "/.x/.y"],
                &["/.git", "/.git/x", "/a/.well-known/x"],
            ),
        ] {
            let all = path_conditions(expression, false).unwrap();
            for path in refused {
                assert!(holds(&all, path), "{expression} {path} {all:?}");
            }
            for path in permitted {
                assert!(!holds(&all, path), "{expression} {path} {all:?}");
            }
        }
        for expression in [
            r"/\.(?!well-known)[a-z]+$",
            r"/\.(?!a|b)",
            r"/[a-z](?!b)",
            r"^/(a(?!b))+",
        ] {
            assert_eq!(path_conditions(expression, false), None, "{expression}");
        }
    }

    #[test]
    fn alternatives_for_dot_names_are_left_out() {
        for (expression, expected) in [
            (r"^\.(?!well-known).*|^composer\.json$", Some(r"^composer\.json$")),
            (r"^(\.(?!well-known).*|composer\.json)$", Some(r"^composer\.json$")),
            (r"/\.|^\.(?!well-known/)", None),
            (r"\.bak$|^\.ht", Some(r"\.bak$")),
            (r"^(\.git|\.env)(/|$)", None),
            // An empty alternative matches everything.
            (r"^\.ht|", Some("")),
        ] {
            assert_eq!(without_dot_names(expression).as_deref(), expected, "{expression}");
        }
        // Groups with other names, dots that may be missing, and `.well-known` stay.
        for expression in [
            r"^(\.git|vendor|node_modules)/",
            r"^(\.htaccess|install\.php)$",
            r"^\.?env",
            r"^\.*x",
            r"^\.well-known/private",
            r"^\.(well-known|git)",
            r"^(\.git)?vendor",
        ] {
            assert_eq!(without_dot_names(expression).as_deref(), Some(expression));
        }
    }

    #[test]
    fn refusals_are_needed_for_names_that_are_served_or_passed_on() {
        for (expression, is_first, is_any) in [
            (r"^/\.git", true, true),
            (r"(^|/)\.(?!well-known)", true, false),
            (r"^/\.", false, false),
            (r"(^|/)\.", false, false),
            (r"^/\.git|^/vendor", false, false),
            (r"/\.git", true, false),
            // These match `/.well-known`.
            (r"^/\.(?!git)", false, false),
            (r"^/\.(?!well-known/acme-challenge)", false, false),
        ] {
            let reaches_none = is_never_served(expression, |_| false);
            let reaches_scripts = is_never_served(expression, |is_first| !is_first);
            assert_eq!((reaches_none, reaches_scripts), (is_first, is_any), "{expression}");
            assert!(!is_never_served(expression, |_| true));
        }
    }
}
