//! Translates expressions for the path in a folder, or for the name of a file, to expressions for the whole path.

use rocknet_config::model::RegexPattern;

use crate::condition::escaped;

/// Returns the alternatives of an expression, outside of groups and classes.
fn alternatives(expression: &str) -> Vec<&str> {
    let (mut all, mut start, mut depth, mut is_class, mut is_escaped) = (Vec::new(), 0, 0_usize, false, false);
    for (at, c) in expression.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => is_class = true,
            ']' => is_class = false,
            '(' if !is_class => depth += 1,
            ')' if !is_class => depth = depth.saturating_sub(1),
            '|' if !is_class && depth == 0 => {
                all.push(&expression[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    all.push(&expression[start..]);
    all
}

/// Returns an expression for the whole path. In a folder, expressions match the path without the slash at its
/// beginning. `base`: path of the folder, without a slash at its end.
pub(super) fn absolute(expression: &str, base: &str) -> String {
    let base = escaped(base);
    let whole = |alternative: &str| {
        let Some(rest) = alternative.strip_prefix('^') else {
            let is_greedy = [".*", "(.*)", ".+", "(.+)"]
                .iter()
                .any(|start| alternative.starts_with(start));
            return match is_greedy {
                // The greedy beginning would take the slash, too.
                true => format!("^{base}/{alternative}"),
                false => alternative.to_owned(),
            };
        };
        match rest.strip_prefix("/?") {
            Some(rest) => format!("^{base}/{rest}"),
            None if rest.starts_with('/') || rest.starts_with("(/") || rest.starts_with("(?:/") => {
                alternative.to_owned()
            }
            None => format!("^{base}/{rest}"),
        }
    };
    let all: Vec<String> = alternatives(expression).into_iter().map(whole).collect();
    all.join("|")
}

/// Returns an expression without the alternatives that match only names with a leading dot, because such names are
/// never served, except `/.well-known`; empty if no alternative is left. RockNet has no look-ahead, which these
/// alternatives often have.
pub(super) fn without_dotfiles(expression: &str) -> String {
    let mut text = expression.to_owned();
    for known in ["\\.(?!well-known).*|", "\\.(?!well-known/).*|", "|\\.(?!well-known).*"] {
        text = text.replace(known, "");
    }
    let is_dot = |alternative: &&str| {
        ["^\\.", "/\\.", "(^|/)\\.", "(?:^|/)\\.", "^(\\.", "^/\\."]
            .iter()
            .any(|start| alternative.starts_with(start))
    };
    let kept: Vec<&str> = alternatives(&text)
        .into_iter()
        .filter(|alternative| !is_dot(alternative))
        .collect();
    kept.join("|")
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
        // A file name has no slash.
        let name = without_slashes(name);
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
    let regex = RegexPattern::new(&all.join("|"), ignores_case).ok()?;
    Some(regex.to_string())
}

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
        ] {
            assert_eq!(matches(expression, folder, path), expected, "{expression} {path}");
        }
        assert_eq!(of_name("^a(?!b)", "/"), None);
    }

    #[test]
    fn alternatives_for_dotfiles_are_left_out() {
        assert_eq!(
            without_dotfiles(r"^(\.(?!well-known).*|composer\.json)$"),
            r"^(composer\.json)$"
        );
        assert_eq!(without_dotfiles(r"/\.|^\.(?!well-known/)"), "");
        assert_eq!(without_dotfiles(r"\.bak$|^\.ht"), r"\.bak$");
    }
}
