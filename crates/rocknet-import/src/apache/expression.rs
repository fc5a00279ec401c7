//! Translates expressions for the path in a folder, or for the name of a file, to expressions for the whole path.

use rocknet_config::model::RegexPattern;

use crate::condition::escaped;

use super::pcre::{Part, alternatives, normalized, parts, split_group};

/// Returns an expression for the whole path. `base`: path of the folder, without a slash at its end. `is_in_folder`:
/// true if the expression matches paths without the slash at their beginning, as in `.htaccess`.
///
/// In a folder, `^a` becomes `^/base/a`. Elsewhere the expression already matches whole paths, and most anchors are
/// kept. Only `^a` and `^/?a` become `^/a`, where `a` stands for a literal character or `$`. Apache never matches `^a`
/// there, but a refusal of `^secret` was evidently meant for `/secret`. The callers learn of the difference by
/// [`is_wider`].
pub(super) fn absolute(expression: &str, base: &str, is_in_folder: bool) -> String {
    let (base, plain_base) = (escaped(base), base);
    let expression = without_repeated_anchors(expression);
    let whole = |alternative: &str| {
        match is_greedy(alternative) && is_in_folder {
            // Without the slash before it, the group of `(.*)\.php$` would also capture the first slash of the path.
            true => format!("^{base}/{alternative}"),
            // In a folder, paths begin without a slash. So `/a` matches only after a character, for which `.` stands.
            false if is_in_folder && alternative.starts_with('/') && !alternative.starts_with("/?") => {
                match base.is_empty() {
                    true => format!(".{alternative}"),
                    false => format!("^{base}/.+?{alternative}"),
                }
            }
            // In a folder, Apache matches only the part of a path after the folder. So in `/css`, the expression `css`
            // must not match `/css/a`.
            false if is_in_folder && !has_anchor(alternative) && may_begin_in(plain_base, alternative) => {
                format!("^{base}/.*?{alternative}")
            }
            false => with_anchors(alternative, |rest| match rest.strip_prefix("/?") {
                Some(after) if is_in_folder || begins(after, is_literal) => (format!("^{base}/"), after),
                // `^/?.*/a` is kept, because it matches the path `/a`, and `^/.*/a` would not.
                Some(_) => ("^".to_owned(), rest),
                // The anchor is kept before a slash, as in `^/a`. Outside of a folder, it is also kept before a part
                // that may match the slash, as in `^.*`.
                None if begins(rest, is_slash) || !is_in_folder && !begins(rest, is_literal) => ("^".to_owned(), rest),
                None => (format!("^{base}/"), rest),
            }),
        }
    };
    let all: Vec<String> = alternatives(&expression).into_iter().map(whole).collect();
    all.join("|")
}

/// Returns an expression without the anchors that directly follow another one: `^(a|b)` for `^(a|^b)`. Its callers
/// translate each anchor by itself, and `^/(a|^/b)` would not match `/b`. Anchors in groups deeper than [`MAX_DEPTH`]
/// are kept.
fn without_repeated_anchors(expression: &str) -> String {
    let is_anchored = false;
    part_without_repeated_anchors(expression, is_anchored, MAX_DEPTH)
}

/// Does the work of [`without_repeated_anchors`] for an expression or a group of it. `is_anchored`: true if an anchor
/// precedes the part. `depth`: maximum depth of groups in the part.
fn part_without_repeated_anchors(expression: &str, is_anchored: bool, depth: usize) -> String {
    let plain = |alternative: &str| {
        let (flags, text) = match alternative.strip_prefix("(?i)") {
            Some(text) => ("(?i)", text),
            None => ("", alternative),
        };
        let rest = text.trim_start_matches('^');
        let has_anchor = rest.len() < text.len();
        let anchor = if has_anchor && !is_anchored { "^" } else { "" };
        match group(rest).filter(|_| depth > 0) {
            Some((inner, after)) => {
                let open = if rest.starts_with("(?:") { "(?:" } else { "(" };
                let inner = part_without_repeated_anchors(inner, is_anchored || has_anchor, depth - 1);
                format!("{flags}{anchor}{open}{inner}){after}")
            }
            None => format!("{flags}{anchor}{rest}"),
        }
    };
    let all: Vec<String> = alternatives(expression).into_iter().map(plain).collect();
    all.join("|")
}

