//! Resolves every path of a crate to the module that defines its name, through re-exports.

use super::super::paths::{Paths, Use};
use super::super::tree::Tree;
use std::collections::BTreeSet;

/// Maximum number of re-exports between a path and the definition of its name. More re-exports form a circle.
const MAX_STEPS: usize = 8;

/// Import of one module or file by another.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Import {
    /// Index of the importing module in `Tree::modules`.
    pub from: usize,
    /// Index of the imported module in `Tree::modules`.
    pub to: usize,
    /// True if the path only leads through `to` to a name that another module defines. The path connects the two
    /// modules, but not the files.
    pub passes: bool,
    pub file: String,
    pub line: usize,
}

/// Returns every import between modules of `tree`, except imports by the roots.
pub fn imports(tree: &Tree<'_>) -> BTreeSet<Import> {
    let parts = tree.modules.iter().map(|module| {
        let read = module.parts.iter().map(|part| Paths::read(&part.code));
        read.collect()
    });
    let resolver = Resolver {
        tree,
        parts: parts.collect(),
    };
    let mut found = BTreeSet::new();
    for module in 0..tree.modules.len() {
        if !tree.modules[module].path.is_empty() {
            for part in 0..tree.modules[module].parts.len() {
                resolver.read(module, part, &mut found);
            }
        }
    }
    found
}

struct Resolver<'t, 'a> {
    tree: &'t Tree<'a>,
    /// Paths in the parts of each module.
    parts: Vec<Vec<Paths>>,
}

/// Target of a path: the module, and true if the path continues with the name of an item in it.
type PathTarget = (usize, bool);

impl Resolver<'_, '_> {
    /// Adds the imports in one part of a module to `found`.
    fn read(&self, module: usize, part: usize, found: &mut BTreeSet<Import>) {
        let file = &self.tree.modules[module].parts[part].file;
        let paths = &self.parts[module][part];
        let mut add = |to: usize, line: usize, passes: bool| {
            let file = file.clone();
            if to != module {
                found.insert(Import {
                    from: module,
                    to,
                    passes,
                    file,
                    line,
                });
            }
        };
        for one in &paths.uses {
            let named = self.named(module, &one.path);
            let below = named.is_some_and(|named| self.is_below(named, module));
            let used = match (one.alias.as_str(), named) {
                ("*", Some(named)) => self.parts[named]
                    .iter()
                    .any(|child| !child.items.is_disjoint(&paths.bare)),
                (alias, _) => paths.bare.contains(alias),
            };
            // A module that re-exports names of modules below it, and does not use them, imports nothing.
            if one.public && below && !used {
                continue;
            }
            if let Some(named) = named {
                add(named, one.line, true);
            }
            let is_prefix = paths
                .written
                .iter()
                .any(|written| written.path.first() == Some(&one.alias));
            for (to, item) in self.definers(module, &one.path, 0) {
                // A module in scope is not an import until one of its names is used.
                if item || one.alias == "*" || one.public || !is_prefix {
                    add(to, one.line, false);
                }
            }
        }
        for written in &paths.written {
            if let Some(named) = self.named(module, &written.path) {
                add(named, written.line, true);
            }
            for (to, _) in self.definers(module, &written.path, 0) {
                add(to, written.line, false);
            }
        }
    }

    /// Returns the last module on `path`, without following re-exports.
    fn named(&self, module: usize, path: &[String]) -> Option<usize> {
        let (mut at, rest) = self.start(module, path)?;
        for name in rest {
            match self.tree.modules[at].children.get(name) {
                Some(&child) => at = child,
                None => break,
            }
        }
        Some(at)
    }

    /// Returns the module at which `path` starts, and the rest of the path; `None` if the path starts with a name in
    /// scope or with another crate.
    fn start<'p>(&self, module: usize, path: &'p [String]) -> Option<(usize, &'p [String])> {
        let (first, rest) = path.split_first()?;
        let modules = &self.tree.modules;
        match first.as_str() {
            "crate" => {
                let root = modules
                    .iter()
                    .position(|one| one.path.is_empty() && one.root == modules[module].root)?;
                Some((root, rest))
            }
            "self" if rest.first().is_some_and(|next| next == "super") => self.start(module, rest),
            "self" => Some((module, rest)),
            "super" => {
                let (mut at, mut rest) = (modules[module].parent, rest);
                while let Some((_, after)) = rest.split_first().filter(|(next, _)| *next == "super") {
                    (at, rest) = (modules[at].parent, after);
                }
                Some((at, rest))
            }
            name => modules[module].children.get(name).map(|&child| (child, rest)),
        }
    }

    /// Returns every module that may define the name to which `path` leads, as seen from `module`.
    fn definers(&self, module: usize, path: &[String], steps: usize) -> Vec<PathTarget> {
        if steps > MAX_STEPS {
            return Vec::new();
        }
        match self.start(module, path) {
            Some((at, rest)) => self.descend(at, rest, steps),
            None => match path.split_first() {
                Some((first, rest)) => self.follow_uses(module, first, rest, steps).unwrap_or_default(),
                None => Vec::new(),
            },
        }
    }

    /// Returns every module that may define the name to which `rest` leads from the module `at`.
    fn descend(&self, at: usize, rest: &[String], steps: usize) -> Vec<PathTarget> {
        let Some((name, after)) = rest.split_first() else {
            return vec![(at, false)];
        };
        if let Some(&child) = self.tree.modules[at].children.get(name) {
            return self.descend(child, after, steps);
        }
        self.follow_uses(at, name, after, steps)
            .unwrap_or_else(|| vec![(at, true)])
    }

    /// Follows `name` of `module` through its `use` declarations. Returns `None` if no `use` has the name, because
    /// `module` then defines it. Returns an empty list if the name leads out of the crate.
    fn follow_uses(&self, module: usize, name: &str, rest: &[String], steps: usize) -> Option<Vec<PathTarget>> {
        let follow = |one: &Use, more: &[&str]| {
            let mut path = one.path.clone();
            path.extend(more.iter().map(|&name| name.to_owned()));
            path.extend_from_slice(rest);
            self.definers(module, &path, steps + 1)
        };
        let uses = || self.parts[module].iter().flat_map(|paths| &paths.uses);
        let named: Vec<&Use> = uses().filter(|one| one.alias == name).collect();
        if !named.is_empty() {
            return Some(named.into_iter().flat_map(|one| follow(one, &[])).collect());
        }
        if self.defines(module, name) {
            return None;
        }
        let globs = uses().filter(|one| one.alias == "*");
        let found: Vec<PathTarget> = globs
            .filter(|one| {
                self.definers(module, &one.path, steps + 1)
                    .iter()
                    .any(|(to, _)| self.has_name(*to, name))
            })
            .flat_map(|one| follow(one, &[name]))
            .collect();
        (!found.is_empty()).then_some(found)
    }

    fn defines(&self, module: usize, name: &str) -> bool {
        self.parts[module].iter().any(|paths| paths.items.contains(name))
    }

    /// Returns true if `module` has `name` by a definition, a child or a `use`.
    fn has_name(&self, module: usize, name: &str) -> bool {
        self.defines(module, name)
            || self.tree.modules[module].children.contains_key(name)
            || self.parts[module]
                .iter()
                .flat_map(|paths| &paths.uses)
                .any(|one| one.alias == name)
    }

    /// Returns true if `module` is `above` or is below it. `above` must not be a root.
    fn is_below(&self, module: usize, above: usize) -> bool {
        let mut at = module;
        while at != self.tree.modules[at].parent {
            if at == above {
                return true;
            }
            at = self.tree.modules[at].parent;
        }
        false
    }
}
