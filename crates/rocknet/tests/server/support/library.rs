//! Compiles shared libraries for tests from C, with the C compiler that links the tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

use super::Folder;

/// Compiles `controllers/library.c` with these definitions, such as `WORD="two"`, and writes it into a folder.
pub fn put(folder: &Folder, name: &str, definitions: &[&str]) {
    build(&folder.path(name), definitions);
}

/// Returns the path of the library without definitions, which is compiled once for all tests.
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
    // The library is renamed into place, so that no test can load a half-written file.
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
