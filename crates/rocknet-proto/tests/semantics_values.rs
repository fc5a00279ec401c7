//! Parses values of fields and targets: whole, cut at every byte, and with more bytes after them.

use rocknet_proto::Method;
use rocknet_proto::semantics::authority::{Authority, HOST_BUFFER};
use rocknet_proto::semantics::conditional::{self, Preconditions, Validators};
use rocknet_proto::semantics::etag::{self, Comparison, EntityTag};
use rocknet_proto::semantics::{AcceptEncoding, Coding, Ranges, SafePath, date, fuzzing, negotiation, range};

/// Parses a value and describes the result as text.
type Reader = fn(&[u8]) -> String;

/// Checks the result for a value and for the value with each suffix; `suffixes` pairs each suffix with the expected
/// result. Also cuts the value at every byte and checks that neither part violates the invariants.
#[track_caller]
fn check(read: Reader, value: &str, expected: &str, suffixes: &[(&str, &str)]) {
    assert_eq!(read(value.as_bytes()), expected, "{value:?}");
    for (more, expected) in suffixes {
        let long = format!("{value}{more}");
        assert_eq!(read(long.as_bytes()), *expected, "{value:?} and {more:?}");
        check_invariants(long.as_bytes());
    }
    for cut in 0..=value.len() {
        let (front, back) = value.as_bytes().split_at(cut);
        for part in [front, back] {
            read(part);
            check_invariants(part);
        }
    }
}

fn check_invariants(value: &[u8]) {
    fuzzing::field_value(value);
    fuzzing::target_path(value);
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn moment(value: &[u8]) -> String {
    date::parse(value).map_or("no date".to_owned(), |seconds| seconds.to_string())
}

#[test]
fn dates_allow_no_other_byte() {
    let none = |more| (more, "no date");
    let suffixes = ["\0", " ", "x", ", ", "\r\n", "GMT", " Sun, 06 Nov 1994 08:49:37 GMT"].map(none);
    for date in [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    ] {
        check(moment, date, "784111777", &suffixes);
        for cut in 0..date.len() {
            assert_eq!(moment(&date.as_bytes()[..cut]), "no date", "{date:?} cut at {cut}");
        }
    }
}

/// Validators of the current representation, which exists in all tests of this file.
const EXISTING: Validators<'_> = Validators {
    etag: b"\"v1\"",
    last_modified: Some(784_111_777),
};

fn outcome(preconditions: Preconditions<'_>) -> String {
    format!(
        "{:?}",
        conditional::evaluate(Method::Get, &preconditions, &EXISTING, true)
    )
}

fn modified_since(value: &[u8]) -> String {
    outcome(Preconditions {
        if_modified_since: Some(value),
        ..Preconditions::default()
    })
}

fn none_match(value: &[u8]) -> String {
    outcome(Preconditions {
        if_none_match: Some(value),
        ..Preconditions::default()
    })
}

fn if_match(value: &[u8]) -> String {
    outcome(Preconditions {
        if_match: Some(value),
        ..Preconditions::default()
    })
}

fn if_range(value: &[u8]) -> String {
    conditional::if_range(value, &EXISTING).to_string()
}

/// An invalid precondition leads to a complete response or a 412, but never to a stale copy.
#[test]
fn invalid_conditions_never_yield_a_stale_copy() {
    check(
        modified_since,
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "NotModified",
        &[
            (" ", "NotModified"),
            ("\0", "Proceed"),
            (", x", "Proceed"),
            ("x", "Proceed"),
        ],
    );
    check(
        none_match,
        "\"v0\", W/\"v1\"",
        "NotModified",
        &[
            (",", "NotModified"),
            (" , \"v2\"", "NotModified"),
            ("x", "Proceed"),
            (", v2", "Proceed"),
            (", \"v2", "Proceed"),
            ("\"", "Proceed"),
            ("\0", "Proceed"),
        ],
    );
    check(
        if_match,
        "\"v0\", \"v1\"",
        "Proceed",
        &[
            ("\t", "Proceed"),
            (", *", "PreconditionFailed"),
            (" \"v2\"", "PreconditionFailed"),
            ("\0", "PreconditionFailed"),
        ],
    );
    check(
        none_match,
        "*",
        "NotModified",
        &[(" ", "NotModified"), (", \"v1\"", "Proceed"), ("*", "Proceed")],
    );
    check(
        if_range,
        "\"v1\"",
        "true",
        &[(" ", "true"), ("\"", "false"), (", \"v1\"", "false"), ("\0", "false")],
    );
}

