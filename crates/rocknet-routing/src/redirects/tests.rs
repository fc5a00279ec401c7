//! Tests of redirects: examples, and properties that hold for every request.

use proptest::prelude::*;
use rocknet_config::template::NoValues;
use rocknet_proto::semantics::safe_path::SafePath;

use super::super::target::{TargetError, Triplets, is_path, push_encoded, triplet};
use super::*;

/// Parses a pattern as the configuration does: `/x`, `/x/*`, and a star elsewhere.
fn pattern(text: &str) -> Pattern {
    match text.strip_suffix('*') {
        Some(prefix) if prefix.ends_with('/') => Pattern::Prefix(prefix.into()),
        _ if text.contains('*') => Pattern::Glob(text.into()),
        _ => Pattern::Exact(text.into()),
    }
}

fn redirect(from: &str, to: &str) -> Redirect {
    Redirect {
        from: pattern(from),
        to: to.into(),
        status: 308,
    }
}

fn location(from: &str, to: &str, request: &RequestTarget<'_>) -> Option<String> {
    let redirects = Redirects::new(&[redirect(from, to)]).unwrap_or_else(|bad| panic!("{bad}"));
    let mut location = Vec::new();
    let status = redirects.find(request, &mut location).expect("a host")?;
    assert_eq!(status, 308);
    Some(String::from_utf8(location).expect("a location is ASCII"))
}

