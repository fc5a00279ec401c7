//! Styles of the letters of a text: the kind of the token, and the mark of the line.

use super::lexer::{TokenKind, tokens};

/// Number of marks that a line can have: none, a warning, or an error.
pub const MARKS: usize = 3;

/// Kinds of letters: spaces, and the kinds of [`TokenKind`].
pub const KINDS: [Option<TokenKind>; 9] = [
    None,
    Some(TokenKind::Header),
    Some(TokenKind::Key),
    Some(TokenKind::Text),
    Some(TokenKind::Number),
    Some(TokenKind::Boolean),
    Some(TokenKind::Comment),
    Some(TokenKind::Mark),
    Some(TokenKind::Other),
];

/// Returns the style of each byte: the letter `A` plus the index of the kind in [`KINDS`], plus 9 in a line with a
/// warning, or 18 in a line with an error. `marks`: the lines, counted from 1, and true for errors.
pub fn styles(text: &str, marks: &[(usize, bool)]) -> String {
    let mut styles = vec![0_u8; text.len()];
    for token in tokens(text) {
        let kind = KINDS.iter().position(|kind| *kind == Some(token.kind)).unwrap_or(0) as u8;
        styles[token.start..token.end].fill(kind);
    }
    let mut start = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let of_line = marks.iter().filter(|(marked, _)| *marked == index + 1);
        let mark = of_line.map(|(_, is_error)| 1 + u8::from(*is_error)).max().unwrap_or(0);
        let indent = line.len() - line.trim_start().len();
        let end = line.trim_end().len().max(indent);
        for style in &mut styles[start + indent..start + end] {
            *style += mark * KINDS.len() as u8;
        }
        start += line.len();
    }
    styles.iter().map(|style| char::from(b'A' + style)).collect()
}

/// Returns the byte of a line and a column, both counted from 1. Places after the end of a line or of the text are at
/// its end.
pub fn place(text: &str, line: usize, column: usize) -> usize {
    let start = match line {
        0 | 1 => 0,
        line => text
            .match_indices('\n')
            .nth(line - 2)
            .map_or(text.len(), |(at, _)| at + 1),
    };
    let rest = text[start..].split('\n').next().unwrap_or_default();
    let offset = rest
        .char_indices()
        .nth(column.max(1) - 1)
        .map_or(rest.len(), |(at, _)| at);
    start + offset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_have_the_style_of_their_token_and_line() {
        assert_eq!(styles("a = 1", &[]), "CAHAE");
        assert_eq!(styles("a = 1\n  b # c\n", &[(2, false)]), "CAHAEAAALJPPPA");
        assert_eq!(styles("ä\n", &[(1, false), (1, true)]), "UUA");
        assert_eq!(styles("", &[(1, true)]), "");
        assert!(KINDS.len() * MARKS <= 27);
    }

    #[test]
    fn places_are_bytes() {
        let text = "ab\nä = 1\n";
        for (line, column, expected) in [
            (1, 1, 0),
            (1, 9, 2),
            (2, 2, 5),
            (2, 1, 3),
            (3, 1, 10),
            (9, 9, 10),
            (0, 0, 0),
        ] {
            assert_eq!(place(text, line, column), expected, "{line}:{column}");
        }
    }
}
