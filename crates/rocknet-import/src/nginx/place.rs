//! Paths of locations, and their patterns.

use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::regex;

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
    Prefix(String),
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
        _ => LocationMatch::Prefix(path.to_owned()),
    }
}

/// Returns the patterns of a location, with notes about differences.
pub(super) fn patterns(location: &Directive, place: &LocationMatch, site: &mut Site) -> Vec<String> {
    match place {
        LocationMatch::Named => Vec::new(),
        LocationMatch::Exact(path) => vec![path.clone()],
        LocationMatch::Prefix(path) if path.ends_with('/') => vec![format!("{path}*")],
        LocationMatch::Prefix(path) => {
            let is_file = path.rsplit('/').next().is_some_and(|name| name.contains('.'));
            let effective = location
                .children()
                .iter()
                .any(|d| !matches!(d.name.as_str(), "log_not_found" | "access_log"));
            if effective {
                let message = format!("`{path}` also matched names that begin with it, such as {path}x");
                site.differs(location, &message);
            }
            match is_file {
                true => vec![path.clone()],
                false => vec![path.clone(), format!("{path}/*")],
            }
        }
        LocationMatch::Expression(expression, case) => {
            let Some(found) = regex::patterns(expression) else {
                let message = match restricts(location) {
                    true => {
                        "THIS RESTRICTS ACCESS, and patterns cannot express the expression: write a route with `deny`"
                    }
                    false => "patterns cannot express this expression: write a route, such as \"/api/*\" or \"*.zip\"",
                };
                site.skip(location, message);
                return Vec::new();
            };
            if let Some(difference) = found.difference {
                site.differs(location, difference);
            } else if *case == CaseMode::Ignored {
                site.differs(location, "patterns distinguish upper and lower case");
            }
            found.patterns
        }
    }
}

/// Returns true if a location restricts access.
pub(super) fn restricts(location: &Directive) -> bool {
    const RESTRICTIONS: [&str; 6] = ["deny", "allow", "auth_basic", "internal", "return", "auth_request"];
    location
        .children()
        .iter()
        .any(|directive| RESTRICTIONS.contains(&directive.name.as_str()))
}
