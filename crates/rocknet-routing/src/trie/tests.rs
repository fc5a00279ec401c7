//! Tests of routes: their ranking, by examples and by comparison with a linear search, and the cost of lookups.

use std::cell::Cell;

use super::*;

thread_local! {
    /// Number of nodes that lookups of this thread have visited.
    pub(super) static VISITS: Cell<usize> = const { Cell::new(0) };
    /// Number of globs that lookups of this thread have compared.
    pub(super) static GLOBS: Cell<usize> = const { Cell::new(0) };
}

/// Parses a pattern as the configuration does: `/x`, `/x/*`, and a star elsewhere.
fn pattern(text: &str) -> Pattern {
    match text.strip_suffix('*') {
        Some(prefix) if prefix.ends_with('/') && !prefix.contains('*') => Pattern::Prefix(prefix.into()),
        _ if text.contains('*') => Pattern::Glob(text.into()),
        _ => Pattern::Exact(text.into()),
    }
}

fn trie(patterns: &[&str]) -> RouteTrie<String> {
    let mut trie = RouteTrie::new();
    for text in patterns {
        trie.insert(&pattern(text), text.to_string()).unwrap();
    }
    trie
}

#[test]
fn paths_find_their_most_specific_route() {
    #[track_caller]
    fn check(patterns: &[&str], path: &str, expected: Option<(&str, &str)>) {
        let mut reversed = patterns.to_vec();
        reversed.reverse();
        for trie in [trie(patterns), trie(&reversed)] {
            let found = trie
                .find(path)
                .map(|(value, matched)| (value.as_str(), &path[matched.star]));
            assert_eq!(found, expected, "{path:?} among {patterns:?}");
        }
    }
    let api = [
        "/api",
        "/api/*",
        "/api/v1/*",
        "/api/v1/users",
        "/apix",
        "/api/v1/*/photo",
        "/app",
    ];
    for (path, expected) in [
        ("/api", Some(("/api", ""))),
        ("/api/", Some(("/api/*", ""))),
        ("/api/x", Some(("/api/*", "x"))),
        ("/api/v1", Some(("/api/*", "v1"))),
        ("/api/v1/", Some(("/api/v1/*", ""))),
        ("/api/v1/users", Some(("/api/v1/users", ""))),
        ("/api/v1/users/", Some(("/api/v1/*", "users/"))),
        // A prefix precedes any glob.
        ("/api/v1/7/photo", Some(("/api/v1/*", "7/photo"))),
        ("/apix", Some(("/apix", ""))),
        ("/apixy", None),
        ("/ap", None),
        ("/API", None),
        ("/", None),
        ("", None),
    ] {
        check(&api, path, expected);
    }
    let globs = [
        "/users/*/photo",
        "/users/*/*",
        "/users/me/*o",
        "/*/me/photo",
        "*.zip",
        "*z*",
        "/b*",
        "/a*",
    ];
    for (path, expected) in [
        ("/users/7/photo", Some(("/users/*/photo", "7"))),
        ("/users/7/name", Some(("/users/*/*", "7"))),
        // `/users/*/photo` has 13 literal characters, `/users/me/*o` has 11 and `/*/me/photo` has 10.
        ("/users/me/photo", Some(("/users/*/photo", "me"))),
        ("/users/me/video", Some(("/users/me/*o", "vide"))),
        ("/pets/me/photo", Some(("/*/me/photo", "pets"))),
        ("/a.zip", Some(("*.zip", "a"))),
        ("/x/y/a.zip", Some(("*.zip", "a"))),
        // `/a*` and `/b*` have two literal characters, `*z*` has one.
        ("/az", Some(("/a*", "z"))),
        ("/bz", Some(("/b*", "z"))),
        ("/cz", Some(("*z*", "c"))),
        ("/users/", None),
    ] {
        check(&globs, path, expected);
    }
    // Both globs have three literal characters, and `/*ab` is the first in alphabetical order.
    check(&["/a*b", "/*ab"], "/aab", Some(("/*ab", "a")));
    check(&["/*"], "/", Some(("/*", "")));
    check(&["/*", "/"], "/", Some(("/", "")));
    check(&["/é/*", "/è"], "/é/x", Some(("/é/*", "x")));
    check(&["/é/*", "/è"], "/è", Some(("/è", "")));
    check(&[], "/", None);
}

