//! Lexer of TOML for highlighting. It accepts every text, because a text that is being typed is rarely valid.

/// Kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// `[table]` or `[[table]]`.
    Header,
    Key,
    /// String in a value.
    Text,
    /// Number, date or time.
    Number,
    /// `true` or `false`.
    Boolean,
    Comment,
    /// `=`, `,` and brackets of values.
    Mark,
    /// Anything else, such as a string without its quotes.
    Other,
}

/// Token: a part of the text, in bytes. Spaces between tokens belong to none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    pub start: usize,
    pub end: usize,
}

/// Returns the tokens of a text.
pub fn tokens(text: &str) -> Vec<Token> {
    Lexer::run(text).0
}

/// Returns true if the end of a text is within a value that continues, such as an array of several lines.
pub fn ends_within_value(text: &str) -> bool {
    Lexer::run(text).1
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
    tokens: Vec<Token>,
    /// Open brackets of values.
    open: Vec<u8>,
    is_value: bool,
}

impl<'t> Lexer<'t> {
    fn run(text: &'t str) -> (Vec<Token>, bool) {
        let mut lexer = Lexer {
            text,
            at: 0,
            tokens: Vec::new(),
            open: Vec::new(),
            is_value: false,
        };
        let mut is_open_string = false;
        while let Some(&byte) = text.as_bytes().get(lexer.at) {
            is_open_string = lexer.step(byte);
        }
        let is_within = is_open_string || lexer.open.contains(&b'[');
        (lexer.tokens, is_within)
    }

    /// Reads a token, or a byte between tokens. Returns true at a string of several lines without an end.
    fn step(&mut self, byte: u8) -> bool {
        let start = self.at;
        match byte {
            b'\n' => {
                self.at += 1;
                // An inline table ends with its line. A forgotten bracket ends at the next entry.
                if !self.open.contains(&b'[') || begins_entry(&self.text[self.at..]) {
                    self.open.clear();
                }
                self.is_value = !self.open.is_empty();
            }
            b' ' | b'\t' | b'\r' => self.at += 1,
            b'#' => {
                self.at = self.line_end();
                self.push(TokenKind::Comment, start);
            }
            b'[' if !self.is_value && self.open.is_empty() => {
                self.at = self.header_end();
                self.push(TokenKind::Header, start);
            }
            b'"' | b'\'' => {
                let (end, is_open) = self.string_end(byte);
                self.at = end;
                self.push(if self.is_value { TokenKind::Text } else { TokenKind::Key }, start);
                return is_open;
            }
            b'=' | b',' | b'[' | b']' | b'{' | b'}' => self.mark(byte),
            _ => self.bare(),
        }
        false
    }

    fn mark(&mut self, byte: u8) {
        let start = self.at;
        self.at += 1;
        self.push(TokenKind::Mark, start);
        match byte {
            b'=' => self.is_value = true,
            b'[' => self.open.push(byte),
            b'{' => {
                self.open.push(byte);
                self.is_value = false;
            }
            b']' | b'}' => {
                self.open.pop();
                self.is_value = true;
            }
            // After a comma, an inline table has a key.
            _ => self.is_value = self.open.last() != Some(&b'{'),
        }
    }

    fn bare(&mut self) {
        let start = self.at;
        let rest = &self.text[start..];
        let ends = |letter: char| letter.is_ascii_whitespace() || "=,[]{}#\"'".contains(letter);
        self.at = start + rest.find(ends).unwrap_or(rest.len());
        let word = &self.text[start..self.at];
        let kind = match word {
            _ if !self.is_value => TokenKind::Key,
            "true" | "false" => TokenKind::Boolean,
            _ if word
                .trim_start_matches(['+', '-'])
                .starts_with(|c: char| c.is_ascii_digit()) =>
            {
                TokenKind::Number
            }
            "inf" | "+inf" | "-inf" | "nan" | "+nan" | "-nan" => TokenKind::Number,
            _ => TokenKind::Other,
        };
        self.push(kind, start);
    }

    fn push(&mut self, kind: TokenKind, start: usize) {
        let end = self.at;
        self.tokens.push(Token { kind, start, end });
    }

    fn line_end(&self) -> usize {
        let rest = &self.text[self.at..];
        self.at + rest.find('\n').unwrap_or(rest.len())
    }

    /// Returns the end of a header: the last closing bracket of the line that is in no string or comment.
    fn header_end(&self) -> usize {
        let (mut quote, mut end) = (None, None);
        let line = &self.text[self.at..self.line_end()];
        for (at, letter) in line.char_indices() {
            match (quote, letter) {
                (Some(open), letter) if open == letter => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => quote = Some(letter),
                (None, ']') => end = Some(at + 1),
                (None, '#') => return self.at + end.unwrap_or(at),
                _ => {}
            }
        }
        self.at + end.unwrap_or_else(|| line.trim_end().len())
    }

