//! Length of sentences in comments: at most 40 words.

use super::finding::{Finding, Rule};
use super::sentences::Sentence;

/// Maximum words of a sentence. The aim is 25, because a longer sentence usually contains two.
const MAX_WORDS: usize = 40;

/// Returns the violation of a sentence that is too long. A compound or a code span is one word.
pub fn check(sentence: &Sentence) -> Option<Finding> {
    let count = sentence.iter().filter(|word| !word.is_joined).count();
    let first = sentence.first().filter(|_| count > MAX_WORDS)?;
    Some(Finding {
        rule: Rule::Length,
        line: first.line,
        text: format!("a sentence of {count} words: split it into sentences of at most {MAX_WORDS}, better 25"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::comments;
    use super::super::words::Words;
    use super::*;

    #[test]
    fn a_sentence_with_too_many_words_is_a_violation() {
        let words = Words::new().unwrap();
        let many = |count: usize| vec!["word"; count].join("\n// ");
        let rows = [
            (format!("// {}", many(MAX_WORDS)), 0),
            (format!("// {}", many(MAX_WORDS + 1)), 1),
            (format!("// {}. And {}.", many(MAX_WORDS), many(MAX_WORDS - 1)), 0),
            (format!("// {}; {}", many(30), many(30)), 0),
            (format!("// {}\n//\n// {}", many(30), many(30)), 0),
            (format!("// {}\n// - {}", many(30), many(30)), 0),
            (format!("// {} `a b c`", many(MAX_WORDS - 1)), 0),
            (format!("// {} keep-alive", many(MAX_WORDS - 1)), 0),
            (format!("// {} - {}", many(MAX_WORDS - 1), many(1)), 0),
            (format!("// ```\n// {}\n// ```", many(MAX_WORDS + 1)), 0),
            (format!("/// {}", many(MAX_WORDS).replace("//", "///") + " word"), 1),
        ];
        for (text, expected) in rows {
            assert_eq!(comments(&words, &text).len(), expected, "{text}");
        }
    }
}