#[test]
fn the_kind_of_match_is_returned() {
    let trie = trie(&["/a", "/b/*", "/c*d"]);
    for (path, expected) in [
        ("/a", MatchKind::Exact),
        ("/b/", MatchKind::Prefix),
        ("/cd", MatchKind::Glob),
    ] {
        assert_eq!(
            trie.find(path).map(|(_, matched)| matched.kind),
            Some(expected),
            "{path:?}"
        );
    }
    assert!(MatchKind::Exact < MatchKind::Prefix && MatchKind::Prefix < MatchKind::Glob);
}

#[test]
fn duplicate_patterns_are_refused() {
    for text in ["/a", "/a/*", "/a*b", "*.zip", "/"] {
        let mut trie = trie(&["/a", "/a/*", "/a*b", "*.zip", "/", "/ab"]);
        assert_eq!(
            trie.insert(&pattern(text), "late".into()),
            Err(DuplicatePattern(pattern(text)))
        );
        assert_eq!(trie.len(), 6);
        assert!(trie.values().all(|value| value != "late"));
    }
    // Patterns of different kinds with the same text are not duplicates.
    let mut trie = RouteTrie::new();
    for pattern in [
        Pattern::Exact("/a".into()),
        Pattern::Prefix("/a".into()),
        Pattern::Glob("/a".into()),
    ] {
        trie.insert(&pattern, ()).unwrap();
    }
    assert_eq!(trie.len(), 3);
}

/// Returns the numbers of nodes visited and globs tried to find `path`.
fn cost<T>(trie: &RouteTrie<T>, path: &str) -> (usize, usize) {
    VISITS.set(0);
    GLOBS.set(0);
    trie.find(path);
    (VISITS.get(), GLOBS.get())
}

#[test]
fn the_cost_does_not_grow_with_the_routes() {
    let mut many = RouteTrie::new();
    for route in 0..10_000 {
        many.insert(&Pattern::Exact(format!("/r{route:05}/exact")), route)
            .unwrap();
        many.insert(&Pattern::Prefix(format!("/r{route:05}/below/")), route)
            .unwrap();
        many.insert(&Pattern::Glob(format!("/r{route:05}/*/photo")), route)
            .unwrap();
    }
    assert_eq!(many.len(), 30_000);
    for (path, route) in [
        ("/r04711/exact", 4711),
        ("/r09999/below/x/y", 9999),
        ("/r00000/7/photo", 0),
    ] {
        let one = {
            let mut one = RouteTrie::new();
            one.insert(&Pattern::Exact(format!("/r{route:05}/exact")), route)
                .unwrap();
            one.insert(&Pattern::Prefix(format!("/r{route:05}/below/")), route)
                .unwrap();
            one.insert(&Pattern::Glob(format!("/r{route:05}/*/photo")), route)
                .unwrap();
            one
        };
        assert_eq!(many.find(path).map(|(value, _)| *value), Some(route), "{path:?}");
        let (one, one_globs) = cost(&one, path);
        let (many, many_globs) = cost(&many, path);
        assert_eq!(
            one_globs, many_globs,
            "{path:?}: a path is compared only with globs under its own prefix"
        );
        // Each of the five digits adds at most one node, which is visited twice if globs are searched.
        assert!(
            many <= one + 10,
            "{path:?}: {one} nodes among 3 routes, {many} among 30,000"
        );
    }
    // The lookup of a path that does not match, or is long, stops as soon as the path leaves the trie.
    for path in ["/nowhere", "/r99999/exact", &format!("/r{}", "1".repeat(8_000))] {
        let (visits, globs) = cost(&many, path);
        assert!(
            visits <= 2 * "/r00000/".len() && globs == 0,
            "{path:.20?}: {visits} nodes, {globs} globs"
        );
    }
}