/// Decodes the percent-encoding of a raw path and reduces `//` to `/`. These tests need no other normalization.
fn decoded(raw: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), raw.as_bytes());
    while let Some(&byte) = rest.first() {
        let (byte, length) = triplet(rest).map_or((byte, 1), |byte| (byte, 3));
        if byte != b'/' || bytes.last() != Some(&b'/') {
            bytes.push(byte);
        }
        rest = &rest[length..];
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn moved_paths_get_their_location() {
    #[track_caller]
    fn check(from: &str, to: &str, target: &str, expected: Option<&str>) {
        let (raw, query) = target
            .split_once('?')
            .map_or((target, None), |(raw, query)| (raw, Some(query)));
        let path = SafePath::for_rules(raw.as_bytes()).expect("a well-formed path");
        let request = RequestTarget {
            path: &path,
            raw_path: raw.as_bytes(),
            query: query.map(str::as_bytes),
            values: &NoValues,
        };
        assert_eq!(
            location(from, to, &request).as_deref(),
            expected,
            "{from} = {to}, requested {target}"
        );
    }
    for (from, to, target, expected) in [
        ("/old", "/new", "/old", Some("/new")),
        ("/old", "/new", "/old/", None),
        ("/old", "/new", "/older", None),
        ("/blog/*", "/news/{*}", "/blog/2024/may", Some("/news/2024/may")),
        ("/blog/*", "/news/{*}", "/blog/", Some("/news/")),
        ("/blog/*", "/news/{*}", "/blog", None),
        ("/blog/*", "/news/", "/blog/2024", Some("/news/")),
        ("/u/*/photo", "/photos/{*}.jpg", "/u/7/photo", Some("/photos/7.jpg")),
        ("*.htm", "/pages/{*}.html", "/a/b.htm", Some("/pages/b.html")),
        ("/a/*", "/{*}/{*}", "/a/x", Some("/x/x")),
        ("/a/*", "/{*}{*}{*}{*}", "/a/x", Some("/xxxx")),
        // The query is kept unless the target has a query. A fragment remains at the end.
        ("/old", "/new", "/old?", Some("/new?")),
        ("/old", "/new", "/old?a=1&b=%20", Some("/new?a=1&b=%20")),
        ("/old", "/new?x=1", "/old?a=1", Some("/new?x=1")),
        ("/old", "/new#top", "/old?a=1", Some("/new?a=1#top")),
        ("/old", "/new?x#top?y", "/old?a=1", Some("/new?x#top?y")),
        (
            "/s/*",
            "/find?q={*}",
            "/s/a+b&c=d%26?a=1",
            Some("/find?q=a%2Bb%26c%3Dd%26"),
        ),
        ("/s/*", "/find#{*}", "/s/x", Some("/find#x")),
        ("/old", "/new", "/old?x={|}\\[]`^%zz", Some("/new?x={|}\\[]`^%zz")),
        // Percent-encoding is kept. If the path was normalized, the decoded text is encoded again.
        ("/b/*", "/n/{*}", "/b/%C3%BC%20x", Some("/n/%C3%BC%20x")),
        ("/b/*", "/n/{*}", "/b/%c3%bc", Some("/n/%c3%bc")),
        ("/b/*", "/n/{*}", "/%62/%7Ex", Some("/n/%7Ex")),
        ("/b/*", "/n/{*}", "/b//%C3%BC%25%3F%23", Some("/n/%C3%BC%25%3F%23")),
        ("/b/*", "/n/{*}", "/b/ü", Some("/n/%C3%BC")),
        ("/b/*", "/n/{*}", "//b/a%2541", Some("/n/a%2541")),
        ("/é*", "/n{*}", "/%C3%A9%3Fx", Some("/n%3Fx")),
        // An encoded slash and a backslash stay different, although patterns match both as a backslash.
        ("/b/*", "/n/{*}", "/b/x%2fy%5Cz", Some("/n/x%2fy%5Cz")),
        ("/b/*", "/n/{*}", "/b//x%2fy%5Cz", Some("/n/x%2Fy%5Cz")),
        ("/b/*", "/n/{*}", "//b/x%2Fy/%2E./c%2F", Some("/n/c%2F")),
        ("/b/*", "/n{path}", "/b/x%2fy%5Cz%41", Some("/n/b/x%2Fy%5CzA")),
        ("/b/*", "/n{path}", "/b/x\\y%2f", Some("/n/b/x%5Cy%2F")),
        ("/b/*", "/n{path}", "/b/x%5Cy/../c%2F", Some("/n/b/c%5C")),
        ("/b/*", "/n?q={path}", "/b/x%2fy", Some("/n?q=/b/x%2Fy")),
        // Text of the configuration is encoded where necessary. Text that is already encoded is kept.
        ("/old", "/ü ä", "/old", Some("/%C3%BC%20%C3%A4")),
        ("/old", "/a%20b%zz\\", "/old", Some("/a%20b%25zz%5C")),
        ("/old", "/new\r\nX: y", "/old", Some("/new%0D%0AX:%20y")),
        // Other hosts.
        ("/old", "https://example.com", "/old?a", Some("https://example.com?a")),
        (
            "/old",
            "HTTPS://Example.COM/Path",
            "/old",
            Some("https://example.com/Path"),
        ),
        (
            "/*",
            "https://example.com/{*}",
            "/a/b?c",
            Some("https://example.com/a/b?c"),
        ),
        ("/*", "http://[::1]:8080/{*}", "/a", Some("http://[::1]:8080/a")),
        ("/*", "https://example.com//{*}", "/a", Some("https://example.com//a")),
        (
            "/*",
            "https://example.com?{*}",
            "/@evil",
            Some("https://example.com?%40evil"),
        ),
    ] {
        check(from, to, target, expected);
    }
}

#[test]
fn no_request_chooses_the_host() {
    #[track_caller]
    fn check(path: &str, raw: &str, expected: &str) {
        let request = RequestTarget {
            path,
            raw_path: raw.as_bytes(),
            query: None,
            values: &NoValues,
        };
        assert_eq!(
            location("/go/*", "/{*}", &request).as_deref(),
            Some(expected),
            "{path:?} from {raw:?}"
        );
    }
    // A normalized path cannot have all of these forms, but no form may change the host.
    for (path, raw, expected) in [
        ("/go/evil.com", "/go//evil.com", "/evil.com"),
        ("/go//evil.com", "/go//evil.com", "/evil.com"),
        ("/go////evil.com", "/go////evil.com", "/evil.com"),
        ("/go//evil.com", "/go/%2Fevil.com", "/%2Fevil.com"),
        ("/go//evil.com", "elsewhere", "/evil.com"),
        ("/go/\\evil.com", "/go/\\evil.com", "/%5Cevil.com"),
        ("/go/\\evil.com", "/go/%5cevil.com", "/%5cevil.com"),
        ("/go/\t/evil.com", "/go/\t/evil.com", "/%09/evil.com"),
        (
            "/go/\r\nSet-Cookie: a",
            "/go/\r\nSet-Cookie: a",
            "/%0D%0ASet-Cookie:%20a",
        ),
        (
            "/go/\r\nSet-Cookie: a",
            "/go/%0d%0aSet-Cookie:%20a",
            "/%0d%0aSet-Cookie:%20a",
        ),
        ("/go/\0\u{7f}", "/go/%00\u{7f}", "/%00%7F"),
        ("/go/", "/go/", "/"),
    ] {
        check(path, raw, expected);
    }
}

#[test]
fn invalid_redirects_are_refused() {
    #[track_caller]
    fn check(from: &str, to: &str, error: TargetError) {
        let bad = Redirects::new(&[redirect(from, to)]).err();
        assert_eq!(
            bad,
            Some(RedirectError {
                from: pattern(from),
                error
            }),
            "{from} = {to}"
        );
    }
    for (from, to, error) in [
        ("/a", "", TargetError::NotPathOrUrl),
        ("/a", "b", TargetError::NotPathOrUrl),
        ("/a/*", "{*}", TargetError::NotPathOrUrl),
        ("/a", "javascript:alert(1)", TargetError::NotPathOrUrl),
        ("/a", "ftp://example.com/", TargetError::NotPathOrUrl),
        ("/a", "https:/example.com", TargetError::NotPathOrUrl),
        ("/a", "ééééé", TargetError::NotPathOrUrl),
        ("/a", "//example.com", TargetError::SchemeRelative),
        ("/a", "/\\example.com", TargetError::SchemeRelative),
        ("/a", "https://", TargetError::BadHost),
        ("/a", "https:///x", TargetError::BadHost),
        ("/a", "https://:80/x", TargetError::BadHost),
        ("/a", "https://good@evil.com/", TargetError::BadHost),
        ("/a", "https://exa mple.com/", TargetError::BadHost),
        ("/a", "http://münchen.example/", TargetError::BadHost),
        ("/a/*", "https://{*}/", TargetError::StarInHost),
        ("/a/*", "https://example.com{*}", TargetError::StarInHost),
        ("/a", "/b/{*}", TargetError::BadCapture),
        ("/a/*", "/{*}{*}{*}{*}{*}{*}{*}{*}{*}{*}", TargetError::BadCapture),
    ] {
        check(from, to, error);
        // Each message is a whole sentence on one line.
        let words = error.to_string();
        assert!(words.len() > 20 && !words.contains('\n'), "{words}");
    }
    let twice = [redirect("/a/*", "/b"), redirect("/c", "/d"), redirect("/a/*", "/e")];
    let bad = RedirectError {
        from: pattern("/a/*"),
        error: TargetError::Duplicate,
    };
    assert_eq!(Redirects::new(&twice).err(), Some(bad.clone()));
    assert!(bad.to_string().contains("`/a/*`"));
}

#[test]
fn only_redirect_statuses_are_accepted() {
    for status in 0..=999 {
        let redirects = Redirects::new(&[Redirect {
            status,
            ..redirect("/a", "/b")
        }]);
        match redirects {
            Ok(redirects) => {
                let request = RequestTarget {
                    path: "/a",
                    raw_path: b"/a",
                    query: None,
                    values: &NoValues,
                };
                assert_eq!(redirects.find(&request, &mut Vec::new()), Ok(Some(status)));
                assert!([301, 302, 303, 307, 308].contains(&status));
            }
            Err(bad) => {
                assert_eq!(bad.error, TargetError::BadStatus);
                assert!(![301, 302, 303, 307, 308].contains(&status));
            }
        }
    }
}

#[test]
fn redirects_are_ranked_like_routes_and_append() {
    let rows = [
        ("/a/*", "/prefix/{*}"),
        ("/a/b", "/exact"),
        ("/a/b/*", "/longer/{*}"),
        ("/*.png", "/glob"),
    ];
    let redirects = Redirects::new(&rows.map(|(from, to)| redirect(from, to))).unwrap();
    assert_eq!((redirects.len(), redirects.is_empty()), (4, false));
    for (path, expected) in [
        ("/a/b", "/exact"),
        ("/a/b/c", "/longer/c"),
        ("/a/c", "/prefix/c"),
        ("/x.png", "/glob"),
    ] {
        let mut location = b"Location: ".to_vec();
        let found = redirects.find(
            &RequestTarget {
                path,
                raw_path: path.as_bytes(),
                query: None,
                values: &NoValues,
            },
            &mut location,
        );
        assert!(matches!(found, Ok(Some(_))), "{path:?}");
        assert_eq!(location, format!("Location: {expected}").into_bytes(), "{path:?}");
    }
    let mut location = Vec::new();
    assert_eq!(
        redirects.find(
            &RequestTarget {
                path: "/none",
                raw_path: b"/none",
                query: None,
                values: &NoValues
            },
            &mut location
        ),
        Ok(None)
    );
    assert!(location.is_empty());
}

proptest! {
    /// For any request, even if path and raw path disagree, the location is a clean URL on the intended host.
    #[test]
    fn locations_are_clean(
        path in "[/\\\\.@a%\r\n\t\\PC]{0,12}",
        raw in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..24),
            "/go/[/\\\\%2Fa@]{0,12}".prop_map(String::into_bytes),
        ],
        same in any::<bool>(),
        query in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..12)),
        to in prop_oneof![Just("/{*}"), Just("/{*}{*}"), Just("/?{*}"), Just("https://a.example/{*}"), Just("/#{*}")],
    ) {
        let path = format!("/go/{path}");
        let raw = if same { path.as_bytes().to_vec() } else { raw };
        let request = RequestTarget { path: &path, raw_path: &raw, query: query.as_deref(), values: &NoValues };
        let location = location("/go/*", to, &request).expect("the prefix matches the path");
        prop_assert!(location.bytes().all(|byte| byte.is_ascii_graphic()), "{location:?}");
        if to.starts_with('/') {
            prop_assert!(location.starts_with('/'), "{location:?}");
            prop_assert!(!location[1..].starts_with(['/', '\\']), "{location:?}");
        } else {
            prop_assert!(location.starts_with("https://a.example/"), "{location:?}");
        }
    }

    /// The text matched by the star is preserved. Decoding the location yields the decoded path, whether the text kept
    /// its encoding or was encoded again.
    #[test]
    fn the_star_is_preserved(path in "[a-c%?# ü+&]{1,8}(/[a-c%?# ü+&]{1,8}){0,2}", encode_all in any::<bool>()) {
        let path = format!("/b/{path}");
        let mut raw = Vec::new();
        push_encoded(&mut raw, path.as_bytes(), if encode_all { |byte| byte == b'/' } else { is_path }, Triplets::Encode);
        let request = RequestTarget { path: &path, raw_path: &raw, query: None, values: &NoValues };
        let kept = location("/b/*", "/n/{*}", &request).unwrap();
        // `/n/` has 3 bytes, and so has `/b/`, which is `/%62/` if everything is encoded.
        prop_assert_eq!(kept.as_bytes()[3..].to_vec(), raw[if encode_all { 5 } else { 3 }..].to_vec());
        let encoded_again = location("/b/*", "/n/{*}", &RequestTarget { raw_path: b"/", ..request }).unwrap();
        for location in [kept, encoded_again] {
            prop_assert_eq!(&decoded(&location)[2..], &path[2..]);
        }
    }
}
