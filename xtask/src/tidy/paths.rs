//! Reads the paths in a module's code: `use` declarations, paths in expressions and types, and definitions.

use super::token::Token;
use std::collections::BTreeSet;

/// Keywords before the name of an item.
const ITEMS: &[&str] = &[
    "fn",
    "struct",
    "enum",
    "union",
    "trait",
    "type",
    "const",
    "static",
    "macro_rules",
];

/// One name that a `use` declaration brings into scope.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Use {
    pub path: Vec<String>,
    /// The name in scope; `*` for all names of the path, `_` for an import without a name.
    pub alias: String,
    /// True for a re-export: `pub use`, also `pub(crate) use`.
    pub public: bool,
    pub line: usize,
}

/// A path of two segments or more outside of `use`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written {
    pub path: Vec<String>,
    pub line: usize,
}

/// Imports, paths and definitions of one module's code.
#[derive(Default, Debug)]
pub struct Paths {
    pub uses: Vec<Use>,
    pub written: Vec<Written>,
    /// Single names, which are not part of a path.
    pub bare: BTreeSet<String>,
    /// Names of the items that the code defines.
    pub items: BTreeSet<String>,
}

impl Paths {
    pub fn read(code: &[Token<'_>]) -> Paths {
        let mut paths = Paths::default();
        let mut at = 0;
        let mut depth = 0usize;
        while let Some(token) = code.get(at) {
            let next = |text: &str| code.get(at + 1).is_some_and(|next| next.is(text));
            let after = |text: &str| at > 0 && code[at - 1].is(text);
            if token.is("{") {
                depth += 1;
            } else if token.is("}") {
                depth = depth.saturating_sub(1);
            } else if token.is("use") && !next("<") {
                let public = after("pub") || (after(")") && is_restricted(&code[..at]));
                at = Tree { code, public }.read(at + 1, &[], &mut paths.uses);
                continue;
            } else if token.is_name() && !after("::") && !after(".") {
                if next("::") {
                    let (path, end) = segments(code, at);
                    // The path in `pub(in crate::a)` limits the visibility of an item and imports nothing.
                    if !(after("in") && at > 2 && code[at - 2].is("(") && code[at - 3].is("pub")) {
                        paths.written.push(Written { path, line: token.line });
                    }
                    at = end;
                    continue;
                }
                let names_item = ITEMS.iter().any(|item| after(item));
                let names_macro = after("!") && at > 1 && code[at - 2].is("macro_rules");
                if names_macro || (names_item && depth == 0) {
                    paths.items.insert(token.text.to_owned());
                } else if !names_item && !next(":") {
                    paths.bare.insert(token.text.to_owned());
                }
            }
            at += 1;
        }
        paths
    }
}

/// Returns true if `code` ends in `pub(…)`.
fn is_restricted(code: &[Token<'_>]) -> bool {
    let open = code.iter().rposition(|token| token.is("("));
    open.is_some_and(|open| open > 0 && code[open - 1].is("pub"))
}

/// Returns the segments of the path that begins at `at`, and the index after it.
fn segments(code: &[Token<'_>], mut at: usize) -> (Vec<String>, usize) {
    let mut path = vec![code[at].text.to_owned()];
    while code.get(at + 1).is_some_and(|next| next.is("::"))
        && let Some(name) = code.get(at + 2).filter(|name| name.is_name())
    {
        path.push(name.text.to_owned());
        at += 2;
    }
    (path, at + 1)
}

/// The tree of one `use` declaration.
struct Tree<'t, 'a> {
    code: &'t [Token<'a>],
    public: bool,
}

impl Tree<'_, '_> {
    /// Reads the branch that begins at `at` below the path `above`, and returns the index after the branch.
    fn read(&self, mut at: usize, above: &[String], found: &mut Vec<Use>) -> usize {
        let mut path = above.to_vec();
        let mut line = self.code.get(at).map_or(0, |token| token.line);
        while let Some(token) = self.code.get(at) {
            at += 1;
            if token.is("::") && path.is_empty() {
                // `::name` is another crate. No module is named `::`, so the path resolves to no module.
                path.push(String::from("::"));
            } else if token.is("*") {
                self.end(path.clone(), "*", line, found);
            } else if token.is("{") {
                while self.code.get(at).is_some_and(|token| !token.is("}")) {
                    at = self.read(at, &path, found);
                    if self.code.get(at).is_some_and(|token| token.is(",")) {
                        at += 1;
                    }
                }
                at += 1;
                path.clear();
            } else if token.is("as") {
                let alias = self.code.get(at).map_or("_", |token| token.text);
                self.end(path.clone(), alias, line, found);
                path.clear();
                at += 1;
            } else if token.is_name() {
                path.push(token.text.to_owned());
                line = token.line;
                let continues = self.code.get(at).is_some_and(|next| next.is("::") || next.is("as"));
                if !continues {
                    let alias = path.iter().rev().find(|name| *name != "self").cloned();
                    self.end(path.clone(), &alias.unwrap_or_default(), line, found);
                }
            } else if token.is(",") || token.is("}") || token.is(";") {
                return if token.is(";") { at } else { at - 1 };
            }
        }
        at
    }

    /// Adds the name that `path` leads to. A final `self` stands for the path before it.
    fn end(&self, mut path: Vec<String>, alias: &str, line: usize, found: &mut Vec<Use>) {
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        found.push(Use {
            path,
            alias: alias.to_owned(),
            public: self.public,
            line,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::token::tokens;
    use super::*;

    #[test]
    fn use_declarations_are_read() {
        let rows: [(&str, &[&str]); 12] = [
            ("use crate::a;", &["crate::a as a 1"]),
            (
                "use crate::a::{self, B, c::{D, E as F}};",
                &[
                    "crate::a as a 1",
                    "crate::a::B as B 1",
                    "crate::a::c::D as D 1",
                    "crate::a::c::E as F 1",
                ],
            ),
            ("use super::*;", &["super as * 1"]),
            ("use super::super::A as _;", &["super::super::A as _ 1"]),
            ("pub use self::a::B;", &["pub self::a::B as B 1"]),
            ("pub(crate) use a::B;", &["pub a::B as B 1"]),
            ("pub(in crate::a) use b::C;", &["pub b::C as C 1"]),
            ("fn f(a: u8) { use a::B; }", &["a::B as B 1"]),
            (
                "use crate::{\n a::A,\n b::B,\n};",
                &["crate::a::A as A 2", "crate::b::B as B 3"],
            ),
            ("use ::a::B;", &["::::a::B as B 1"]),
            ("fn f() -> impl use<'a> A {}", &[]),
            ("use {a::B, c::D};", &["a::B as B 1", "c::D as D 1"]),
        ];
        for (text, expected) in rows {
            let paths = Paths::read(&tokens(text));
            let shown = paths.uses.iter().map(|one| {
                let public = if one.public { "pub " } else { "" };
                format!("{public}{} as {} {}", one.path.join("::"), one.alias, one.line)
            });
            assert_eq!(shown.collect::<Vec<_>>(), expected, "{text}");
        }
    }

    #[test]
    fn paths_outside_of_use_are_read() {
        let rows: [(&str, &[&str]); 7] = [
            ("fn f() -> crate::a::B { c::d::<E>() }", &["crate::a::B", "c::d"]),
            ("<A as crate::b::C>::d()", &["crate::b::C"]),
            ("$crate::a::b!(super::c::D)", &["crate::a::b", "super::c::D"]),
            ("pub(in crate::a) struct B;", &[]),
            ("for a in crate::b::c() {}", &["crate::b::c"]),
            ("use crate::a::B; C::d", &["C::d"]),
            ("a.b::<C>()", &[]),
        ];
        for (text, expected) in rows {
            let paths = Paths::read(&tokens(text));
            let shown: Vec<_> = paths.written.iter().map(|one| one.path.join("::")).collect();
            assert_eq!(shown, expected, "{text}");
        }
    }

    #[test]
    fn items_and_single_names_are_read() {
        let code = tokens("pub fn a(b: C) { d.e(f) } struct G { h: I } macro_rules! j {}");
        let paths = Paths::read(&code);
        let names = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(" ");
        assert_eq!(names(&paths.items), "G a j");
        assert_eq!(names(&paths.bare), "C I d f fn macro_rules pub struct");
    }
}
