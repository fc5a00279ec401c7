//! Builds the module tree of a crate: the files of each module, found by following `mod` declarations from the roots.

use super::shipped::{attribute, shipped};
use super::token::{Token, after_group, tokens};
use std::collections::{BTreeMap, BTreeSet};

/// The sources of one crate by path relative to its `src` folder.
pub type Sources = BTreeMap<String, String>;

/// The modules of a crate, without test code.
pub struct Tree<'a> {
    /// Every module of every root; a root is its own parent.
    pub modules: Vec<Module<'a>>,
    /// Files that no `mod` declaration reaches. Declarations in test code count too.
    pub stray: Vec<String>,
}

/// One module: inline, or one file, or one file for each operating system.
pub struct Module<'a> {
    pub parent: usize,
    /// Names from the root down. The root itself has an empty path.
    pub path: Vec<String>,
    /// Name of the root's file.
    pub root: String,
    pub children: BTreeMap<String, usize>,
    /// Code of the module and its files, without the bodies of inline modules.
    pub parts: Vec<Part<'a>>,
}

/// The code of one module in one file.
pub struct Part<'a> {
    pub file: String,
    pub code: Vec<Token<'a>>,
}

impl<'a> Tree<'a> {
    /// Reads the tree of `sources`, starting at `lib.rs`, `main.rs` and the programs in `bin/`.
    pub fn new(sources: &'a Sources) -> Tree<'a> {
        let mut tree = Tree {
            modules: Vec::new(),
            stray: Vec::new(),
        };
        let roots = sources.keys().filter(|file| is_root(file));
        for root in roots {
            let index = tree.add(None, root, "");
            tree.read(index, root, sources);
        }
        let reached = reached(sources);
        tree.stray = sources
            .keys()
            .filter(|file| !reached.contains(*file))
            .cloned()
            .collect();
        tree
    }

    /// Returns the parts of all modules, one for each module in each file.
    pub fn parts(&self) -> impl Iterator<Item = &Part<'a>> {
        self.modules.iter().flat_map(|module| &module.parts)
    }

    /// Returns the index of a module, which is added if it is new. Without a parent it is a root.
    fn add(&mut self, parent: Option<usize>, root: &str, name: &str) -> usize {
        let index = self.modules.len();
        if let Some(&known) = parent.and_then(|parent| self.modules[parent].children.get(name)) {
            return known;
        }
        let mut path = parent
            .map(|parent| self.modules[parent].path.clone())
            .unwrap_or_default();
        if let Some(parent) = parent {
            path.push(name.to_owned());
            self.modules[parent].children.insert(name.to_owned(), index);
        }
        self.modules.push(Module {
            parent: parent.unwrap_or(index),
            path,
            root: root.to_owned(),
            children: BTreeMap::new(),
            parts: Vec::new(),
        });
        index
    }

    /// Reads a file of a module, if the file exists.
    fn read(&mut self, module: usize, file: &str, sources: &'a Sources) {
        if let Some(text) = sources.get(file) {
            let code = shipped(&tokens(text));
            self.split(module, file, &folder_of_children(file), &code, sources);
        }
    }

    /// Stores `code` as a part of `module`, without the modules that `code` declares, and descends into these modules.
    fn split(&mut self, module: usize, file: &str, folder: &str, code: &[Token<'a>], sources: &'a Sources) {
        let root = self.modules[module].root.clone();
        let mut kept = Vec::new();
        let mut at = 0;
        for declared in declared(code) {
            kept.extend_from_slice(&code[at..declared.from]);
            at = declared.to;
            let child = self.add(Some(module), &root, declared.name);
            match declared.body {
                Some((start, end)) => {
                    let below = join(folder, declared.name);
                    self.split(child, file, &below, &code[start..end], sources);
                }
                None => {
                    for below in candidates(file, folder, &declared) {
                        self.read(child, &below, sources);
                    }
                }
            }
        }
        kept.extend_from_slice(&code[at..]);
        let part = Part {
            file: file.to_owned(),
            code: kept,
        };
        self.modules[module].parts.push(part);
    }
}

/// Returns every file that is reached from a root, test code included.
fn reached(sources: &Sources) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<String> = sources.keys().filter(|file| is_root(file)).cloned().collect();
    while let Some(file) = open.pop() {
        if let Some(text) = sources.get(&file)
            && reached.insert(file.clone())
        {
            follow(&file, &folder_of_children(&file), &tokens(text), &mut open);
        }
    }
    reached
}

