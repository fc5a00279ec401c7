//! Openings of doc comments: a noun, or a verb in the third person.

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

#[cfg(test)]
mod tests {
    use super::super::comments;
    use super::*;

    #[test]
    fn beginnings() {
        let words = Words::new().unwrap();
        let rows = [
            ("//! Reads a file. What it returns is text.", 0),
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
            ("// What follows is plain.", 0),
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
