//! Shared libraries for tests, compiled from C with the compiler that links these tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

use super::Folder;

/// Puts a library into a folder, compiled with these definitions: `WORD="two"`.
pub fn put(folder: &Folder, name: &str, definitions: &[&str]) {
    build(&folder.path(name), definitions);
}

/// The library without definitions, compiled once for all tests.
pub fn plain() -> &'static Path {
    static BUILT: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let folder = TempDir::new().expect("a temporary folder");
        let file = folder.path().join("library.so");
        build(&file, &[]);
        (folder, file)
    });
    &built.1
}

fn build(to: &Path, definitions: &[&str]) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    // In one step, as an installed build does it: no test may find half a file.
    let beside = to.with_extension("new");
    let mut compiler = Command::new("cc");
    compiler.args([
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-pedantic",
        "-fPIC",
        "-shared",
        "-O1",
        "-o",
    ]);
    compiler
        .arg(&beside)
        .arg("-I")
        .arg(here.join("../rocknet-controller/include"));
    compiler.args(definitions.iter().map(|definition| format!("-D{definition}")));
    let built = compiler
        .arg(here.join("tests/server/controllers/library.c"))
        .output()
        .expect("cc");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    std::fs::rename(&beside, to).expect("a library in its place");
}