/// Adds the possible files of the modules that `code` declares to `open`.
fn follow(file: &str, folder: &str, code: &[Token<'_>], open: &mut Vec<String>) {
    for declared in declared(code) {
        match declared.body {
            Some((start, end)) => follow(file, &join(folder, declared.name), &code[start..end], open),
            None => open.extend(candidates(file, folder, &declared)),
        }
    }
}

/// A `mod` declaration.
struct Declared<'a> {
    name: &'a str,
    /// Value of `#[path = "…"]`.
    path: Option<String>,
    /// Token range of the body of an inline module.
    body: Option<(usize, usize)>,
    /// Index of the first token of the declaration.
    from: usize,
    /// Index after the declaration.
    to: usize,
}

/// Returns the modules that `code` declares, in order. Declarations inside of inline modules are not included.
fn declared<'a>(code: &[Token<'a>]) -> Vec<Declared<'a>> {
    let mut found = Vec::new();
    let mut path = None;
    let mut at = 0;
    while at < code.len() {
        if let Some((inside, after)) = attribute(code, at) {
            if let [name, equals, value] = inside
                && name.is("path")
                && equals.is("=")
            {
                path = Some(value.text.trim_matches('"').to_owned());
            }
            at = after;
            continue;
        }
        let named = code.get(at + 1).filter(|name| code[at].is("mod") && name.is_name());
        match (named, code.get(at + 2)) {
            (Some(name), Some(next)) if next.is(";") || next.is("{") => {
                let inline = next.is("{");
                let to = if inline { after_group(code, at + 2) } else { at + 3 };
                found.push(Declared {
                    name: name.text,
                    path: path.take(),
                    body: inline.then(|| (at + 3, to.saturating_sub(1).max(at + 3))),
                    from: at,
                    to,
                });
                at = to;
            }
            _ => {
                if ["pub", "(", ")", "crate", "super"]
                    .iter()
                    .all(|text| !code[at].is(text))
                {
                    path = None;
                }
                at += 1;
            }
        }
    }
    found
}

/// Returns the possible files of a declared module.
fn candidates(file: &str, folder: &str, declared: &Declared<'_>) -> Vec<String> {
    match &declared.path {
        Some(path) => {
            let beside = file.rsplit_once('/').map_or("", |(folder, _)| folder);
            vec![join(beside, path)]
        }
        None => {
            let base = join(folder, declared.name);
            vec![format!("{base}.rs"), format!("{base}/mod.rs")]
        }
    }
}

/// Returns the folder for the child modules of the module in `file`.
fn folder_of_children(file: &str) -> String {
    let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    if is_root(file) || name == "mod.rs" {
        folder.to_owned()
    } else {
        file.trim_end_matches(".rs").to_owned()
    }
}

fn is_root(file: &str) -> bool {
    // A file outside `bin/` gets a slash, so that it is no program.
    let program = file.strip_prefix("bin/").unwrap_or("/");
    ["lib.rs", "main.rs"].contains(&file) || !program.contains('/')
}

fn join(folder: &str, name: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in name.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// Builds the sources of a crate from rows of path and text, for tests.
#[cfg(test)]
pub fn sources(rows: &[(&str, &str)]) -> Sources {
    let owned = rows.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
    owned.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(rows: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let sources = sources(rows);
        let tree = Tree::new(&sources);
        let modules = tree.modules.iter().map(|module| {
            let files: Vec<_> = module.parts.iter().map(|part| part.file.as_str()).collect();
            format!("{}={}", module.path.join("::"), files.join(","))
        });
        let mut modules: Vec<_> = modules.collect();
        modules.sort();
        (modules, tree.stray.clone())
    }

    #[test]
    fn modules_are_found_by_their_declarations() {
        let (modules, stray) = shown(&[
            ("lib.rs", "mod a; pub mod b; #[cfg(test)] mod t; mod i { mod j; }"),
            (
                "a.rs",
                "mod c; #[cfg(unix)] #[path = \"a/x.rs\"] mod s; #[cfg(not(unix))] #[path = \"a/y.rs\"] mod s;",
            ),
            ("a/c.rs", ""),
            ("a/x.rs", ""),
            ("a/y.rs", ""),
            ("b/mod.rs", "mod d;"),
            ("b/d.rs", "#[cfg(test)] mod tests;"),
            ("b/d/tests.rs", ""),
            ("i/j.rs", ""),
            ("t.rs", "mod u;"),
            ("t/u.rs", ""),
            ("bin/p.rs", ""),
            ("left.rs", ""),
        ]);
        let expected = [
            "=bin/p.rs",
            "=lib.rs",
            "a::c=a/c.rs",
            "a::s=a/x.rs,a/y.rs",
            "a=a.rs",
            "b::d=b/d.rs",
            "b=b/mod.rs",
            "i::j=i/j.rs",
            "i=lib.rs",
        ];
        assert_eq!(modules, expected);
        assert_eq!(stray, ["left.rs"]);
    }
}
