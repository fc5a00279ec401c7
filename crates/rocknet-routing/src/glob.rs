//! Path patterns with stars, each standing for any run of characters without `/`, matched in linear time.

use std::ops::Range;

use memchr::memmem::Finder;

/// A pattern taken apart once, so that matching only searches.
///
/// A pattern that begins with `/` is held against the whole path. One that does not (`*.zip`, `thumbs/*.png`) is held
/// against the end of the path: as many last segments as the pattern has, in whatever folder. The nothing before the first
/// slash counts as a segment, so `*/a` holds `/a` as well as `/x/a`.
///
/// Matching cannot blow up: since a star never crosses a `/`, a segment of the pattern meets one segment of the path
/// only, and within it the literals between stars are looked for from left to right, each where it first occurs, without
/// ever going back. An earlier place leaves more room for what follows, so going back could not help.
#[derive(Debug, Clone)]
pub struct Glob {
    text: Box<str>,
    /// Whether it begins with `/`.
    rooted: bool,
    segments: Box<[Segment]>,
    /// Characters other than stars.
    literals: usize,
}

impl Glob {
    pub fn new(pattern: &str) -> Glob {
        Glob {
            text: pattern.into(),
            rooted: pattern.starts_with('/'),
            segments: pattern.split('/').map(Segment::new).collect(),
            literals: pattern.chars().filter(|&character| character != STAR).count(),
        }
    }

    /// The pattern as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many characters of the pattern are not stars: the more, the more specific.
    pub fn literals(&self) -> usize {
        self.literals
    }

    /// What every path that matches begins with: nothing for a pattern that may match in any folder.
    pub fn literal_prefix(&self) -> &str {
        if !self.rooted {
            return "";
        }
        self.text.find(STAR).map_or(&self.text, |star| &self.text[..star])
    }

    /// Whether the path matches, and where in it lies what the first star stands for: the shortest run that lets the rest
    /// match. Without a star in the pattern that is the empty range at the end of the path.
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

/// What stands between two slashes of a pattern.
#[derive(Debug, Clone)]
struct Segment {
    /// Before the first star, or all of it.
    head: Box<[u8]>,
    /// From the first star on; without a star, nothing.
    rest: Option<Rest>,
}

#[derive(Debug, Clone)]
struct Rest {
    /// Between the stars, none empty: neighbouring stars are one.
    between: Box<[Finder<'static>]>,
    /// After the last star.
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

    /// Outer: whether it matches. Inner: what the first star stands for, if there is one.
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

/// Where the last `segments` segments of a path begin, if it has that many.
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
    fn patterns_match_what_they_say() {
        /// The captured text, or `None` where the path does not match.
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
            // Head and tail may not share a byte.
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
    fn patterns_know_their_weight_and_their_place() {
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
    fn many_stars_on_a_long_path_end_at_once() {
        // With going back, 32 stars on 8,000 bytes would outlast the test run; without, it is 32 searches.
        let path = format!("/{}", "a".repeat(8_000));
        assert_eq!(Glob::new(&format!("/{}b", "*a".repeat(32))).matches(&path), None);
        assert_eq!(Glob::new(&format!("/{}*", "*a".repeat(32))).matches(&path), Some(1..1));
    }

    /// The rule, said without any care for cost: what the first star captures, shortest first.
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
                naive(&format!("/{pattern}"), &format!("/{}", &path[start..]))
                    .map(|found| found.start + start - 1..found.end + start - 1)
            });
        }
        let (pattern, path) = (pattern.as_bytes(), path.as_bytes());
        let Some(star) = pattern.iter().position(|&byte| byte == b'*') else {
            return (pattern == path).then_some(path.len()..path.len());
        };
        // Neighbouring stars are one, so that the first takes what the group takes.
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
        fn captures_lie_on_characters(pattern in "/?[é*a/]{1,6}", path in "/[éa/]{0,8}") {
            if let Some(range) = Glob::new(&pattern).matches(&path) {
                proptest::prop_assert!(path.get(range).is_some());
            }
        }
    }
}
