//! The rules of the house that no compiler knows: each is a function over the sources, and every breach is named.

use crate::{Failure, repository};
use std::fs;
use std::path::Path;

/// Our crates and those of ours each may use: arrows point down only (ARCHITECTURE.md).
const ARROWS: &[(&str, &[&str])] = &[
    ("rocknet-proto", &[]),
    ("rocknet-io", &[]),
    ("rocknet-config", &[]),
    ("rocknet-controller", &[]),
    ("rocknet-control", &["rocknet-config"]),
    ("rocknet-blocking", &["rocknet-config", "rocknet-io"]),
    ("rocknet-log", &["rocknet-config", "rocknet-io"]),
    ("rocknet-pages", &[]),
    ("rocknet-routing", &["rocknet-config", "rocknet-proto"]),
    (
        "rocknet-certificates",
        &["rocknet-config", "rocknet-io", "rocknet-proto"],
    ),
    (
        "rocknet",
        &[
            "rocknet-proto",
            "rocknet-io",
            "rocknet-config",
            "rocknet-control",
            "rocknet-controller",
            "rocknet-blocking",
            "rocknet-certificates",
            "rocknet-log",
            "rocknet-pages",
            "rocknet-routing",
        ],
    ),
    ("rocknet-gui", &["rocknet-config", "rocknet-control"]),
];

/// Runtimes and system crates that would end the promise of `rocknet-proto` to ask for nothing.
const IMPURE: &[&str] = &["tokio", "rustix", "socket2", "libc", "mio", "jiff"];

/// The crates where `unsafe` may stand, each block with its reason.
const UNSAFE_CRATES: &[&str] = &["rocknet-io", "rocknet-controller"];

/// A test that counts allocations has to be an allocator, and that is `unsafe` by its trait; a bare loop on a ring shares
/// memory with the kernel.
const UNSAFE_FILES: &[&str] = &[
    "crates/rocknet/tests/allocations.rs",
    "bench/floor/src/bin/floor-uring.rs",
];

pub fn run() -> Result<(), Failure> {
    let root = repository::root();
    let mut breaches = Vec::new();
    for folder in ["crates", "xtask/src", "bench/floor/src", "fuzz"] {
        for path in repository::files(&root.join(folder), "rs").unwrap_or_default() {
            let text = fs::read_to_string(&path)?;
            let shown = path.strip_prefix(&root).unwrap_or(&path);
            breaches.extend(source(shown, &text));
        }
    }
    for (name, allowed) in ARROWS {
        if let Ok(text) = fs::read_to_string(root.join("crates").join(name).join("Cargo.toml")) {
            breaches.extend(manifest(name, allowed, &text));
        }
    }
    if breaches.is_empty() {
        Ok(())
    } else {
        Err(format!("\n  {}", breaches.join("\n  ")).into())
    }
}

/// What is wrong with one source file.
fn source(path: &Path, text: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    let shown = path.display();
    if !text.starts_with("//! ") {
        breaches.push(format!(
            "{shown}: a module opens with one `//!` sentence that says what it is"
        ));
    }
    let may_be_unsafe = UNSAFE_CRATES
        .iter()
        .any(|name| path.starts_with(Path::new("crates").join(name)))
        || UNSAFE_FILES.iter().any(|file| path == Path::new(file));
    for (number, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        let opens = ["unsafe {", "unsafe fn", "unsafe impl"]
            .iter()
            .any(|word| code.trim_start().contains(word));
        if opens && !may_be_unsafe && !code.contains('"') {
            breaches.push(format!(
                "{shown}:{}: `unsafe` lives in {}",
                number + 1,
                UNSAFE_CRATES.join(" and ")
            ));
        }
    }
    breaches
}

/// What is wrong with the dependencies of one of our crates; those for tests alone are free.
fn manifest(name: &str, allowed: &[&str], text: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    let mut section = "";
    for line in text.lines() {
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']');
            continue;
        }
        if !section.ends_with("dependencies") || section.ends_with("dev-dependencies") {
            continue;
        }
        let used = line.split(['.', '=', ' ']).next().unwrap_or_default();
        if used.starts_with("rocknet") && !allowed.contains(&used) {
            breaches.push(format!("{name} uses {used}: arrows point down only"));
        }
        if name == "rocknet-proto" && IMPURE.contains(&used) {
            breaches.push(format!(
                "{name} uses {used}: time, bytes and randomness are arguments there"
            ));
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources() {
        let rows = [
            ("crates/rocknet/src/a.rs", "//! A noun.\nfn f() {}\n", 0),
            ("crates/rocknet/src/a.rs", "fn f() {}\n", 1),
            ("crates/rocknet/src/a.rs", "//! A noun.\nfn f() { unsafe { g() } }\n", 1),
            ("crates/rocknet/src/a.rs", "//! A noun.\n// unsafe { } is far away\n", 0),
            (
                "crates/rocknet-io/src/a.rs",
                "//! A noun.\nfn f() { unsafe { g() } }\n",
                0,
            ),
        ];
        for (path, text, expected) in rows {
            assert_eq!(source(Path::new(path), text).len(), expected, "{path}: {text:?}");
        }
    }

    #[test]
    fn manifests() {
        let rows = [
            ("rocknet-proto", "[dependencies]\nmemchr.workspace = true\n", 0),
            ("rocknet-proto", "[dependencies]\ntokio.workspace = true\n", 1),
            ("rocknet-proto", "[dev-dependencies]\ntokio.workspace = true\n", 0),
            (
                "rocknet-config",
                "[dependencies]\nrocknet = { path = \"../rocknet\" }\n",
                1,
            ),
            ("rocknet-config", "[package]\nname = \"rocknet-config\"\n", 0),
            (
                "rocknet-config",
                "[target.'cfg(unix)'.dependencies]\nrocknet-io.workspace = true\n",
                1,
            ),
        ];
        for (name, text, expected) in rows {
            assert_eq!(manifest(name, &[], text).len(), expected, "{name}: {text:?}");
        }
    }
}
