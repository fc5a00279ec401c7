//! Translates regular expressions of other servers to RockNet patterns, if patterns can express them.

use rocknet_config::model::RegexPattern;

/// Maximum number of patterns of one expression, as in the check of the configuration.
const MAX_PATTERNS: usize = 64;

/// Patterns that match the paths of an expression, apart from `difference`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathPatterns {
    pub patterns: Vec<String>,
    /// Patterns for longer names that begin with the path, such as `/api*` for `^/api`. They are not in `patterns`,
    /// although the expression matched these names, too. The caller adds them for a restriction. No pattern stands for
    /// the paths below them, such as `/api2/x`.
    pub beginnings: Vec<String>,
    /// Difference between the paths that the patterns and the expression match, if there is one.
    pub difference: Option<&'static str>,
}

/// Returns true if an expression may have alternatives outside of groups. A `|` in a class counts as an alternative.
pub(crate) fn has_alternative(expression: &str) -> bool {
    open_groups(expression).is_none()
}

/// Returns true if the beginning of an expression may have alternatives outside of complete groups: `a|b` or `(a|b`,
/// but not `(a|b)c`.
pub(crate) fn may_have_alternatives(beginning: &str) -> bool {
    beginning.contains('|') && (beginning.contains('[') || open_groups(beginning) != Some(0))
}

/// Returns the number of groups that are open at the end of a text; `None` if a `|` is in none of them.
fn open_groups(text: &str) -> Option<i32> {
    let mut depth = 0_i32;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '(' => depth += 1,
            ')' => depth -= 1,
            '|' if depth <= 0 => return None,
            _ => {}
        }
    }
    Some(depth)
}

/// Returns the patterns of a regular expression; `None` if patterns cannot express it.
pub(crate) fn patterns(expression: &str) -> Option<PathPatterns> {
    let (anchored, rest) = match expression.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, expression),
    };
    // True if the expression is anchored at the end of the path.
    let ends = rest.ends_with('$') && !rest.ends_with("\\$");
    let rest = if ends { &rest[..rest.len() - 1] } else { rest };
    // `.*` matches any ending, with or without `$` after it. `(/|$)` stands for a folder and everything below it.
    let (rest, ends) = match rest.strip_suffix(".*").or_else(|| rest.strip_suffix("(.*)")) {
        Some(rest) if !rest.ends_with('\\') => (rest, false),
        _ => (rest, ends),
    };
    let (rest, is_folder) = match rest.strip_suffix("(/|$)").or_else(|| rest.strip_suffix("(?:/|$)")) {
        // Before another `$`, nothing may follow the slash.
        Some(rest) if ends => (&*format!("{rest}/?"), false),
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    // `/(a|b)/.*\.php$`: files with an ending in folders, at any depth.
    if ends && let Some((folder, ending)) = rest.split_once("/.*") {
        return in_folders(folder, ending, anchored);
    }
    let texts = expand(rest)?;
    let mut all = Vec::new();
    let mut beginnings = Vec::new();
    let mut difference = None;
    for text in texts {
        match (anchored, ends) {
            // RockNet's checks refuse a pattern with more than eight `*`, or with two in a row.
            _ if text.matches('*').count() > 8 || text.contains("**") => return None,
            // RockNet reads a pattern that ends in `/*` as a prefix, and another `*` would make it one level only.
            (_, true) if text.ends_with("/*") => return None,
            (true, false) if text.contains('*') => return None,
            (true, true) if text.starts_with('/') => all.push(text),
            (true, false) if is_folder && text.starts_with('/') => {
                all.push(text.clone());
                all.push(format!("{text}/*"));
            }
            (true, false) if text.ends_with('/') && text.starts_with('/') => all.push(format!("{text}*")),
            // A prefix that ends within a name, such as `^/api`.
            (true, false) if text.starts_with('/') => {
                difference = Some("the expression also matched names that only begin with the path");
                all.push(text.clone());
                all.push(format!("{text}/*"));
                beginnings.push(format!("{text}*"));
            }
            (false, true) if !text.is_empty() && !text.starts_with('*') => all.push(format!("*{text}")),
            _ => return None,
        }
    }
    (!all.is_empty() && all.len() <= MAX_PATTERNS).then_some(PathPatterns {
        patterns: all,
        beginnings,
        difference,
    })
}

