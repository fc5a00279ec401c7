//! Tests [`SafePath`] with paths that have fooled servers, and the property that a safe path never leaves its root.

use proptest::prelude::*;
use rocknet_proto::semantics::fuzzing;
use rocknet_proto::semantics::safe_path::PathError::{AboveRoot, BadPercent, Control, NotAbsolute, Unmatchable};
use rocknet_proto::semantics::safe_path::{MAX_DEPTH, PathError, SafePath};

/// Maximum length of a segment, in bytes.
const MAX_SEGMENT: usize = 255;

/// Checks the path that is parsed from `raw`. [`fuzzing::target_path`] panics if the path leaves its root.
fn check(raw: &[u8], expected: Result<&str, PathError>) {
    let parsed = SafePath::parse(raw);
    assert_eq!(
        parsed.as_ref().map(SafePath::as_str),
        expected.as_ref().copied(),
        "{}",
        raw.escape_ascii()
    );
    fuzzing::target_path(raw);
}

#[test]
fn paths_are_decoded_once_and_normalized() {
    // Raw path, and the expected safe path or error.
    let rows: &[(&str, Result<&str, PathError>)] = &[
        ("/", Ok("/")),
        ("/index.html", Ok("/index.html")),
        ("/a/b/c.tar.gz", Ok("/a/b/c.tar.gz")),
        ("/a/b/", Ok("/a/b/")),
        ("/a~b!$&'()*+,;=@c", Ok("/a~b!$&'()*+,;=@c")),
        // Percent-encoding is decoded once.
        ("/a%20b", Ok("/a b")),
        ("/%61", Ok("/a")),
        ("/caf%C3%A9", Ok("/caf\u{e9}")),
        ("/caf%c3%a9", Ok("/caf\u{e9}")),
        ("/caf\u{e9}", Ok("/caf\u{e9}")),
        ("/100%25", Ok("/100%")),
        ("/%252e%252e/x", Ok("/%2e%2e/x")),
        ("/%252F", Ok("/%2F")),
        ("/%3Fa", Ok("/?a")),
        ("/%23a", Ok("/#a")),
        // Slashes are merged and dot segments resolved.
        ("//a", Ok("/a")),
        ("//", Ok("/")),
        ("/a//b///c//", Ok("/a/b/c/")),
        ("/.", Ok("/")),
        ("/./a", Ok("/a")),
        ("/a/.", Ok("/a/")),
        ("/a/./b", Ok("/a/b")),
        ("/a/..", Ok("/")),
        ("/a/b/..", Ok("/a/")),
        ("/a/b/../", Ok("/a/")),
        ("/a/b/../c", Ok("/a/c")),
        ("/a//../b", Ok("/b")),
        ("/a/%2e%2E/b", Ok("/b")),
        ("/a/.%2e/b", Ok("/b")),
        ("/%2e/b", Ok("/b")),
        ("/a/b/c/./../../g", Ok("/a/g")), // RFC 3986 §5.2.4
        ("/.well-known/acme-challenge/x", Ok("/.well-known/acme-challenge/x")),
        ("/.git/config", Ok("/.git/config")),
        ("/..a", Ok("/..a")),
        // Paths above the root.
        ("/..", Err(AboveRoot)),
        ("/../etc/passwd", Err(AboveRoot)),
        ("/a/../..", Err(AboveRoot)),
        ("/a/../../b", Err(AboveRoot)),
        ("/%2e%2e/etc/passwd", Err(AboveRoot)),
        ("/%2e%2e%2fetc", Err(Unmatchable)), // the encoded slash separates no segments
        ("/.//../etc", Err(AboveRoot)),
        ("/a/../../a", Err(AboveRoot)),
        // Encoded slashes and backslashes.
        ("/a%2Fb", Err(Unmatchable)),
        ("/a%2f", Err(Unmatchable)),
        ("/%2f", Err(Unmatchable)),
        ("/..%2f..%2fetc", Err(Unmatchable)),
        ("/a%5Cb", Err(Unmatchable)),
        ("/a\\b", Err(Unmatchable)),
        ("/..\\..\\windows", Err(Unmatchable)),
        ("/a%2Fb/../c", Err(Unmatchable)),
        // Broken encoding.
        ("/%", Err(BadPercent)),
        ("/a%4", Err(BadPercent)),
        ("/%zz", Err(BadPercent)),
        ("/%%41", Err(BadPercent)),
        ("/%+1", Err(BadPercent)),
        ("/%u002e", Err(BadPercent)),
        ("/con/%zz", Err(BadPercent)),
        // Control characters.
        ("/a%00.html", Err(Control)),
        ("/a\0.html", Err(Control)),
        ("/a%0d%0aSet-Cookie:x", Err(Control)),
        ("/%7f", Err(Control)),
        ("/\t", Err(Control)),
        ("/con%00", Err(Control)),
        // Names that no file can have.
        ("/%ff", Err(Unmatchable)),
        ("/%c0%ae%c0%ae/", Err(Unmatchable)),
        ("/%ed%a0%80", Err(Unmatchable)),
        ("/con", Err(Unmatchable)),
        ("/a/NUL.txt/b", Err(Unmatchable)),
        ("/x.php.", Err(Unmatchable)),
        ("/x.php%20", Err(Unmatchable)),
        ("/x.php%2e", Err(Unmatchable)),
        ("/x.php::$DATA", Err(Unmatchable)),
        ("/c:/x", Err(Unmatchable)),
        ("/.../x", Err(Unmatchable)),
        ("/.%20./x", Err(Unmatchable)),
        // Inputs that are not an absolute path.
        ("", Err(NotAbsolute)),
        ("*", Err(NotAbsolute)),
        ("a/b", Err(NotAbsolute)),
        ("%2fa", Err(NotAbsolute)),
    ];
    for &(raw, expected) in rows {
        check(raw.as_bytes(), expected);
    }
    check(b"/\xff", Err(Unmatchable));
    check(b"/\xc3", Err(Unmatchable));
}

