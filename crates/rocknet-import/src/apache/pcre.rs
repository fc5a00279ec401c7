//! Reads regular expressions of Apache (PCRE): their parts, alternatives and groups.

/// Part of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Class of characters with its brackets, such as `[^/]`.
    Class,
    /// Character after a backslash.
    Escaped(char),
    /// Any other character: an operator such as `(`, or a literal.
    Plain(char),
}

/// Returns the parts of an expression with their texts.
pub(super) fn parts(expression: &str) -> impl Iterator<Item = (&str, Part)> {
    let mut rest = expression;
    std::iter::from_fn(move || {
        let c = rest.chars().next()?;
        let next = &rest[c.len_utf8()..];
        let (length, part) = match c {
            '\\' => match next.chars().next() {
                Some(escaped) => (1 + escaped.len_utf8(), Part::Escaped(escaped)),
                None => (1, Part::Plain(c)),
            },
            '[' => match class_length(rest) {
                Some(length) => (length, Part::Class),
                None => (1, Part::Plain(c)),
            },
            c => (c.len_utf8(), Part::Plain(c)),
        };
        let (text, after) = rest.split_at(length);
        rest = after;
        Some((text, part))
    })
}

/// Returns the length of the class at the beginning of a text; `None` if its bracket is not closed.
fn class_length(text: &str) -> Option<usize> {
    let start = if text.starts_with("[^") { 2 } else { 1 };
    let mut at = start;
    loop {
        let rest = text.get(at..)?;
        let c = rest.chars().next()?;
        at += match c {
            // A bracket at the beginning belongs to the class, as in `[]a]`.
            ']' if at > start => return Some(at + 1),
            '\\' => 1 + rest[1..].chars().next()?.len_utf8(),
            // `[:alpha:]` is a class inside of the class.
            '[' if rest.starts_with("[:") => rest.find(":]").map_or(1, |end| end + 2),
            c => c.len_utf8(),
        };
    }
}

/// Returns each character of an expression that may be an operator ([`Part::Plain`]). With it come its position in
/// bytes, and the number of groups that are open before it.
pub(super) fn operators(expression: &str) -> impl Iterator<Item = (usize, char, usize)> {
    let (mut at, mut depth) = (0, 0_usize);
    parts(expression).filter_map(move |(text, part)| {
        let (start, before) = (at, depth);
        at += text.len();
        let Part::Plain(c) = part else { return None };
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        Some((start, c, before))
    })
}

/// Returns the alternatives of an expression, outside of groups and classes.
pub(super) fn alternatives(expression: &str) -> Vec<&str> {
    let (mut all, mut start) = (Vec::new(), 0);
    for (at, _, _) in operators(expression).filter(|(_, c, depth)| *c == '|' && *depth == 0) {
        all.push(&expression[start..at]);
        start = at + 1;
    }
    all.push(&expression[start..]);
    all
}

/// Splits a text that begins inside of a group at the bracket that closes the group: `a|b)c` becomes `a|b` and `c`.
/// Returns `None` if the group is not closed.
pub(super) fn split_group(text: &str) -> Option<(&str, &str)> {
    let (at, _, _) = operators(text).find(|(_, c, depth)| *c == ')' && *depth == 0)?;
    Some((&text[..at], &text[at + 1..]))
}

/// Returns an equivalent expression in the form that the other functions and the crate `regex` expect. `^` stands for
/// `\A`, and `$` for `\z` and `\Z`. Classes are changed as by [`normalized_class`].
pub(super) fn normalized(expression: &str) -> String {
    let mut out = String::with_capacity(expression.len());
    for (text, part) in parts(expression) {
        match part {
            Part::Escaped('A') => out.push('^'),
            Part::Escaped('z' | 'Z') => out.push('$'),
            // In PCRE, `\<` is the character `<`. For the crate it is the beginning of a word, and `\>` the end.
            Part::Escaped(c @ ('<' | '>')) => out.push(c),
            Part::Class => {
                let start = if text.starts_with("[^") { 2 } else { 1 };
                out.push_str(&text[..start]);
                out.push_str(&normalized_class(&text[start..]));
            }
            _ => out.push_str(text),
        }
    }
    out
}

/// Adds backslashes before characters in a class that are operators for the crate `regex` and not for PCRE, as in
/// `[a&&b]`. `text`: the class without its `[` or `[^`.
fn normalized_class(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            '[' if rest.starts_with("[:") && rest.contains(":]") => rest.find(":]").map_or(1, |end| end + 2),
            '[' | '&' | '~' => {
                out.push('\\');
                1
            }
            c => c.len_utf8(),
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out
}

/// Names the groups of an expression `c1`, `c2` and so on. In a target, `{c1}` then takes the place of Apache's `%1`.
pub(super) fn named_groups(expression: &str) -> String {
    let mut out = String::new();
    let mut number = 0;
    let mut all = parts(expression).peekable();
    while let Some((text, part)) = all.next() {
        out.push_str(text);
        if part == Part::Plain('(') && all.peek().is_none_or(|(_, next)| *next != Part::Plain('?')) {
            number += 1;
            out.push_str(&format!("?<c{number}>"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_are_outside_of_groups_and_classes() {
        for (expression, expected) in [
            ("^a|^b(c|d)|[|]e", &["^a", "^b(c|d)", "[|]e"][..]),
            (
                "[]|]|[^]|x]|[[:alpha:]|]|\\||",
                &["[]|]", "[^]|x]", "[[:alpha:]|]", "\\|", ""],
            ),
            ("[a|b", &["[a", "b"]),
        ] {
            assert_eq!(alternatives(expression), expected, "{expression}");
        }
        assert_eq!(split_group("a(b)|[)]c)d"), Some(("a(b)|[)]c", "d")));
    }

    #[test]
    fn groups_get_names() {
        assert_eq!(named_groups(r"^(a)\((?:b)[(](c)$"), r"^(?<c1>a)\((?:b)[(](?<c2>c)$");
    }

    #[test]
    fn anchors_and_classes_are_normalized() {
        for (expression, expected) in [
            (r"\Aadmin\z", "^admin$"),
            (r"\A/a(b\Z|\\A)", r"^/a(b$|\\A)"),
            (r"[\A^$]\<x\>", r"[\A^$]<x>"),
            ("[[a&&b~~c[:digit:]]", r"[\[a\&\&b\~\~c[:digit:]]"),
            ("[]a][^]b]", "[]a][^]b]"),
        ] {
            assert_eq!(normalized(expression), expected, "{expression}");
        }
    }
}
