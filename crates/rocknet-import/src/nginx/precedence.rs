//! Precedence of locations: selects one if several have the same pattern, and notes where routes differ from nginx.

use std::collections::{HashMap, HashSet};

use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::note::{Note, shown};
use crate::regex;
use crate::settings::Settings;

use super::place::{CaseMode, LocationMatch, Locations, literal_start, matched};
use super::restriction::{is_denied, restricts};

/// Route of a location that has not been added to the site yet.
pub(super) struct LocationRoute {
    pub pattern: String,
    pub settings: Settings,
    pub line: usize,
    pub rank: LocationRank,
    /// True if rules refuse the clients that the location refuses.
    pub is_enforced: bool,
    /// True if a location for every path takes precedence over this expression, at least for some paths.
    pub is_after_root: bool,
}

/// Rank of a location among those with the same pattern; the lowest rank applies. nginx finds the longest matching
/// prefix. Unless this prefix has `^~`, a matching expression takes precedence over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LocationRank {
    Exact,
    FinalPrefix,
    /// Paths below a prefix with `^~`, such as `/a/*` for `^~ /a`.
    FinalBelow,
    Expression,
    Prefix,
    /// Paths below any other prefix, such as `/a/*` for `/a`.
    Below,
}

/// Returns the rank of a location for one of its patterns.
pub(super) fn rank(place: &LocationMatch, pattern: &str) -> LocationRank {
    match place {
        LocationMatch::Exact(_) => LocationRank::Exact,
        // A named location matches no path, so it has no patterns, and its rank is not used.
        LocationMatch::Expression(..) | LocationMatch::Named => LocationRank::Expression,
        LocationMatch::Prefix { path, is_final } => {
            let rest = pattern.strip_prefix(path.as_str());
            let is_named = rest == Some("") || rest == Some("*") && path.ends_with('/');
            match (is_named, is_final) {
                (true, true) => LocationRank::FinalPrefix,
                (true, false) => LocationRank::Prefix,
                (false, true) => LocationRank::FinalBelow,
                (false, false) => LocationRank::Below,
            }
        }
    }
}

/// Returns true if nginx prefers a location for every path, or an expression inside it, to the expression of
/// `locations.all[at]`, at least for some paths. `patterns`: patterns of the expression.
pub(super) fn is_after_root(at: usize, patterns: &[String], locations: &Locations<'_>) -> bool {
    if !matches!(locations.places[at], LocationMatch::Expression(..)) {
        return false;
    }
    let mut all = locations.all.iter().zip(&locations.places).enumerate();
    all.any(|(other, (location, place))| match place {
        LocationMatch::Prefix { path, is_final } if path == "/" => {
            let mut inner = location.children().iter().filter(|d| d.is("location"));
            // nginx tries the expressions inside `location /` before those of the server.
            *is_final || inner.any(|inner| is_shared(inner, patterns))
        }
        LocationMatch::Expression(expression, CaseMode::Sensitive) if other < at => {
            regex::patterns(expression).is_some_and(|found| found.patterns.contains(&"/*".to_owned()))
        }
        _ => false,
    })
}

/// Returns true if nginx applies a prefix with `^~` to every path of the pattern of an expression, so never the
/// expression. Below longer prefixes, nginx may apply the expression, but there, RockNet prefers the routes of these
/// prefixes.
fn is_after_final_prefix(pattern: &str, locations: &Locations<'_>) -> bool {
    longest_prefix(pattern, locations).is_some_and(|(path, is_final, location)| {
        // The prefix `/a` also matches `/ab`, but it has a route for `/ab` only if it restricts access.
        is_final
            && (path.ends_with('/') || literal_start(pattern)[path.len()..].starts_with('/') || restricts(location))
    })
}

/// Returns the prefixes without `^~` and without a slash at their end whose paths match a pattern. For `/a/b`, nginx
/// also tries expressions for `/a/bc`, to which the routes of the prefix do not apply. Prefixes that restrict access
/// have a route for such names.
fn longer_prefixes(pattern: &str, locations: &Locations<'_>) -> Vec<String> {
    let start = literal_start(pattern);
    let all = locations.all.iter().zip(&locations.places);
    let prefixes = all.filter_map(|(location, place)| match place {
        LocationMatch::Prefix { path, is_final: false } if !path.ends_with('/') && !restricts(location) => {
            Some(path.clone())
        }
        _ => None,
    });
    prefixes
        .filter(|path| path.starts_with(&start) && pattern.contains('*'))
        .collect()
}

