//! File name patterns with `*` and `?`. Matching takes time proportional to the length of the name times the length of
//! the pattern.

/// Returns true if a text contains a wildcard.
pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// Returns true if a file name matches. As in a shell, a leading dot must be matched explicitly. `?` matches one
/// character.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    // Returns the position after the character at `at`.
    let after_char = |at: usize| {
        (at + 1..name.len())
            .find(|at| name.is_char_boundary(*at))
            .unwrap_or(name.len())
    };
    let (pattern, bytes) = (pattern.as_bytes(), name.as_bytes());
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
            Some(b'?') => {
                pattern_at += 1;
                name_at = after_char(name_at);
            }
            Some(byte) if *byte == bytes[name_at] => {
                pattern_at += 1;
                name_at += 1;
            }
            _ => {
                let Some((after, from)) = retry else { return false };
                name_at = after_char(from);
                retry = Some((after, name_at));
                pattern_at = after;
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
            ("?.x", "ü.x", true),
            ("??.x", "ü.x", false),
            ("*?.x", "aü.x", true),
            ("*?", "ü", true),
            ("?*?", "ü", false),
            ("*€", "ü€€", true),
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
