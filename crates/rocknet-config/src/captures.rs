//! Captures: placeholders in the target of a redirect or rewrite for the texts that its conditions matched.
//!
//! `{*}` stands for the text that the first `*` of a path pattern matched, as in the redirect `"/old/*" = "/new/{*}"`.
//! `{1}` stands for a group of the regular expression of the path, and `{0}` for all of its match. `{name}` stands for
//! a named group of any condition.

use crate::model::{Conditions, Pattern, RegexPattern, ValuePattern};

/// Maximum number of captures in one target. Each text can be as long as a request head, so this bounds the target.
pub const MAX_CAPTURES: usize = 9;

/// A capture in a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capture {
    /// Text of the first `*`.
    Star,
    /// Text of a group of the path's regular expression, by number; 0 stands for the whole match.
    Group(usize),
    /// Text of a named group, by its position in [`CaptureNames::names`].
    Name(usize),
}

/// Part of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetPart<'t> {
    /// Text, which may have other placeholders.
    Text(&'t str),
    /// A capture.
    Capture(Capture),
}

/// Captures that the conditions of a redirect or rule provide.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaptureNames {
    has_star: bool,
    /// Number of groups that every path pattern has; `None` without patterns, or if one is not a regular expression.
    group_count: Option<usize>,
    names: Vec<String>,
}

impl CaptureNames {
    /// Returns the captures of one pattern.
    pub fn of_pattern(pattern: &Pattern) -> CaptureNames {
        CaptureNames::of_rule(&Conditions {
            paths: vec![pattern.clone()],
            ..Conditions::default()
        })
    }

