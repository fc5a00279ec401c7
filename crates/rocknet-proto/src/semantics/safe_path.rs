//! The path of a request made safe: decoded once, normalised, and unable to leave a root.

use std::borrow::Cow;

use super::safe_name;

/// More segments than this match nothing. File systems end at 4096 bytes of path; no site nests deeper than a dozen,
/// and the walk down a tree of directories, one `openat` each in the worst case, stays bounded.
pub const MAX_DEPTH: usize = 128;

/// The only segment that begins with a dot and is public (RFC 8615), and only in first place.
const WELL_KNOWN: &str = ".well-known";

/// A path that begins with `/` and whose segments are never empty, `.` or `..`, and hold no `/`, `\`, `:`, NUL or other
/// control. It ends with `/` when the request named a directory. Made only by [`SafePath::parse`] and
/// [`SafePath::from_decoded`], so whoever holds one need not check again.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SafePath<'a> {
    decoded: Cow<'a, str>,
    dot_segment: bool,
}

/// Why a path is no [`SafePath`]; in each case the client erred.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathError {
    /// It does not begin with `/`.
    NotAbsolute,
    /// A `%` without two hexadecimal digits behind it.
    BadPercent,
    /// NUL, a line break or another control, as a byte or encoded.
    Control,
    /// A `..` with nothing above it.
    AboveRoot,
    /// Well formed, yet it can name no file: an encoded slash, a backslash, bytes that are not UTF-8, a name that only
    /// a device or stream of Windows has, a segment or depth beyond what file systems have.
    Unmatchable,
}

impl PathError {
    /// The status to answer with.
    pub fn status(self) -> u16 {
        match self {
            PathError::NotAbsolute | PathError::BadPercent | PathError::Control | PathError::AboveRoot => 400,
            PathError::Unmatchable => 404,
        }
    }
}

impl std::fmt::Display for PathError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            PathError::NotAbsolute => "the path does not begin with a slash",
            PathError::BadPercent => "a percent sign is not followed by two hexadecimal digits",
            PathError::Control => "the path holds a control character",
            PathError::AboveRoot => "the path climbs above its root",
            PathError::Unmatchable => "the path can name no file",
        })
    }
}

impl std::error::Error for PathError {}