/// Returns the longest prefix of a pattern if it is restricted, and nginx may prefer an expression inside it to an
/// expression with this pattern.
pub(super) fn prefix_with_inner<'l>(pattern: &str, locations: &'l Locations<'_>) -> Option<&'l Directive> {
    let (path, _, location) = longest_prefix(pattern, locations)?;
    let mut inner = location.children().iter().filter(|d| d.is("location"));
    // `is_after_root` handles the prefix `/`.
    let is_preferred = path != "/" && restricts(location) && inner.any(|inner| is_shared(inner, &[pattern.to_owned()]));
    is_preferred.then_some(location)
}

/// Returns the access control of a restricted prefix, and its `php`, if nginx applies the same access control to the
/// expressions inside it. Returns `None` if RockNet cannot express it, or if it is not known to be the stricter one.
/// `base`: settings of the server.
pub(super) fn access_of_prefix(prefix: &Directive, routes: &[LocationRoute], base: &Settings) -> Option<Settings> {
    const SIMPLE: [&str; 3] = ["allow", "deny", "auth"];
    let mut inner = prefix.children().iter().filter(|d| d.is("location"));
    if base.restricts() || base.has("satisfy") || inner.any(restricts) {
        return None;
    }
    let is_prefix = |route: &&LocationRoute| {
        matches!(route.rank, LocationRank::FinalPrefix | LocationRank::Prefix)
            && route.line == prefix.line
            && rank(&matched(prefix), &route.pattern) == route.rank
    };
    let settings = &routes.iter().find(is_prefix)?.settings;
    if settings.is_locked() || settings.has("internal") || settings.has("satisfy") || !settings.restricts() {
        return None;
    }
    let mut copied = Settings::default();
    for (key, setting) in settings.in_order() {
        if SIMPLE.contains(&key) || key == "php" {
            copied.set(key, setting.value.clone(), setting.line);
        }
    }
    Some(copied)
}

/// Returns the longest prefix of every path of a pattern: its path, true for `^~`, and its location. Returns `None` for
/// patterns to which RockNet prefers each prefix, such as `*.php`.
fn longest_prefix<'l>(pattern: &str, locations: &'l Locations<'_>) -> Option<(&'l str, bool, &'l Directive)> {
    let start = literal_start(pattern);
    let all = locations.all.iter().zip(&locations.places);
    let prefixes = all.filter_map(|(location, place)| match place {
        LocationMatch::Prefix { path, is_final } if start.starts_with(path.as_str()) => {
            Some((path.as_str(), *is_final, *location))
        }
        _ => None,
    });
    prefixes
        .filter(|_| pattern.starts_with('/'))
        .max_by_key(|(path, ..)| path.len())
}

/// Returns true if `inner` is a location for an expression that may match paths of the patterns.
fn is_shared(inner: &Directive, patterns: &[String]) -> bool {
    match matched(inner) {
        LocationMatch::Expression(expression, CaseMode::Sensitive) => {
            !regex::patterns(&expression).is_some_and(|found| are_disjoint(&found.patterns, patterns))
        }
        LocationMatch::Expression(..) => true,
        _ => false,
    }
}

/// Returns the route that applies to each pattern. Adds notes about locations that are left out.
pub(super) fn selected(
    mut routes: Vec<LocationRoute>,
    locations: &Locations<'_>,
    site: &mut Site,
) -> Vec<LocationRoute> {
    routes.retain(|route| {
        let is_never_applied =
            route.rank == LocationRank::Expression && is_after_final_prefix(&route.pattern, locations);
        if is_never_applied {
            let name = Directive::new("location", vec![route.pattern.clone()], route.line);
            let mut effective = site.settings.clone();
            let mut own = route.settings.clone();
            own.cancel_inherited_lists(&effective, route.line);
            effective.merge(own);
            let longer = longer_prefixes(&route.pattern, locations);
            match effective.restricts() && !longer.is_empty() {
                true => {
                    let paths = shown(&longer.join(" "));
                    let message = format!(
                        "a `location ^~` takes precedence, but not for names that begin with these paths, so restrict \
                         them: {paths}"
                    );
                    site.skip_restriction(&name, &message);
                }
                false => site.unneeded(&name, "a `location ^~` takes precedence, as in nginx"),
            }
        }
        !is_never_applied
    });
    let is_prefix = |rank| matches!(rank, LocationRank::FinalPrefix | LocationRank::Prefix);
    let is_below = |rank| matches!(rank, LocationRank::FinalBelow | LocationRank::Below);
    let named: HashSet<String> = routes
        .iter()
        .filter(|route| is_prefix(route.rank))
        .map(|route| route.pattern.clone())
        .collect();
    // True for the pattern `/a/*` of the location `/a` if there is a location `/a/`, whose prefix is longer.
    let is_shorter = |route: &LocationRoute| is_below(route.rank) && named.contains(&route.pattern);
    // Best rank of each pattern, with the first route that has it.
    let mut best: HashMap<String, (LocationRank, usize)> = HashMap::new();
    for (at, route) in routes.iter().enumerate().filter(|(_, route)| !is_shorter(route)) {
        let new = (route.rank, at);
        let known = best.entry(route.pattern.clone()).or_insert(new);
        *known = new.min(*known);
    }
    let mut selected = Vec::new();
    for (at, route) in routes.into_iter().enumerate() {
        // nginx, too, applies the location with the longer prefix to these paths.
        if is_shorter(&route) {
            continue;
        }
        // No note is needed if only an exact location takes precedence, because nginx does the same for its path.
        let (rank, first) = best.get(&route.pattern).copied().unwrap_or((route.rank, at));
        // A location for PHP may have added the route `*.php` already.
        if first == at && !site.has_route(&route.pattern) {
            selected.push(route);
        } else if rank != LocationRank::Exact || route.rank == rank {
            let name = Directive::new("location", vec![route.pattern], route.line);
            let message = "another location with this pattern takes precedence";
            match route.settings.restricts() {
                true => site.skip_restriction(&name, message),
                false => site.skip(&name, message),
            }
        }
    }
    selected
}

