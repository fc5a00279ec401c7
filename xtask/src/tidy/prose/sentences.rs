//! Splits comments into sentences of words; code, quotations and URLs become one word each.

use super::blocks::CommentLine;

/// Text of the word that replaces code, a quotation or a URL. No pattern matches this text.
const MASK: char = '\u{fffc}';

/// Abbreviations whose full stop does not end a sentence.
const ABBREVIATIONS: &[&str] = &["e.g.", "i.e.", "cf.", "vs.", "approx.", "sec.", "no."];

/// One word of a sentence.
#[derive(PartialEq, Eq, Debug)]
pub struct Word {
    /// Lower-case word without punctuation.
    pub text: String,
    pub line: usize,
    /// True if a comma, a full stop or another mark follows.
    pub ends_clause: bool,
    /// True if a question mark follows.
    pub ends_question: bool,
    /// True for a later part of a compound such as `keep-alive`.
    pub is_joined: bool,
}

/// Words of one sentence; never empty.
pub type Sentence = Vec<Word>;

/// Returns the sentences of a comment. A sentence ends at `.`, `:`, `;`, `!` or `?`, and with its paragraph, list item,
/// heading or table cell. Code blocks, block quotations and link definitions have no sentences.
pub fn of_lines(lines: &[CommentLine]) -> Vec<Sentence> {
    let mut reader = Paragraphs::default();
    for line in lines {
        reader.read(line);
    }
    reader.end();
    reader.found
}

/// Returns the sentences of a text that begins on `line`.
pub fn of_text(text: &str, line: usize) -> Vec<Sentence> {
    split(&masked(text), line)
}

/// Splits a comment into paragraphs line by line, and each paragraph into sentences.
#[derive(Default)]
struct Paragraphs {
    /// Lines of the current paragraph.
    open: String,
    /// Number of the first line of the current paragraph.
    first: usize,
    in_fence: bool,
    found: Vec<Sentence>,
}

impl Paragraphs {
    fn read(&mut self, line: &CommentLine) {
        let text = line.text.trim();
        if text.starts_with("```") || text.starts_with("~~~") {
            self.end();
            self.in_fence = !self.in_fence;
            return;
        }
        // An indented block at the start of a paragraph is code or a drawing.
        if self.in_fence || (self.open.is_empty() && line.text.starts_with("    ")) {
            return;
        }
        if text.is_empty() || text.starts_with('>') || is_definition(text) {
            self.end();
        } else if let Some(row) = text.strip_prefix('|') {
            self.end();
            for cell in row.split('|') {
                self.add(cell, line.number);
                self.end();
            }
        } else if let Some(heading) = text.strip_prefix('#').filter(|rest| rest.starts_with(['#', ' '])) {
            self.end();
            self.add(heading, line.number);
            self.end();
        } else if let Some(item) = item(text) {
            self.end();
            self.add(item, line.number);
        } else {
            self.add(text, line.number);
        }
    }

    fn add(&mut self, text: &str, number: usize) {
        if self.open.is_empty() {
            self.first = number;
        } else {
            self.open.push('\n');
        }
        self.open.push_str(text);
    }

    fn end(&mut self) {
        self.found.extend(of_text(&self.open, self.first));
        self.open.clear();
    }
}

/// Returns the text of a list item after its bullet or number.
fn item(text: &str) -> Option<&str> {
    let bullet = ["- ", "* ", "+ "].iter().find_map(|bullet| text.strip_prefix(bullet));
    bullet.or_else(|| {
        let rest = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let number = text.len() - rest.len();
        let after = rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") "));
        // A longer number is a figure at the start of a wrapped line.
        after.filter(|_| (1..=2).contains(&number))
    })
}

/// Returns true if the line defines a link: `[name]: address`.
fn is_definition(text: &str) -> bool {
    text.starts_with('[') && text.contains("]: ")
}

/// Replaces code in backticks, quotations in double quotes and URLs in angle brackets by the mask, and removes the
/// targets of links. Line ends in replaced text are kept.
fn masked(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (span, is_masked) = match first {
            '`' => code(rest),
            '"' => quotation(rest),
            ']' => target(rest),
            '<' => address(rest),
            _ => None,
        }
        .unwrap_or((first.len_utf8(), false));
        let passed = &rest[..span];
        if is_masked {
            kept.push(MASK);
            kept.extend(passed.matches('\n'));
        } else if span == first.len_utf8() {
            kept.push(first);
        }
        rest = &rest[span..];
    }
    kept
}

/// Returns the length of code in backticks, and true because the mask replaces it. A run of backticks ends at a run of
/// the same length.
fn code(rest: &str) -> Option<(usize, bool)> {
    let ticks = rest.len() - rest.trim_start_matches('`').len();
    let end = rest[ticks..].find(&rest[..ticks])?;
    Some((ticks + end + ticks, true))
}

