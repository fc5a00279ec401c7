//! Patterns of paths and of host names, and the paths that a pattern matches.

/// Pattern of paths. Patterns rank by specificity: exact, then the longest prefix, then globs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pattern {
    /// `/hello`
    Exact(String),
    /// `/api/*` holds `/api/`: that and everything below; `/*` holds `/`.
    Prefix(String),
    /// A `*` elsewhere (`/users/*/photo`, `*.zip`): each stands for any run of characters without `/`.
    Glob(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HostPattern {
    Exact(String),
    /// `*.example.com` holds `example.com`: any name with at least one more label before it.
    Wildcard(String),
}

impl Pattern {
    /// Returns whether a path matches; `*` of a glob is any run without `/`.
    pub(crate) fn matches(&self, path: &str) -> bool {
        match self {
            Pattern::Exact(exact) => exact == path,
            Pattern::Prefix(prefix) => path.starts_with(prefix.as_str()),
            Pattern::Glob(glob) => glob_matches(glob.as_bytes(), path.as_bytes()),
        }
    }
}

fn glob_matches(glob: &[u8], path: &[u8]) -> bool {
    // A pattern without a leading `/` begins with `*` and is matched against the end of the path. Its first star takes any
    // part of a segment, so nothing is found from within one that is not found from its beginning.
    let anchored = glob.first() == Some(&b'/');
    let later = path.iter().enumerate().filter(|(_, b)| **b == b'/' && !anchored);
    let starts = std::iter::once(0).chain(later.map(|(slash, _)| slash + 1));
    starts.into_iter().any(|start| segment_matches(glob, &path[start..]))
}

/// Two pointers and the last star, which may grow until the next `/`.
fn segment_matches(glob: &[u8], path: &[u8]) -> bool {
    let (mut g, mut p) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while p < path.len() {
        match glob.get(g) {
            Some(b'*') => {
                retry = Some((g + 1, p));
                g += 1;
            }
            Some(b) if *b == path[p] => {
                g += 1;
                p += 1;
            }
            _ => match retry {
                Some((after, from)) if path[from] != b'/' => {
                    retry = Some((after, from + 1));
                    g = after;
                    p = from + 1;
                }
                _ => return false,
            },
        }
    }
    glob[g..].iter().all(|b| *b == b'*')
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
        // Begun at every byte of the path, this took minutes.
        let (glob, path) = (format!("*{}b", "a".repeat(4000)), format!("/{}", "a".repeat(8000)));
        assert!(!Pattern::Glob(glob).matches(&path));
    }

    proptest::proptest! {
        #[test]
        fn a_glob_found_anywhere_is_found_from_a_segment_on(glob in "\\*[ab/*]{0,6}", path in "/[ab/]{0,8}") {
            let (glob, path) = (glob.as_bytes(), path.as_bytes());
            let anywhere = (0..=path.len()).any(|start| segment_matches(glob, &path[start..]));
            proptest::prop_assert_eq!(glob_matches(glob, path), anywhere);
        }
    }
}
