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
        let mut is_quoted = matches!(first, '"' | '`');
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
        // A marker begins a heredoc only at the end of its line.
        let ends_line = self.chars.peek().is_none_or(|c| matches!(c, '\n' | '\r'));
        let marker = text.strip_prefix("<<").filter(|marker| !marker.is_empty());
        if let Some(marker) = marker.filter(|_| !is_quoted && ends_line) {
            text = self.heredoc(marker, line)?;
            is_quoted = true;
        }
        words.push(CaddyWord { text, is_quoted, line });
        Ok(())
    }

    /// Reads a text up to its marker. Further words may follow the marker. Each line of the text loses the indentation
    /// of the marker.
    fn heredoc(&mut self, marker: &str, line: usize) -> Result<String, SyntaxError> {
        while self.next().is_some_and(|c| c != '\n') {}
        let mut lines: Vec<String> = Vec::new();
        loop {
            let start = self.chars.clone();
            let mut text = String::new();
            while let Some(c) = self.chars.next_if(|c| *c != '\n') {
                text.push(c);
            }
            if let Some(at) = text.find(marker) {
                let end = at + marker.len();
                self.chars = start;
                for _ in text[..end].chars() {
                    self.next();
                }
                return unindented(&lines, &text[..at]).ok_or_else(|| {
                    SyntaxError::new(
                        line,
                        format!("a line does not begin with the indentation of `{marker}`, which ends the text"),
                    )
                });
            }
            if self.next().is_none() {
                return Err(SyntaxError::new(
                    line,
                    format!("the text up to `{marker}` is not closed"),
                ));
            }
            lines.push(text.replace('\r', ""));
        }
    }
}

/// Returns a text without the indentation of its lines; `None` if a line has another one. Empty lines need no
/// indentation.
fn unindented(lines: &[String], indentation: &str) -> Option<String> {
    let all: Option<Vec<&str>> = lines
        .iter()
        .map(|line| match line.as_str() {
            "" => Some(""),
            line => line.strip_prefix(indentation),
        })
        .collect();
    all.map(|all| all.join("\n"))
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
    }

    #[test]
    fn texts_end_at_their_marker_and_lose_its_indentation() {
        for (text, expected) in [
            ("respond <<END\n  a\n  b\n  END 200\nnext\n", &["a\nb", "200"][..]),
            (
                "respond <<END\r\n  a\r\n    b\r\n\r\n  c\r\n  END 200\r\nnext",
                &["a\n  b\n\nc", "200"],
            ),
            ("respond <<END\n\ta\n\t\tb\n\tEND\nnext", &["a\n\tb"]),
            ("respond <<END\nEND\nnext", &[""]),
            // Braces in a text do not begin or end a block.
            ("respond <<END\n  {\n  END\nnext", &["{"]),
            // A marker before a space is an ordinary word.
            ("respond <<END a\nnext", &["<<END", "a"]),
        ] {
            let tree = read(text).unwrap();
            assert_eq!(tree[0].words(), expected, "{text}");
            assert!(tree.len() == 2 && tree[1].is("next"), "{text}: {tree:?}");
        }
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
            ("b\na <<X\nb\n X", 2, "the indentation of `X`"),
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