    /// Returns the end of a string, and true if the text ends within a string of several lines.
    fn string_end(&self, quote: u8) -> (usize, bool) {
        let bytes = self.text.as_bytes();
        let triple = [quote; 3];
        if bytes[self.at..].starts_with(&triple) {
            let mut at = self.at + 3;
            while at < bytes.len() {
                if bytes[at..].starts_with(&triple) {
                    // Up to two quotes before the end belong to the string.
                    let more = bytes[at + 3..].iter().take(2).take_while(|byte| **byte == quote);
                    return (at + 3 + more.count(), false);
                }
                at += if bytes[at] == b'\\' && quote == b'"' { 2 } else { 1 };
            }
            return (bytes.len(), true);
        }
        let mut at = self.at + 1;
        while at < bytes.len() && bytes[at] != b'\n' {
            match bytes[at] {
                byte if byte == quote => return (at + 1, false),
                b'\\' if quote == b'"' && bytes.get(at + 1).is_some_and(|next| *next != b'\n') => at += 2,
                _ => at += 1,
            }
        }
        // An escape before the end may be followed by a part of a letter.
        while !self.text.is_char_boundary(at.min(bytes.len())) {
            at += 1;
        }
        (at.min(bytes.len()), false)
    }
}

/// Returns true if a line begins with `key =`, or is a header.
fn begins_entry(text: &str) -> bool {
    let line = text.lines().next().unwrap_or_default().trim();
    if let Some(inner) = line.strip_prefix('[') {
        let name = inner.trim_start_matches('[');
        return name.starts_with(|c: char| c.is_ascii_alphabetic())
            && !name.contains([',', '='])
            && name
                .split('#')
                .next()
                .is_some_and(|name| name.trim_end().ends_with(']'));
    }
    let key = line.split('=').next().unwrap_or_default();
    line.contains('=')
        && !key.is_empty()
        && key
            .trim_end()
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<(TokenKind, &str)> {
        tokens(text)
            .into_iter()
            .map(|token| (token.kind, &text[token.start..token.end]))
            .collect()
    }

    #[test]
    fn entries_have_keys_values_and_comments() {
        use TokenKind::*;
        for (text, expected) in [
            (
                "[site.\"a]#b\"] # x",
                vec![(Header, "[site.\"a]#b\"]"), (Comment, "# x")],
            ),
            ("[[rule]]", vec![(Header, "[[rule]]")]),
            (
                "a.b = 'x' # c",
                vec![(Key, "a.b"), (Mark, "="), (Text, "'x'"), (Comment, "# c")],
            ),
            ("n = -1_0", vec![(Key, "n"), (Mark, "="), (Number, "-1_0")]),
            ("n = true", vec![(Key, "n"), (Mark, "="), (Boolean, "true")]),
            ("n = bare", vec![(Key, "n"), (Mark, "="), (Other, "bare")]),
            ("s = \"\\\"=\"", vec![(Key, "s"), (Mark, "="), (Text, "\"\\\"=\"")]),
            (
                "t = { a = 1, \"b\" = [2] }",
                vec![
                    (Key, "t"),
                    (Mark, "="),
                    (Mark, "{"),
                    (Key, "a"),
                    (Mark, "="),
                    (Number, "1"),
                    (Mark, ","),
                    (Key, "\"b\""),
                    (Mark, "="),
                    (Mark, "["),
                    (Number, "2"),
                    (Mark, "]"),
                    (Mark, "}"),
                ],
            ),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn values_of_several_lines_end() {
        use TokenKind::*;
        let text = "a = [\n  \"x\", # one\n  2,\n]\n[b]\nc = \"\"\"\n[d]\n\"\"\"\"\ne = 1";
        let kinds: Vec<_> = tokens(text).iter().map(|token| token.kind).collect();
        assert_eq!(
            kinds,
            [
                Key, Mark, Mark, Text, Mark, Comment, Number, Mark, Mark, Header, Key, Mark, Text, Key, Mark, Number
            ]
        );
        // A bracket that is not closed yet does not change the colours of the rest.
        let broken = "a = [\nb = 1\n";
        assert_eq!(shown(broken)[3], (Key, "b"));
        assert_eq!(shown("a = [ 1,\n[site.b]\nc = 1")[5].0, Header);
        assert!(ends_within_value("a = [\n") && ends_within_value("a = '''\n"));
        assert!(!ends_within_value("a = [1]\n") && !ends_within_value("a = { b = 1\n"));
    }

    #[test]
    fn every_text_has_tokens_in_order() {
        // Parts that are cut anywhere, with letters of several bytes.
        let text = "[ä.\"ö\"]\nü = \"\\ß\"\nk = '''é\n'''\n\"\\\u{1F600}\nx = [ {a=1}, \"\\";
        for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
            let mut last = 0;
            for token in tokens(&text[..end]) {
                assert!(
                    token.start >= last && token.end > token.start && token.end <= end,
                    "{token:?}"
                );
                assert!(text.is_char_boundary(token.start) && text.is_char_boundary(token.end));
                last = token.end;
            }
        }
    }
}