fn tag(value: &[u8]) -> String {
    EntityTag::parse(value).map_or("no tag".to_owned(), |tag| {
        let strength = if tag.is_weak() { "weak" } else { "strong" };
        format!("{strength} {}", text(tag.opaque()))
    })
}

/// Returns the results of the strong and of the weak comparison of a list with the tag `v1`.
fn tags(value: &[u8]) -> String {
    let matches = |comparison| etag::list_matches(value, b"\"v1\"", true, comparison);
    format!("{} {}", matches(Comparison::Strong), matches(Comparison::Weak))
}

#[test]
fn tags_allow_no_other_byte() {
    let suffixes = ["\0", " ", "\"", "x", ", \"v2\""].map(|more| (more, "no tag"));
    check(tag, "\"v1\"", "strong v1", &suffixes);
    check(tag, "W/\"a,b\"", "weak a,b", &suffixes);
    check(
        tags,
        "W/\"v1\",, \"v0\"",
        "false true",
        &[(", \"v1\"", "true true"), (", \"v1", "false false")],
    );
}

fn coding(value: &[u8]) -> String {
    negotiation::choose_coding(AcceptEncoding::parse(Some(value)), &Coding::BY_PREFERENCE)
        .name()
        .to_owned()
}

fn media_type(value: &[u8]) -> String {
    let offers = ["text/html", "application/json"];
    negotiation::preferred_media_type(value, &offers)
        .map_or("none", |index| offers[index])
        .to_owned()
}

#[test]
fn invalid_preferences_are_ignored() {
    check(
        coding,
        "gzip, br;q=0.5",
        "gzip",
        &[
            (", ", "gzip"),
            (", zstd", "zstd"),
            (", *;q=0", "gzip"),
            (", gzip;q=0", "br"),
            (";q=2", "identity"),
            (" x", "identity"),
            ("\0", "identity"),
            (", \"", "identity"),
        ],
    );
    // Frequent values that are compared as a whole instead of being parsed, and the same values with a suffix.
    for (value, best) in [
        ("gzip, deflate, br, zstd", "br"),
        ("gzip, deflate, br", "br"),
        ("gzip, deflate", "gzip"),
    ] {
        check(
            coding,
            value,
            best,
            &[(" ", best), (";q=x", "identity"), (", *;q=0", best), ("\0", "identity")],
        );
    }
    check(
        media_type,
        "application/json",
        "application/json",
        &[
            (", */*", "application/json"),
            (", text/html", "text/html"),
            (";v=\"", "application/json"),
            (";q=0", "none"),
            ("x", "none"),
            ("\0", "none"),
        ],
    );
}

fn host(value: &[u8]) -> String {
    let Some(authority) = Authority::parse(value) else {
        return "no host".to_owned();
    };
    let mut buffer = [0; HOST_BUFFER];
    let lower = authority.lower_host(&mut buffer);
    authority
        .port
        .map_or(lower.to_owned(), |port| format!("{lower} at {port}"))
}