#[test]
fn depth_and_segments_are_limited() {
    let deep = |depth| "/a".repeat(depth);
    check(deep(MAX_DEPTH).as_bytes(), Ok(&deep(MAX_DEPTH)));
    check(
        format!("{}/", deep(MAX_DEPTH)).as_bytes(),
        Ok(&format!("{}/", deep(MAX_DEPTH))),
    );
    check(deep(MAX_DEPTH + 1).as_bytes(), Err(Unmatchable));
    check(format!("/.x{}", deep(MAX_DEPTH)).as_bytes(), Err(Unmatchable));
    check("/a/..".repeat(MAX_DEPTH + 1).as_bytes(), Ok("/"));
    let long = |length| format!("/{}", "n".repeat(length));
    check(long(MAX_SEGMENT).as_bytes(), Ok(&long(MAX_SEGMENT)));
    check(long(MAX_SEGMENT + 1).as_bytes(), Err(Unmatchable));
}

#[test]
fn the_parts_of_a_path_are_returned() {
    // Raw path, relative path, file name, and extension; then true if the path is a directory, and true if it has a
    // segment that begins with a dot. `.well-known` at the start of a path does not count as such a segment.
    type PathCase = (
        &'static str,
        &'static str,
        Option<&'static str>,
        Option<&'static str>,
        bool,
        bool,
    );
    let rows: &[PathCase] = &[
        ("/", ".", None, None, true, false),
        ("/a/", "a", None, None, true, false),
        ("/a/b.tar.gz", "a/b.tar.gz", Some("b.tar.gz"), Some("gz"), false, false),
        ("/a.b/c", "a.b/c", Some("c"), None, false, false),
        ("/.htaccess", ".htaccess", Some(".htaccess"), None, false, true),
        (
            "/a/.git/config.x",
            "a/.git/config.x",
            Some("config.x"),
            Some("x"),
            false,
            true,
        ),
        ("/.well-known/x", ".well-known/x", Some("x"), None, false, false),
        ("/.well-known", ".well-known", Some(".well-known"), None, false, false),
        ("/.well-known/.git", ".well-known/.git", Some(".git"), None, false, true),
        ("/a/.well-known/x", "a/.well-known/x", Some("x"), None, false, true),
        (
            "/.well-known-not",
            ".well-known-not",
            Some(".well-known-not"),
            None,
            false,
            true,
        ),
        ("/%2egit", ".git", Some(".git"), None, false, true),
        ("/a/../.well-known/x", ".well-known/x", Some("x"), None, false, false),
        // A hidden directory is reported even if the path leaves it again, because no ordinary client sends such a
        // path.
        ("/.git/../a", "a", Some("a"), None, false, true),
    ];
    for &(raw, relative, file_name, extension, directory, dot) in rows {
        let path = SafePath::parse(raw.as_bytes()).unwrap();
        assert_eq!(path.relative(), relative, "{raw}");
        assert_eq!(path.file_name(), file_name, "{raw}");
        assert_eq!(path.extension(), extension, "{raw}");
        assert_eq!(path.is_directory(), directory, "{raw}");
        assert_eq!(path.has_dot_segment(), dot, "{raw}");
    }
    let path = SafePath::parse(b"/a/b%20c/").unwrap();
    assert_eq!(path.segments().collect::<Vec<_>>(), ["a", "b c"]);
    assert_eq!(SafePath::parse(b"/").unwrap().segments().count(), 0);
}