/// Number of patterns for files in a folder and below it: one for the folder itself, and one for each of the six
/// levels below. A pattern has at most eight `*`: six for the levels, one for the name, and one before the folder.
const MAX_FOLDERS: usize = 7;

/// Returns the patterns of files with an ending in folders: at the root if `anchored`, otherwise anywhere. Returns
/// `None` if there are too many patterns, or if a folder or ending is not plain text.
fn in_folders(folder: &str, ending: &str, anchored: bool) -> Option<PathPatterns> {
    let (folders, endings) = (expand(folder)?, expand(ending)?);
    let is_plain = |text: &String| !text.contains('*');
    let is_folder = |text: &String| text.starts_with('/') && text.len() > 1;
    let count = folders.len() * endings.len();
    let is_bounded = count > 0 && count <= MAX_PATTERNS / MAX_FOLDERS;
    if !folders.iter().chain(&endings).all(is_plain) || !folders.iter().all(is_folder) || !is_bounded {
        return None;
    }
    let start = if anchored { "" } else { "*" };
    let pairs = folders
        .iter()
        .flat_map(|folder| endings.iter().map(move |ending| (folder, ending)));
    Some(PathPatterns {
        patterns: pairs
            .flat_map(|(folder, ending)| below(&format!("{start}{folder}"), &format!("*{ending}")))
            .collect(),
        beginnings: Vec::new(),
        difference: Some("the patterns match files in the folder, and up to six folders below it"),
    })
}

/// Returns the patterns for files called `name` in a folder, and up to six levels below it.
fn below(folder: &str, name: &str) -> Vec<String> {
    (0..MAX_FOLDERS)
        .map(|depth| format!("{folder}/{}{name}", "*/".repeat(depth)))
        .collect()
}

/// Stands for `[^/]+` while an expression is expanded. An expression that contains this character is not expanded.
const NAME: char = '\u{1}';

/// Expands literals, escapes, groups of alternatives, optional parts, `[^/]+` and `[^/]*` to texts with `*`. Returns
/// `None` for any other syntax, and if there would be more than [`MAX_PATTERNS`] texts. Also returns `None` for `[^/]+`
/// that is not a whole name before a slash, because `*` matches an empty text, too.
fn expand(expression: &str) -> Option<Vec<String>> {
    let with_star = |text: String| {
        let star = text.replace(&format!("/{NAME}/"), "/*/");
        // Of two names in a row, the first replacement has taken the slash between them.
        let star = star.replace(&format!("/{NAME}/"), "/*/");
        (!star.contains(NAME)).then_some(star)
    };
    expanded(expression)?.into_iter().map(with_star).collect()
}

/// Does the work of [`expand`], with [`NAME`] for `[^/]+`.
fn expanded(expression: &str) -> Option<Vec<String>> {
    let chars: Vec<char> = expression.chars().collect();
    let mut all = vec![String::new()];
    let mut at = 0;
    while at < chars.len() {
        let (parts, mut next) = match chars[at] {
            '(' => {
                let close = at + chars[at..].iter().position(|c| *c == ')')?;
                let mut inner: String = chars[at + 1..close].iter().collect();
                if let Some(rest) = inner.strip_prefix("?:") {
                    inner = rest.to_owned();
                }
                let parts: Option<Vec<Vec<String>>> = inner.split('|').map(expanded).collect();
                (parts?.concat(), close + 1)
            }
            '[' => {
                let close = at + chars[at..].iter().position(|c| *c == ']')?;
                let class: String = chars[at..=close].iter().collect();
                let text = match chars.get(close + 1)? {
                    '+' if class == "[^/]" => NAME,
                    '*' if class == "[^/]" => '*',
                    _ => return None,
                };
                (vec![text.to_string()], close + 2)
            }
            '\\' => {
                let c = *chars.get(at + 1)?;
                // A pattern has no form for the character `*` itself.
                if c.is_ascii_alphanumeric() || c == '*' {
                    return None;
                }
                (vec![c.to_string()], at + 2)
            }
            NAME => return None,
            '.' | '*' | '+' | '?' | '{' | '}' | '|' | '^' | '$' | ')' | ']' => return None,
            c => (vec![c.to_string()], at + 1),
        };
        let mut parts = parts;
        if chars.get(next) == Some(&'?') {
            parts.push(String::new());
            next += 1;
        } else if matches!(chars.get(next), Some('*' | '+' | '{')) {
            return None;
        }
        if all.len() * parts.len() > MAX_PATTERNS {
            return None;
        }
        all = all
            .iter()
            .flat_map(|text| parts.iter().map(move |part| format!("{text}{part}")))
            .collect();
        at = next;
    }
    Some(all)
}

