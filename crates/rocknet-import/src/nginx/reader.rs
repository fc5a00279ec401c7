//! Reads the syntax of nginx: directives that end in `;`, and blocks in braces.

use std::iter::Peekable;
use std::str::Chars;

use crate::directive::{Directive, SyntaxError, TreeBuilder};

/// Reads a configuration of nginx.
pub(crate) fn read(text: &str) -> Result<Vec<Directive>, SyntaxError> {
    let mut reader = NginxReader {
        chars: text.chars().peekable(),
        line: 1,
    };
    let mut tree = TreeBuilder::new();
    let mut words: Vec<(String, usize)> = Vec::new();
    loop {
        let token = reader.token()?;
        let line = reader.line;
        match token {
            NginxToken::Word(word, line) => words.push((word, line)),
            NginxToken::End => {
                if let Some(directive) = directive(&mut words) {
                    tree.add(directive);
                }
            }
            NginxToken::Open => {
                let Some(directive) = directive(&mut words) else {
                    return Err(SyntaxError::new(line, "`{` without the name of a block"));
                };
                if directive.name.ends_with("_by_lua_block") {
                    reader.skip_code(directive.line)?;
                    tree.add(directive);
                } else {
                    tree.open(directive)?;
                }
            }
            NginxToken::Close => {
                if let Some((word, line)) = words.first() {
                    return Err(SyntaxError::new(*line, format!("`{word}` does not end in `;`")));
                }
                if !tree.close() {
                    return Err(SyntaxError::new(line, "`}` without an open block"));
                }
            }
            NginxToken::Finished => break,
        }
    }
    if let Some((word, line)) = words.first() {
        return Err(SyntaxError::new(*line, format!("`{word}` does not end in `;`")));
    }
    tree.finish()
}

/// Turns the collected words into a directive; the first word is its name. Each word has its line. Returns `None` if
/// there are no words, as before an extra `;`.
fn directive(words: &mut Vec<(String, usize)>) -> Option<Directive> {
    let mut words = std::mem::take(words).into_iter();
    let (name, line) = words.next()?;
    Some(Directive::new(name, words.map(|(word, _)| word).collect(), line))
}

/// Token of the syntax.
enum NginxToken {
    /// A name or argument, with the line at which it begins.
    Word(String, usize),
    /// `{`
    Open,
    /// `}`
    Close,
    /// `;`
    End,
    /// End of the text.
    Finished,
}

struct NginxReader<'a> {
    chars: Peekable<Chars<'a>>,
    /// Line of the next character, counted from 1.
    line: usize,
}

impl NginxReader<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.chars.next();
        if c == Some('\n') {
            self.line += 1;
        }
        c
    }

    /// Skips whitespace and comments, and reads the next token.
    fn token(&mut self) -> Result<NginxToken, SyntaxError> {
        loop {
            match self.chars.peek() {
                None => return Ok(NginxToken::Finished),
                Some(c) if c.is_whitespace() || *c == '\u{feff}' => {
                    self.next();
                }
                Some('#') => while self.next().is_some_and(|c| c != '\n') {},
                Some(_) => break,
            }
        }
        let line = self.line;
        let word = match self.chars.peek() {
            Some(';') => {
                self.next();
                return Ok(NginxToken::End);
            }
            Some('{') => {
                self.next();
                return Ok(NginxToken::Open);
            }
            Some('}') => {
                self.next();
                return Ok(NginxToken::Close);
            }
            Some('"' | '\'') => self.quoted(line)?,
            _ => self.bare(),
        };
        Ok(NginxToken::Word(word, line))
    }

    /// Reads a quoted word. `line` is the line of the opening quote, for errors.
    fn quoted(&mut self, line: usize) -> Result<String, SyntaxError> {
        let quote = self.next();
        let mut word = String::new();
        loop {
            match self.next() {
                None => return Err(SyntaxError::new(line, "a quoted text is not closed")),
                c if c == quote => return Ok(word),
                Some('\\') => self.escape(&mut word),
                Some(c) => word.push(c),
            }
        }
    }

    /// Reads an unquoted word.
    fn bare(&mut self) -> String {
        let mut word = String::new();
        while let Some(&c) = self.chars.peek() {
            // `${name}` is a variable, whose braces do not enclose a block. If `}` is missing, it ends with the line.
            if c == '{' && word.ends_with('$') {
                while let Some(c) = self.next() {
                    word.push(c);
                    if c == '}' || c == '\n' {
                        break;
                    }
                }
                continue;
            }
            if c.is_whitespace() || matches!(c, ';' | '{' | '}') {
                break;
            }
            self.next();
            match c {
                '\\' => self.escape(&mut word),
                c => word.push(c),
            }
        }
        word
    }

    /// Reads the character after a backslash, and decodes both as nginx does in every word. A backslash before other
    /// characters stays, as in `\.`.
    fn escape(&mut self, word: &mut String) {
        match self.next() {
            Some(c @ ('"' | '\'' | '\\')) => word.push(c),
            Some('t') => word.push('\t'),
            Some('r') => word.push('\r'),
            Some('n') => word.push('\n'),
            Some(c) => word.extend(['\\', c]),
            None => word.push('\\'),
        }
    }

    /// Skips the Lua code of a block, up to its closing brace. Braces in strings and comments of Lua count, too.
    /// `line`: line of the block, for errors.
    fn skip_code(&mut self, line: usize) -> Result<(), SyntaxError> {
        let mut depth = 1_usize;
        while depth > 0 {
            match self.next() {
                None => return Err(SyntaxError::new(line, "the block is not closed")),
                Some('{') => depth += 1,
                Some('}') => depth -= 1,
                Some(_) => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_have_arguments_lines_and_blocks() {
        let text = "a 'b c' \"d\\\"e\"; # x\nb {\n c ${v}w \\;;\n}\nlua_by_lua_block { x = {} }\n";
        let tree = read(text).unwrap();
        assert_eq!(tree[0].words(), ["b c", "d\"e"]);
        assert_eq!((tree[1].line, tree[1].children()[0].line), (2, 3));
        assert_eq!(tree[1].children()[0].words(), ["${v}w", "\\;"]);
        assert_eq!(tree[2].name, "lua_by_lua_block");
    }

    #[test]
    fn escapes_are_decoded_as_in_nginx() {
        let text = r#"a "x\n\t\"y\"" 'it\'s \"z\"' \.php \"q\" "\\.x" \d+;"#;
        assert_eq!(
            read(text).unwrap()[0].words(),
            ["x\n\t\"y\"", "it's \"z\"", "\\.php", "\"q\"", "\\.x", "\\d+"]
        );
    }

    #[test]
    fn errors_have_a_line() {
        for (text, line, message) in [
            ("\na b", 2, "does not end in `;`"),
            ("a {\nb\n}", 2, "does not end in `;`"),
            ("a;\n}", 2, "without an open block"),
            ("a;\n{", 2, "without the name"),
            ("x\n{", 1, "is not closed"),
            ("\n'a", 2, "not closed"),
            (&"a {".repeat(40), 1, "32 levels"),
            ("a_by_lua_block { {", 1, "not closed"),
        ] {
            let error = read(text).unwrap_err();
            assert!(
                error.line == line && error.message.contains(message),
                "{text}: {error:?}"
            );
        }
    }
}
