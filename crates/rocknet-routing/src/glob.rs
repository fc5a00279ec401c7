//! Path patterns in which each star matches any run of characters without `/`. Matching takes linear time.

use std::ops::Range;

use memchr::memmem::Finder;

/// A parsed pattern.
///
/// A pattern that begins with `/` is compared with the whole path. Any other pattern (`*.zip`, `thumbs/*.png`) matches
/// in any folder, because it is compared only with the end of the path: as many segments as the pattern has. The empty
/// text before the first slash counts as a segment, so `*/a` matches `/a` as well as `/x/a`.
///
/// Matching never backtracks. Because a star does not cross a `/`, each segment of the pattern is compared with one
/// segment of the path. Within the segment, the literals between stars are searched from left to right, each at its
/// first occurrence. A later occurrence would leave less room for the rest of the pattern, so backtracking could not
/// find further matches.
#[derive(Debug, Clone)]
pub struct Glob {
    text: Box<str>,
    /// True if the pattern begins with `/`.
    rooted: bool,
    segments: Box<[Segment]>,
    /// Number of characters other than stars.
    literals: usize,
}

impl Glob {
    /// Parses a pattern. Every text is a valid pattern.
    pub fn new(pattern: &str) -> Glob {
        Glob {
            text: pattern.into(),
            rooted: pattern.starts_with('/'),
            segments: pattern.split('/').map(Segment::new).collect(),
            literals: pattern.chars().filter(|&character| character != STAR).count(),
        }
    }

    /// Returns the pattern as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the number of characters that are not stars. A larger number means a more specific pattern.
    pub fn literals(&self) -> usize {
        self.literals
    }

    /// Returns the text with which every matching path begins; empty for a pattern that matches in any folder.
    pub fn literal_prefix(&self) -> &str {
        if !self.rooted {
            return "";
        }
        self.text.find(STAR).map_or(&self.text, |star| &self.text[..star])
    }

    /// Matches a path; `None` if the path does not match. Returns the range that the first star matched: the shortest
    /// range with which the rest of the pattern matches. For a pattern without a star, it is the empty range at the end
    /// of the path.
    pub fn matches(&self, path: &str) -> Option<Range<usize>> {
        let mut start = if self.rooted {
            0
        } else {
            tail(path, self.segments.len())?
        };
        let mut captured = None;
        let mut segments = self.segments.iter();
        for part in path.as_bytes()[start..].split(|&byte| byte == b'/') {
            let run = segments.next()?.matches(part)?;
            captured = captured.or(run.map(|run| start + run.start..start + run.end));
            start += part.len() + 1;
        }
        match segments.next() {
            Some(_) => None,
            None => Some(captured.unwrap_or(path.len()..path.len())),
        }
    }
}

/// A segment of a pattern, between two slashes.
#[derive(Debug, Clone)]
struct Segment {
    /// Text before the first star, or the whole segment.
    head: Box<[u8]>,
    /// Part of the segment after its first star; `None` without a star.
    rest: Option<Rest>,
}

/// The part of a segment after its first star.
#[derive(Debug, Clone)]
struct Rest {
    /// Texts between stars. No text is empty, because adjacent stars count as one star.
    between: Box<[Finder<'static>]>,
    /// Text after the last star.
    tail: Box<[u8]>,
}

impl Segment {
    fn new(pattern: &str) -> Segment {
        let mut pieces = pattern.split(STAR);
        let head = pieces.next().unwrap_or_default().as_bytes().into();
        let rest = pieces.next_back().map(|tail| Rest {
            between: pieces
                .filter(|piece| !piece.is_empty())
                .map(|piece| Finder::new(piece).into_owned())
                .collect(),
            tail: tail.as_bytes().into(),
        });
        Segment { head, rest }
    }

