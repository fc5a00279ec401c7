//! Translates expressions for the path in a folder, or for the name of a file, to expressions for the whole path.

use rocknet_config::model::RegexPattern;

use crate::condition::escaped;

/// Returns the characters of an expression outside of classes that are not escaped, with their positions and the number
/// of groups that are open before each.
fn operators(expression: &str) -> impl Iterator<Item = (usize, char, usize)> {
    let (mut depth, mut is_class, mut is_escaped) = (0_usize, false, false);
    expression.char_indices().filter_map(move |(at, c)| {
        let before = depth;
        match c {
            _ if is_escaped => {
                is_escaped = false;
                return None;
            }
            '\\' => is_escaped = true,
            '[' => is_class = true,
            ']' => is_class = false,
            _ if is_class => return None,
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        Some((at, c, before))
    })
}

/// Returns the alternatives of an expression, outside of groups and classes.
fn alternatives(expression: &str) -> Vec<&str> {
    let (mut all, mut start) = (Vec::new(), 0);
    for (at, _, _) in operators(expression).filter(|(_, c, depth)| *c == '|' && *depth == 0) {
        all.push(&expression[start..at]);
        start = at + 1;
    }
    all.push(&expression[start..]);
    all
}

/// Returns an expression for the whole path. In a folder, expressions match the path without the slash at its
/// beginning. `base`: path of the folder, without a slash at its end.
pub(super) fn absolute(expression: &str, base: &str) -> String {
    let base = escaped(base);
    let whole = |alternative: &str| {
        let is_greedy = [".*", "(.*)", ".+", "(.+)"]
            .iter()
            .any(|start| alternative.starts_with(start));
        match is_greedy {
            // The greedy beginning would take the slash, too.
            true => format!("^{base}/{alternative}"),
            false => with_anchors(alternative, |rest| match rest.strip_prefix("/?") {
                Some(rest) => (format!("^{base}/"), rest),
                None if rest.starts_with('/') || rest.starts_with("(/") || rest.starts_with("(?:/") => {
                    ("^".to_owned(), rest)
                }
                None => (format!("^{base}/"), rest),
            }),
        }
    };
    let all: Vec<String> = alternatives(expression).into_iter().map(whole).collect();
    all.join("|")
}

/// Replaces each anchor of the beginning (`^`), also inside of groups and after flags. `replace`: returns the text in
/// place of an anchor, and the rest of the expression after it.
fn with_anchors<'e>(expression: &'e str, replace: impl Fn(&'e str) -> (String, &'e str)) -> String {
    let (mut out, mut rest, mut is_class) = (String::new(), expression, false);
    while let Some(c) = rest.chars().next() {
        let next = &rest[c.len_utf8()..];
        match c {
            '\\' => {
                let end = next.chars().next().map_or(0, char::len_utf8);
                out.push(c);
                out.push_str(&next[..end]);
                rest = &next[end..];
                continue;
            }
            '^' if !is_class => {
                let (text, after) = replace(next);
                out.push_str(&text);
                rest = after;
                continue;
            }
            '[' => is_class = true,
            ']' => is_class = false,
            _ => {}
        }
        out.push(c);
        rest = next;
    }
    out
}

/// Returns an expression without the alternatives that match only names with a leading dot, because such names are
/// never served, except `/.well-known`; empty if no alternative is left. RockNet has no look-ahead, which these
/// alternatives often have.
pub(super) fn without_dotfiles(expression: &str) -> String {
    let mut text = expression.to_owned();
    for known in ["\\.(?!well-known).*|", "\\.(?!well-known/).*|", "|\\.(?!well-known).*"] {
        text = text.replace(known, "");
    }
    let kept: Vec<&str> = alternatives(&text)
        .into_iter()
        .filter(|alternative| !matches_only_dot_names(alternative))
        .collect();
    kept.join("|")
}

/// Returns true if an alternative matches only names that begin with a dot, other than `.well-known`.
fn matches_only_dot_names(alternative: &str) -> bool {
    let other = alternative.replace("(?!well-known/)", "").replace("(?!well-known)", "");
    if other.contains("well-known") {
        return false;
    }
    let is_dot_name = |text: &str| {
        let rest = text.strip_prefix("\\.");
        // A dot that may be missing is no dot at the beginning.
        rest.is_some_and(|rest| !rest.starts_with(['?', '*', '{']))
    };
    let starts = ["(^|/)", "(?:^|/)", "^/", "^", "/"];
    let Some(name) = starts.iter().find_map(|start| alternative.strip_prefix(start)) else {
        return false;
    };
    if is_dot_name(name) {
        return true;
    }
    // A group is left out if each of its names begins with a dot.
    let inner = name.strip_prefix("(?:").or_else(|| name.strip_prefix('('));
    let Some((group, after)) = inner.and_then(split_group) else {
        return false;
    };
    !after.starts_with(['?', '*', '{']) && alternatives(group).into_iter().all(is_dot_name)
}

/// Splits the text after the bracket that opens a group at the bracket that closes it.
fn split_group(text: &str) -> Option<(&str, &str)> {
    let (at, _, _) = operators(text).find(|(_, c, depth)| *c == ')' && *depth == 0)?;
    Some((&text[..at], &text[at + 1..]))
}

