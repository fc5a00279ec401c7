//! Safe form of a request path: decoded once, normalized, and guaranteed to stay below a root directory.

use std::borrow::Cow;

use super::safe_name;

/// Maximum number of segments; deeper paths match no file. File systems limit paths to 4096 bytes, and sites nest a
/// dozen levels at most. The limit bounds the walk through directories, which in the worst case needs one `openat` per
/// segment.
pub const MAX_DEPTH: usize = 128;

/// The only segment that may be public although it begins with a dot (RFC 8615). It must be the first segment.
const WELL_KNOWN: &str = ".well-known";

/// A path that begins with `/` and whose segments are never empty, `.` or `..`, and contain no `/`, `\`, `:`, NUL or
/// other control character. It ends with `/` if the request named a directory. Only [`SafePath::parse`] and
/// [`SafePath::from_decoded`] create values, so that callers need no further checks.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SafePath<'a> {
    decoded: Cow<'a, str>,
    /// Result of [`SafePath::has_dot_segment`].
    dot_segment: bool,
}

/// Error in the path of a request, or in a decoded path that an application or the configuration names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathError {
    /// The path does not begin with `/`.
    NotAbsolute,
    /// A `%` without two hexadecimal digits after it.
    BadPercent,
    /// NUL, a line break or another control character, either as a byte or percent-encoded.
    Control,
    /// A `..` above the root.
    AboveRoot,
    /// A well-formed path that no file can have: it has an encoded slash, a backslash, bytes that are not UTF-8, more
    /// than [`MAX_DEPTH`] segments, or an unsafe segment. An unsafe segment is too long, ends with a dot or space, or
    /// is a device or stream name of Windows.
    Unmatchable,
}

impl PathError {
    /// Returns the status of the response.
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
            PathError::Control => "the path contains a control character",
            PathError::AboveRoot => "the path climbs above its root",
            PathError::Unmatchable => "no file can have this path",
        })
    }
}

impl std::error::Error for PathError {}

impl<'a> SafePath<'a> {
    /// Parses the path of a request target as sent, without its query.
    ///
    /// The path is percent-decoded once, before it is matched, so that routes, rewrite rules and handlers use the same
    /// path. Then `//` is merged into `/`, and the segments `.` and `..` are resolved. A path that needs no change is
    /// borrowed, without allocation.
    ///
    /// # Errors
    ///
    /// Fails if the path is malformed or if no file can have it. If both apply, the error for the malformed part is
    /// returned instead of [`PathError::Unmatchable`], regardless of their order in the path.
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
        normalize(percent_decode(raw)?)
    }

    /// Parses a path that is already decoded, such as a `fallback` of the configuration, or a directory joined with the
    /// name of its index file.
    ///
    /// # Errors
    ///
    /// Fails like [`parse`](Self::parse), but never with [`PathError::BadPercent`].
    pub fn from_decoded(path: &'a str) -> Result<SafePath<'a>, PathError> {
        if !path.starts_with('/') {
            return Err(PathError::NotAbsolute);
        }
        normalize(Cow::Borrowed(path.as_bytes()))
    }

    /// Returns the decoded and normalized path that routes and rewrite rules match, even if no file can have this path.
    /// A route for `/wiki/` therefore matches `/wiki/Special:Search` as well as `/wiki/Main`. An encoded slash becomes
    /// a backslash, and bytes that are not UTF-8 become U+FFFD. The result must never be opened as a file.
    ///
    /// # Errors
    ///
    /// Fails if the path is malformed.
    pub fn for_rules(raw: &[u8]) -> Result<String, PathError> {
        if raw.first() != Some(&b'/') {
            return Err(PathError::NotAbsolute);
        }
        let path = percent_decode(raw)?;
        inspect(&path)?;
        Ok(String::from_utf8_lossy(&rebuild(&path)).into_owned())
    }

    /// Returns the decoded, normalized path with its leading slash.
    pub fn as_str(&self) -> &str {
        &self.decoded
    }

    /// Returns the same string as [`as_str`](Self::as_str); it is borrowed if it equals the raw path.
    pub fn into_str(self) -> Cow<'a, str> {
        self.decoded
    }

    /// Returns true if the path ends with a slash.
    pub fn is_directory(&self) -> bool {
        self.decoded.ends_with('/')
    }

    /// Returns the path relative to a root directory for `openat`: without slashes at either end, and `.` for the root
    /// itself. The caller must check [`is_directory`](Self::is_directory), because `a.css/` is not the file `a.css`.
    pub fn relative(&self) -> &str {
        match self.inner() {
            "" => ".",
            inner => inner,
        }
    }

    /// Returns the segments in their order.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        // `inner` is empty only for the root, for which the split yields one empty segment.
        self.inner().split('/').filter(|segment| !segment.is_empty())
    }

    /// Returns true if any segment other than `.` and `..` begins with a dot, as the names of hidden files do. The
    /// segment `.well-known` is an exception if it is the first segment. A segment that a later `..` removed counts,
    /// too, because no ordinary client sends such a path.
    pub fn has_dot_segment(&self) -> bool {
        self.dot_segment
    }

    /// Returns the last segment, unless the path ends with a slash.
    pub fn file_name(&self) -> Option<&str> {
        let (_, name) = self.decoded.rsplit_once('/')?;
        (!name.is_empty()).then_some(name)
    }

    /// Returns the part after the last dot of the file name, unless the name begins with that dot.
    pub fn extension(&self) -> Option<&str> {
        let (stem, extension) = self.file_name()?.rsplit_once('.')?;
        (!stem.is_empty()).then_some(extension)
    }

    /// Copies the path if it is borrowed.
    pub fn into_owned(self) -> SafePath<'static> {
        SafePath {
            decoded: Cow::Owned(self.decoded.into_owned()),
            dot_segment: self.dot_segment,
        }
    }

    /// Returns the path without its leading slash and its trailing slash.
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

