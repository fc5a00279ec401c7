//! Paths that `location` blocks match, and the patterns of RockNet for them.

use std::collections::HashMap;

use rocknet_config::model::RegexPattern;

use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::regex::has_alternative;
use crate::{lookahead, regex};

use super::restriction::{is_denied, is_unknown_restriction, restricts};

/// Named locations by name, such as `@app`.
pub(super) type NamedLocations<'a> = HashMap<&'a str, &'a Directive>;

/// Locations of a server.
pub(super) struct Locations<'a> {
    pub named: NamedLocations<'a>,
    pub all: Vec<&'a Directive>,
    /// Paths of each location of `all`.
    pub places: Vec<LocationMatch>,
    /// Pattern of each expression of `all`; `None` for other locations, and if RockNet cannot compile it.
    pub regexes: Vec<Option<String>>,
}

impl<'a> Locations<'a> {
    pub fn collect(server: &'a Directive) -> Locations<'a> {
        let all: Vec<_> = server
            .children()
            .iter()
            .filter(|directive| directive.is("location"))
            .collect();
        let places: Vec<LocationMatch> = all.iter().map(|location| matched(location)).collect();
        let named = all.iter().filter(|location| location.argument(0).starts_with('@'));
        Locations {
            named: named.map(|location| (location.argument(0), *location)).collect(),
            regexes: places
                .iter()
                .map(|place| match place {
                    LocationMatch::Expression(expression, case) => regex_of(expression, *case),
                    _ => None,
                })
                .collect(),
            places,
            all,
        }
    }
}

impl<'a> Locations<'a> {
    /// Returns the directives of the location that nginx selects for a path: an empty list if no location matches.
    /// Returns `None` if the location is not known, because RockNet cannot compile an expression that nginx tries.
    pub fn directives_for(&self, path: &str) -> Option<&'a [Directive]> {
        let all = || self.all.iter().zip(&self.places);
        let is_exact = |place: &LocationMatch| matches!(place, LocationMatch::Exact(exact) if exact == path);
        if let Some((location, _)) = all().find(|(_, place)| is_exact(place)) {
            return Some(location.children());
        }
        let prefixes = all().filter_map(|(location, place)| match place {
            LocationMatch::Prefix { path: prefix, is_final } if path.starts_with(prefix.as_str()) => {
                Some((prefix.len(), *is_final, *location))
            }
            _ => None,
        });
        let longest = prefixes.max_by_key(|(length, ..)| *length);
        if !longest.is_some_and(|(_, is_final, _)| is_final) {
            for (location, place) in all() {
                if let LocationMatch::Expression(expression, case) = place
                    && compiled(expression, *case)?.matches(path.as_bytes())
                {
                    return Some(location.children());
                }
            }
        }
        Some(longest.map_or(&[], |(_, _, location)| location.children()))
    }

    /// Returns true if the site or its `location /` has access control of the kind that becomes `key`: `allow`, `deny`
    /// or `auth`.
    pub fn has_access(&self, site: &Site, key: &str) -> bool {
        let is_restriction = |d: &Directive| match key {
            "auth" => d.is("auth_basic_user_file") || d.is("auth_request"),
            _ => d.is("allow") || d.is("deny") || is_unknown_restriction(&d.name),
        };
        let mut all = self.all.iter().zip(&self.places);
        let is_root_restricted = all.any(|(location, place)| match place {
            LocationMatch::Prefix { path, .. } => path == "/" && location.children().iter().any(is_restriction),
            _ => false,
        });
        is_root_restricted || site.settings.restricts() && site.settings.has(key)
    }

    /// Notes that access control of the site applies before a response.
    pub fn note_access_first(&self, directive: &Directive, site: &mut Site) {
        if ["allow", "deny", "auth"].iter().any(|key| self.has_access(site, key)) {
            let message = "the access control of the site applies first, and nginx returns without it";
            site.differs(directive, message);
        }
    }
}

