//! Checks messages: string literals of shipped code that are prose, such as log lines, errors and console output.

use super::super::token::{Token, TokenKind};
use super::finding::{Finding, Rule};
use super::idioms;
use super::sentences::{Sentence, of_text};
use super::words::Words;

/// Minimum words of a literal that is prose. Shorter literals are names, keys and parts of formats.
const MIN_WORDS: usize = 3;

/// Returns the violations in the literals of `code`. The rule covers all literals, not only those of log macros,
/// because a message often passes through a variable before it is logged.
pub fn check(words: &Words, code: &[Token<'_>]) -> Vec<Finding> {
    let mut found = Vec::new();
    for (at, token) in code.iter().enumerate() {
        // The comment rules cover `#[doc = "…"]`.
        let is_doc = at > 1 && code[at - 1].is("=") && code[at - 2].is("doc");
        if let Some(text) = text(token).filter(|_| !is_doc) {
            let sentences = of_text(&text, token.line);
            if sentences.iter().map(Sentence::len).sum::<usize>() >= MIN_WORDS {
                let checked = sentences
                    .iter()
                    .flat_map(|one| idioms::check(words, Rule::Message, one));
                found.extend(checked);
            }
        }
    }
    found
}

/// Returns the text of a string literal, with `{…}` in backticks, so that the names in it count as code. Returns `None`
/// for a byte string, because it is protocol data.
fn text(token: &Token<'_>) -> Option<String> {
    let literal = Some(token.text).filter(|_| token.kind == TokenKind::Literal)?;
    let is_raw = literal.starts_with('r');
    let body = literal.trim_start_matches(['r', '#']).trim_end_matches('#');
    let body = body.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::with_capacity(body.len());
    let mut letters = body.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if !is_raw => match letters.next() {
                // A blank keeps the line numbers of the text equal to those of the file.
                Some('n' | 'r' | 't') => text.push(' '),
                Some(escaped) => text.push(escaped),
                None => {}
            },
            '{' if letters.peek() != Some(&'{') => text.push('`'),
            '}' if letters.peek() != Some(&'}') => text.push('`'),
            _ => text.push(letter),
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::super::super::shipped::shipped;
    use super::super::super::token::tokens;
    use super::*;

    #[test]
    fn idioms_in_messages_are_violations() {
        let words = Words::new().unwrap();
        let rows = [
            ("error!(\"the worker was told\");", 1),
            ("error!(\"the worker was stopped\");", 0),
            ("tracing::warn!(cause = %cause, \"{name} was told\");", 1),
            ("f(\"told\", \"for ever\");", 0),
            ("return Err(\"the client said no\".into());", 1),
            ("#[error(\"nobody listens at {address}\")] struct A;", 1),
            ("println!(\"{told} of {said} and {heard}\");", 0),
            ("const A: &str = r#\"the worker is told\"#;", 1),
            ("const A: &str = \"the key `told` is unknown\";", 0),
            ("f(\"the \\\"told\\\" key is here\");", 0),
            ("f(b\"the worker was told\");", 0),
            ("f(\"one line\\nof what was said\");", 1),
            ("#[doc = \"the worker was told\"] struct A;", 0),
            ("#[test] fn f() { g(\"the worker was told\") }", 0),
        ];
        for (text, expected) in rows {
            let found = check(&words, &shipped(&tokens(text)));
            assert_eq!(found.len(), expected, "{text}: {found:?}");
        }
    }

    #[test]
    fn a_finding_has_the_line_of_its_words() {
        let words = Words::new().unwrap();
        let found = check(&words, &tokens("f(\n\"the worker \\\n was told\");"));
        assert_eq!(found[0].line, 3);
    }
}
