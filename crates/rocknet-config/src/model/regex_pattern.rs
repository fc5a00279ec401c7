//! Regular expressions of paths and of values, compiled when the configuration is loaded.

use std::cmp::{Ordering, Reverse};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::ast::ErrorKind as Unparsable;

use crate::template::{Scope, Template};

/// Maximum length of an expression in bytes. It bounds the parsed expression, which exists before
/// [`MAX_COMPILED_BYTES`] applies.
const MAX_BYTES: usize = 8 * 1024;
/// Maximum size of a compiled expression in bytes. The time of a match grows with the size times the length of the
/// text, so this bound keeps expressions such as `(a{1000}){1000}` away from requests.
const MAX_COMPILED_BYTES: usize = 256 * 1024;
/// Maximum memory of the automaton that a thread builds while it matches, in bytes. A match that needs more is slower.
const MAX_AUTOMATON_BYTES: usize = 256 * 1024;
/// Maximum depth of nested groups, so that code that recurses over the parsed expression does not exhaust the stack.
const MAX_DEPTH: u32 = 50;

/// Regular expression, written as `~expression`, or as `~*expression` if the case of letters is ignored.
///
/// Matching takes time linear in the length of the text. As in nginx and Apache, it finds the expression anywhere in
/// the text unless `^` and `$` anchor it, and classes such as `\w` consist of ASCII characters.
#[derive(Clone)]
pub struct RegexPattern {
    text: Box<str>,
    ignores_case: bool,
    compiled: Regex,
}

/// Reason why a text is not a regular expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegexError {
    /// Part that is wrong, and why.
    pub message: String,
    /// Remedy.
    pub help: String,
}

impl RegexPattern {
    /// Parses and compiles the text after `~`; `None` if the text does not begin with `~`.
    pub fn parse(written: &str) -> Option<Result<RegexPattern, RegexError>> {
        let rest = written.strip_prefix('~')?;
        Some(match rest.strip_prefix('*') {
            Some(text) => RegexPattern::new(text.trim_start(), true),
            None => RegexPattern::new(rest.trim_start(), false),
        })
    }

    /// Compiles an expression.
    ///
    /// # Errors
    /// Fails for an expression that is invalid or too large, and for a group with the name of a placeholder.
    pub fn new(text: &str, ignores_case: bool) -> Result<RegexPattern, RegexError> {
        let error = |message: String, help: &str| {
            let help = help.to_owned();
            Err(RegexError { message, help })
        };
        if text.is_empty() {
            return error("has no text after `~`".to_owned(), "write \"~^/old/\"");
        }
        if text.len() > MAX_BYTES {
            return error(format!("is longer than {MAX_BYTES} bytes"), "write several rules");
        }
        // The expression is first parsed alone, because an error of `Regex` states its position only in its message.
        let parsed = ParserBuilder::new()
            .unicode(false)
            .utf8(false)
            .nest_limit(MAX_DEPTH)
            .build()
            .parse(text);
        if let Err(invalid) = parsed {
            return Err(RegexError::of(&invalid, text));
        }
        let compiled = RegexBuilder::new(text)
            .unicode(false)
            .case_insensitive(ignores_case)
            .nest_limit(MAX_DEPTH)
            .size_limit(MAX_COMPILED_BYTES)
            .dfa_size_limit(MAX_AUTOMATON_BYTES)
            .build();
        match compiled {
            Ok(compiled) => {
                // `{name}` is a placeholder if it parses as a template that is no constant text. The scope of the
                // access log has the most placeholders.
                let is_taken = |name: &&str| {
                    Template::parse(&format!("{{{name}}}"), Scope::Log).is_ok_and(|it| it.as_constant().is_none())
                };
                if let Some(name) = compiled.capture_names().flatten().find(is_taken) {
                    let message = format!("has a group `{name}`, which is the name of a placeholder");
                    return error(message, "choose another name");
                }
                Ok(RegexPattern {
                    text: text.into(),
                    ignores_case,
                    compiled,
                })
            }
            // The syntax is valid, so the compiled expression is too large.
            Err(_) => error(
                format!("needs more than {} KiB", MAX_COMPILED_BYTES / 1024),
                "write smaller numbers of repetitions, such as {100} in place of {1000}, or several rules",
            ),
        }
    }

    /// Returns true if a text contains a match.
    pub fn matches(&self, text: &[u8]) -> bool {
        self.compiled.is_match(text)
    }

    /// Returns the ranges of the whole match and of each group; `None` if the text contains no match. A group that took
    /// no part in the match has no range.
    pub fn captures(&self, text: &[u8]) -> Option<Vec<Option<Range<usize>>>> {
        let captures = self.compiled.captures(text)?;
        Some(captures.iter().map(|group| Some(group?.range())).collect())
    }

    /// Returns the number of groups, without the whole match.
    pub fn group_count(&self) -> usize {
        self.compiled.captures_len().saturating_sub(1)
    }

