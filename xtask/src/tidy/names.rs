//! Checks the names of types: one public type per name, and a short name in at most two modules of a crate.

mod known;

use super::listed::{Exceptions, Listed};
use super::token::Token;
use super::tree::{Module, Tree};
use known::{SHARED, SIBLINGS};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Maximum modules of a crate that may declare types with the same short name.
const MAX_MODULES: usize = 2;

/// State of the rule over all crates: the exceptions and siblings that were used.
pub struct Names {
    exceptions: Exceptions,
    siblings: BTreeSet<&'static str>,
}

impl Names {
    pub fn new() -> Names {
        Names::with(SHARED)
    }

    fn with(listed: &'static [Listed]) -> Names {
        Names {
            exceptions: Exceptions::new(listed),
            siblings: BTreeSet::new(),
        }
    }

    /// Returns the violations in the crate at `folder`. Test code may use any names.
    pub fn check(&mut self, folder: &str, tree: &Tree<'_>) -> Vec<String> {
        let mut violations = Vec::new();
        for (name, declarations) in self.declarations(folder, tree) {
            let public = count(declarations.iter().filter(|declaration| declaration.is_public));
            let all = count(declarations.iter());
            let cause = if public > 1 {
                format!("{public} public types share this name")
            } else if is_short(name) && all > MAX_MODULES {
                format!("{all} modules use this short name")
            } else {
                continue;
            };
            if !self.exceptions.has(folder, name) {
                let modules: BTreeSet<String> = declarations.iter().map(Declaration::to_string).collect();
                let declarations = modules.into_iter().collect::<Vec<_>>().join(", ");
                violations.push(format!(
                    "type {name}: {cause} ({declarations}): qualify it, as in `PoolState`"
                ));
            }
        }
        violations
    }

    /// Returns a violation for each exception that was not used.
    pub fn left(&self) -> Vec<String> {
        let mut violations = self.exceptions.left("the rule of type names");
        let left = SIBLINGS.iter().filter(|(name, _)| !self.siblings.contains(name));
        violations.extend(
            left.map(|(name, reason)| {
                format!("no module {name} declares a type: remove it from the siblings ({reason})")
            }),
        );
        violations
    }

    /// Returns the names of types that the crate declares, each with its modules.
    fn declarations<'a>(&mut self, folder: &str, tree: &Tree<'a>) -> BTreeMap<&'a str, Vec<Declaration>> {
        let mut declarations: BTreeMap<&str, Vec<Declaration>> = BTreeMap::new();
        for module in &tree.modules {
            let (family, sibling) = self.family(module);
            for part in &module.parts {
                for declared in declared(&part.code) {
                    declarations.entry(declared.name).or_default().push(Declaration {
                        path: module.path.clone(),
                        root: match module.root.as_str() {
                            "lib.rs" | "main.rs" => String::from("crate"),
                            root => format!("{folder}/src/{root}"),
                        },
                        family,
                        sibling,
                        is_public: declared.is_public,
                    });
                }
            }
        }
        declarations
    }

    /// Returns the number of names before the first sibling (see [`SIBLINGS`]) in the path of `module`, and the
    /// sibling. Without a sibling, returns the number of all names and an empty string.
    fn family(&mut self, module: &Module<'_>) -> (usize, &'static str) {
        for (at, name) in module.path.iter().enumerate() {
            if let Some((sibling, _)) = SIBLINGS.iter().find(|(sibling, _)| sibling == name) {
                self.siblings.insert(sibling);
                return (at, sibling);
            }
        }
        (module.path.len(), "")
    }
}

/// Declaration of a type with a given name: its module and visibility.
struct Declaration {
    root: String,
    path: Vec<String>,
    /// Number of names in `path` before `sibling`.
    family: usize,
    /// First sibling in `path`; empty if there is no sibling.
    sibling: &'static str,
    is_public: bool,
}

impl fmt::Display for Declaration {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}", self.root)?;
        self.path.iter().try_for_each(|name| write!(to, "::{name}"))
    }
}

/// Modules below each sibling of one family.
type Siblings<'a> = BTreeMap<&'a str, BTreeSet<&'a [String]>>;

/// Returns the number of modules with these declarations. Of siblings only the one with the most modules counts,
/// because their types have the same names by design.
fn count<'a>(declarations: impl Iterator<Item = &'a Declaration>) -> usize {
    let mut families: BTreeMap<(&str, &[String]), Siblings<'_>> = BTreeMap::new();
    for declaration in declarations {
        let (before, after) = declaration.path.split_at(declaration.family);
        let family = families.entry((&declaration.root, before)).or_default();
        family.entry(declaration.sibling).or_default().insert(after);
    }
    // A family without siblings is one module.
    let most = families.values().map(|family| family.values().map(BTreeSet::len).max());
    most.flatten().sum()
}

/// A type that a module declares.
struct Declared<'a> {
    name: &'a str,
    /// True for `pub` without a restriction such as `pub(crate)`.
    is_public: bool,
}

/// Returns true if `name` is a single word, such as `State` but not `PoolState`.
fn is_short(name: &str) -> bool {
    name.chars().skip(1).all(|letter| !letter.is_uppercase())
}

/// Returns the types that `code` declares outside of functions, blocks and macros.
fn declared<'a>(code: &[Token<'a>]) -> Vec<Declared<'a>> {
    let mut found = Vec::new();
    let mut depth = 0usize;
    for (at, token) in code.iter().enumerate() {
        if ["(", "[", "{"].iter().any(|text| token.is(text)) {
            depth += 1;
        } else if [")", "]", "}"].iter().any(|text| token.is(text)) {
            depth = depth.saturating_sub(1);
        }
        let keyword = ["struct", "enum", "union", "trait", "type"]
            .iter()
            .any(|text| token.is(text));
        let name = code.get(at + 1).filter(|name| name.is_name());
        if let Some(name) = name.filter(|_| depth == 0 && keyword) {
            let before = code[..at].iter().rev().find(|token| !token.is("unsafe"));
            found.push(Declared {
                name: name.text,
                is_public: before.is_some_and(|token| token.is("pub")),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests;
