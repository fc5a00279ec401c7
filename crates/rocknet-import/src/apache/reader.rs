//! Reads the syntax of Apache: a directive on each line, and sections in angle brackets.

use crate::directive::{Directive, SyntaxError, TreeBuilder};

/// Reads a configuration of Apache, or an `.htaccess`.
pub(crate) fn read(text: &str) -> Result<Vec<Directive>, SyntaxError> {
    let mut tree = TreeBuilder::new();
    let mut lines = text.trim_start_matches('\u{feff}').lines().enumerate();
    while let Some((at, first)) = lines.next() {
        let line = at + 1;
        let mut whole = first.trim_end().to_owned();
        // A backslash at the end of a line continues it.
        while whole.ends_with('\\') {
            whole.pop();
            match lines.next() {
                Some((_, next)) => whole.push_str(next.trim_end()),
                None => break,
            }
        }
        let whole = whole.trim_start();
        if whole.is_empty() || whole.starts_with('#') {
            continue;
        }
        if let Some(name) = whole.strip_prefix("</") {
            let name = name.trim_end_matches('>').trim();
            match tree.innermost() {
                Some(open) if open.is(name) => {
                    tree.close();
                }
                Some(open) => {
                    let message = format!("`</{name}>` does not close `<{}>` of line {}", open.name, open.line);
                    return Err(SyntaxError::new(line, message));
                }
                None => return Err(SyntaxError::new(line, format!("`</{name}>` without an open section"))),
            }
            continue;
        }
        if let Some(section) = whole.strip_prefix('<') {
            let Some(section) = section.strip_suffix('>') else {
                return Err(SyntaxError::new(line, "the section has no closing `>`"));
            };
            let mut words = words(section, line)?.into_iter();
            let Some(name) = words.next() else {
                return Err(SyntaxError::new(line, "the section has no name"));
            };
            tree.open(Directive::new(name, words.collect(), line))?;
            continue;
        }
        let mut words = words(whole, line)?.into_iter();
        if let Some(name) = words.next() {
            tree.add(Directive::new(name, words.collect(), line));
        }
    }
    tree.finish()
}

/// Splits a line into words. A quoted text is one word. In it, a backslash before a quote of the same kind makes the
/// quote part of the word.
fn words(text: &str, line: usize) -> Result<Vec<String>, SyntaxError> {
    let mut words = Vec::new();
    let mut chars = text.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        let Some(first) = chars.next() else { return Ok(words) };
        let mut word = String::new();
        if matches!(first, '"' | '\'') {
            loop {
                match chars.next() {
                    None => return Err(SyntaxError::new(line, "a quoted text is not closed")),
                    Some(c) if c == first => break,
                    Some('\\') if chars.peek() == Some(&first) => word.extend(chars.next()),
                    Some(c) => word.push(c),
                }
            }
        } else {
            word.push(first);
            while let Some(c) = chars.next_if(|c| !c.is_whitespace()) {
                word.push(c);
            }
        }
        words.push(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_words_and_sections_have_blocks() {
        let tree = read("# x\nA \"b c\" d \\\n  e\n<If \"q\">\n  F 'g \\' h'\n</if>\n").unwrap();
        assert_eq!((tree[0].words(), tree[0].line), (vec!["b c", "d", "e"], 2));
        assert_eq!((tree[1].name.as_str(), tree[1].line), ("If", 4));
        assert_eq!(tree[1].children()[0].words(), ["g ' h"]);
    }

    #[test]
    fn errors_have_a_line() {
        for (text, line, message) in [
            ("\n<A", 2, "closing `>`"),
            ("<A>\n</B>", 2, "does not close"),
            ("</A>", 1, "without an open"),
            ("\n<A>", 2, "not closed"),
            ("A \"b", 1, "not closed"),
            ("<>", 1, "no name"),
            (&"<A>\n".repeat(40), 33, "32 levels"),
        ] {
            let error = read(text).unwrap_err();
            assert!(
                error.line == line && error.message.contains(message),
                "{text}: {error:?}"
            );
        }
    }
}
