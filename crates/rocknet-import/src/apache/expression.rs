//! Translates expressions for the path in a folder, or for the name of a file, to expressions for the whole path.

use rocknet_config::model::RegexPattern;

use crate::condition::escaped;

use super::pcre::{Part, alternatives, normalized, parts, split_group};

/// Returns an expression for the whole path. `base`: path of the folder, without a slash at its end. `is_in_folder`:
/// true if the expression matches paths without the slash at their beginning.
pub(super) fn absolute(expression: &str, base: &str, is_in_folder: bool) -> String {
    let base = escaped(base);
    let whole = |alternative: &str| {
        let is_greedy = [".*", "(.*)", ".+", "(.+)"]
            .iter()
            .any(|start| alternative.starts_with(start));
        match is_greedy {
            // The greedy beginning would take the slash, too.
            true => format!("^{base}/{alternative}"),
            // In a folder, paths begin without a slash. So `/a` matches only after a character, for which `.` stands.
            false if is_in_folder && alternative.starts_with('/') && !alternative.starts_with("/?") => {
                format!(".{alternative}")
            }
            false => with_anchors(alternative, |rest| match rest.strip_prefix("/?") {
                Some(rest) => (format!("^{base}/"), rest),
                // The expression is one for the whole path already.
                None if is_whole(rest) => ("^".to_owned(), rest),
                None => (format!("^{base}/"), rest),
            }),
        }
    };
    let all: Vec<String> = alternatives(expression).into_iter().map(whole).collect();
    all.join("|")
}

/// Returns true if a text after an anchor is one for the whole path: it begins with a slash, or with a group of which
/// each alternative does.
fn is_whole(rest: &str) -> bool {
    match group(rest) {
        Some(group) => alternatives(group).iter().all(|one| one.starts_with('/')),
        None => rest.starts_with('/'),
    }
}

/// Returns the content of the group at the beginning of a text.
fn group(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("(?:").or_else(|| text.strip_prefix('('))?;
    split_group(inner).map(|(group, _)| group)
}

/// Returns true if a part of an expression is anchored before a slash. In a folder, where paths begin without a slash,
/// Apache never matches it, but the expression that [`absolute`] returns matches.
pub(super) fn is_absolute(expression: &str) -> bool {
    let mut rest = expression;
    while let Some((text, part)) = parts(rest).next() {
        rest = &rest[text.len()..];
        let slash = rest.trim_start_matches("(?:").trim_start_matches('(');
        let is_optional = slash.starts_with("/?") || slash.starts_with("/)?");
        if part == Part::Plain('^') && is_whole(rest) && !is_optional {
            return true;
        }
    }
    false
}

/// Replaces each anchor of the beginning (`^`), also inside of groups and after flags. `replace`: returns the text in
/// place of an anchor, and the rest of the expression after it.
fn with_anchors<'e>(expression: &'e str, replace: impl Fn(&'e str) -> (String, &'e str)) -> String {
    let (mut out, mut rest) = (String::new(), expression);
    while let Some((text, part)) = parts(rest).next() {
        let next = &rest[text.len()..];
        if part == Part::Plain('^') {
            let (text, after) = replace(next);
            out.push_str(&text);
            rest = after;
        } else {
            out.push_str(text);
            rest = next;
        }
    }
    out
}

/// Returns the pattern for paths whose file name matches an expression; `None` if RockNet cannot compile it. `folder`:
/// path of the folder that contains the files, with a slash at its end.
pub(super) fn of_name(expression: &str, folder: &str) -> Option<String> {
    let expression = normalized(expression);
    let (expression, ignores_case) = match expression.strip_prefix("(?i)") {
        Some(rest) => (rest, true),
        None => (expression.as_str(), false),
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
    parts(expression)
        .map(|(text, part)| if part == Part::Plain('.') { "[^/]" } else { text })
        .collect()
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
            ("^(/a|b)$", "", "^/(/a|b)$"),
            ("^(?:/a|/b)$", "", "^(?:/a|/b)$"),
            ("^(/|$)", "", "^/(/|$)"),
            ("[^a]\\^b", "", "[^a]\\^b"),
            // A slash before a name is not that of the beginning.
            ("/\\.git|^x", "", "./\\.git|^/x"),
        ] {
            assert_eq!(absolute(expression, base, true), expected, "{expression}");
        }
    }

    #[test]
    fn expressions_with_a_slash_after_an_anchor_are_absolute() {
        for (expression, expected) in [
            ("^/(.*)$", true),
            ("x|^/y", true),
            ("^(/.*)$", true),
            ("(^x|^/y)", true),
            ("^/?x", false),
            ("^(/?)x", false),
            ("^(?:/)?x", false),
            ("^(/a|b)$", false),
            ("[^/]+/\\^/x", false),
        ] {
            assert_eq!(is_absolute(expression), expected, "{expression}");
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
            (r"\Asecret\z", "/", "/x/secret", true),
            (r"\Asecret\z", "/", "/x/asecret", false),
        ] {
            assert_eq!(matches(expression, folder, path), expected, "{expression} {path}");
        }
        assert_eq!(of_name("^a(?!b)", "/"), None);
        assert_eq!(of_name(r"(^|\.)config", "/up/"), None);
    }
}
