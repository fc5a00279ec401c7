//! Path that is sent to an upstream: the client's path with its dot segments resolved and a configured prefix stripped.
//! The rest of the path is not changed.
//!
//! Rules match a path without `.` and `..`. If dot segments were forwarded, an upstream could resolve
//! `/public/%2e%2e/admin` differently and serve a path that the rules for `/admin` forbid.

/// Returns false only if the path certainly has no dot segment. Returns true if a segment begins with a dot or any byte
/// is encoded.
pub fn may_have_dots(raw: &[u8]) -> bool {
    memchr::memchr2_iter(b'.', b'%', raw).any(|at| raw[at] == b'%' || at == 0 || raw[at - 1] == b'/')
}

/// Appends the path to `out`, with its dot segments resolved. The path begins with a slash. Its dot segments never lead
/// above the root, because requests with such paths are rejected earlier.
pub fn write(raw: &[u8], out: &mut Vec<u8>) {
    if !may_have_dots(raw) || !raw.split(|&byte| byte == b'/').any(|segment| dots(segment).is_some()) {
        return out.extend_from_slice(raw);
    }
    let start = out.len();
    let mut segments = raw.split(|&byte| byte == b'/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match dots(segment) {
            None => {
                out.push(b'/');
                out.extend_from_slice(segment);
                continue;
            }
            Some(1) => {}
            Some(_) => {
                // Rules ignore empty segments, so `..` has to remove the last segment that is not empty. Otherwise the
                // forwarded path would differ from the path that the rules matched.
                while out.len() > start && out.ends_with(b"/") {
                    out.pop();
                }
                let parent = out[start..].iter().rposition(|&byte| byte == b'/');
                out.truncate(start + parent.unwrap_or(0));
            }
        }
        // A dot segment at the end names a folder, so the path keeps a trailing slash.
        if is_last {
            out.push(b'/');
        }
    }
    if out.len() == start {
        out.push(b'/');
    }
}

/// Returns true if a decoded path contains a backslash and, when split at slashes and backslashes, has a dot segment.
/// An encoded slash counts as a backslash, because RockNet decodes it to one. Rules do not split paths at backslashes.
/// An upstream that decodes first, or treats a backslash as a slash, would therefore resolve a different path.
pub fn hides_dots(path: &str) -> bool {
    path.contains('\\') && path.split(['/', '\\']).any(|piece| matches!(piece, "." | ".."))
}

/// Removes this number of leading segments. Empty segments do not count, because rules ignore them.
pub fn strip(path: &mut Vec<u8>, segments: usize) {
    let mut at = 0;
    for _ in 0..segments {
        at += path[at..].iter().take_while(|byte| **byte == b'/').count();
        at += path[at..].iter().take_while(|byte| **byte != b'/').count();
    }
    path.drain(..at);
    if !path.starts_with(b"/") {
        path.insert(0, b'/');
    }
}

/// Returns the number of dots if a segment consists of one or two dots, encoded or not; otherwise `None`.
fn dots(segment: &[u8]) -> Option<usize> {
    let mut rest = segment;
    let mut count = 0;
    while !rest.is_empty() {
        rest = match rest {
            [b'.', rest @ ..] | [b'%', b'2', b'e' | b'E', rest @ ..] => rest,
            _ => return None,
        };
        count += 1;
    }
    (count == 1 || count == 2).then_some(count)
}

#[cfg(test)]
mod tests {
    use rocknet_proto::semantics::safe_path::SafePath;

    use super::*;

    #[test]
    fn leading_segments_are_stripped() {
        for (path, segments, expected) in [
            ("/api/x", 1, "/x"),
            ("/%61pi/x?", 1, "/x?"),
            ("//api//x", 1, "//x"),
            ("/api", 1, "/"),
            ("/api/", 1, "/"),
            ("/a/b/c", 2, "/c"),
            ("/a", 0, "/a"),
            ("/a", 3, "/"),
        ] {
            let mut out = path.as_bytes().to_vec();
            strip(&mut out, segments);
            assert_eq!(String::from_utf8_lossy(&out), expected, "{path}");
        }
    }

    /// Checks all paths of up to six segments from `SEGMENTS` whose last segment is not empty. The digits of `number`
    /// in base 7 are the indexes of the segments.
    #[test]
    fn the_forwarded_path_is_the_path_that_rules_matched() {
        const SEGMENTS: [&str; 7] = ["", ".", "..", "%2e", ".%2E", "a", "b"];
        let rule_path = |path: &[u8]| SafePath::for_rules(path).ok();
        for number in 0..SEGMENTS.len().pow(6) {
            let (mut raw, mut rest) = (String::new(), number);
            while rest > 0 {
                raw.push('/');
                raw.push_str(SEGMENTS[rest % SEGMENTS.len()]);
                rest /= SEGMENTS.len();
            }
            let Some(matched) = rule_path(raw.as_bytes()) else {
                continue;
            };
            let mut out = Vec::new();
            write(raw.as_bytes(), &mut out);
            assert_eq!(rule_path(&out).as_ref(), Some(&matched), "{raw}");
            if let Some(remainder) = matched.strip_prefix("/a/") {
                strip(&mut out, 1);
                assert_eq!(rule_path(&out), Some(format!("/{remainder}")), "{raw} without /a");
            }
        }
    }

    #[test]
    fn leading_dots_and_encoded_bytes_may_be_dot_segments() {
        for path in ["/", "/a.html", "/a/b..c/d.", "/a...", ""] {
            assert!(!may_have_dots(path.as_bytes()), "{path}");
        }
        for path in [
            "/.",
            "/..",
            "/a/./b",
            "/a.b/../c",
            "/.well-known",
            "/a%2e",
            "/%2E%2e/a",
            ".",
        ] {
            assert!(may_have_dots(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn dot_segments_are_resolved_and_the_rest_is_unchanged() {
        for (raw, expected) in [
            ("/", "/"),
            ("/a//b%2Fc/", "/a//b%2Fc/"),
            ("/a/.../b.c/..d", "/a/.../b.c/..d"),
            ("/a%2e/b", "/a%2e/b"),
            ("/a/./b", "/a/b"),
            ("/a/../b", "/b"),
            ("/a/%2e%2E/b", "/b"),
            ("/a/.%2e/b/%2E", "/b/"),
            ("/a/b/..", "/a/"),
            ("/a/..", "/"),
            ("/.", "/"),
            // Rules ignore empty segments.
            ("/a//../b", "/b"),
            ("/a/b///../c", "/a/c"),
            ("/a//..", "/"),
            ("/./a/.//b", "/a//b"),
        ] {
            // `write` appends to the text before it.
            let mut out = b"x".to_vec();
            write(raw.as_bytes(), &mut out);
            assert_eq!(String::from_utf8_lossy(&out), format!("x{expected}"), "{raw}");
        }
    }
}
