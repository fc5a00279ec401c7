//! Splits Rust source into tokens (names, literals and symbols) and comments, each with its line.

/// Kind of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenKind {
    /// An identifier or keyword, without `r#`.
    Name,
    /// A string, character, number or lifetime.
    Literal,
    /// `::`, or one other character.
    Symbol,
}

/// One token and the line on which it begins, counted from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token<'a> {
    pub kind: TokenKind,
    pub text: &'a str,
    pub line: usize,
}

impl Token<'_> {
    /// Returns true if the token is the name or symbol `text`. A literal never matches.
    pub fn is(&self, text: &str) -> bool {
        self.kind != TokenKind::Literal && self.text == text
    }

    pub fn is_name(&self) -> bool {
        self.kind == TokenKind::Name
    }
}

/// One comment, with its slashes, and the line on which it begins, counted from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Comment<'a> {
    pub text: &'a str,
    pub line: usize,
    /// True if code precedes the comment on its line.
    pub follows_code: bool,
}

/// Returns the tokens of `text`. Text that is not valid Rust becomes symbols instead of an error, because the compiler
/// checks the sources.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    Lexer::read(text).found
}

/// Returns the comments of `text`, one for each line of a `//` comment.
pub fn comments(text: &str) -> Vec<Comment<'_>> {
    Lexer::read(text).comments
}

/// Returns the index after the bracket that closes the bracket at `open`, or the end of the tokens.
pub fn after_group(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        if ["(", "[", "{"].iter().any(|text| token.is(text)) {
            depth += 1;
        } else if [")", "]", "}"].iter().any(|text| token.is(text)) {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return index + 1;
            }
        }
    }
    tokens.len()
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    found: Vec<Token<'a>>,
    comments: Vec<Comment<'a>>,
}

impl<'a> Lexer<'a> {
    fn read(text: &'a str) -> Lexer<'a> {
        let mut lexer = Lexer {
            text,
            at: 0,
            line: 1,
            found: Vec::new(),
            comments: Vec::new(),
        };
        while lexer.step() {}
        lexer
    }

    /// Reads one token, comment or blank. Returns false at the end of the text.
    fn step(&mut self) -> bool {
        let rest = &self.text[self.at..];
        let Some(first) = rest.chars().next() else {
            return false;
        };
        if first.is_whitespace() {
            self.skip(first.len_utf8());
        } else if rest.starts_with("//") {
            self.note(rest.find('\n').unwrap_or(rest.len()));
        } else if rest.starts_with("/*") {
            self.note(comment(rest));
        } else if let Some(length) = string(rest) {
            self.take(TokenKind::Literal, length);
        } else if first == '\'' {
            self.take(TokenKind::Literal, quote(rest));
        } else if first.is_ascii_digit() {
            self.take(TokenKind::Literal, number(rest));
        } else if first == '_' || first.is_alphabetic() {
            if rest.starts_with("r#") {
                self.skip(2);
            }
            let length = word(&self.text[self.at..]);
            self.take(TokenKind::Name, length.max(1));
        } else if rest.starts_with("::") {
            self.take(TokenKind::Symbol, 2);
        } else {
            self.take(TokenKind::Symbol, first.len_utf8());
        }
        true
    }

    /// Adds a token of `length` bytes.
    fn take(&mut self, kind: TokenKind, length: usize) {
        self.found.push(Token {
            kind,
            text: &self.text[self.at..self.at + length],
            line: self.line,
        });
        self.skip(length);
    }

    /// Adds a comment of `length` bytes.
    fn note(&mut self, length: usize) {
        let before = self.text[..self.at].rsplit('\n').next();
        self.comments.push(Comment {
            text: &self.text[self.at..self.at + length],
            line: self.line,
            follows_code: before.is_some_and(|before| !before.trim().is_empty()),
        });
        self.skip(length);
    }

    fn skip(&mut self, length: usize) {
        let passed = &self.text[self.at..self.at + length];
        self.line += passed.matches('\n').count();
        self.at += length;
    }
}

/// Returns the length of the word that `rest` begins with.
fn word(rest: &str) -> usize {
    let end = rest.find(|letter: char| letter != '_' && !letter.is_alphanumeric());
    end.unwrap_or(rest.len())
}

/// Returns the length of the number that `rest` begins with. `0..4` contains two numbers.
fn number(rest: &str) -> usize {
    let whole = word(rest);
    match rest[whole..].strip_prefix('.') {
        Some(fraction) if fraction.starts_with(|digit: char| digit.is_ascii_digit()) => whole + 1 + word(fraction),
        _ => whole,
    }
}

/// Returns the length of the block comment that `rest` begins with. Block comments nest.
fn comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    let bytes = rest.as_bytes();
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// Returns the length of the string that `rest` begins with, including a prefix such as `b`; `None` if
/// `rest` begins with something else.
fn string(rest: &str) -> Option<usize> {
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
        rest.strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with(['"', '#']))
    })?;
    let raw = prefix.ends_with('r');
    let body = &rest[prefix.len()..];
    let hashes = body.len() - body.trim_start_matches('#').len();
    if !body[hashes..].starts_with('"') || (hashes > 0 && !raw) {
        return None;
    }
    let start = prefix.len() + hashes + 1;
    if raw {
        let end = format!("\"{}", "#".repeat(hashes));
        return Some(rest[start..].find(&end).map_or(rest.len(), |at| start + at + end.len()));
    }
    Some(start + until(&rest[start..], b'"'))
}