impl<'a> SafePath<'a> {
    /// The path of a request target as it was sent, without its query.
    ///
    /// Percent-decoding is done once and before anything else looks at the path, so that what a rule matches is what a
    /// handler opens. Then `//` is merged and dot segments are resolved. Errors of form outrank [`PathError::Unmatchable`]
    /// wherever they stand. A path that needs no change is borrowed, without allocation.
    pub fn parse(raw: &'a [u8]) -> Result<SafePath<'a>, PathError> {
        if raw.first() != Some(&b'/') {
            return Err(PathError::NotAbsolute);
        }
        if is_plain(raw)
            && let Ok(path) = std::str::from_utf8(raw)
        {
            return Ok(SafePath {
                decoded: Cow::Borrowed(path),
                dot_segment: false,
            });
        }
        normalise(percent_decode(raw)?)
    }

    /// A path that is decoded already, such as a `fallback` of the configuration or one built from a directory and an
    /// index name: all rules but decoding.
    pub fn from_decoded(path: &'a str) -> Result<SafePath<'a>, PathError> {
        if !path.starts_with('/') {
            return Err(PathError::NotAbsolute);
        }
        normalise(Cow::Borrowed(path.as_bytes()))
    }

    /// The decoded, normalised path with its leading slash.
    pub fn as_str(&self) -> &str {
        &self.decoded
    }

    /// Whether the path ends with a slash.
    pub fn is_directory(&self) -> bool {
        self.decoded.ends_with('/')
    }

    /// The path from a root downwards: no slash at either end, and `.` for the root itself, as `openat` wants it.
    /// Whether there was a slash at the end is for the caller to ask: `a.css/` is not the file `a.css`.
    pub fn relative(&self) -> &str {
        match self.inner() {
            "" => ".",
            inner => inner,
        }
    }

    pub fn segments(&self) -> impl Iterator<Item = &str> {
        // Only the root has an empty inner part, and only there a split yields an empty piece.
        self.inner().split('/').filter(|segment| !segment.is_empty())
    }

    /// Whether any segment begins with a dot, except `.well-known` in first place.
    pub fn has_dot_segment(&self) -> bool {
        self.dot_segment
    }

    /// The last segment, unless the path names a directory.
    pub fn file_name(&self) -> Option<&str> {
        let (_, name) = self.decoded.rsplit_once('/')?;
        (!name.is_empty()).then_some(name)
    }

    /// What stands behind the last dot of the file name, if something stands before it.
    pub fn extension(&self) -> Option<&str> {
        let (stem, extension) = self.file_name()?.rsplit_once('.')?;
        (!stem.is_empty()).then_some(extension)
    }

    pub fn into_owned(self) -> SafePath<'static> {
        SafePath {
            decoded: Cow::Owned(self.decoded.into_owned()),
            dot_segment: self.dot_segment,
        }
    }

    fn inner(&self) -> &str {
        let inner = &self.decoded[1..];
        inner.strip_suffix('/').unwrap_or(inner)
    }
}

impl AsRef<str> for SafePath<'_> {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

/// Whether a raw path is its own safe form, judged in one pass: most are, and this is on the way of every request.
/// `false` is no verdict, it only sends the path to the full rules.
fn is_plain(raw: &[u8]) -> bool {
    let mut start = 1;
    let mut depth = 0;
    for (at, &byte) in raw.iter().enumerate().skip(1) {
        if PLAIN[usize::from(byte)] {
            continue;
        }
        match byte {
            b'/' if safe_name::is_plain(&raw[start..at]) => (start, depth) = (at + 1, depth + 1),
            b'.' if at > start => {}
            _ => return false,
        }
    }
    let last = &raw[start..];
    depth < MAX_DEPTH && (last.is_empty() || safe_name::is_plain(last))
}

/// Bytes that stand for themselves wherever they are. A dot and a slash are judged by their place.
const PLAIN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0x21;
    while byte < 0x7f {
        table[byte as usize] = !matches!(byte, b'%' | b'/' | b'.' | b'\\' | b':');
        byte += 1;
    }
    table
};

