//! Reads the syntax of Caddyfiles: a directive on each line, and blocks in braces.

use std::iter::Peekable;
use std::str::Chars;

use crate::directive::{Directive, SyntaxError, TreeBuilder};

/// Word of a line. A quoted brace does not begin or end a block.
struct CaddyWord {
    text: String,
    is_quoted: bool,
    line: usize,
}

impl CaddyWord {
    fn is_brace(&self, brace: &str) -> bool {
        !self.is_quoted && self.text == brace
    }
}

/// Reads a Caddyfile. The directive of the global options has an empty name; a snippet keeps its parentheses.
pub(crate) fn read(text: &str) -> Result<Vec<Directive>, SyntaxError> {
    let mut reader = CaddyReader {
        chars: text.trim_start_matches('\u{feff}').chars().peekable(),
        line: 1,
    };
    let mut tree = TreeBuilder::new();
    // Addresses of a site may continue on the next line after a comma.
    let mut addresses: Vec<CaddyWord> = Vec::new();
    while let Some(mut words) = reader.words()? {
        if !addresses.is_empty() {
            addresses.append(&mut words);
            words = std::mem::take(&mut addresses);
        }
        let Some(line) = words.first().map(|word| word.line) else {
            continue;
        };
        if words.len() == 1 && words[0].is_brace("}") {
            if !tree.close() {
                return Err(SyntaxError::new(line, "`}` without an open block"));
            }
            continue;
        }
        if tree.innermost().is_none() && words.last().is_some_and(|word| word.text.ends_with(',')) {
            addresses = words;
            continue;
        }
        let opens = words.last().is_some_and(|word| word.is_brace("{"));
        if opens {
            words.pop();
        }
        if words.iter().any(|word| word.is_brace("{") || word.is_brace("}")) {
            return Err(SyntaxError::new(
                line,
                "a brace that begins or ends a block must end its line",
            ));
        }
        let mut texts = words.into_iter().map(|word| word.text);
        let name = texts.next().unwrap_or_default();
        let directive = Directive::new(name, texts.collect(), line);
        if opens {
            tree.open(directive)?;
        } else {
            tree.add(directive);
        }
    }
    if let Some(word) = addresses.first() {
        return Err(SyntaxError::new(
            word.line,
            "a line with an address must follow the comma",
        ));
    }
    tree.finish()
}

struct CaddyReader<'a> {
    chars: Peekable<Chars<'a>>,
    /// Line of the next character, counted from 1.
    line: usize,
}

impl CaddyReader<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.chars.next();
        if c == Some('\n') {
            self.line += 1;
        }
        c
    }

    /// Returns the words of the next line; `None` at the end of the text.
    fn words(&mut self) -> Result<Option<Vec<CaddyWord>>, SyntaxError> {
        let mut words = Vec::new();
        loop {
            match self.chars.peek().copied() {
                None if words.is_empty() => return Ok(None),
                None => return Ok(Some(words)),
                Some('\n') => {
                    self.next();
                    return Ok(Some(words));
                }
                Some('#') => {
                    while self.chars.peek().is_some_and(|c| *c != '\n') {
                        self.next();
                    }
                }
                Some(c) if c.is_whitespace() => {
                    self.next();
                }
                Some(_) => self.word(&mut words)?,
            }
        }
    }

    /// Appends the next word, which may be a quoted text or a heredoc.
    fn word(&mut self, words: &mut Vec<CaddyWord>) -> Result<(), SyntaxError> {
        let line = self.line;
        let first = self.next().unwrap_or_default();
        let mut text = String::new();
        let is_quoted = matches!(first, '"' | '`');
        if is_quoted {
            loop {
                match self.next() {
                    None => return Err(SyntaxError::new(line, "a quoted text is not closed")),
                    Some(c) if c == first => break,
                    Some('\\') if first == '"' && self.chars.peek() == Some(&'"') => text.extend(self.next()),
                    Some(c) => text.push(c),
                }
            }
        } else if first == '\\' && self.chars.peek().is_none_or(|c| matches!(c, '\n' | '\r')) {
            // A backslash at the end of a line continues it.
            while self.next().is_some_and(|c| c != '\n') {}
            return Ok(());
        } else {
            text.push(first);
            while let Some(c) = self.chars.next_if(|c| !c.is_whitespace()) {
                text.push(c);
            }
        }
        if let Some(marker) = text
            .strip_prefix("<<")
            .filter(|marker| !is_quoted && !marker.is_empty())
        {
            text = self.heredoc(marker, line)?;
        }
        words.push(CaddyWord { text, is_quoted, line });
        Ok(())
    }

    /// Reads a text up to the line that consists of its marker. Removes the whitespace around each line.
    fn heredoc(&mut self, marker: &str, line: usize) -> Result<String, SyntaxError> {
        while self.next().is_some_and(|c| c != '\n') {}
        let mut lines: Vec<String> = Vec::new();
        loop {
            let mut text = String::new();
            let mut ends = true;
            while let Some(c) = self.chars.peek().copied() {
                if c == '\n' {
                    ends = false;
                    break;
                }
                text.extend(self.next());
            }
            if text.trim() == marker {
                return Ok(lines.join("\n"));
            }
            if ends {
                return Err(SyntaxError::new(
                    line,
                    format!("the text up to `{marker}` is not closed"),
                ));
            }
            self.next();
            lines.push(text.trim().to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_blocks_and_quotes_are_read() {
        let text = "{\n email a@b\n}\na.test,\nb.test {\n respond \"{ \\\"x\\\" }\" 200 # c\n  header A \\\n b\n}\n";
        let tree = read(text).unwrap();
        assert_eq!((tree[0].name.as_str(), tree[0].children()[0].line), ("", 2));
        assert_eq!((tree[1].name.as_str(), tree[1].words()), ("a.test,", vec!["b.test"]));
        assert_eq!(tree[1].children()[0].words(), ["{ \"x\" }", "200"]);
        assert_eq!(tree[1].children()[1].words(), ["A", "b"]);
        let tree = read("respond <<END\n  a\n  b\n  END 200\n END\n").unwrap();
        assert_eq!(tree[0].words(), ["a\nb\nEND 200"]);
    }

    #[test]
    fn errors_have_a_line() {
        for (text, line, message) in [
            ("\n}", 2, "without an open block"),
            ("\na {", 2, "not closed"),
            ("a \"b", 1, "not closed"),
            ("a { b\n}", 1, "must end its line"),
            ("a.test,", 1, "must follow"),
            ("a <<X\nb", 1, "`X` is not closed"),
            (&"a {\n".repeat(40), 33, "32 levels"),
        ] {
            let error = read(text).unwrap_err();
            assert!(
                error.line == line && error.message.contains(message),
                "{text}: {error:?}"
            );
        }
    }
}