fn quotation(rest: &str) -> Option<(usize, bool)> {
    let end = rest[1..].find('"')?;
    Some((end + 2, true))
}

/// Returns the length of `](…)` or `][…]`, the target of a link, and false because it is removed. The text of the link
/// is kept.
fn target(rest: &str) -> Option<(usize, bool)> {
    let close = match rest.as_bytes().get(1)? {
        b'(' => ')',
        b'[' => ']',
        _ => return None,
    };
    Some((rest[2..].find(close)? + 3, false))
}

/// Returns the length of a URL or tag in angle brackets.
fn address(rest: &str) -> Option<(usize, bool)> {
    let end = rest.find('>')?;
    (!rest[..end].contains([' ', '\n'])).then_some((end + 1, true))
}

/// Splits masked text into sentences.
fn split(text: &str, first: usize) -> Vec<Sentence> {
    let mut found = Vec::new();
    let mut open = Sentence::new();
    for (index, line) in text.split('\n').enumerate() {
        for raw in line.split_whitespace() {
            let bare = raw.trim_end_matches([')', ']', '*', '_', '\'', '”', '’']);
            let is_abbreviation = ABBREVIATIONS.contains(&bare.trim_start_matches('(').to_lowercase().as_str());
            let ends = !is_abbreviation && bare.ends_with(['.', ':', ';', '!', '?']);
            let clause = ends || raw.ends_with([',', ')', '…']);
            push(raw, first + index, clause, &mut open);
            if let Some(last) = open.last_mut() {
                last.ends_question = bare.ends_with('?');
            }
            if ends && !open.is_empty() {
                found.push(std::mem::take(&mut open));
            }
        }
    }
    if !open.is_empty() {
        found.push(open);
    }
    found
}

/// Appends the words of `raw`, a run without blanks: one word, or the parts of a compound.
fn push(raw: &str, line: usize, clause: bool, open: &mut Sentence) {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == MASK;
    let trimmed = raw.trim_matches(|letter| !is_part(letter));
    let letters = trimmed
        .chars()
        .all(|letter| letter.is_alphabetic() || ['-', '/', '—', '\'', '’'].contains(&letter));
    let parts: Vec<&str> = if letters {
        trimmed.split(['-', '/', '—']).filter(|part| !part.is_empty()).collect()
    } else {
        vec![trimmed]
    };
    let count = parts.len();
    for (index, part) in parts.into_iter().enumerate().filter(|(_, part)| !part.is_empty()) {
        open.push(Word {
            text: part.to_lowercase().replace('’', "'"),
            line,
            ends_clause: clause && index + 1 == count,
            ends_question: false,
            is_joined: index > 0,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let lines: Vec<CommentLine> = text
            .lines()
            .enumerate()
            .map(|(index, text)| CommentLine {
                number: index + 1,
                text: text.to_owned(),
            })
            .collect();
        let sentences = of_lines(&lines);
        let texts = sentences.iter().map(|sentence| {
            let words: Vec<_> = sentence.iter().map(|word| word.text.as_str()).collect();
            words.join(" ").replace(MASK, "_")
        });
        texts.collect()
    }

    #[test]
    fn comments_are_split_into_sentences() {
        let rows: [(&str, &[&str]); 18] = [
            ("A b. C d", &["a b", "c d"]),
            ("A b:\nc; d? e! f", &["a b", "c", "d", "e", "f"]),
            ("A\nb\n\nc", &["a b", "c"]),
            ("Of 1.5 s (e.g. a). B", &["of 1.5 s e.g a", "b"]),
            ("A `b. c` d", &["a _ d"]),
            ("A ``b ` c`` d", &["a _ d"]),
            ("A `b\nc` d", &["a _ d"]),
            ("A \"b. c\" d", &["a _ d"]),
            ("A [b c](d e) f [`G`] [h][i]", &["a b c f _ h"]),
            ("<https://a.b/c> d", &["_ d"]),
            ("```\na\n```\nb", &["b"]),
            ("a\n\n    code\n\nb", &["a", "b"]),
            ("- a b\n  c\n- d\n1. e", &["a b c", "d", "e"]),
            ("| a | b c |\n|---|---|", &["a", "b c"]),
            ("# A b\nc", &["a b", "c"]),
            ("> a\nb\n[c]: d", &["b"]),
            (
                "keep-alive/close crate::a 10.0.0.2:30",
                &["keep alive close crate::a 10.0.0.2:30"],
            ),
            ("a — b, c - d", &["a b c d"]),
        ];
        for (text, expected) in rows {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn words_have_lines_and_clause_ends() {
        let sentences = of_text("a `b\nc` d,\ne-f", 7);
        let found: Vec<_> = sentences[0]
            .iter()
            .map(|word| (word.line, word.ends_clause, word.is_joined))
            .collect();
        let expected = [
            (7, false, false),
            (7, false, false),
            (8, true, false),
            (9, false, false),
            (9, false, true),
        ];
        assert_eq!(found, expected);
    }
}