/// Returns true if `expression`, the result of [`without_repeated_anchors`] for `original`, may match more. In
/// `^(a|^b)+`, only the first repetition is at the anchor.
fn may_be_repeated(expression: &str, original: &str) -> bool {
    expression != original && expression.contains(')') && expression.contains(['*', '+', '{'])
}

/// Returns true if the expression that [`absolute`] returns matches more paths than the original matches in Apache.
///
/// For the path `/a` in a folder, Apache matches only `a`, so `^/a` does not match. [`absolute`] keeps `^/a`, which
/// matches the whole path. Elsewhere, Apache matches whole paths, so `^a` never matches, but [`absolute`] makes it
/// `^/a`.
pub(super) fn is_wider(expression: &str, is_in_folder: bool) -> bool {
    let original = expression;
    let expression = &without_repeated_anchors(original);
    if may_be_repeated(expression, original) {
        return true;
    }
    let requires_slash = |text: &str| is_slash(text) && !text.starts_with("/?");
    let mut rest = expression.as_str();
    while let Some((text, part)) = parts(rest).next() {
        rest = &rest[text.len()..];
        let is_wider = |rest: &str| match is_in_folder {
            true => begins(rest, is_slash) && starts(rest).into_iter().any(requires_slash),
            false => begins(rest, is_literal),
        };
        if part == Part::Plain('^') && is_wider(rest) {
            return true;
        }
    }
    // `absolute` changes these, so that they do not match the first slash.
    let is_changed = |alternative: &str| is_greedy(alternative) || requires_slash(alternative);
    let mut others = alternatives(expression).into_iter().filter(|text| !is_changed(text));
    is_in_folder && others.any(|text| may_begin_with_slash(text, MAX_DEPTH))
}

/// Returns true if an expression may match a slash as its first character. An expression that begins with an anchor
/// does not count. `depth`: maximum depth of groups that are read; the result is true for an expression with more.
fn may_begin_with_slash(text: &str, depth: usize) -> bool {
    let text = text.strip_prefix("(?i)").unwrap_or(text);
    // Without an anchor, `/?a` matches the same paths as `a`.
    let text = text.strip_prefix("/?").unwrap_or(text);
    if text.starts_with('^') {
        return false;
    }
    if let Some((group, after)) = group(text) {
        let is_optional = after.starts_with(['?', '*', '{']);
        // `(^|/)a` finds a name that begins with `a`. The slash may match the first one of the whole path, but only in
        // paths that the anchor matches too.
        let is_start_of_name = ["^|/", "/|^"].contains(&group);
        let mut inner = alternatives(group).into_iter().filter(|_| !is_start_of_name);
        return depth == 0 || is_optional || inner.any(|text| may_begin_with_slash(text, depth - 1));
    }
    let mut all = parts(text);
    let is_other = match all.next() {
        Some((_, Part::Escaped('d' | 'w'))) => true,
        Some((class, Part::Class)) => RegexPattern::new(class, false).is_ok_and(|class| !class.matches(b"/")),
        _ => is_literal(text),
    };
    !is_other || matches!(all.next(), Some((_, Part::Plain('?' | '*' | '{'))))
}

/// Returns true if an expression has an anchor of the beginning (`^`).
pub(super) fn has_anchor(expression: &str) -> bool {
    parts(expression).any(|(_, part)| part == Part::Plain('^'))
}

/// Returns true if some alternatives of a group in the expression have an anchor, and others may match in the path of
/// the folder, as in `(^css|app)/` with the path `/app`. `base`: path of the folder, without a slash at its end.
pub(super) fn may_match_base(expression: &str, base: &str) -> bool {
    let is_mixed = |alternative: &&str| {
        let text = alternative.strip_prefix("(?i)").unwrap_or(alternative);
        has_anchor(text) && !begins(text, |text| text.starts_with('^'))
    };
    !base.is_empty() && alternatives(expression).iter().any(is_mixed)
}

