//! Comment blocks of a source file: consecutive lines of one kind of comment, and `#[doc]` attributes.

use super::super::shipped::attribute;
use super::super::token::{Comment, TokenKind, comments, tokens};

/// A comment of one or more lines.
#[derive(PartialEq, Eq, Debug)]
pub struct Block {
    /// True if `rustdoc` shows it.
    pub is_doc: bool,
    pub lines: Vec<CommentLine>,
}

/// One line of a comment, without the comment marks.
#[derive(PartialEq, Eq, Debug)]
pub struct CommentLine {
    pub number: usize,
    pub text: String,
}

/// Kind of a comment. Comments of different kinds are not joined into one block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marker {
    Inner,
    Outer,
    Plain,
}

/// Returns the comment blocks of `text`: comments first, then attributes.
pub fn blocks(text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut last: Option<(Marker, usize)> = None;
    for comment in comments(text) {
        let (marker, lines) = parts(&comment);
        let joins = !comment.follows_code && last == Some((marker, comment.line));
        match found.last_mut().filter(|_| joins) {
            Some(block) => block.lines.extend(lines),
            None => found.push(Block {
                is_doc: marker != Marker::Plain,
                lines,
            }),
        }
        let after = comment.line + comment.text.matches('\n').count() + 1;
        // A comment after code belongs to that code, so the next line begins a block of its own.
        last = (!comment.follows_code).then_some((marker, after));
    }
    found.extend(attributes(text));
    found
}

/// Returns the marker of a comment and its lines.
fn parts(comment: &Comment<'_>) -> (Marker, Vec<CommentLine>) {
    let marks = [
        ("////", Marker::Plain),
        ("///", Marker::Outer),
        ("//!", Marker::Inner),
        ("//", Marker::Plain),
        ("/***", Marker::Plain),
        ("/**/", Marker::Plain),
        ("/**", Marker::Outer),
        ("/*!", Marker::Inner),
        ("/*", Marker::Plain),
    ];
    let mark = marks.iter().find(|(mark, _)| comment.text.starts_with(mark));
    let (mark, marker) = mark.copied().unwrap_or(("", Marker::Plain));
    let body = &comment.text[mark.len()..];
    let block = mark.starts_with("/*");
    let body = if block { body.trim_end_matches("*/") } else { body };
    let lines = body.split('\n').enumerate().map(|(index, line)| {
        let line = match line.trim_start().strip_prefix('*') {
            Some(rest) if block && index > 0 => rest,
            _ => line,
        };
        CommentLine {
            number: comment.line + index,
            text: line.strip_prefix(' ').unwrap_or(line).to_owned(),
        }
    });
    (marker, lines.collect())
}

/// Returns the texts of `#[doc = "…"]`, each as a block.
fn attributes(text: &str) -> Vec<Block> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        // `#![doc]` has one symbol more than `#[doc]`.
        let opens = at + usize::from(tokens.get(at + 1).is_some_and(|token| token.is("!")));
        let hash = tokens[at].is("#") && tokens.get(opens + 1).is_some_and(|token| token.is("["));
        let inside = match attribute(&tokens, at) {
            Some((inside, _)) => inside,
            None if hash => tokens.get(opens + 2..).unwrap_or_default(),
            None => continue,
        };
        if let [name, equals, value, ..] = inside
            && name.is("doc")
            && equals.is("=")
            && value.kind == TokenKind::Literal
        {
            let body = value.text.trim_start_matches(['r', '#']).trim_end_matches('#');
            let lines = body
                .trim_matches('"')
                .lines()
                .enumerate()
                .map(|(index, line)| CommentLine {
                    number: value.line + index,
                    text: line.trim_start().to_owned(),
                });
            found.push(Block {
                is_doc: true,
                lines: lines.collect(),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_of_one_kind_are_joined() {
        let rows: [(&str, &[(bool, &str)]); 11] = [
            ("//! a\n//! b\n", &[(true, "a|b")]),
            ("//! a\n\n//! b\n", &[(true, "a"), (true, "b")]),
            ("/// a\n// b\n", &[(true, "a"), (false, "b")]),
            ("/// a\n///\n/// b\n", &[(true, "a||b")]),
            ("f(); // a\n// b\n", &[(false, "a"), (false, "b")]),
            ("f(); // a\ng(); // b\n", &[(false, "a"), (false, "b")]),
            ("    /// a\n    ///   b\n", &[(true, "a|  b")]),
            ("/** a\n * b\n */ c", &[(true, "a|b|")]),
            ("//// a", &[(false, "a")]),
            ("#[doc = \"a b\"] struct A;", &[(true, "a b")]),
            ("#![doc = r#\"a\"#]", &[(true, "a")]),
        ];
        for (text, expected) in rows {
            let found: Vec<_> = blocks(text)
                .iter()
                .map(|block| {
                    let lines: Vec<_> = block.lines.iter().map(|line| line.text.as_str()).collect();
                    (block.is_doc, lines.join("|"))
                })
                .collect();
            let expected: Vec<_> = expected.iter().map(|&(doc, text)| (doc, text.to_owned())).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn lines_have_their_numbers_in_the_file() {
        let found = blocks("a;\n/// b\n/// c\nd; // e");
        let numbers: Vec<Vec<usize>> = found
            .iter()
            .map(|block| block.lines.iter().map(|line| line.number).collect())
            .collect();
        assert_eq!(numbers, [vec![2, 3], vec![4]]);
    }
}
