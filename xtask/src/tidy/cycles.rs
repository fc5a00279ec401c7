//! Finds import cycles: modules and files of a crate may import each other in one direction only.

mod graph;
mod imports;
mod known;

use super::tree::Tree;
use graph::{Graph, cycles, shortest};
use imports::{Import, imports};
use known::{KNOWN_FILES, KNOWN_MODULES, Known};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the violations in the imports of the crate at `folder`.
pub fn check(folder: &str, tree: &Tree<'_>) -> Vec<String> {
    let mut violations = Vec::new();
    for file in &tree.stray {
        violations.push(format!(
            "{folder}/src/{file}: no `mod` declares this file, so no rule checks it"
        ));
    }
    let imports = imports(tree);
    violations.extend(judge(
        folder,
        "modules",
        &between_modules(tree, &imports),
        KNOWN_MODULES,
    ));
    violations.extend(judge(folder, "files", &between_files(tree, &imports), KNOWN_FILES));
    violations
}

/// Targets of each node, each with the position of its first import.
type Edges = BTreeMap<String, BTreeMap<String, String>>;

/// Returns the imports between modules at the top of a crate.
fn between_modules(tree: &Tree<'_>, imports: &BTreeSet<Import>) -> Edges {
    let top = |module: usize| tree.modules[module].path.first();
    let mut edges = Edges::new();
    for import in imports {
        if let (Some(from), Some(to)) = (top(import.from), top(import.to))
            && from != to
        {
            insert(&mut edges, from, to, import);
        }
    }
    edges
}

/// Returns the imports between files. A module with a file for each operating system counts with each file. Imports by
/// a root are left out, because a root declares all modules.
fn between_files(tree: &Tree<'_>, imports: &BTreeSet<Import>) -> Edges {
    let mut edges = Edges::new();
    for import in imports.iter().filter(|import| !import.passes) {
        let root = &tree.modules[import.from].root;
        for part in &tree.modules[import.to].parts {
            if part.file != import.file && import.file != *root {
                insert(&mut edges, &import.file, &part.file, import);
            }
        }
    }
    edges
}

/// Adds an edge, and keeps the position of its first import.
fn insert(edges: &mut Edges, from: &str, to: &str, import: &Import) {
    edges.entry(to.to_owned()).or_default();
    let positions = edges.entry(from.to_owned()).or_default();
    let position = format!("{}:{}", import.file, import.line);
    positions.entry(to.to_owned()).or_insert(position);
}

/// Returns the cycles that `known` lacks, and the members of `known` that are in no cycle.
fn judge(folder: &str, kind: &str, edges: &Edges, known: &[Known]) -> Vec<String> {
    let graph: Graph = edges
        .iter()
        .map(|(from, to)| (from.clone(), to.keys().cloned().collect()))
        .collect();
    let known: Vec<BTreeSet<String>> = known
        .iter()
        .filter(|known| known.folder == folder)
        .map(|known| known.members.iter().map(|&member| member.to_owned()).collect())
        .collect();
    let mut unused: BTreeSet<String> = known.iter().flatten().cloned().collect();
    let mut violations = Vec::new();
    for group in cycles(&graph) {
        unused.retain(|member| !group.contains(member));
        if known.iter().any(|known| group.is_subset(known)) {
            continue;
        }
        let listed: BTreeSet<String> = known.iter().flatten().cloned().collect();
        let new: Vec<&str> = group.difference(&listed).map(String::as_str).collect();
        let cause = if new.is_empty() {
            String::from("two known cycles are joined")
        } else {
            format!("new members: {}", new.join(", "))
        };
        violations.push(format!(
            "{folder}: {} {kind} import each other in a cycle ({cause}), such as {}",
            group.len(),
            example(&graph, edges, &group)
        ));
    }
    let unused = unused.into_iter().map(|member| {
        format!("{folder}: {member} is in no cycle of {kind} any more: remove it from xtask/src/tidy/cycles/known.rs")
    });
    violations.extend(unused);
    violations
}

/// Formats a shortest cycle of a group, with the position of each import.
fn example(graph: &Graph, edges: &Edges, group: &BTreeSet<String>) -> String {
    let path = shortest(graph, group);
    let steps = path.windows(2).map(|pair| {
        let position = edges.get(&pair[0]).and_then(|positions| positions.get(&pair[1]));
        format!("{} -> {} ({})", pair[0], pair[1], position.map_or("", String::as_str))
    });
    steps.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
