//! Paths of locations, and their patterns.

use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::regex;

use super::restriction::restricts;
use super::try_files::NamedLocations;

/// Locations of a server.
pub(super) struct Locations<'a> {
    pub named: NamedLocations<'a>,
    pub all: Vec<&'a Directive>,
}

impl<'a> Locations<'a> {
    pub fn collect(server: &'a Directive) -> Locations<'a> {
        let all: Vec<_> = server
            .children()
            .iter()
            .filter(|directive| directive.is("location"))
            .collect();
        let named = all.iter().filter(|location| location.argument(0).starts_with('@'));
        Locations {
            named: named.map(|location| (location.argument(0), *location)).collect(),
            all,
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

#[derive(Clone, Copy, PartialEq)]
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

/// Returns the patterns of a location, with notes about differences.
pub(super) fn patterns(location: &Directive, place: &LocationMatch, site: &mut Site) -> Vec<String> {
    match place {
        LocationMatch::Named => Vec::new(),
        LocationMatch::Exact(path) => vec![path.clone()],
        LocationMatch::Prefix { path, .. } if path.ends_with('/') => vec![format!("{path}*")],
        LocationMatch::Prefix { path, .. } => prefix(location, path, site),
        LocationMatch::Expression(expression, case) => {
            let Some(mut found) = regex::patterns(expression) else {
                match restricts(location) {
                    true => site.skip_restriction(location, "patterns cannot express it: write a route with `deny`"),
                    false => {
                        let message =
                            "patterns cannot express this expression: write a route, such as \"/api/*\" or \"*.zip\"";
                        site.skip(location, message);
                    }
                }
                return Vec::new();
            };
            // The expression also restricted longer names that begin with the path, such as `/api2` for `^/api`.
            if restricts(location) {
                found.patterns.append(&mut found.beginnings);
            }
            let case = (*case == CaseMode::Ignored).then_some("patterns distinguish upper and lower case");
            for difference in found.difference.into_iter().chain(case) {
                match restricts(location) {
                    true => site.weakens(location, difference),
                    false => site.differs(location, difference),
                }
            }
            without_dotfiles(location, found.patterns, site)
        }
    }
}

/// Returns the patterns of a prefix without a slash at its end. Such a prefix also matches longer names that begin with
/// it, such as `/api2` for `/api`.
fn prefix(location: &Directive, path: &str, site: &mut Site) -> Vec<String> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_file = name.trim_start_matches('.').contains('.');
    let below = format!("{path}/*");
    if restricts(location) {
        let message = format!(
            "`{path}` also matched what is below names that begin with it, such as {path}x/y: write a route with `deny`"
        );
        site.weakens(location, &message);
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

/// Removes the patterns of names that begin with a dot, because they are never served.
fn without_dotfiles(location: &Directive, mut patterns: Vec<String>, site: &mut Site) -> Vec<String> {
    let count = patterns.len();
    patterns.retain(|pattern| !pattern.contains("/.") || pattern.contains("/.well-known"));
    if patterns.len() < count {
        let message = "names that begin with a dot are never served (404), except /.well-known";
        site.unneeded(location, message);
    }
    patterns
}
