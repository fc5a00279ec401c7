//! Checks the state of the process: every static that can change must be listed with a reason.

mod known;

use super::listed::{Exceptions, Listed};
use super::token::Token;
use super::tree::Tree;
use known::{CONSTANT_TYPES, MUTABLE};
use std::collections::BTreeSet;

/// Types of the language without interior mutability.
const PLAIN_TYPES: &[&str] = &[
    "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32", "f64", "bool",
    "char", "str", "Option", "Duration",
];

/// State of the rule over all crates: the entries of its lists that were used.
pub struct Statics {
    exceptions: Exceptions,
    types: BTreeSet<&'static str>,
}

impl Statics {
    pub fn new() -> Statics {
        Statics::with(MUTABLE)
    }

    fn with(listed: &'static [Listed]) -> Statics {
        Statics {
            exceptions: Exceptions::new(listed),
            types: BTreeSet::new(),
        }
    }

    /// Returns the violations in the statics of the crate at `folder`.
    pub fn check(&mut self, folder: &str, tree: &Tree<'_>) -> Vec<String> {
        let mut violations = Vec::new();
        for part in tree.parts() {
            let file = format!("{folder}/src/{}", part.file);
            for found in statics(&part.code) {
                if found.is_constant(&mut self.types) || self.exceptions.has(&file, found.name) {
                    continue;
                }
                violations.push(format!(
                    "{file}:{}: the static {} can change: move it into an owner, or list it in xtask/src/tidy/statics/known.rs",
                    found.line, found.name
                ));
            }
        }
        violations
    }

    /// Returns a violation for each entry of the lists that was not used.
    pub fn left(&self) -> Vec<String> {
        let mut violations = self.exceptions.left("the rule of statics");
        let types = CONSTANT_TYPES.iter().filter(|name| !self.types.contains(*name));
        violations.extend(types.map(|name| format!("no static has the constant type {name}: remove it from the list")));
        violations
    }
}

/// A `static` item.
struct Static<'t, 'a> {
    name: &'a str,
    line: usize,
    mutable: bool,
    kind: &'t [Token<'a>],
}

impl Static<'_, '_> {
    /// Returns true if the static cannot change: every type in it is a type of the language or in [`CONSTANT_TYPES`].
    /// `used` collects the entries of that list. Names in capitals are lengths of arrays.
    fn is_constant(&self, used: &mut BTreeSet<&'static str>) -> bool {
        let mut constant = !self.mutable;
        for (at, token) in self.kind.iter().enumerate().filter(|(_, token)| token.is_name()) {
            let path = self.kind.get(at + 1).is_some_and(|next| next.is("::"));
            let length = token.text.len() > 1 && !token.text.contains(|letter: char| letter.is_lowercase());
            if path || length || PLAIN_TYPES.contains(&token.text) {
                continue;
            }
            match CONSTANT_TYPES.iter().find(|name| **name == token.text) {
                Some(name) => drop(used.insert(name)),
                None => constant = false,
            }
        }
        constant
    }
}

/// Returns every static of `code`, also inside functions and macros such as `thread_local!`.
fn statics<'t, 'a>(code: &'t [Token<'a>]) -> Vec<Static<'t, 'a>> {
    let mut found = Vec::new();
    for at in (0..code.len()).filter(|&at| code[at].is("static")) {
        let mutable = code.get(at + 1).is_some_and(|next| next.is("mut"));
        let mut named = at + 1 + usize::from(mutable);
        while code.get(named).is_some_and(|token| token.is("$") || token.is("ref")) {
            named += 1;
        }
        let Some(name) = code.get(named).filter(|name| name.is_name()) else {
            continue;
        };
        let rest = code.get(named + 1..).unwrap_or_default();
        let Some((_, rest)) = rest.split_first().filter(|(colon, _)| colon.is(":")) else {
            continue;
        };
        let end = end_of_type(rest);
        found.push(Static {
            name: name.text,
            line: name.line,
            mutable,
            kind: &rest[..end],
        });
    }
    found
}

/// Returns the index of the `=` or `;` after a type; the `;` of an array is inside brackets.
fn end_of_type(code: &[Token<'_>]) -> usize {
    let mut depth = 0usize;
    for (at, token) in code.iter().enumerate() {
        if token.is("[") || token.is("(") {
            depth += 1;
        } else if token.is("]") || token.is(")") {
            depth = depth.saturating_sub(1);
        } else if depth == 0 && (token.is("=") || token.is(";")) {
            return at;
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::super::tree::sources;
    use super::*;

    const ONE: &[Listed] = &[Listed {
        file: "crates/c/src/lib.rs",
        name: "A",
        reason: "of the past",
    }];

    #[test]
    fn a_static_that_can_change_must_be_listed() {
        let rows: [(&str, &'static [Listed], usize); 17] = [
            ("static A: u8 = 0;", &[], 0),
            ("static A: [&'static str; COUNT] = [\"\"; COUNT];", &[], 0),
            ("static A: &[(&str, Option<u16>)] = &[];", &[], 0),
            ("static A: AtomicU8 = AtomicU8::new(0);", &[], 1),
            ("pub(crate) static A: std::sync::Mutex<u8> = Mutex::new(0);", &[], 1),
            ("static A: [Mutex<u8>; 2] = B;", &[], 1),
            ("static A: Own = Own::new();", &[], 1),
            ("static mut A: u8 = 0;", &[], 1),
            ("fn f() { static A: OnceLock<u8> = OnceLock::new(); }", &[], 1),
            ("thread_local!(static A: Cell<u8> = const { Cell::new(0) });", &[], 1),
            (
                "thread_local! { static A: Cell<u8> = B; static C: RefCell<u8> = D; }",
                &[],
                2,
            ),
            ("macro_rules! m { ($n:ident) => { static $n: AtomicU8 = A; } }", &[], 1),
            ("fn f(a: &'static str) -> &'static Mutex<u8> { a }", &[], 0),
            ("#[cfg(test)] mod tests { static A: AtomicU8 = B; }", &[], 0),
            ("static A: AtomicU8 = B;", ONE, 0),
            ("static C: AtomicU8 = B;", ONE, 2),
            ("static A: u8 = 0;", ONE, 1),
        ];
        for (text, listed, expected) in rows {
            let sources = sources(&[("lib.rs", text)]);
            let mut statics = Statics::with(listed);
            let mut found = statics.check("crates/c", &Tree::new(&sources));
            found.extend(statics.exceptions.left("rule"));
            assert_eq!(found.len(), expected, "{text}: {found:?}");
        }
    }
}