    /// Returns the named groups, each with its number.
    pub fn names(&self) -> impl Iterator<Item = (usize, &str)> {
        let names = self.compiled.capture_names().enumerate();
        names.filter_map(|(number, name)| Some((number, name?)))
    }

    /// Returns the key of the order: the longer of two expressions comes first.
    fn key(&self) -> (Reverse<usize>, &str, bool) {
        (Reverse(self.text.len()), &self.text, self.ignores_case)
    }
}

impl RegexError {
    fn of(error: &regex_syntax::Error, text: &str) -> RegexError {
        let (start, what, help) = match error {
            regex_syntax::Error::Parse(error) => (
                error.span().start.offset,
                error.kind().to_string(),
                match error.kind() {
                    Unparsable::UnsupportedLookAround => "write the condition that must not hold as `unless`",
                    Unparsable::UnsupportedBackreference => "compare the parts in the application",
                    Unparsable::GroupUnclosed | Unparsable::GroupUnopened => {
                        "write a parenthesis that belongs to the text as \\( or \\)"
                    }
                    Unparsable::RepetitionMissing => "write a character that belongs to the text as \\*, \\+ or \\?",
                    _ => "write it as in the documentation of Rust's crate `regex`",
                },
            ),
            regex_syntax::Error::Translate(error) => (
                error.span().start.offset,
                error.kind().to_string(),
                "put (?u) before characters in brackets that are not ASCII",
            ),
            _ => (
                0,
                error.to_string(),
                "write it as in the documentation of Rust's crate `regex`",
            ),
        };
        let rest: String = text
            .get(start..)
            .unwrap_or_default()
            .chars()
            .take(SHOWN_CHARS)
            .collect();
        let position = text.get(..start).map_or(0, |before| before.chars().count()) + 1;
        RegexError {
            message: match rest.is_empty() {
                true => format!("is invalid at its end: {what}"),
                false => format!("is invalid at character {position}, `{rest}`: {what}"),
            },
            help: help.to_owned(),
        }
    }
}

/// Number of characters that an error shows of the text at its position.
const SHOWN_CHARS: usize = 12;

/// Writes the expression as in the configuration.
impl fmt::Display for RegexPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.ignores_case { "~*" } else { "~" };
        write!(f, "{mark}{}", self.text)
    }
}

impl fmt::Debug for RegexPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RegexPattern({self})")
    }
}

impl PartialEq for RegexPattern {
    fn eq(&self, other: &RegexPattern) -> bool {
        self.key() == other.key()
    }
}

impl Eq for RegexPattern {}

impl Hash for RegexPattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl PartialOrd for RegexPattern {
    fn partial_cmp(&self, other: &RegexPattern) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RegexPattern {
    fn cmp(&self, other: &RegexPattern) -> Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_match_as_in_nginx() {
        for (written, text, expected) in [
            ("~^/a/(\\d+)$", "/a/12", true),
            ("~^/a/(\\d+)$", "/a/12x", false),
            ("~\\.php$", "/a/b.php", true),
            ("~\\.php$", "/a/b.PHP", false),
            ("~*\\.php$", "/a/b.PHP", true),
            ("~* \\.php$", "/a/b.PHP", true),
            ("~ü", "/tür", true),
            ("~^/.{2}$", "/ü", true),
            ("~^\\d$", "٣", false),
            ("~(?u)[üö]", "/öl", true),
        ] {
            let regex = RegexPattern::parse(written).expect("begins with `~`").expect("valid");
            assert_eq!(regex.matches(text.as_bytes()), expected, "{written} {text}");
        }
        assert!(RegexPattern::parse("/a").is_none());
        let regex = RegexPattern::new("/(?<year>\\d+)(-(\\d+))?", false).expect("valid");
        assert_eq!(regex.captures(b"/2024"), Some(vec![Some(0..5), Some(1..5), None, None]));
        assert_eq!(
            (regex.group_count(), regex.names().collect::<Vec<_>>()),
            (3, vec![(1, "year")])
        );
    }

    #[test]
    fn invalid_and_large_expressions_are_refused() {
        let long = "a".repeat(MAX_BYTES + 1);
        let deep = format!("{}a{}", "(".repeat(60), ")".repeat(60));
        for (text, expected) in [
            ("", "no text"),
            ("a(b", "at character 2, `(b`: unclosed group"),
            ("a)", "at character 2"),
            ("a(?!b)", "look-around"),
            ("(a)\\1", "backreferences"),
            ("(a{1000}){1000}", "needs more than 256 KiB"),
            ("[ü]", "Unicode not allowed"),
            ("/(?<host>a)", "a group `host`"),
            (&long, "longer than 8192 bytes"),
            (&deep, "at character"),
        ] {
            let error = RegexPattern::new(text, false).expect_err(text);
            assert!(error.message.contains(expected), "{text}: {error:?}");
        }
    }

    #[test]
    fn longer_expressions_come_first() {
        let regex = |text| RegexPattern::new(text, false).expect("valid");
        assert!(regex("aaa") < regex("b") && regex("a") < regex("b"));
        assert_ne!(regex("a"), RegexPattern::new("a", true).expect("valid"));
    }
}