    /// Compares a segment of a path. Returns `None` if it does not match, otherwise the range of the first star;
    /// `Some(None)` without a star.
    fn matches(&self, part: &[u8]) -> Option<Option<Range<usize>>> {
        let after_head = part.strip_prefix(&*self.head)?;
        let Some(rest) = &self.rest else {
            return after_head.is_empty().then_some(None);
        };
        let open = after_head.strip_suffix(&*rest.tail)?;
        let mut at = 0;
        let mut first_end = None;
        for finder in &rest.between {
            let found = at + finder.find(&open[at..])?;
            first_end.get_or_insert(found);
            at = found + finder.needle().len();
        }
        let start = self.head.len();
        Some(Some(start..start + first_end.unwrap_or(open.len())))
    }
}

/// Returns the offset of the last `segments` segments of a path; `None` if the path has fewer.
fn tail(path: &str, segments: usize) -> Option<usize> {
    let mut slashes = memchr::memrchr_iter(b'/', path.as_bytes());
    for _ in 1..segments {
        slashes.next()?;
    }
    Some(slashes.next().map_or(0, |slash| slash + 1))
}

const STAR: char = '*';

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_documented() {
        /// Compares the captured text; `None` if the path does not match.
        fn check(pattern: &str, path: &str, expected: Option<&str>) {
            let captured = Glob::new(pattern).matches(path).map(|range| &path[range]);
            assert_eq!(captured, expected, "{pattern:?} on {path:?}");
        }
        for (pattern, path, expected) in [
            ("/users/*/photo", "/users/7/photo", Some("7")),
            ("/users/*/photo", "/users/7/8/photo", None),
            ("/users/*/photo", "/users/7/photo/", None),
            ("/users/*/photo", "/users/7/Photo", None),
            ("/users/*/photo", "/users//photo", Some("")),
            ("/users/*/photo", "/users/photo", None),
            ("/a*b", "/ab", Some("")),
            ("/a*b", "/axb", Some("x")),
            ("/a*b", "/a", None),
            ("/a*b", "/abbb", Some("bb")),
            // Head and tail must not overlap.
            ("/ab*ba", "/aba", None),
            ("/ab*ba", "/abba", Some("")),
            ("/a*-*-*z", "/a1-2-3-4z", Some("1")),
            ("/a*-*-*z", "/a1-2z", None),
            ("/a**b", "/axyb", Some("xy")),
            ("/*/*/c", "/a/b/c", Some("a")),
            ("/no/star", "/no/star", Some("")),
            ("/no/star", "/no/stars", None),
            ("/é*ü", "/éöü", Some("ö")),
            ("*.zip", "/a.zip", Some("a")),
            ("*.zip", "/deep/down/a.zip", Some("a")),
            ("*.zip", "/a.zip/b", None),
            ("*.zip", "/.zip", Some("")),
            ("*.zip", "a.zip", Some("a")),
            ("*/a.zip", "/a.zip", Some("")),
            ("*/a.zip", "/x/y/a.zip", Some("y")),
            ("*/a.zip", "a.zip", None),
            ("*.zip", "", None),
            ("thumbs/*.png", "/x/thumbs/1.png", Some("1")),
            ("thumbs/*.png", "/thumbs/1.png", Some("1")),
            ("thumbs/*.png", "/xthumbs/1.png", None),
            ("", "/", Some("")),
            ("", "", Some("")),
        ] {
            check(pattern, path, expected);
        }
    }

    #[test]
    fn patterns_report_literals_and_prefix() {
        for (pattern, literals, prefix) in [
            ("/users/*/photo", 13, "/users/"),
            ("/a*b*c", 4, "/a"),
            ("*.zip", 4, ""),
            ("thumbs/*.png", 11, ""),
            ("/é*", 2, "/é"),
            ("/plain", 6, "/plain"),
        ] {
            let glob = Glob::new(pattern);
            assert_eq!(
                (glob.literals(), glob.literal_prefix()),
                (literals, prefix),
                "{pattern:?}"
            );
        }
    }

    #[test]
    fn many_stars_on_a_long_path_take_linear_time() {
        // With backtracking, 32 stars on 8,000 bytes would outlast the test run. Without backtracking there are 32
        // searches.
        let path = format!("/{}", "a".repeat(8_000));
        assert_eq!(Glob::new(&format!("/{}b", "*a".repeat(32))).matches(&path), None);
        assert_eq!(Glob::new(&format!("/{}*", "*a".repeat(32))).matches(&path), Some(1..1));
    }

    /// Matches by the definition, with backtracking. Ranges of the first star are tried from the shortest on.
    pub(in super::super) fn naive(pattern: &str, path: &str) -> Option<Range<usize>> {
        fn matches(pattern: &[u8], path: &[u8]) -> bool {
            match pattern.split_first() {
                None => path.is_empty(),
                Some((b'*', rest)) => runs(path).any(|run| matches(rest, &path[run..])),
                Some((byte, rest)) => path
                    .split_first()
                    .is_some_and(|(first, tail)| first == byte && matches(rest, tail)),
            }
        }
        fn runs(path: &[u8]) -> impl Iterator<Item = usize> {
            let end = path.iter().position(|&byte| byte == b'/').unwrap_or(path.len());
            0..=end
        }
        if !pattern.starts_with('/') {
            let mut folders = vec![0];
            folders.extend(path.match_indices('/').map(|(slash, _)| slash + 1));
            folders.retain(|&start| path[start..].matches('/').count() == pattern.matches('/').count());
            return folders.first().and_then(|&start| {
                // The `/` added before the path shifts all positions by one.
                naive(&format!("/{pattern}"), &format!("/{}", &path[start..]))
                    .map(|found| found.start + start - 1..found.end + start - 1)
            });
        }
        let (pattern, path) = (pattern.as_bytes(), path.as_bytes());
        let Some(star) = pattern.iter().position(|&byte| byte == b'*') else {
            return (pattern == path).then_some(path.len()..path.len());
        };
        // Adjacent stars count as one star, so the first star captures the text for the whole group.
        let group = pattern[star..].iter().take_while(|&&byte| byte == b'*').count();
        let rest = &pattern[star + group..];
        if !path.starts_with(&pattern[..star]) {
            return None;
        }
        let mut captures = runs(&path[star..]).map(|run| star..star + run);
        captures.find(|capture| matches(rest, &path[capture.end..]))
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_the_naive_rule(pattern in "/?[ab*/]{1,8}", path in "/[ab/]{0,12}") {
            proptest::prop_assert_eq!(Glob::new(&pattern).matches(&path), naive(&pattern, &path));
        }

        #[test]
        fn captures_begin_and_end_at_characters(pattern in "/?[é*a/]{1,6}", path in "/[éa/]{0,8}") {
            if let Some(range) = Glob::new(&pattern).matches(&path) {
                proptest::prop_assert!(path.get(range).is_some());
            }
        }
    }
}