/// Returns the host names of an expression that matches a few names, or all names of a domain: `*.example.com` for
/// `^.+\.example\.com$`. Returns `None` for others.
pub(crate) fn host_names(expression: &str) -> Option<Vec<String>> {
    let rest = expression.strip_prefix('^')?.strip_suffix('$')?;
    let every = [".+\\.", ".*\\.", "(.+)\\.", "(.*)\\.", "[^.]+\\.", "\\w+\\."];
    let (start, rest) = match every.iter().find_map(|every| rest.strip_prefix(every)) {
        Some(rest) => ("*.", rest),
        None => ("", rest),
    };
    let names: Vec<String> = expand(rest)?.into_iter().map(|name| format!("{start}{name}")).collect();
    let is_name = |name: &String| {
        let plain = name.strip_prefix("*.").unwrap_or(name);
        !plain.is_empty() && plain.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-')
    };
    names.iter().all(is_name).then_some(names)
}

/// Patterns and target of a rewrite or redirect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathRewrite {
    pub patterns: Vec<String>,
    pub target: String,
    /// Difference between the paths that the patterns and the expression match, if there is one.
    pub difference: Option<&'static str>,
}

/// Returns the patterns and the target of a rewrite or redirect by regular expression. If no pattern with `*` matches
/// exactly the same paths, the pattern is the expression itself. Returns `None` if RockNet cannot compile the
/// expression. Also returns `None` if the replacement refers to a group that the expression does not have, or with `%1`
/// to a condition of Apache.
pub(crate) fn rewrite(expression: &str, replacement: &str) -> Option<PathRewrite> {
    let found = by_patterns(expression, replacement);
    if found.as_ref().is_some_and(|found| found.difference.is_none()) {
        return found;
    }
    by_regex(expression, replacement, LetterCase::Compared).or(found)
}

/// Does the work of [`rewrite`] for an expression that ignores case.
pub(crate) fn rewrite_ignoring_case(expression: &str, replacement: &str) -> Option<PathRewrite> {
    by_regex(expression, replacement, LetterCase::Ignored)
}

/// Does the work of [`rewrite`] for a proxy, which has a prefix and no expression. A pattern with `*` is preferred,
/// even if it does not match the same paths as the expression.
pub(crate) fn rewrite_of_prefix(expression: &str, replacement: &str) -> Option<PathRewrite> {
    by_patterns(expression, replacement).or_else(|| by_regex(expression, replacement, LetterCase::Compared))
}

/// Treatment of upper and lower case by an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LetterCase {
    Compared,
    Ignored,
}

/// Returns the expression as a pattern, and the target with `{1}` for `$1`.
fn by_regex(expression: &str, replacement: &str, case: LetterCase) -> Option<PathRewrite> {
    let regex = RegexPattern::new(expression, case == LetterCase::Ignored).ok()?;
    let groups = regex.group_count();
    if replacement.contains(['%', '{', '}']) {
        return None;
    }
    let mut parts = replacement.split('$');
    let mut target = parts.next()?.to_owned();
    for part in parts {
        let number = part.chars().next()?.to_digit(10)?;
        if number as usize > groups {
            return None;
        }
        target.push_str(&format!("{{{number}}}{}", &part[1..]));
    }
    // RockNet does not insert captured texts into the host of a redirect.
    let host = target
        .split_once("://")
        .map(|(_, rest)| rest.split('/').next().unwrap_or_default());
    let is_target = host.map_or(target.starts_with('/'), |host| !host.contains('{'));
    is_target.then(|| PathRewrite {
        patterns: vec![regex.to_string()],
        target,
        difference: None,
    })
}