#[test]
fn a_lookup_visits_the_root_and_at_most_one_node_per_byte() {
    // The worst case: a route at every depth, added from the deepest upwards.
    let deep = "a".repeat(8_000);
    let mut trie = RouteTrie::new();
    for length in (1..=deep.len()).rev() {
        trie.insert(&Pattern::Exact(deep[..length].into()), length).unwrap();
    }
    let (visits, _) = cost(&trie, &deep);
    assert_eq!(visits, deep.len() + 1);
    assert_eq!(trie.find(&deep).map(|(value, _)| *value), Some(deep.len()));
    assert_eq!(trie.find(&deep[..77]).map(|(value, _)| *value), Some(77));
}

#[test]
fn regular_expressions_rank_last_and_by_length() {
    let regex = |text: &str| Pattern::Regex(RegexPattern::new(text, false).expect("valid"));
    let mut trie = RouteTrie::new();
    for (pattern, value) in [
        (regex("^/a"), "short"),
        (regex("^/a/\\d+$"), "long"),
        (Pattern::Prefix("/a/b/".to_owned()), "prefix"),
        (Pattern::Glob("*.png".to_owned()), "glob"),
    ] {
        trie.insert(&pattern, value).expect("no duplicate");
    }
    trie.insert(&regex("^/a"), "again").expect_err("a duplicate");
    for (path, expected) in [
        ("/a/12", Some("long")),
        ("/a/x", Some("short")),
        ("/a/b/1", Some("prefix")),
        ("/a/x.png", Some("glob")),
        ("/b", None),
    ] {
        let found = trie.find(path).map(|(value, _)| *value);
        assert_eq!(found, expected, "{path}");
    }
}

/// Finds the route by a linear search that follows the documentation of the trie.
fn naive(patterns: &[Pattern], path: &str) -> Option<(usize, RouteMatch)> {
    let ranked = patterns.iter().enumerate().filter_map(|(index, pattern)| {
        let (kind, weight, star) = match pattern {
            Pattern::Exact(text) => (text == path).then_some((MatchKind::Exact, 0, path.len()..path.len()))?,
            Pattern::Prefix(text) => {
                path.starts_with(text.as_str())
                    .then_some((MatchKind::Prefix, text.len(), text.len()..path.len()))?
            }
            Pattern::Glob(text) => {
                let literals = text.chars().filter(|&character| character != '*').count();
                (MatchKind::Glob, literals, super::super::glob::tests::naive(text, path)?)
            }
            Pattern::Regex(regex) => {
                regex
                    .matches(path.as_bytes())
                    .then_some((MatchKind::Regex, 0, path.len()..path.len()))?
            }
        };
        Some(((kind, usize::MAX - weight, pattern), index, RouteMatch { kind, star }))
    });
    ranked
        .min_by(|(a, ..), (b, ..)| a.cmp(b))
        .map(|(_, index, matched)| (index, matched))
}

proptest::proptest! {
    #[test]
    fn agrees_with_a_list(
        texts in proptest::collection::btree_set("/?[abé/*]{0,6}(/\\*)?", 0..24),
        paths in proptest::collection::vec("/[abé/]{0,8}", 1..24),
    ) {
        let patterns: Vec<_> = texts.iter().map(|text| pattern(text)).collect();
        let mut trie = RouteTrie::new();
        for (index, pattern) in patterns.iter().enumerate() {
            trie.insert(pattern, index).unwrap();
        }
        for path in &paths {
            let found = trie.find(path).map(|(index, matched)| (*index, matched));
            proptest::prop_assert_eq!(found, naive(&patterns, path), "{} among {:?}", path, patterns);
        }
    }
}