/// Returns the length of the character or lifetime that `rest` begins with.
fn quote(rest: &str) -> usize {
    let mut inner = rest[1..].chars();
    match (inner.next(), inner.next()) {
        (Some('\\'), _) => 1 + until(&rest[1..], b'\''),
        (Some(letter), Some('\'')) => 1 + letter.len_utf8() + 1,
        _ => 1 + word(&rest[1..]),
    }
}

/// Returns the length of `body` up to and including the first `end` without a backslash before it.
fn until(body: &str, end: u8) -> usize {
    let mut escaped = false;
    for (at, &byte) in body.as_bytes().iter().enumerate() {
        if escaped {
            escaped = false;
        } else if byte == b'\\' {
            escaped = true;
        } else if byte == end {
            return at + 1;
        }
    }
    body.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_is_split_into_tokens() {
        let rows: [(&str, &[&str]); 14] = [
            ("use a::b;", &["use", "a", "::", "b", ";"]),
            ("a // use b\nc", &["a", "c"]),
            ("a /* b /* c */ d */ e", &["a", "e"]),
            ("f(\"crate::a\")", &["f", "(", "\"crate::a\"", ")"]),
            (r#"f("\"crate::a")"#, &["f", "(", r#""\"crate::a""#, ")"]),
            ("r#\"a\"b\"# c", &["r#\"a\"b\"#", "c"]),
            ("br\"\\\" c", &["br\"\\\"", "c"]),
            ("b'\\'' c", &["b", "'\\''", "c"]),
            ("'\"' a", &["'\"'", "a"]),
            ("&'a str", &["&", "'a", "str"]),
            ("r#type", &["type"]),
            ("0..4", &["0", ".", ".", "4"]),
            ("1.5e3 x", &["1.5e3", "x"]),
            ("#[a]", &["#", "[", "a", "]"]),
        ];
        for (text, expected) in rows {
            let found: Vec<_> = tokens(text).iter().map(|token| token.text).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn a_token_has_the_line_on_which_it_begins() {
        let found: Vec<_> = tokens("a\n\"x\ny\" b\n/*\n*/ c")
            .iter()
            .map(|token| token.line)
            .collect();
        assert_eq!(found, [1, 2, 3, 5]);
    }

    #[test]
    fn comments_of_both_kinds_are_found() {
        let found: Vec<_> = comments("//! a\nb; // c\n\"// d\"\n/* e\nf */ g")
            .iter()
            .map(|comment| (comment.text, comment.line, comment.follows_code))
            .collect();
        assert_eq!(
            found,
            [("//! a", 1, false), ("// c", 2, true), ("/* e\nf */", 4, false)]
        );
    }
}
