//! Idioms that comments and messages must not use, each reported with the wording to use instead.

use super::finding::{Finding, Rule};
use super::sentences::{Sentence, Word};
use super::words::Words;

/// Returns the violations in one sentence, reported as `rule`.
pub fn check(words: &Words, rule: Rule, sentence: &Sentence) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(rest) = sentence.get(at..).filter(|rest| !rest.is_empty()) {
        if let Some(phrase) = words.allowed.iter().find(|phrase| phrase.begins(rest)) {
            at += phrase.len();
            continue;
        }
        if let Some(pattern) = words.idioms.iter().find(|pattern| pattern.begins(rest)) {
            found.push(Finding {
                rule,
                line: rest[0].line,
                text: format!("\"{}\": write {}", shown(&rest[..pattern.len()]), pattern.advice),
            });
            at += pattern.len();
        } else {
            at += 1;
        }
    }
    found
}

fn shown(words: &[Word]) -> String {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    texts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::comments;
    use super::*;

    #[test]
    fn idioms_are_found_outside_code_and_quotations() {
        let words = Words::new().unwrap();
        let rows = [
            ("// The worker is told.", 1),
            ("// The worker is `told`.", 0),
            ("// The standard: \"it is said\".", 0),
            ("/// Told and heard,\n/// asked and believed.", 4),
            ("// Nobody waits for ever, and nobody minds.", 3),
            ("// It was\n// said.", 1),
            ("// A limit of their own making.", 1),
            ("// An answer that is none.", 1),
            ("// There are none left.", 1),
            ("// Returns 0 if none is left.", 0),
            ("// None is left.", 1),
            ("// None of them is left.", 0),
            ("// Ports and such.", 1),
            ("// Such is the limit.", 1),
            ("// Such a limit is needed, as such, to wait.", 0),
            ("// Bytes behind the head.", 1),
            ("// A client behind the proxy.", 0),
            ("// The ones behind it, and the one behind.", 1),
            ("// | told |\n", 1),
            ("// A hand-told tale.", 1),
            ("// See [the text](https://told.example/told).", 0),
            ("f(\"told\"); // forever", 0),
            ("f(); // for ever", 1),
        ];
        for (text, expected) in rows {
            let found = comments(&words, text);
            assert_eq!(found.len(), expected, "{text}: {found:?}");
        }
    }
}
