//! Patterns of paths and host names, and the matching of paths.

use std::fmt;

use super::regex_pattern::RegexPattern;

/// Pattern of paths. The most specific matching pattern takes effect: an exact path, then the longest prefix, then the
/// glob with the most characters other than `*`, then the longest regular expression.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pattern {
    /// Exact path: `/hello`.
    Exact(String),
    /// Prefix: `/api/*` is stored as `/api/` and matches every path that begins with it; `/*` is stored as `/`.
    Prefix(String),
    /// Pattern with `*` elsewhere (`/users/*/photo`, `*.zip`). Each `*` matches any run of characters without `/`. A
    /// glob without a leading `/` is matched against the end of the path, from the beginning of any segment.
    Glob(String),
    /// Regular expression, which is searched anywhere in the path unless it is anchored.
    Regex(RegexPattern),
}

/// Pattern of host names, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HostPattern {
    /// One name.
    Exact(String),
    /// Wildcard: `*.example.com` is stored as `example.com` and matches every name with at least one more label before
    /// it.
    Wildcard(String),
}

impl Pattern {
    /// Returns true if the pattern matches a decoded path.
    pub(crate) fn matches(&self, path: &str) -> bool {
        match self {
            Pattern::Exact(exact) => exact == path,
            Pattern::Prefix(prefix) => path.starts_with(prefix.as_str()),
            Pattern::Glob(glob) => glob_matches(glob.as_bytes(), path.as_bytes()),
            Pattern::Regex(regex) => regex.matches(path.as_bytes()),
        }
    }
}

/// Writes the pattern as in the configuration.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Exact(text) | Pattern::Glob(text) => f.write_str(text),
            Pattern::Prefix(prefix) => write!(f, "{prefix}*"),
            Pattern::Regex(regex) => regex.fmt(f),
        }
    }
}

/// Returns true if a glob matches a path: from its beginning, or from the beginning of any segment.
fn glob_matches(glob: &[u8], path: &[u8]) -> bool {
    // A pattern without a leading `/` begins with `*` and is matched against the end of the path. Its first `*` can
    // absorb the beginning of a segment, so starting in the middle of a segment adds no matches.
    let anchored = glob.first() == Some(&b'/');
    let later = path.iter().enumerate().filter(|(_, byte)| **byte == b'/' && !anchored);
    let starts = std::iter::once(0).chain(later.map(|(slash, _)| slash + 1));
    starts.into_iter().any(|start| matches_whole(glob, &path[start..]))
}

/// Returns true if a glob matches all of `rest`. After a mismatch, only the last `*` is extended by one byte, up to the
/// next `/`.
fn matches_whole(glob: &[u8], rest: &[u8]) -> bool {
    let (mut glob_at, mut rest_at) = (0, 0);
    // Position after the last `*` in the glob, and the end of the text in `rest` that this `*` matches.
    let mut retry: Option<(usize, usize)> = None;
    while rest_at < rest.len() {
        match glob.get(glob_at) {
            Some(b'*') => {
                retry = Some((glob_at + 1, rest_at));
                glob_at += 1;
            }
            Some(byte) if *byte == rest[rest_at] => {
                glob_at += 1;
                rest_at += 1;
            }
            _ => match retry {
                Some((after_star, end)) if rest[end] != b'/' => {
                    retry = Some((after_star, end + 1));
                    glob_at = after_star;
                    rest_at = end + 1;
                }
                _ => return false,
            },
        }
    }
    glob[glob_at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_of_globs_stay_within_a_segment() {
        let rows = [
            ("*.zip", "/a/b.zip", true),
            ("*.zip", "/a.zip/b", false),
            ("*.zip", ".zip", true),
            ("*/b*.zip", "/x/aa/b.zip", true),
            ("*a/b*.zip", "/x/aa/b/b.zip", false),
            ("/users/*/photo", "/users/ada/photo", true),
            ("/users/*/photo", "/users/a/b/photo", false),
            ("/api*", "/api", true),
            ("/api*", "/apix", true),
            ("/api*", "/api/x", false),
            ("/a/*/*", "/a/b/c", true),
            ("/a/*/*", "/a/b/c/d", false),
        ];
        for (pattern, path, want) in rows {
            assert_eq!(
                Pattern::Glob(pattern.to_owned()).matches(path),
                want,
                "{pattern} {path}"
            );
        }
        // Trying every byte of the path, instead of every segment, took minutes.
        let (glob, path) = (format!("*{}b", "a".repeat(4000)), format!("/{}", "a".repeat(8000)));
        assert!(!Pattern::Glob(glob).matches(&path));
    }

    proptest::proptest! {
        #[test]
        fn globs_match_from_the_beginning_of_a_segment(glob in "\\*[ab/*]{0,6}", path in "/[ab/]{0,8}") {
            let (glob, path) = (glob.as_bytes(), path.as_bytes());
            let anywhere = (0..=path.len()).any(|start| matches_whole(glob, &path[start..]));
            proptest::prop_assert_eq!(glob_matches(glob, path), anywhere);
        }
    }
}
