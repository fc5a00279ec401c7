//! Checks the openings of doc comments, which begin with a noun or a verb in the third person, and of later sentences.

use super::blocks::Block;
use super::finding::{Finding, Rule};
use super::sentences::Sentence;
use super::words::Words;

/// Returns the violation of a doc comment whose first sentence begins with a listed word.
pub fn check(words: &Words, block: &Block, sentences: &[Sentence]) -> Option<Finding> {
    let first = sentences.first().filter(|_| block.is_doc)?;
    let pattern = words.openings.iter().find(|pattern| pattern.begins(first))?;
    let begin: Vec<&str> = first
        .iter()
        .take(pattern.len())
        .map(|word| word.text.as_str())
        .collect();
    Some(Finding {
        rule: Rule::Opening,
        line: first.first()?.line,
        text: format!(
            "a doc comment begins with \"{}\": write {}",
            begin.join(" "),
            pattern.advice
        ),
    })
}

/// Returns the violation of the first sentence that begins with a relative clause. The first sentence of a doc comment
/// is left to [`check`].
pub fn check_later(words: &Words, block: &Block, sentences: &[Sentence]) -> Option<Finding> {
    sentences.iter().skip(usize::from(block.is_doc)).find_map(|sentence| {
        if sentence.last().is_some_and(|word| word.ends_question) {
            return None;
        }
        let pattern = words.later_openings.iter().find(|pattern| pattern.begins(sentence))?;
        let first = sentence.first()?;
        Some(Finding {
            rule: Rule::Opening,
            line: first.line,
            text: format!("a sentence begins with \"{}\": write {}", first.text, pattern.advice),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::comments;
    use super::*;

    #[test]
    fn listed_openings_are_violations() {
        let words = Words::new().unwrap();
        let rows = [
            ("//! Reads a file. What it returns is text.", 1),
            ("// Reads a file. Who waits is woken.", 1),
            ("// Reads a file. Who waits?", 0),
            ("// Reads a file, and what it returns is text.", 0),
            ("//! What a file is.", 1),
            ("/// Returns the name.", 0),
            ("/// Number of names.", 0),
            ("/// Whether there is a name.", 1),
            ("/// **Those** that wait.", 1),
            ("/// It is a name.", 1),
            ("/// Its name.", 0),
            ("/// How many.", 1),
            ("/// However it ends.", 0),
            ("/// `what` of the file.", 0),
            ("/// - Whoever waits.", 1),
            ("// What follows is plain.", 1),
            ("#[doc = \"Who waits.\"]", 1),
            ("/// ```\n/// what();\n/// ```\n/// A name.", 0),
        ];
        for (text, expected) in rows {
            let found = comments(&words, text);
            let found = found.iter().filter(|one| one.rule == Rule::Opening);
            assert_eq!(found.count(), expected, "{text}");
        }
    }
}