/// Returns true if a raw path certainly equals its safe form, as most request paths do. The check takes one pass.
/// `false` means that the full rules must decide.
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

/// Bytes that are valid at every position. Dots, slashes and spaces are not among them, because their validity depends
/// on their position.
const PLAIN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0x21;
    while byte < 0x7f {
        table[byte as usize] = !matches!(byte, b'%' | b'/' | b'.' | b'\\' | b':');
        byte += 1;
    }
    table
};

/// Decodes a raw path. An encoded slash becomes a backslash, because it must not separate segments, and because a
/// backslash makes the path unmatchable.
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

/// Returns the value of a hexadecimal digit; `None` for another byte.
fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// Properties of a decoded path.
struct PathTraits {
    /// True if normalization changes the path, because it has a segment that is `.` or `..`, or an empty segment before
    /// the last.
    changed: bool,
    /// True if no file can have the path.
    unmatchable: bool,
    /// Result of [`SafePath::has_dot_segment`].
    dot_segment: bool,
}

/// Returns the properties of a decoded path that begins with a slash; fails if the path is malformed.
fn inspect(path: &[u8]) -> Result<PathTraits, PathError> {
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
            // An empty last segment is the slash at the end, which is kept.
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
    Ok(PathTraits {
        changed,
        unmatchable,
        dot_segment,
    })
}

/// Applies all rules to a decoded path that begins with a slash.
fn normalize(path: Cow<'_, [u8]>) -> Result<SafePath<'_>, PathError> {
    let PathTraits {
        changed,
        unmatchable,
        dot_segment,
    } = inspect(&path)?;
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

/// Removes empty segments, and resolves the segments `.` and `..`. `inspect` has checked that each `..` has a parent.
fn rebuild(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut pieces = path[1..].split(|&b| b == b'/').peekable();
    out.push(b'/');
    while let Some(segment) = pieces.next() {
        match segment {
            b"" | b"." => {}
            // `out` always ends with a slash at this point, so the parent ends at the slash before that one.
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
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn unchanged_paths_are_borrowed() {
        for raw in ["/", "/a/b.css", "/.well-known/x", "/caf\u{e9}/", "/a b"] {
            let path = SafePath::parse(raw.as_bytes()).unwrap();
            assert!(matches!(path.decoded, Cow::Borrowed(_)), "{raw}");
        }
    }

    #[test]
    fn rules_match_paths_that_no_file_can_have() {
        // `expected` is the path that rules match, or the error.
        for (raw, expected) in [
            ("/wiki/Special:Search", Ok("/wiki/Special:Search")),
            ("/a:b//c/./d/", Ok("/a:b/c/d/")),
            ("/a%2Fb/c", Ok("/a\\b/c")),
            ("/a%2f../b", Ok("/a\\../b")),
            ("/x%ff/../y", Ok("/y")),
            ("/%ff", Ok("/\u{fffd}")),
            ("/con", Ok("/con")),
            ("/a/../../b", Err(PathError::AboveRoot)),
            ("/a:%00", Err(PathError::Control)),
            ("/a:%zz", Err(PathError::BadPercent)),
            ("a:b", Err(PathError::NotAbsolute)),
        ] {
            assert_eq!(
                SafePath::for_rules(raw.as_bytes()).as_ref().map(String::as_str),
                expected.as_ref().copied(),
                "{raw}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn rule_paths_equal_file_paths(raw in r"/(/|\.|\.\.|%2e|%2F|%25|%00|%ff|\\|:| |a|con|nul\.|é){0,20}") {
            match SafePath::parse(raw.as_bytes()) {
                Ok(path) => prop_assert_eq!(SafePath::for_rules(raw.as_bytes()), Ok(path.as_str().to_owned())),
                Err(PathError::Unmatchable) => prop_assert!(SafePath::for_rules(raw.as_bytes()).is_ok()),
                Err(error) => prop_assert_eq!(SafePath::for_rules(raw.as_bytes()), Err(error)),
            }
        }

        #[test]
        fn the_fast_path_equals_the_full_rules(raw in r"/(/|\.|\.\.|%2e|%2F|%25|%00|%zz|%ff|\\|:| |a|con|nul\.|é){0,20}") {
            prop_assert_eq!(SafePath::parse(raw.as_bytes()), percent_decode(raw.as_bytes()).and_then(normalize));
        }
    }
}