/// Returns true if a match of an expression may begin in the path of the folder, `base`, or at the slash after it. The
/// path is empty for the root, in which no match begins.
fn may_begin_in(base: &str, expression: &str) -> bool {
    let text = expression.strip_prefix("(?i)").unwrap_or(expression);
    let path = format!("{base}/").to_ascii_lowercase();
    let is_elsewhere = |text: &str| {
        let start = literal(text).to_ascii_lowercase();
        let mut ends = path.char_indices().map(|(at, _)| &path[at..]);
        !start.is_empty() && !ends.any(|end| end.starts_with(&start) || start.starts_with(end))
    };
    !base.is_empty() && !begins(text, is_elsewhere)
}

/// Returns the literal text at the beginning of all matches of an expression.
fn literal(expression: &str) -> String {
    let mut text = String::new();
    let mut all = parts(expression).map(|(_, part)| part).peekable();
    while let Some(part) = all.next() {
        let c = match part {
            Part::Plain(c) if c.is_ascii_alphanumeric() || "-_/".contains(c) => c,
            Part::Escaped(c) if c.is_ascii() && !c.is_ascii_alphanumeric() => c,
            _ => break,
        };
        if matches!(all.peek(), Some(Part::Plain('?' | '*' | '{'))) {
            break;
        }
        text.push(c);
    }
    text
}

/// Maximum depth of groups that are read, so that the recursion is bounded.
const MAX_DEPTH: usize = 16;

/// Returns true if an expression begins with a part that matches any beginning of the path.
fn is_greedy(expression: &str) -> bool {
    let every = [".*", "(.*)", ".+", "(.+)"];
    every.iter().any(|start| expression.starts_with(start))
}

/// Returns true if `is_start` holds for a text, or for each alternative of the group at its beginning.
fn begins(text: &str, is_start: impl Fn(&str) -> bool + Copy) -> bool {
    let is_optional = |after: &str| after.starts_with(['?', '*', '{']);
    !group(text).is_some_and(|(_, after)| is_optional(after)) && starts(text).into_iter().all(is_start)
}

/// Returns the alternatives of the group at the beginning of a text, or the text itself.
fn starts(text: &str) -> Vec<&str> {
    group(text).map_or_else(|| vec![text], |(group, _)| alternatives(group))
}

/// Returns the content of the group at the beginning of a text, and the text after it; `None` without a group.
fn group(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix("(?:").or_else(|| text.strip_prefix('('))?;
    split_group(inner)
}

fn is_slash(text: &str) -> bool {
    text.starts_with('/')
}