    /// Returns the captures of a rule. Without `path`, the star stands for the path after its first slash.
    pub fn of_rule(when: &Conditions) -> CaptureNames {
        let of_path = |pattern: &Pattern| match pattern {
            Pattern::Regex(regex) => Some(regex.group_count()),
            _ => None,
        };
        let groups: Vec<_> = when.paths.iter().map(of_path).collect();
        let group_counts: Option<Vec<usize>> = groups.iter().copied().collect();
        let has_star = |pattern: &Pattern| !matches!(pattern, Pattern::Exact(_) | Pattern::Regex(_));
        let values = [&when.headers, &when.cookies, &when.query];
        let of_values = values.into_iter().flatten().filter_map(|(_, pattern)| match pattern {
            ValuePattern::Regex(regex) => Some(regex),
            ValuePattern::Wildcard(_) => None,
        });
        let of_paths = when.paths.iter().filter_map(|pattern| match pattern {
            Pattern::Regex(regex) => Some(regex),
            _ => None,
        });
        let mut names: Vec<String> = Vec::new();
        for (_, name) in of_paths
            .chain(&when.host_regexes)
            .chain(of_values)
            .flat_map(RegexPattern::names)
        {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        CaptureNames {
            has_star: when.paths.iter().all(has_star),
            group_count: group_counts.and_then(|counts| counts.into_iter().min()),
            names,
        }
    }

    /// Returns the names of groups, in the order of the conditions.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Splits a target into texts and captures.
    pub fn split<'t>(&self, target: &'t str) -> Vec<TargetPart<'t>> {
        let (mut parts, mut text_start, mut at) = (Vec::new(), 0, 0);
        while let Some(brace) = target[at..].find('{').map(|found| at + found) {
            let inner = target[brace + 1..].split('}').next().unwrap_or_default();
            let end = brace + 1 + inner.len();
            // `{{name}}` stands for the text `{name}`.
            let is_text =
                !target[end..].starts_with('}') || target[..brace].ends_with('{') && target[end..].starts_with("}}");
            match self.capture(inner).filter(|_| !is_text) {
                Some(capture) => {
                    if text_start < brace {
                        parts.push(TargetPart::Text(&target[text_start..brace]));
                    }
                    parts.push(TargetPart::Capture(capture));
                    (text_start, at) = (end + 1, end + 1);
                }
                None => at = brace + 1,
            }
        }
        if text_start < target.len() {
            parts.push(TargetPart::Text(&target[text_start..]));
        }
        parts
    }

    /// Returns the capture that a text in braces stands for; `None` for another text. `*` and numbers of one or two
    /// digits are captures even if the conditions do not provide them.
    fn capture(&self, name: &str) -> Option<Capture> {
        if name == "*" {
            return Some(Capture::Star);
        }
        let is_number = (1..=2).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_digit());
        if is_number {
            return name.parse().ok().map(Capture::Group);
        }
        self.names.iter().position(|known| known == name).map(Capture::Name)
    }

    /// Returns message and help if a target contains a capture that the conditions do not provide, or too many.
    pub fn error(&self, target: &str) -> Option<(String, String)> {
        let captures = self.split(target).into_iter().filter_map(|part| match part {
            TargetPart::Capture(capture) => Some(capture),
            TargetPart::Text(_) => None,
        });
        let captures: Vec<Capture> = captures.collect();
        if captures.len() > MAX_CAPTURES {
            let message = format!("contains more than {MAX_CAPTURES} captures");
            return Some((message, "write fewer, each for a longer text".to_owned()));
        }
        captures
            .into_iter()
            .find_map(|capture| match (capture, self.group_count) {
                (Capture::Star, _) if self.has_star => None,
                (Capture::Star, Some(_)) => Some((
                    "contains `{*}`, but `path` is a regular expression".to_owned(),
                    "write {1} for its first group, {0} for all of its match".to_owned(),
                )),
                (Capture::Star, None) => Some((
                    "contains `{*}`, but the path pattern has no `*`".to_owned(),
                    "end the pattern in `/*`".to_owned(),
                )),
                (Capture::Group(number), Some(count)) if number <= count => None,
                (Capture::Group(number), Some(count)) => Some((
                    match count {
                        0 => format!("contains `{{{number}}}`, but the expression of the path has no group"),
                        _ => format!(
                            "contains `{{{number}}}`, but the last group of the path's expression is {{{count}}}"
                        ),
                    },
                    "put the part of the path in parentheses".to_owned(),
                )),
                (Capture::Group(number), None) => Some((
                    format!("contains `{{{number}}}`, but `path` is no regular expression"),
                    "write one, such as \"~^/old/(.*)$\"".to_owned(),
                )),
                (Capture::Name(_), _) => None,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regex(text: &str) -> RegexPattern {
        RegexPattern::new(text, false).expect("valid")
    }

    #[test]
    fn targets_are_split_at_their_captures() {
        let when = Conditions {
            paths: vec![Pattern::Regex(regex("^/(?<year>\\d+)/(.*)"))],
            query: vec![("id".to_owned(), ValuePattern::Regex(regex("^(?<id>\\d+)$")))],
            ..Conditions::default()
        };
        let names = CaptureNames::of_rule(&when);
        assert_eq!(names.names(), ["year", "id"]);
        assert_eq!(
            names.split("/{year}-{2}/{host}{{id}?{{id}}{id}{"),
            [
                TargetPart::Text("/"),
                TargetPart::Capture(Capture::Name(0)),
                TargetPart::Text("-"),
                TargetPart::Capture(Capture::Group(2)),
                TargetPart::Text("/{host}{"),
                TargetPart::Capture(Capture::Name(1)),
                TargetPart::Text("?{{id}}"),
                TargetPart::Capture(Capture::Name(1)),
                TargetPart::Text("{"),
            ]
        );
        for (target, expected) in [
            ("/{0}/{1}/{2}/{id}", None),
            ("/{3}", Some("is {2}")),
            ("/{*}", Some("regular expression")),
            ("/{1}{1}{1}{1}{1}{1}{1}{1}{1}{1}", Some("more than 9")),
        ] {
            let error = names.error(target);
            assert_eq!(error.is_some(), expected.is_some(), "{target}: {error:?}");
            assert!(error.is_none_or(|(message, _)| message.contains(expected.unwrap_or_default())));
        }
    }

    #[test]
    fn patterns_without_a_group_provide_a_star_or_nothing() {
        for (pattern, star, group) in [
            (Pattern::Prefix("/a/".to_owned()), true, false),
            (Pattern::Exact("/a".to_owned()), false, false),
            (Pattern::Regex(regex("a")), false, true),
        ] {
            let names = CaptureNames::of_pattern(&pattern);
            assert_eq!(names.error("/{*}").is_none(), star, "{pattern}");
            assert_eq!(names.error("/{0}").is_none(), group, "{pattern}");
        }
        assert!(CaptureNames::of_rule(&Conditions::default()).error("/{*}").is_none());
    }
}