/// Returns true if the beginnings or endings of the patterns show that no path matches both a pattern of `one` and a
/// pattern of `other`.
pub(super) fn are_disjoint(one: &[String], other: &[String]) -> bool {
    let ending = |pattern: &str| {
        pattern
            .strip_prefix("*.")
            .filter(|end| !end.contains('*'))
            .map(str::to_owned)
    };
    let differ = |a: &String, b: &String| {
        if let (Some(a), Some(b)) = (ending(a), ending(b)) {
            // `*.js` also matches the names of `*.min.js`.
            return a != b && !a.ends_with(&format!(".{b}")) && !b.ends_with(&format!(".{a}"));
        }
        let (a, b) = (literal_start(a), literal_start(b));
        !a.starts_with(&b) && !b.starts_with(&a)
    };
    one.iter().all(|a| other.iter().all(|b| differ(a, b)))
}

/// Returns the routes without those that would open paths of an earlier expression. nginx applies the first expression
/// that matches, but RockNet does not select routes in this order. So the route of a later expression could take
/// precedence over an earlier route that restricts access. It is left out, unless it restricts access itself; then it
/// only gets a note. `access`: returns the access control that applies to a route.
pub(super) fn keep_earlier_restrictions(
    routes: Vec<LocationRoute>,
    access: impl Fn(&Settings) -> Settings,
    notes: &mut Vec<Note>,
) -> Vec<LocationRoute> {
    let mut kept = Vec::new();
    // Patterns of the expressions so far, except those with `is_enforced`, each with its access control.
    let mut earlier: Vec<([String; 1], Settings)> = Vec::new();
    for route in routes {
        if route.rank != LocationRank::Expression {
            kept.push(route);
            continue;
        }
        let (pattern, own) = ([route.pattern.clone()], access(&route.settings));
        let is_opened = |(other, known): &([String; 1], Settings)| {
            known.restricts() && !known.has_same_values(&own) && !are_disjoint(other, &pattern)
        };
        let opens = earlier.iter().any(is_opened);
        // Rules are applied before routes, so no later route can open paths whose clients are refused by rules.
        if !route.is_enforced {
            earlier.push((pattern, own));
        }
        if !opens {
            kept.push(route);
            continue;
        }
        let name = Directive::new("location", vec![route.pattern.clone()], route.line);
        if route.settings.restricts() {
            notes.weakens(
                &name,
                "an earlier expression restricts access too, and may no longer take precedence",
            );
            kept.push(route);
        } else if !route.settings.is_empty() {
            let message = "an earlier expression restricts access, and a route for this one could take precedence: write a \
                 route with the same `allow`, `deny` and `auth`";
            notes.skip(&name, message);
        }
    }
    kept
}

/// Notes the prefixes whose routes take precedence over the routes of an expression, unlike in nginx.
pub(super) fn note_overridden(location: &Directive, patterns: &[String], locations: &Locations<'_>, site: &mut Site) {
    // A prefix that denies every request opens no path that the expression restricts, so it then needs no note.
    let overriding = overriding(patterns, locations, !restricts(location));
    if overriding.is_empty() {
        return;
    }
    let paths = shown(&overriding.join(" "));
    match restricts(location) {
        true => {
            let message = format!("the routes of these locations take precedence, so restrict them too: {paths}");
            site.weakens(location, &message);
        }
        false => {
            let message = format!("the routes of these locations take precedence, and have other settings: {paths}");
            site.differs(location, &message);
        }
    }
}