/// Returns the pattern for paths whose file name matches an expression; `None` if RockNet cannot compile it. `folder`:
/// path of the folder that contains the files, with a slash at its end.
pub(super) fn of_name(expression: &str, folder: &str) -> Option<String> {
    let (expression, ignores_case) = match expression.strip_prefix("(?i)") {
        Some(rest) => (rest, true),
        None => (expression, false),
    };
    let start = match folder {
        "/" => String::new(),
        folder => format!("^{}(?:.*/)?", escaped(folder)),
    };
    let path = |alternative: &str| {
        let (name, is_anchored) = match alternative.strip_prefix('^') {
            Some(rest) => (rest, true),
            None => (alternative, false),
        };
        let (name, ends) = match name.strip_suffix('$').filter(|name| !name.ends_with('\\')) {
            Some(name) => (name, true),
            None => (name, false),
        };
        // A file name has no slash, and follows one. Below a folder, an anchor inside of a group has no counterpart.
        let anchor = if folder == "/" { "/" } else { UNKNOWN_ANCHOR };
        let name = with_anchors(&without_slashes(name), |rest| (anchor.to_owned(), rest));
        let before = match (folder, is_anchored) {
            ("/", true) => "/",
            (_, true) => "",
            ("/", false) => "",
            (_, false) => "[^/]*",
        };
        let after = if ends { "$" } else { "[^/]*$" };
        format!("{start}{before}{name}{after}")
    };
    let all: Vec<String> = alternatives(expression).into_iter().map(path).collect();
    if all.iter().any(|path| path.contains(UNKNOWN_ANCHOR)) {
        return None;
    }
    let regex = RegexPattern::new(&all.join("|"), ignores_case).ok()?;
    Some(regex.to_string())
}

/// Marks an anchor that cannot be translated. No expression in a text file contains it.
const UNKNOWN_ANCHOR: &str = "\u{0}";

/// Replaces `.` by a class without the slash.
fn without_slashes(expression: &str) -> String {
    let (mut out, mut is_class, mut is_escaped) = (String::new(), false, false);
    for c in expression.chars() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => is_class = true,
            ']' => is_class = false,
            '.' if !is_class => {
                out.push_str("[^/]");
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_folders_match_whole_paths() {
        for (expression, base, expected) in [
            ("^old/(.*)$", "", "^/old/(.*)$"),
            ("^(?:a|b)/x$", "", "^/(?:a|b)/x$"),
            ("^([^/]+)/?$", "", "^/([^/]+)/?$"),
            ("^/?x$", "/sub", "^/sub/x$"),
            ("(.*)\\.php$", "", "^/(.*)\\.php$"),
            ("\\.bak$", "", "\\.bak$"),
            ("^a|^b(c|d)|[|]e", "", "^/a|^/b(c|d)|[|]e"),
            // Anchors inside of groups and after flags.
            ("(^a\\.php|^b)$", "", "(^/a\\.php|^/b)$"),
            ("(?i)^admin", "/sub", "(?i)^/sub/admin"),
            ("(^|/)x$", "", "(^/|/)x$"),
            ("[^a]\\^b", "", "[^a]\\^b"),
        ] {
            assert_eq!(absolute(expression, base), expected, "{expression}");
        }
    }

    #[test]
    fn expressions_of_names_match_paths() {
        let matches = |expression: &str, folder: &str, path: &str| {
            let pattern = of_name(expression, folder).unwrap();
            RegexPattern::parse(&pattern).unwrap().unwrap().matches(path.as_bytes())
        };
        for (expression, folder, path, expected) in [
            (r"\.(bak|sql)$", "/", "/a/b.sql", true),
            (r"\.(bak|sql)$", "/", "/a.sql/b", false),
            ("^composer", "/", "/x/composer.json", true),
            ("^composer", "/", "/composer/x", false),
            ("^a.*z$", "/", "/ab/cz", false),
            (r"(?i)\.php", "/up/", "/up/a/B.PHP5", true),
            (r"(?i)\.php", "/up/", "/down/B.PHP5", false),
            ("^x$", "/up/", "/up/x", true),
            (r"(^a\.php$|^b\.php$)", "/", "/x/b.php", true),
            (r"(^a\.php$|^b\.php$)", "/", "/x/bb.php", false),
            (r"(^|\.)config\.php$", "/", "/config.php", true),
            (r"(^|\.)config\.php$", "/", "/a.config.php", true),
            (r"(^|\.)config\.php$", "/", "/aconfig.php", false),
        ] {
            assert_eq!(matches(expression, folder, path), expected, "{expression} {path}");
        }
        assert_eq!(of_name("^a(?!b)", "/"), None);
        assert_eq!(of_name(r"(^|\.)config", "/up/"), None);
    }

    #[test]
    fn alternatives_for_dotfiles_are_left_out() {
        assert_eq!(
            without_dotfiles(r"^(\.(?!well-known).*|composer\.json)$"),
            r"^(composer\.json)$"
        );
        assert_eq!(without_dotfiles(r"/\.|^\.(?!well-known/)"), "");
        assert_eq!(without_dotfiles(r"\.bak$|^\.ht"), r"\.bak$");
        assert_eq!(without_dotfiles(r"^(\.git|\.env)(/|$)"), "");
        // Groups with other names, dots that may be missing, and `.well-known` stay.
        for expression in [
            r"^(\.git|vendor|node_modules)/",
            r"^(\.htaccess|install\.php)$",
            r"^\.?env",
            r"^\.*x",
            r"^\.well-known/private",
            r"^\.(well-known|git)",
            r"^(\.git)?vendor",
        ] {
            assert_eq!(without_dotfiles(expression), expression);
        }
    }
}
