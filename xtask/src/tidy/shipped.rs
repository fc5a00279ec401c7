//! Removes test code from tokens: items under `#[test]` and `#[cfg(test)]`, which are exempt from most rules.

use super::token::{Token, after_group};

/// Keywords that begin an item with a body in braces, or with a semicolon instead of the body.
const BODIES: &[&str] = &[
    "fn",
    "mod",
    "struct",
    "enum",
    "union",
    "trait",
    "impl",
    "extern",
    "macro_rules",
];

/// Keywords that begin an item that ends with a semicolon.
const STATEMENTS: &[&str] = &["use", "static", "type", "let"];

/// Returns `tokens` without the items that are compiled only for tests.
pub fn shipped<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    if is_test_file(tokens) {
        return Vec::new();
    }
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        match attribute(tokens, at) {
            Some((inside, after)) if is_test(inside) => at = after_item(tokens, after),
            _ => {
                kept.push(tokens[at]);
                at += 1;
            }
        }
    }
    kept
}

/// Returns the tokens inside the attribute at `at`, and the index after it.
pub fn attribute<'t, 'a>(tokens: &'t [Token<'a>], at: usize) -> Option<(&'t [Token<'a>], usize)> {
    let opens = tokens.get(at)?.is("#") && tokens.get(at + 1)?.is("[");
    opens.then(|| {
        let after = after_group(tokens, at + 1);
        (tokens.get(at + 2..after - 1).unwrap_or_default(), after)
    })
}

/// Returns true if the whole file is for tests: `#![cfg(test)]` at its top.
fn is_test_file(tokens: &[Token<'_>]) -> bool {
    tokens.windows(3).enumerate().any(|(at, window)| {
        let opens = window[0].is("#") && window[1].is("!") && window[2].is("[");
        opens && is_test(tokens.get(at + 3..after_group(tokens, at + 2) - 1).unwrap_or_default())
    })
}

/// Returns true if an attribute limits its item to tests: `test`, `cfg(test)`, or `cfg(all(…, test, …))`.
fn is_test(attribute: &[Token<'_>]) -> bool {
    let texts: Vec<&str> = attribute.iter().map(|token| token.text).collect();
    match texts.as_slice() {
        ["test"] | ["cfg", "(", "test", ")"] => true,
        ["cfg", "(", "all", "(", inner @ .., ")", ")"] => has_test(inner),
        _ => false,
    }
}

/// Returns true if `test` is in the list itself instead of in a nested `any` or `not`.
fn has_test(list: &[&str]) -> bool {
    let mut depth = 0usize;
    for text in list {
        match *text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            "test" if depth == 0 => return true,
            _ => {}
        }
    }
    false
}

/// Returns the index after the item, field, arm or statement that begins at `at`, possibly with further attributes.
fn after_item(tokens: &[Token<'_>], mut at: usize) -> usize {
    while let Some((_, after)) = attribute(tokens, at) {
        at = after;
    }
    let mut first = at;
    while let Some(token) = tokens.get(first)
        && ["pub", "(", ")", "crate", "super", "in", "unsafe", "async", "default"]
            .iter()
            .any(|text| token.is(text))
    {
        first += 1;
    }
    let begins = |words: &[&str]| {
        tokens
            .get(first)
            .is_some_and(|token| words.iter().any(|word| token.is(word)))
    };
    let constant = begins(&["const"]);
    let function = constant && tokens[first..].iter().take(4).any(|token| token.is("fn"));
    let body = begins(BODIES) || function || begins(&["{", "if", "match", "loop", "while", "for"]);
    let statement = begins(STATEMENTS) || (constant && !function);
    let field = tokens.get(first + 1).is_some_and(|token| token.is(":"));
    let mut angles = 0usize;
    while let Some(token) = tokens.get(at) {
        if token.is(";") {
            return at + 1;
        }
        if field && token.is("<") {
            angles += 1;
        } else if field && token.is(">") {
            angles = angles.saturating_sub(1);
        }
        if !body && !statement && angles == 0 && token.is(",") {
            return at + 1;
        }
        // The last field or arm of a list ends where the list ends.
        if [")", "]", "}"].iter().any(|text| token.is(text)) {
            return at;
        }
        if ["(", "[", "{"].iter().any(|text| token.is(text)) {
            let braces = token.is("{");
            at = after_group(tokens, at);
            if braces && body {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::super::token::tokens;
    use super::*;

    #[test]
    fn test_code_is_removed() {
        let rows = [
            ("#[cfg(test)] mod tests { use super::*; } a", "a"),
            ("#[cfg(test)] mod tests; a", "a"),
            ("#[cfg(test)] #[path = \"x.rs\"] mod tests; a", "a"),
            ("#[cfg(test)] use a::{b, c}; d", "d"),
            ("#[cfg(test)] pub(crate) fn f<A, B>(a: [u8; 3]) -> A { g(); } a", "a"),
            ("#[cfg(test)] static A: [u8; 2] = { [1, 2] }; b", "b"),
            ("#[cfg(test)] const fn f() {} b", "b"),
            ("#[cfg(test)] const A: B<C, D> = E { f, g }; b", "b"),
            (
                "struct A { #[cfg(test)] b: C<D, crate::g::H>, e: F }",
                "struct A { e : F }",
            ),
            ("struct A { e: F, #[cfg(test)] b: C }", "struct A { e : F , }"),
            ("match a { #[cfg(test)] B => { c }, D => e }", "match a { D => e }"),
            ("#[test] fn f() { a } b", "b"),
            ("#[cfg(all(test, unix))] mod a {} b", "b"),
            (
                "#[cfg(any(test, unix))] mod a {}",
                "# [ cfg ( any ( test , unix ) ) ] mod a { }",
            ),
            (
                "#[cfg(all(unix, not(test)))] a",
                "# [ cfg ( all ( unix , not ( test ) ) ) ] a",
            ),
            ("#[cfg(not(test))] a", "# [ cfg ( not ( test ) ) ] a"),
            ("#![cfg(test)] use a::b;", ""),
            ("#[cfg(test)] impl A { fn b() {} } c", "c"),
            ("fn f() { #[cfg(test)] if a { b } c }", "fn f ( ) { c }"),
            ("fn f() { #[cfg(test)] let a = B { c }; d }", "fn f ( ) { d }"),
        ];
        for (text, expected) in rows {
            let all = tokens(text);
            let kept: Vec<_> = shipped(&all).iter().map(|token| token.text).collect();
            let expected: Vec<_> = tokens(expected).iter().map(|token| token.text).collect();
            assert_eq!(kept, expected, "{text}");
        }
    }
}