/// Notes the prefixes whose routes take precedence over those of an expression, and cancel a restriction of the server
/// that the expression inherits. `settings`: those of the expression.
pub(super) fn note_cancelled(
    location: &Directive,
    settings: &Settings,
    patterns: &[String],
    locations: &Locations<'_>,
    site: &mut Site,
) {
    let mut effective = site.settings.clone();
    // `Settings::cancel_inherited_lists` keeps the routes of all prefixes closed below locked settings.
    if effective.is_locked() || !effective.restricts() {
        return;
    }
    let mut own = settings.clone();
    own.cancel_inherited_lists(&effective, location.line);
    effective.merge(own);
    if !effective.restricts() {
        return;
    }
    let overriding = overriding(patterns, locations, false);
    let all = locations.all.iter().zip(&locations.places);
    let cancelling = all.filter_map(|(other, place)| match place {
        LocationMatch::Prefix { path, is_final: false } if path.len() > 1 && cancels(other) => {
            // Without settings, the expression has no route of its own.
            let is_around = settings.is_empty() && patterns.iter().any(|pattern| pattern.starts_with(path.as_str()));
            // nginx, too, prefers the expression with the pattern of a prefix.
            let is_same = patterns.contains(&format!("{path}*"));
            (!is_same && (is_around || overriding.contains(path))).then(|| path.clone())
        }
        _ => None,
    });
    let paths: Vec<String> = cancelling.collect();
    if !paths.is_empty() {
        let paths = shown(&paths.join(" "));
        let message = format!("these locations cancel the restriction of the server here, unlike in nginx: {paths}");
        site.weakens(location, &message);
    }
}

/// Returns true if a location may cancel access control of its server.
fn cancels(location: &Directive) -> bool {
    let cancels = |d: &Directive| match d.name.as_str() {
        "allow" | "deny" | "satisfy" | "auth_basic_user_file" => true,
        name => name.starts_with("auth_") && d.words() == ["off"],
    };
    !is_denied(location) && location.children().iter().any(cancels)
}

/// Returns true if the route of another location could take precedence over those of an expression.
pub(super) fn is_overridden(location: &Directive, patterns: &[String], locations: &Locations<'_>) -> bool {
    let is_this = |other: &Directive| other.line == location.line && other.arguments == location.arguments;
    let expressions = locations.all.iter().zip(&locations.places).zip(&locations.regexes);
    let mut later = expressions.skip_while(|((other, _), _)| !is_this(other)).skip(1);
    let is_later = later.any(|((other, place), regex)| {
        let is_disjoint = |regex: &String| are_disjoint(patterns, std::slice::from_ref(regex));
        matches!(place, LocationMatch::Expression(..)) && !is_denied(other) && !regex.as_ref().is_some_and(is_disjoint)
    });
    // `false`: a prefix that denies every request opens no path.
    is_later || !overriding(patterns, locations, false).is_empty()
}

/// Returns the prefixes whose routes take precedence over those of an expression. `includes_denied`: true to include
/// prefixes that deny every request.
fn overriding(patterns: &[String], locations: &Locations<'_>, includes_denied: bool) -> Vec<String> {
    // RockNet prefers an exact path to every prefix, and a longer prefix to a shorter one. It prefers every prefix to
    // globs such as `/a/b*` and to regular expressions.
    let overrides = |path: &str| {
        patterns.iter().any(|pattern| {
            let start = literal_start(pattern);
            let is_prefix = pattern.strip_suffix('*') == Some(&start) && start.ends_with('/');
            let is_exact = !pattern.starts_with('~') && !pattern.contains('*');
            // The prefix `/a/b/` takes precedence over the pattern `/a/*`, and every prefix over `*.php`. It does not
            // match the exact path `/a`.
            let is_within = path.starts_with(&start) && !is_exact;
            // The prefix `/a/` takes precedence over the glob `/a/b*`, but not over `/a/b/*` or `/a/b`.
            let is_around = start.starts_with(path) && !is_prefix && !is_exact;
            is_within || is_around
        })
    };
    // nginx, too, prefers a prefix with `^~` to expressions. The prefix `/` gets no route, because its settings become
    // those of the site.
    let prefixes = locations.all.iter().filter_map(|other| match matched(other) {
        LocationMatch::Prefix { path, is_final: false } if path.len() > 1 && (includes_denied || !is_denied(other)) => {
            Some(path)
        }
        _ => None,
    });
    prefixes.filter(|path| overrides(path)).collect()
}
