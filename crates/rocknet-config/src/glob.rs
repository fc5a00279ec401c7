//! File name patterns with `*` and `?`. Matching takes time proportional to the length of the name times the length of
//! the pattern.

/// Returns true if a text contains a wildcard.
pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// Returns true if a file name matches. As in a shell, a leading dot must be matched explicitly. `?` matches one byte.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    // Numbers of bytes matched so far.
    let (mut pattern_at, mut name_at) = (0, 0);
    // Position after the last `*` in the pattern, and the end of its match in the name. Only the last `*` is retried,
    // so the time is not exponential.
    let mut retry: Option<(usize, usize)> = None;
    while name_at < name.len() {
        match pattern.get(pattern_at) {
            Some(b'*') => {
                retry = Some((pattern_at + 1, name_at));
                pattern_at += 1;
            }
            Some(byte) if *byte == name[name_at] || *byte == b'?' => {
                pattern_at += 1;
                name_at += 1;
            }
            _ => {
                let Some((after, from)) = retry else { return false };
                retry = Some((after, from + 1));
                pattern_at = after;
                name_at = from + 1;
            }
        }
    }
    pattern[pattern_at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_in_a_shell() {
        let rows = [
            ("*.toml", "a.toml", true),
            ("*.toml", ".toml", false),
            (".*", ".toml", true),
            ("*.toml", "a.tom", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("?.x", "a.x", true),
            ("?.x", "ab.x", false),
            ("**", "", true),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
        ];
        for (pattern, name, want) in rows {
            assert_eq!(matches(pattern, name), want, "{pattern} {name}");
        }
        // A search that retries every `*` would take exponential time for this name.
        assert!(!matches(&"*a".repeat(40), &"a".repeat(39)));
    }
}