#[test]
fn hosts_allow_no_other_byte() {
    let none = |more| (more, "no host");
    let bad = [
        "\0",
        " ",
        "/",
        "@evil.test",
        ",a.test",
        "\r\nX: y",
        "?",
        "#",
        "\\",
        ":80:80",
        ":65536",
        ":-1",
        "%00",
    ];
    check(host, "Example.COM", "example.com", &bad.map(none));
    check(
        host,
        "Example.COM",
        "example.com",
        &[
            (".", "example.com"),
            (":", "example.com"),
            (":80", "example.com at 80"),
            ("..", "no host"),
        ],
    );
    check(host, "127.0.0.1", "127.0.0.1", &bad.map(none));
    check(host, "[2001:DB8::1]", "[2001:db8::1]", &bad.map(none));
    check(
        host,
        "[::1]",
        "[::1]",
        &[
            (":80", "[::1] at 80"),
            ("]", "no host"),
            ("1", "no host"),
            (".", "no host"),
        ],
    );
}

fn ranges(value: &[u8]) -> String {
    let of = |range: range::ByteRange| format!("{}-{}", range.first(), range.last());
    match range::parse(value, 1000) {
        Ranges::Whole => "whole".to_owned(),
        Ranges::Unsatisfiable => "unsatisfiable".to_owned(),
        Ranges::One(only) => of(only),
        Ranges::Many(ranges) => ranges.into_iter().map(of).collect::<Vec<_>>().join(" "),
    }
}

#[test]
fn invalid_ranges_select_the_whole() {
    check(
        ranges,
        "bytes=0-9",
        "0-9",
        &[
            ("9", "0-99"),
            ("99999999999999999999", "0-999"),
            (" ", "0-9"),
            (",", "0-9"),
            (", 20-29", "0-9 20-29"),
            (",-1", "0-9 999-999"),
            (", -0", "0-9"),
            (", 1000-", "0-9"),
            (",5-6", "whole"),
            (", x", "whole"),
            ("-", "whole"),
            ("\0", "whole"),
            (";", "whole"),
        ],
    );
    check(
        ranges,
        "bytes=2000-",
        "unsatisfiable",
        &[(",0-0", "0-0"), ("2001", "unsatisfiable"), ("x", "whole")],
    );
    check(
        ranges,
        "bytes=-5",
        "995-999",
        &[("0", "950-999"), ("-", "whole"), (",0-", "whole")],
    );
}

fn path(value: &[u8]) -> String {
    SafePath::parse(value).map_or_else(|error| format!("{error:?}"), |path| path.as_str().to_owned())
}

fn path_for_rules(value: &[u8]) -> String {
    SafePath::for_rules(value).unwrap_or_else(|error| format!("{error:?}"))
}

#[test]
fn paths_never_leave_the_root() {
    // The results are the same for the paths of files and for the paths that routes and rewrite rules match.
    let both: &[(&str, &str)] = &[
        ("/", "/a/b.css/"),
        ("//x", "/a/b.css/x"),
        ("/..", "/a/"),
        ("/../..", "/"),
        ("/%2e%2E/c", "/a/c"),
        ("%20x", "/a/b.css x"),
        ("/../../..", "AboveRoot"),
        ("/%2e./%2e%2e/..", "AboveRoot"),
        ("\0", "Control"),
        ("%00", "Control"),
        ("%0d%0aX:%20y", "Control"),
        ("%", "BadPercent"),
        ("%2", "BadPercent"),
        ("%zz", "BadPercent"),
        (":%zz", "BadPercent"),
        (":/../../../..", "AboveRoot"),
    ];
    check(path, "/a/b.css", "/a/b.css", both);
    check(path_for_rules, "/a/b.css", "/a/b.css", both);
    // No file can have these paths, but routes and rewrite rules can match them. `for_rules` turns an encoded slash
    // into a backslash.
    for (more, rule_path) in [
        (":x", "/a/b.css:x"),
        ("%2f..%2f..", "/a/b.css\\..\\.."),
        ("\\..\\..", "/a/b.css\\..\\.."),
        (".", "/a/b.css."),
        ("/con", "/a/b.css/con"),
        ("%ff", "/a/b.css\u{fffd}"),
        ("%c0%af", "/a/b.css\u{fffd}\u{fffd}"),
    ] {
        check(path, "/a/b.css", "/a/b.css", &[(more, "Unmatchable")]);
        check(path_for_rules, "/a/b.css", "/a/b.css", &[(more, rule_path)]);
    }
}