/// Paths that a location matches.
pub(super) enum LocationMatch {
    Exact(String),
    /// A prefix. `is_final`: true for `^~`, after which no expression is tried.
    Prefix {
        path: String,
        is_final: bool,
    },
    Expression(String, CaseMode),
    Named,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum CaseMode {
    Sensitive,
    Ignored,
}

/// Returns the paths that a location matches.
pub(super) fn matched(location: &Directive) -> LocationMatch {
    let words = location.words();
    let (modifier, path) = match words[..] {
        [modifier, path] => (modifier, path),
        [word] => match ["~*", "^~", "~", "="]
            .iter()
            .find(|modifier| word.starts_with(**modifier))
        {
            Some(modifier) => (*modifier, &word[modifier.len()..]),
            None => ("", word),
        },
        // nginx accepts one or two arguments only.
        _ => ("", "/"),
    };
    match modifier {
        "=" => LocationMatch::Exact(path.to_owned()),
        "~" => LocationMatch::Expression(path.to_owned(), CaseMode::Sensitive),
        "~*" => LocationMatch::Expression(path.to_owned(), CaseMode::Ignored),
        _ if path.starts_with('@') => LocationMatch::Named,
        modifier => LocationMatch::Prefix {
            path: path.to_owned(),
            is_final: modifier == "^~",
        },
    }
}

/// Message about an expression that RockNet cannot compile.
const NO_EXPRESSION: &str = "regular expressions of RockNet have no look-ahead and no backreference: write a rule with \
     `path` and `unless`, or a route";

/// Returns an expression as a pattern; `None` if RockNet cannot compile it, nor an equivalent without look-ahead.
pub(super) fn regex_of(expression: &str, case: CaseMode) -> Option<String> {
    compiled(expression, case).map(|regex| regex.to_string())
}

/// Compiles an expression, or its equivalent without look-ahead.
pub(super) fn compiled(expression: &str, case: CaseMode) -> Option<RegexPattern> {
    let compile = |expression: &str| RegexPattern::new(expression, case == CaseMode::Ignored).ok();
    compile(expression).or_else(|| compile(&lookahead::expanded(expression)?))
}

/// Returns true if an expression matches names in `/.well-known`, or if RockNet cannot compile it.
pub(super) fn matches_well_known(expression: &str, case: CaseMode) -> bool {
    let paths = ["/.well-known", "/.well-known/", "/.well-known/x"];
    compiled(expression, case).is_none_or(|regex| paths.iter().any(|path| regex.matches(path.as_bytes())))
}

/// Returns the patterns of a location, and adds notes about differences. The result is empty for a named location, and
/// if no pattern can express the paths; the caller then leaves the location out.
/// `has_upstreams`: true if some location forwards requests to a back end other than PHP. Patterns of names that begin
/// with a dot are kept then, because back ends get requests for such names.
pub(super) fn patterns(
    location: &Directive,
    place: &LocationMatch,
    site: &mut Site,
    has_upstreams: bool,
) -> Vec<String> {
    match place {
        LocationMatch::Named => Vec::new(),
        LocationMatch::Exact(path) => vec![path.clone()],
        LocationMatch::Prefix { path, .. } if path.ends_with('/') => vec![format!("{path}*")],
        LocationMatch::Prefix { path, .. } => prefix(location, path, site),
        LocationMatch::Expression(expression, case) => {
            let is_exact = |found: &regex::PathPatterns| found.difference.is_none() && *case == CaseMode::Sensitive;
            // Patterns with `*` are used if they match the same paths as the expression, or if it cannot be compiled.
            let found = regex::patterns(expression);
            if let Some(regex) = regex_of(expression, *case).filter(|_| !found.as_ref().is_some_and(is_exact)) {
                return vec![regex];
            }
            let Some(mut found) = found else {
                if is_dotfiles(expression) && is_denied(location) {
                    let message = "regular expressions of RockNet have no look-ahead, so every name that begins with a \
                         dot is refused here";
                    site.differs(location, message);
                    return vec!["~/\\.".to_owned()];
                }
                match restricts(location) {
                    true => site.skip_restriction(location, NO_EXPRESSION),
                    false => site.skip(location, NO_EXPRESSION),
                }
                return Vec::new();
            };
            // The expression also restricted longer names that begin with the path, such as `/api2` for `^/api`.
            if restricts(location) {
                found.patterns.append(&mut found.beginnings);
            }
            let case_difference = (*case == CaseMode::Ignored).then_some("patterns distinguish upper and lower case");
            for difference in found.difference.into_iter().chain(case_difference) {
                match restricts(location) {
                    true => site.weakens(location, difference),
                    false => site.differs(location, difference),
                }
            }
            match has_upstreams {
                true => found.patterns,
                false => without_dotfiles(location, found.patterns, site),
            }
        }
    }
}

/// Returns the patterns of a prefix without a slash at its end. Such a prefix also matches longer names that begin with
/// it, such as `/api2` for `/api`.
fn prefix(location: &Directive, path: &str, site: &mut Site) -> Vec<String> {
    let name = path.rsplit('/').next().unwrap_or_default();
    // A name with a dot, such as `/favicon.ico`, is that of a file, which has no paths below it. A location of an
    // application, such as `/outpost.goauthentik.io`, is no file.
    let is_app = location.children().iter().any(|d| d.name.ends_with("_pass"));
    let is_file = name.trim_start_matches('.').contains('.') && !is_app;
    let below = format!("{path}/*");
    if restricts(location) {
        let message = format!(
            "`{path}` also matched what is below names that begin with it, such as {path}x/y: write a route with `deny`"
        );
        site.weakens(location, &message);
        // The `*` of `/api*` matches no `/`, so no pattern matches `/api2/x`.
        return vec![path.to_owned(), below, format!("{path}*")];
    }
    let is_effective = |d: &Directive| !matches!(d.name.as_str(), "log_not_found" | "access_log");
    if location.children().iter().any(is_effective) {
        let message = format!("`{path}` also matched names that begin with it, such as {path}x");
        site.differs(location, &message);
    }
    match is_file {
        true => vec![path.to_owned()],
        false => vec![path.to_owned(), below],
    }
}

/// Removes the patterns of names that begin with a dot, because RockNet never serves these, except `/.well-known`.
fn without_dotfiles(location: &Directive, mut patterns: Vec<String>, site: &mut Site) -> Vec<String> {
    let count = patterns.len();
    patterns.retain(|pattern| !pattern.contains("/.") || pattern.contains("/.well-known"));
    if patterns.len() < count {
        let message = "names that begin with a dot are never served (404), except /.well-known";
        site.unneeded(location, message);
    }
    patterns
}

/// Returns the literal text at the beginning of all paths that a pattern matches.
pub(super) fn literal_start(pattern: &str) -> String {
    let Some(expression) = pattern.strip_prefix('~') else {
        return pattern.split('*').next().unwrap_or_default().to_owned();
    };
    let (expression, ignores_case) = match expression.strip_prefix('*') {
        Some(expression) => (expression, true),
        None => (expression, false),
    };
    let Some(rest) = expression.strip_prefix('^').filter(|rest| !has_alternative(rest)) else {
        return String::new();
    };
    let mut text = String::new();
    let mut chars = rest.chars().peekable();
    while let Some(c) = chars.next() {
        let c = match c {
            '\\' => match chars.next() {
                Some(c) if !c.is_ascii_alphanumeric() => c,
                _ => break,
            },
            c if ".+*?()[]{}^$".contains(c) => break,
            c => c,
        };
        if matches!(chars.peek(), Some('*' | '?' | '{')) || ignores_case && c.is_ascii_alphabetic() {
            break;
        }
        text.push(c);
    }
    text
}

/// Returns true for the expression of locations that protect names with a leading dot, such as `/\.ht`.
pub(super) fn is_dotfiles(expression: &str) -> bool {
    let rest = expression.strip_prefix('^').unwrap_or(expression);
    let rest = rest.strip_prefix("(^|/)").or_else(|| rest.strip_prefix('/'));
    // A dot that may be missing is no dot at the beginning.
    let is_dot = |rest: &str| {
        rest.strip_prefix("\\.")
            .is_some_and(|rest| !rest.starts_with(['?', '*', '{']))
    };
    // An alternative outside of groups, such as in `/\.ht|/private`, matches other names, too.
    rest.is_some_and(is_dot) && !has_alternative(&expression.replace("(^|/)", ""))
}

/// Returns true for the expressions of locations that run every script.
pub(super) fn is_for_every_script(expression: &str) -> bool {
    const EVERY: [&str; 9] = [
        "\\.php$",
        "\\.php",
        "[^/]\\.php(/|$)",
        "^(.+\\.php)(.*)$",
        "\\.php(/|$)",
        "\\.php(?:$|/)",
        "\\.php(?:/|$)",
        "\\.php($|/)",
        "^/.+\\.php(/|$)",
    ];
    EVERY.contains(&expression)
}
