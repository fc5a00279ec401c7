//! Words that the prose rules reject, read from `words.txt` with the advice for each.

use super::sentences::Word;

/// List of all patterns, each with its advice.
const LIST: &str = include_str!("words.txt");

/// Patterns of all prose rules.
pub struct Words {
    /// Beginnings of doc comments.
    pub openings: Vec<Pattern>,
    /// Beginnings of any sentence in a comment.
    pub later_openings: Vec<Pattern>,
    /// Idioms in comments and messages.
    pub idioms: Vec<Pattern>,
    /// Phrases in which idioms do not count.
    pub allowed: Vec<Pattern>,
}

/// A sequence of words, each a choice of spellings.
pub struct Pattern {
    choices: Vec<Vec<String>>,
    /// True if the last word must end a clause.
    ends_clause: bool,
    /// Wording to use instead.
    pub advice: String,
}

impl Words {
    /// Reads the list of the rules.
    pub fn new() -> Result<Words, String> {
        Words::read(LIST)
    }

    fn read(list: &str) -> Result<Words, String> {
        let mut words = Words {
            openings: Vec::new(),
            later_openings: Vec::new(),
            idioms: Vec::new(),
            allowed: Vec::new(),
        };
        let mut section = "";
        for (index, line) in list.lines().enumerate() {
            let line = line.trim();
            let wrong = |cause: &str| format!("words.txt:{}: {cause}: {line}", index + 1);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                section = name;
                continue;
            }
            let patterns = match section {
                "openings" => &mut words.openings,
                "later openings" => &mut words.later_openings,
                "idioms" => &mut words.idioms,
                "allowed" => &mut words.allowed,
                _ => return Err(wrong("this section is unknown")),
            };
            let (pattern, advice) = match line.split_once(" = ") {
                Some(pair) => pair,
                None if section == "allowed" => (line, ""),
                None => return Err(wrong("a pattern needs ` = ` and advice")),
            };
            patterns.push(Pattern::new(pattern, advice));
        }
        Ok(words)
    }
}

impl Pattern {
    fn new(pattern: &str, advice: &str) -> Pattern {
        let (pattern, ends_clause) = match pattern.strip_suffix('$') {
            Some(pattern) => (pattern, true),
            None => (pattern, false),
        };
        let choices = pattern.split_whitespace().map(|choice| {
            let spellings = choice.split('|');
            spellings.map(str::to_owned).collect()
        });
        Pattern {
            choices: choices.collect(),
            ends_clause,
            advice: advice.to_owned(),
        }
    }

    /// Returns the number of words in a match.
    pub fn len(&self) -> usize {
        self.choices.len()
    }

    /// Returns true if `words` begin with the pattern.
    pub fn begins(&self, words: &[Word]) -> bool {
        let Some(words) = words.get(..self.len()) else {
            return false;
        };
        let spelt = self
            .choices
            .iter()
            .zip(words)
            .all(|(spellings, word)| spellings.contains(&word.text));
        spelt && (!self.ends_clause || words.last().is_some_and(|word| word.ends_clause))
    }
}

#[cfg(test)]
mod tests {
    use super::super::sentences::of_text;
    use super::*;

    #[test]
    fn the_list_is_readable() {
        let words = Words::new().unwrap();
        let all = [&words.openings, &words.later_openings, &words.idioms, &words.allowed];
        assert!(all.iter().all(|patterns| !patterns.is_empty()));
        assert!(all.iter().all(|patterns| patterns.iter().all(|one| one.len() > 0)));
    }

    #[test]
    fn broken_lists_are_errors() {
        for list in ["a = b", "[openings]\na", "[other]\na = b"] {
            assert!(Words::read(list).is_err(), "{list}");
        }
    }

    #[test]
    fn patterns_match_the_beginning_of_a_sentence() {
        let rows = [
            ("told", "Told the worker.", true),
            ("told", "Untold the worker.", false),
            ("it is|was", "It was so.", true),
            ("it is|was", "It were so.", false),
            ("it is|was", "It", false),
            ("such $", "Such, and more", true),
            ("such $", "Such a thing", false),
        ];
        for (pattern, text, expected) in rows {
            let sentences = of_text(text, 1);
            assert_eq!(
                Pattern::new(pattern, "").begins(&sentences[0]),
                expected,
                "{pattern}: {text}"
            );
        }
    }
}
