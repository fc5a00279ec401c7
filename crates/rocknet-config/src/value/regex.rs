//! Detects regular expressions of nginx, Apache and Caddy without the `~` of RockNet, and proposes equivalent patterns.

use crate::message::short;
use crate::value::host::ValueError;

/// Maximum number of patterns proposed for the alternatives of one group, so that the help stays short.
const MAX_ALTERNATIVES: usize = 8;

/// Parts of regular expressions that paths do not contain.
const PARTS: [&str; 8] = ["(.*)", "(.+)", "(?", "[^", "[0-9]", "[a-z", "[A-Z", "\\."];

/// Returns message and help if a text is most likely a regular expression, or begins with a modifier of nginx: `= ` or
/// `^~`. The text does not begin with `~`, because `pattern::parse` compiles such a text as a regular expression.
pub(crate) fn error(text: &str) -> Option<ValueError> {
    let modified = text.starts_with("= ") || text.starts_with("^~");
    let anchored = text.starts_with('^') || text.starts_with("/^") || text.len() > 1 && text.ends_with('$');
    if !modified && !anchored && !PARTS.iter().any(|part| text.contains(part)) {
        return None;
    }
    let message = match modified {
        true => format!(
            "\"{}\" begins with an nginx modifier, which patterns do not have",
            short(text)
        ),
        false => format!("\"{}\" is a regular expression, not a pattern", short(text)),
    };
    let proposed: Vec<String> = proposed(text)
        .iter()
        .map(|pattern| format!("\"{}\"", short(pattern)))
        .collect();
    let kinds = "`/*` at the end matches everything below, `*` elsewhere any run of characters without `/`";
    let first = if modified { "" } else { "put `~` before it, or " };
    let help = match &proposed[..] {
        [] => format!("{first}write paths such as \"/api/*\" or \"*.png\": {kinds}"),
        [one] => format!("{first}write {one}: {kinds}"),
        several => format!("{first}write an entry for each of {}: {kinds}", several.join(", ")),
    };
    Some((message, help))
}

/// Returns patterns that match the same paths as a regular expression, or nearly the same paths. The result is empty if
/// patterns cannot express the regular expression.
fn proposed(text: &str) -> Vec<String> {
    // In nginx, `^~ /images/` is a prefix, not a regular expression.
    if let Some(prefix) = text.strip_prefix("^~") {
        return vec![format!("{}/*", prefix.trim().trim_end_matches('/'))];
    }
    if let Some(exact) = text.strip_prefix("= ") {
        return vec![exact.trim().to_owned()];
    }
    let bare = text.trim();
    let bare = bare.strip_prefix("/^").or(bare.strip_prefix('^')).unwrap_or(bare);
    let (bare, is_whole) = match bare.strip_suffix('$') {
        Some(bare) => (bare, true),
        None => (bare, false),
    };
    // U+0001 stands for an escaped dot, so that it is not read as a wildcard below.
    let mut pattern = bare.replace("\\.", "\u{1}");
    for run in [
        "([^/]+)", "([^/]*)", "([0-9]+)", "(\\d+)", "(.*)", "(.+)", "[^/]+", "[0-9]+", "\\d+", ".*", ".+",
    ] {
        pattern = pattern.replace(run, "*");
    }
    let mut all = vec![pattern];
    if let Some((before, rest)) = all[0].split_once('(')
        && let Some((group, after)) = rest.split_once(')')
    {
        let group = group.strip_prefix("?:").unwrap_or(group);
        all = (group.split('|').take(MAX_ALTERNATIVES))
            .map(|one| format!("{before}{one}{after}"))
            .collect();
    }
    for pattern in &mut all {
        if pattern.contains(['(', ')', '[', ']', '{', '}', '+', '?', '|', '^', '$', '\\']) {
            return Vec::new();
        }
        *pattern = pattern.replace('\u{1}', ".");
        if !pattern.starts_with(['/', '*']) {
            pattern.insert(0, '*');
        }
        if pattern == "*" {
            *pattern = "/*".to_owned();
        }
        // A `*` at the end, and a regular expression without `$`, match everything below the path as well.
        if let Some(prefix) = pattern.strip_suffix('*')
            && prefix.starts_with('/')
        {
            *pattern = format!("{}/*", prefix.trim_end_matches('/'));
        } else if !is_whole && pattern.starts_with('/') {
            *pattern = format!("{}/*", pattern.trim_end_matches('/'));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_become_patterns() {
        // (regular expression, proposed patterns)
        let rows: &[(&str, &[&str])] = &[
            ("^/x(.*)", &["/x/*"]),
            ("^/old/(.*)$", &["/old/*"]),
            ("\\.php$", &["*.php"]),
            ("\\.(png|jpg)$", &["*.png", "*.jpg"]),
            ("= /exact", &["/exact"]),
            ("^~ /images/", &["/images/*"]),
            // The star of a glob is kept.
            ("*.png$", &["*.png"]),
            ("*/a(.*)", &["*/a*"]),
            ("/users/([^/]+)/photo$", &["/users/*/photo"]),
            ("/x/[0-9]+", &["/x/*"]),
            ("^/a(?=b)", &[]),
            ("^/(a|b)/(c|d)$", &[]),
            ("^", &["/*"]),
        ];
        for (text, want) in rows {
            assert!(error(text).is_some(), "{text}");
            assert_eq!(proposed(text), *want, "{text}");
        }
    }

    #[test]
    fn paths_are_not_expressions() {
        for text in [
            "/", "/a*", "/a/*", "*.zip", "/.*", "/a(1)", "/a[1]", "/a+b", "/~user/*", "/a=b", "/x.y",
        ] {
            let found = error(text);
            assert!(found.is_none(), "{text}: {found:?}");
        }
        // `/$` could be a path, but is far more often a regular expression.
        assert!(error("/$").is_some());
    }
}