#[test]
fn decoded_paths_are_not_decoded_again() {
    // Decoded path, and the expected safe path or error.
    let rows: &[(&str, Result<&str, PathError>)] = &[
        ("/index.html", Ok("/index.html")),
        ("/100%", Ok("/100%")),
        ("/%2e%2e/a", Ok("/%2e%2e/a")),
        ("/a/../b", Ok("/b")),
        ("/..", Err(AboveRoot)),
        ("a", Err(NotAbsolute)),
        ("/a\n", Err(Control)),
        ("/a:b", Err(Unmatchable)),
    ];
    for &(path, expected) in rows {
        let parsed = SafePath::from_decoded(path);
        assert_eq!(
            parsed.as_ref().map(SafePath::as_str),
            expected.as_ref().copied(),
            "{path}"
        );
    }
}

#[test]
fn errors_have_a_status() {
    for (error, status) in [
        (NotAbsolute, 400),
        (BadPercent, 400),
        (Control, 400),
        (AboveRoot, 400),
        (Unmatchable, 404),
    ] {
        assert_eq!(error.status(), status, "{error}");
    }
}

/// Generates paths from parts that have fooled servers.
fn tricky() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "/",
        "/",
        "/",
        ".",
        "..",
        "%2e",
        "%2E",
        "%2f",
        "%5c",
        "\\",
        "%00",
        "%25",
        "%",
        "a",
        "b",
        "con",
        "nul.",
        ":",
        " ",
        "%20",
        "%c3%a9",
        "%ff",
        "%c0%af",
        ".well-known",
        "\n",
        "?",
        "~1",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| format!("/{}", pieces.concat()).into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn never_leaves_the_root(raw in tricky()) {
        fuzzing::target_path(&raw);
    }

    #[test]
    fn any_bytes_do_not_panic(raw in prop::collection::vec(any::<u8>(), 0..64)) {
        fuzzing::target_path(&raw);
    }

    #[test]
    fn encoding_changes_nothing(decoded in "/[a-c./ \\\\:]{0,12}") {
        let encoded: String =
            decoded.bytes().map(|b| if b == b'/' { "/".to_owned() } else { format!("%{b:02x}") }).collect();
        prop_assert_eq!(SafePath::parse(encoded.as_bytes()), SafePath::parse(decoded.as_bytes()));
    }
}