/// The decoded bytes. An encoded slash becomes a backslash: it must not divide segments, and no segment may hold one.
fn percent_decode(raw: &[u8]) -> Result<Cow<'_, [u8]>, PathError> {
    let Some(first) = memchr::memchr(b'%', raw) else {
        return Ok(Cow::Borrowed(raw));
    };
    let mut decoded = Vec::with_capacity(raw.len());
    decoded.extend_from_slice(&raw[..first]);
    let mut rest = &raw[first..];
    while let [byte, tail @ ..] = rest {
        rest = tail;
        if *byte != b'%' {
            decoded.push(*byte);
            continue;
        }
        let [high, low, tail @ ..] = tail else {
            return Err(PathError::BadPercent);
        };
        rest = tail;
        let byte = hex(*high)
            .zip(hex(*low))
            .map(|(high, low)| high << 4 | low)
            .ok_or(PathError::BadPercent)?;
        decoded.push(if byte == b'/' { b'\\' } else { byte });
    }
    Ok(Cow::Owned(decoded))
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// The rules that hold for decoded bytes. `path` begins with a slash.
fn normalise(path: Cow<'_, [u8]>) -> Result<SafePath<'_>, PathError> {
    if path.iter().any(u8::is_ascii_control) {
        return Err(PathError::Control);
    }
    let mut depth = 0_usize;
    let mut changed = false;
    let mut unmatchable = false;
    let mut dot_segment = false;
    let mut pieces = path[1..].split(|&b| b == b'/').peekable();
    while let Some(segment) = pieces.next() {
        let last = pieces.peek().is_none();
        match segment {
            b"" => changed |= !last,
            b"." => changed = true,
            b".." => {
                depth = depth.checked_sub(1).ok_or(PathError::AboveRoot)?;
                changed = true;
            }
            name => {
                unmatchable |= !safe_name::is_safe(name) || depth == MAX_DEPTH;
                dot_segment |= name[0] == b'.' && !(depth == 0 && name == WELL_KNOWN.as_bytes());
                depth += 1;
            }
        }
    }
    if unmatchable {
        return Err(PathError::Unmatchable);
    }
    let path = if changed { Cow::Owned(rebuild(&path)) } else { path };
    let decoded = match path {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
        Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
    };
    Ok(SafePath {
        decoded: decoded.ok_or(PathError::Unmatchable)?,
        dot_segment,
    })
}

/// The path without empty and dot segments; that no `..` is without a parent has been checked.
fn rebuild(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut pieces = path[1..].split(|&b| b == b'/').peekable();
    out.push(b'/');
    while let Some(segment) = pieces.next() {
        match segment {
            b"" | b"." => {}
            // `out` always ends with a slash here, so the parent ends at the one before.
            b".." => out.truncate(memchr::memrchr(b'/', &out[..out.len() - 1]).map_or(1, |parent| parent + 1)),
            name => {
                out.extend_from_slice(name);
                if pieces.peek().is_some() {
                    out.push(b'/');
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::PathError::{AboveRoot, BadPercent, Control, NotAbsolute, Unmatchable};
    use super::*;
    use crate::semantics::fuzzing;
    use proptest::prelude::*;

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
    fn parses() {
        let rows: &[(&str, Result<&str, PathError>)] = &[
            ("/", Ok("/")),
            ("/index.html", Ok("/index.html")),
            ("/a/b/c.tar.gz", Ok("/a/b/c.tar.gz")),
            ("/a/b/", Ok("/a/b/")),
            ("/a~b!$&'()*+,;=@c", Ok("/a~b!$&'()*+,;=@c")),
            // Decoding, once.
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
            // Merging and dot segments.
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
            // Above the root.
            ("/..", Err(AboveRoot)),
            ("/../etc/passwd", Err(AboveRoot)),
            ("/a/../..", Err(AboveRoot)),
            ("/a/../../b", Err(AboveRoot)),
            ("/%2e%2e/etc/passwd", Err(AboveRoot)),
            ("/%2e%2e%2fetc", Err(Unmatchable)),
            ("/.//../etc", Err(AboveRoot)),
            ("/a/../../a", Err(AboveRoot)),
            // Encoded and foreign separators.
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
            // Controls.
            ("/a%00.html", Err(Control)),
            ("/a\0.html", Err(Control)),
            ("/a%0d%0aSet-Cookie:x", Err(Control)),
            ("/%7f", Err(Control)),
            ("/\t", Err(Control)),
            ("/con%00", Err(Control)),
            // Names no file has.
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
            // Not a path.
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
    fn bounds_are_met_from_both_sides() {
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
        check(
            long(safe_name::MAX_SEGMENT).as_bytes(),
            Ok(&long(safe_name::MAX_SEGMENT)),
        );
        check(long(safe_name::MAX_SEGMENT + 1).as_bytes(), Err(Unmatchable));
    }

    #[test]
    fn parts() {
        // path, relative, file name, extension, directory, dot segment
        type Row = (
            &'static str,
            &'static str,
            Option<&'static str>,
            Option<&'static str>,
            bool,
            bool,
        );
        let rows: &[Row] = &[
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
            // A hidden directory that the path leaves again still counts: nobody writes this in good faith.
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
    fn what_needs_no_change_is_borrowed() {
        for raw in ["/", "/a/b.css", "/.well-known/x", "/caf\u{e9}/", "/a b"] {
            let path = SafePath::parse(raw.as_bytes()).unwrap();
            assert!(matches!(path.decoded, Cow::Borrowed(_)), "{raw}");
        }
    }

    #[test]
    fn errors_name_their_status() {
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

    /// Paths made of the pieces that have ever fooled a server.
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
        fn any_bytes_are_survived(raw in prop::collection::vec(any::<u8>(), 0..64)) {
            fuzzing::target_path(&raw);
        }

        #[test]
        fn the_short_way_agrees_with_the_full_rules(raw in tricky()) {
            prop_assert_eq!(SafePath::parse(&raw), percent_decode(&raw).and_then(normalise));
        }

        #[test]
        fn encoding_changes_nothing(decoded in "/[a-c./ \\\\:]{0,12}") {
            let encoded: String =
                decoded.bytes().map(|b| if b == b'/' { "/".to_owned() } else { format!("%{b:02x}") }).collect();
            prop_assert_eq!(SafePath::parse(encoded.as_bytes()), SafePath::parse(decoded.as_bytes()));
        }
    }
}