/// Returns true if an expression begins with a literal character other than a slash, or with the end of the path.
fn is_literal(text: &str) -> bool {
    let mut parts = parts(text).map(|(_, part)| part);
    let is_constant = match parts.next() {
        Some(Part::Plain(c)) => c.is_ascii_alphanumeric() || "$-_".contains(c),
        Some(Part::Escaped(c)) => !c.is_ascii_alphanumeric() && c != '/',
        _ => false,
    };
    is_constant && !matches!(parts.next(), Some(Part::Plain('?' | '*' | '{')))
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

/// Returns the pattern for paths whose file name matches an expression; `None` if there is no exact one. `folder`:
/// path of the folder that contains the files, with a slash at its end.
pub(super) fn of_name(expression: &str, folder: &str) -> Option<String> {
    let expression = normalized(expression);
    let (expression, ignores_case) = match expression.strip_prefix("(?i)") {
        Some(rest) => (rest, true),
        None => (expression.as_str(), false),
    };
    let original = expression;
    let expression = &without_repeated_anchors(original);
    if may_be_repeated(expression, original) {
        return None;
    }
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
        // A file name has no slash, and follows one: `^a.*z$` becomes `/a[^/]*z$`. Below a folder, an anchor inside of
        // a group has no counterpart.
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
            ("^(/a)?b", "", "^/(/a)?b"),
            // A second anchor at the same position adds nothing.
            ("^(a|^b)", "", "^/(a|b)"),
            ("(?i)^(?:a|(^b|c))x|^^d", "", "(?i)^/(?:a|(b|c))x|^/d"),
            ("(^(a|^b))|c(^d)", "", "(^/(a|b))|c(^/d)"),
            ("[^a]\\^b", "", "[^a]\\^b"),
            // A slash before a name is not that of the beginning.
            ("/\\.git|^x", "", "./\\.git|^/x"),
            // Nor is it one in the path of the folder or after it.
            ("/a|^x", "/sub", "^/sub/.+?/a|^/sub/x"),
            ("(a|b/)c|\\.css$", "/sub", "^/sub/.*?(a|b/)c|\\.css$"),
        ] {
            assert_eq!(absolute(expression, base, true), expected, "{expression}");
        }
    }

    #[test]
    fn expressions_of_hosts_are_kept() {
        for (expression, expected, is_kept) in [
            ("^/a", "^/a", true),
            ("^(.*)\\.php$", "^(.*)\\.php$", true),
            ("(.*)\\.php$", "(.*)\\.php$", true),
            ("^[^x]+|\\.a$", "^[^x]+|\\.a$", true),
            ("^\\/a|^(a?/b)", "^\\/a|^(a?/b)", true),
            ("^(a)?/b|^(a|/b)", "^(a)?/b|^(a|/b)", true),
            ("^/?a", "^/a", true),
            ("^/?(a|b)", "^/(a|b)", true),
            // The slash of `/?` may be missing.
            ("^/?.*/a", "^/?.*/a", true),
            ("^/?(.*)/a", "^/?(.*)/a", true),
            ("^/?/a", "^/?/a", true),
            ("^/?[^a]", "^/?[^a]", true),
            // Apache never matches these.
            ("^a", "^/a", false),
            ("^$", "^/$", false),
            ("x|(^(?:a|\\.b))", "x|(^/(?:a|\\.b))", false),
        ] {
            assert_eq!(absolute(expression, "", false), expected, "{expression}");
            assert_eq!(is_wider(expression, false), !is_kept, "{expression}");
        }
    }

    #[test]
    fn expressions_with_a_slash_after_an_anchor_are_wider_in_folders() {
        for (expression, expected) in [
            ("^/(.*)$", true),
            ("x|^/y", true),
            ("^(/.*)$", true),
            ("(^x|^/y)", true),
            ("^/?x", false),
            ("^(/?)x", false),
            ("^(?:/)?x", false),
            ("^(/a|b)$", false),
            ("^(/?a|/b)", true),
            ("^(/?a|/?b)", false),
            ("^(a|^/b)", false),
            ("^(/a|^/b)", true),
            // A repetition of `^b` is not at the beginning.
            ("^(a|^b)+", true),
            ("[^/]+/\\^/x", false),
            // Without an anchor, the slash at the beginning of the path may match.
            ("(/css/|/js/)", true),
            ("x|(?:y|(?:/z))", true),
            ("\\/open", true),
            ("(^a|/b)", true),
            ("[^/]*/b", true),
            (".b", true),
            ("/?[^/]*/b", true),
            ("(a)?/b", true),
            ("(^|/)?/b", true),
            ("[+-9]b", true),
            // It cannot match.
            ("/css/", false),
            ("\\.js$|(?:a|[a-z0-9]+|\\w+)x", false),
            ("(^|/)\\.ht|(?i)b|/?c", false),
            ("(.*)/a|.+/b", false),
        ] {
            assert_eq!(is_wider(expression, true), expected, "{expression}");
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
            ("^(a|^b)$", "/", "/x/b", true),
            ("^(a|^b)$", "/", "/x/ab", false),
            ("^(a|^b)$", "/up/", "/up/x/b", true),
        ] {
            assert_eq!(matches(expression, folder, path), expected, "{expression} {path}");
        }
        assert_eq!(of_name("^a(?!b)", "/"), None);
        assert_eq!(of_name(r"(^|\.)config", "/up/"), None);
        // Only the first repetition of the group is at the anchor.
        assert_eq!(of_name("^(a|^b)+$", "/"), None);
    }
}
