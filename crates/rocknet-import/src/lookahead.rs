//! Replaces a negative look-ahead, which RockNet's expressions do not have.

use crate::condition::escaped;

/// Maximum length of a look-ahead, in bytes. The expression in its place is several times as long.
const MAX_LENGTH: usize = 256;

/// Returns an equivalent of an expression that ends in a negative look-ahead for constant texts, such as
/// `/\.(?!well-known)`. Returns `None` for other expressions.
pub(crate) fn expanded(expression: &str) -> Option<String> {
    let (before, rest) = expression.split_once("(?!")?;
    let (inner, after) = rest.split_once(')')?;
    // A look-ahead consumes no characters, but its equivalent does. So the part after it must match every text.
    let is_end = matches!(after, "" | ".*" | ".*$");
    if !is_end || inner.len() > MAX_LENGTH {
        return None;
    }
    let words: Option<Vec<Vec<char>>> = inner.split('|').map(literal).collect();
    let words = words.filter(|words| words.iter().all(|word| !word.is_empty()))?;
    let words: Vec<&[char]> = words.iter().map(Vec::as_slice).collect();
    Some(format!("{before}{}", none_of(&words)))
}

/// Returns the text that an expression without operators matches; `None` for other expressions.
fn literal(expression: &str) -> Option<Vec<char>> {
    let mut text = Vec::new();
    let mut chars = expression.chars();
    while let Some(c) = chars.next() {
        text.push(match c {
            '\\' => chars.next().filter(|c| !c.is_ascii_alphanumeric())?,
            '.' | '*' | '+' | '?' | '{' | '}' | '^' | '$' | '(' | '[' | ']' => return None,
            c => c,
        });
    }
    Some(text)
}

/// Returns an expression for texts that begin with none of these words: for `ab` and `ac`, `(?:$|[^a]|a(?:$|[^bc]))`.
fn none_of(words: &[&[char]]) -> String {
    let mut firsts: Vec<char> = words.iter().filter_map(|word| word.first().copied()).collect();
    firsts.sort_unstable();
    firsts.dedup();
    let class: String = firsts.iter().map(|c| escaped(&c.to_string())).collect();
    let mut out = format!("(?:$|[^{class}]");
    for first in firsts {
        let rests: Vec<&[char]> = words
            .iter()
            .filter_map(|word| word.split_first())
            .filter(|(c, _)| **c == first)
            .map(|(_, rest)| rest)
            .collect();
        // A text that begins with a whole word is not matched.
        if rests.iter().all(|rest| !rest.is_empty()) {
            out.push_str(&format!("|{}{}", escaped(&first.to_string()), none_of(&rests)));
        }
    }
    out.push(')');
    out
}

#[cfg(test)]
mod tests {
    use rocknet_config::model::RegexPattern;

    use super::*;

    #[test]
    fn expanded_expressions_match_the_same_texts() {
        for (expression, matched, others) in [
            (
                r"/\.(?!well-known)",
                &["/.git", "/.", "/.well", "/.w", "/a/.wellknown", "/.well-known/.git"][..],
                &["/.well-known", "/.well-known/x", "/a"][..],
            ),
            (
                r"^/(?!open|opus|a\.b/).*$",
                &["/", "/op", "/a.b", "/x/open"],
                &["/open", "/opus1", "/a.b/"],
            ),
            (r"^/(?!ab|a)", &["/", "/b"], &["/a", "/ab", "/ac"]),
        ] {
            let regex = RegexPattern::new(&expanded(expression).unwrap(), false).unwrap();
            for text in matched {
                assert!(regex.matches(text.as_bytes()), "{expression} {text}: {regex:?}");
            }
            for text in others {
                assert!(!regex.matches(text.as_bytes()), "{expression} {text}: {regex:?}");
            }
        }
        for expression in [
            r"/\.",
            r"/(?!a)b",
            r"/(?!a+)",
            r"/(?!\w)",
            r"/(?!)",
            r"/(?!a|)",
            r"/((?!a))",
            r"(?!a(b))",
        ] {
            assert_eq!(expanded(expression), None, "{expression}");
        }
    }
}
