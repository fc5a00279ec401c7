//! Checks the project's rules that the compiler cannot check. Each rule is a function over the sources that returns its
//! violations.

mod cycles;
mod dependencies;
mod listed;
mod names;
mod opening;
mod paths;
mod pending;
mod prose;
mod shipped;
mod statics;
mod token;
mod tree;
mod unsafety;
mod versions;

use crate::{Failure, repository};
use clap::Args;
use names::Names;
use pending::Pending;
use prose::Words;
use statics::Statics;
use std::fs;
use std::path::{Path, PathBuf};
use tree::{Sources, Tree};

#[derive(Args, Default)]
pub struct Options {
    /// Also list the violations of wording in this folder, even if it is listed as pending
    folder: Option<String>,
}

/// Checks every rule, prints the counts of the wording rules, and fails on any violation.
pub fn run(options: &Options) -> Result<(), Failure> {
    let root = repository::root();
    let words = Words::new()?;
    let mut pending = Pending::new(options.folder.clone());
    let mut violations = files(&root, &words, &mut pending)?;
    for (name, allowed) in dependencies::ALLOWED {
        if let Ok(text) = fs::read_to_string(root.join("crates").join(name).join("Cargo.toml")) {
            violations.extend(dependencies::check(name, allowed, &text));
        }
    }
    let (mut statics, mut names) = (Statics::new(), Names::new());
    for folder in crates(&root)? {
        let sources = sources(&root.join(&folder).join("src"))?;
        let tree = Tree::new(&sources);
        violations.extend(cycles::check(&folder, &tree));
        violations.extend(versions::check(&folder, &tree));
        violations.extend(statics.check(&folder, &tree));
        pending.type_names(&folder, names.check(&folder, &tree));
        for part in tree.parts() {
            let shown = format!("{folder}/src/{}", part.file);
            pending.prose(&shown, prose::messages(&words, &part.code));
        }
    }
    violations.extend(statics.left());
    violations.extend(names.left());
    print!("{}", pending.report());
    violations.extend(pending.violations());
    if violations.is_empty() {
        Ok(())
    } else {
        Err(format!("\n  {}", violations.join("\n  ")).into())
    }
}

/// Checks the rules that look at one file at a time, test code included, and returns the violations.
fn files(root: &Path, words: &Words, pending: &mut Pending) -> Result<Vec<String>, Failure> {
    let mut violations = Vec::new();
    for folder in [
        "crates",
        "xtask/src",
        "xtask/h3i/src",
        "bench/floor/src",
        "bench/h3/src",
        "fuzz",
    ] {
        for path in repository::files(&root.join(folder), "rs").unwrap_or_default() {
            let text = fs::read_to_string(&path)?;
            let shown = relative(root, &path);
            violations.extend(opening::check(&shown, &text));
            violations.extend(unsafety::check(&shown, &token::tokens(&text)));
            pending.prose(&shown, prose::comments(words, &text));
        }
    }
    Ok(violations)
}

/// Returns the folders of the crates whose module trees are checked, sorted.
fn crates(root: &Path) -> Result<Vec<String>, Failure> {
    let mut folders = ["bench/floor", "bench/h3", "xtask", "xtask/h3i"]
        .map(String::from)
        .to_vec();
    for entry in fs::read_dir(root.join("crates"))? {
        let path = entry?.path();
        if path.join("Cargo.toml").is_file() {
            folders.push(relative(root, &path));
        }
    }
    folders.sort();
    Ok(folders)
}

/// Reads the sources below `folder`. The keys are paths relative to `folder`.
fn sources(folder: &Path) -> Result<Sources, Failure> {
    let paths: Vec<PathBuf> = repository::files(folder, "rs")?;
    let mut sources = Sources::new();
    for path in paths {
        sources.insert(relative(folder, &path), fs::read_to_string(&path)?);
    }
    Ok(sources)
}

/// Returns `path` relative to `root`, with slashes on every system.
fn relative(root: &Path, path: &Path) -> String {
    let path = path.strip_prefix(root).unwrap_or(path);
    path.to_string_lossy().replace('\\', "/")
}