/// Does the work of [`rewrite`] with patterns that have a `*`. `{*}` in the target stands for the group of the
/// expression.
fn by_patterns(expression: &str, replacement: &str) -> Option<PathRewrite> {
    let end_capture = ["(.*)$", "(.*)", "(.+)$"];
    let captured = end_capture.iter().find_map(|end| expression.strip_suffix(end));
    let is_empty_matched = !expression.ends_with("(.+)$");
    let references = replacement.matches('$').count();
    if references == 0 {
        let patterns = match expression {
            // Expressions that match every path.
            "^" | ".*" | "^.*$" | "(.*)" | "^(.*)$" | "^/" | "^(.*)" | "^/.*$" | "^/(.*)$" | "^.*" => {
                vec!["/*".to_owned()]
            }
            _ => {
                patterns(expression)
                    .filter(|found| found.difference.is_none())?
                    .patterns
            }
        };
        return (!replacement.contains('%')).then(|| PathRewrite {
            patterns,
            target: replacement.to_owned(),
            difference: None,
        });
    }
    let start = captured?.strip_prefix('^')?;
    if references != 1 || replacement.contains('%') {
        return None;
    }
    let mut starts = expand(start)?;
    if starts.len() != 1 || start.contains('(') {
        return None;
    }
    // A pattern with two `*` is no prefix.
    let start = starts.pop().filter(|start| !start.contains('*'))?;
    let (before, after) = replacement.split_once("$1")?;
    if after.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    // The group of `^(.*)$` begins with a slash, which `{*}` does not contain.
    let (pattern, before, difference) = match start.as_str() {
        "" => (
            "/*".to_owned(),
            format!("{}/", before.strip_suffix('/').unwrap_or(before)),
            None,
        ),
        start if start.ends_with('/') => {
            let difference = "a path that ends where the group of the expression begins is included, too";
            (
                format!("{start}*"),
                before.to_owned(),
                Some(difference).filter(|_| !is_empty_matched),
            )
        }
        start => (
            format!("{start}/*"),
            format!("{}/", before.strip_suffix('/').unwrap_or(before)),
            Some("only paths below the folder are included, not its own path or longer names that begin with it"),
        ),
    };
    pattern.starts_with('/').then(|| PathRewrite {
        patterns: vec![pattern],
        target: format!("{before}{{*}}{after}"),
        difference,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_become_patterns() {
        // Expression, its patterns (empty if it has none), and true if they match exactly the same paths (ignored
        // without patterns).
        let rows: &[(&str, &[&str], bool)] = &[
            (r"\.php$", &["*.php"], true),
            (r"\.(js|css)$", &["*.js", "*.css"], true),
            (r"\.(jpe?g|png)$", &["*.jpeg", "*.jpg", "*.png"], true),
            (r"\.jpe?g$", &["*.jpeg", "*.jpg"], true),
            (r"^/api/", &["/api/*"], true),
            (r"^/api/.*$", &["/api/*"], true),
            (r"^/api", &["/api", "/api/*"], false),
            (r"^/api(/|$)", &["/api", "/api/*"], true),
            (r"^/api(/|$)$", &["/api/", "/api"], true),
            (r"\.php(?:/|$)$", &["*.php/", "*.php"], true),
            (r"^/(a|b)/", &["/a/*", "/b/*"], true),
            (r"^/u/[^/]+/p$", &["/u/*/p"], true),
            (r"^/u/[^/]*p$", &["/u/*p"], true),
            // A `*` at the end is a prefix, and one elsewhere also matches an empty text within a name.
            (r"^/[^/]+$", &[], true),
            (r"^/pub/[^/]*$", &[], true),
            (r"^/u/[^/]+/p/", &[], true),
            (r"^/u/[^/]*/p(/|$)", &[], true),
            (r"^/[^/]+a$", &[], true),
            (r"^/a[^/]+/b$", &[], true),
            (r"^/u/[^/]+(/p)?$", &[], true),
            (r"^/[^/]+(a|/b)$", &[], true),
            (r"/[^/]+\.php$", &[], true),
            (r"^/u/[^/]+/[^/]+/p$", &["/u/*/*/p"], true),
            (r"^/\*$", &[], true),
            (r"^/exact$", &["/exact"], true),
            (r"^/[0-9]+$", &[], true),
            (r"^/(?<id>x)$", &[], true),
            (r"/\.", &[], true),
            ("(", &[], true),
            ("\\", &[], true),
        ];
        for (expression, expected, is_exact) in rows {
            let found = patterns(expression);
            let texts: Vec<&str> = found
                .iter()
                .flat_map(|f| f.patterns.iter().map(String::as_str))
                .collect();
            assert_eq!(texts, *expected, "{expression}");
            assert!(
                found.is_none_or(|found| found.difference.is_none() == *is_exact),
                "{expression}"
            );
        }
    }

    #[test]
    fn files_in_folders_are_found_in_folders_below() {
        for (expression, pattern) in [
            (r"/(?:up|files)/.*\.php$", "*/files/*/*.php"),
            (r"^/media/.*\.(php|phar)$", "/media/*/*/*.phar"),
        ] {
            let found = patterns(expression).unwrap();
            assert!(found.patterns.iter().any(|known| known == pattern), "{found:?}");
            // Two folders or endings, with seven patterns each.
            assert!(found.difference.is_some() && found.patterns.len() == 14, "{found:?}");
        }
        // Twelve pairs with seven patterns each are more than `MAX_PATTERNS`.
        assert_eq!(patterns(r"/(?:a|b|c|d)/.*\.(php|phar|phtml)$"), None);
    }

    #[test]
    fn expressions_of_hosts_become_names() {
        let names = |expression: &str| host_names(expression).map(|names| names.join(" "));
        assert_eq!(names(r"^(www\.)?a\.test$").as_deref(), Some("www.a.test a.test"));
        assert_eq!(names(r"^.+\.a\.test$").as_deref(), Some("*.a.test"));
        for expression in [r"^www\d+\.a\.test$", r"a\.test$", r"^[^/]+$", r"^(?<sub>.+)\.a\.test$"] {
            assert_eq!(names(expression), None, "{expression}");
        }
    }

    #[test]
    fn rewrites_become_targets() {
        let rows = [
            ("^/old/(.*)$", "/new/$1", Some(("/old/*", "/new/{*}"))),
            ("^/old(.*)$", "/new$1", Some(("~^/old(.*)$", "/new{1}"))),
            ("^/old/(.+)$", "/new/$1", Some(("~^/old/(.+)$", "/new/{1}"))),
            ("^/old(.*)$", "https://a.test$1", Some(("/old/*", "https://a.test/{*}"))),
            ("^/(.+)$", "https://a.test/$1", Some(("~^/(.+)$", "https://a.test/{1}"))),
            ("^/old$", "/new", Some(("/old", "/new"))),
            ("^/u/[^/]+/(.*)$", "/x/$1", Some(("~^/u/[^/]+/(.*)$", "/x/{1}"))),
            ("^(.*)$", "https://a.test$1", Some(("/*", "https://a.test/{*}"))),
            ("^/(.*)$", "https://a.test/$1", Some(("/*", "https://a.test/{*}"))),
            ("^/a/([0-9]+)$", "/b/$1", Some(("~^/a/([0-9]+)$", "/b/{1}"))),
            ("^/a/(.*)/(.*)$", "/b/$2/$1", Some(("~^/a/(.*)/(.*)$", "/b/{2}/{1}"))),
            ("^/api", "/v2", Some(("~^/api", "/v2"))),
            ("^/a/([0-9]+)$", "/b/$2", None),
            ("^/a/(?!b)", "/c", None),
            ("^/([a-z]+)/x$", "https://$1.test/", None),
            ("^/a$", "/b?x=%1", None),
        ];
        for (expression, replacement, expected) in rows {
            let found = rewrite(expression, replacement);
            let found = found
                .as_ref()
                .map(|found| (found.patterns[0].as_str(), found.target.as_str()));
            assert_eq!(found, expected, "{expression}");
        }
    }
}
