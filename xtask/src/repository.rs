//! Paths of the repository: the root of the checkout, the target folder, and lists of source files.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the root of the checkout: the folder above this crate. `cargo run` sets the folder of the crate in the
/// environment; a program that is started without cargo uses the folder in which it was built.
pub fn root() -> PathBuf {
    let here = env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    here.parent().unwrap_or(&here).to_path_buf()
}

/// Returns the target folder of cargo. `bench/floor`, a separate workspace, is built into a folder below the target
/// folder.
pub fn target() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// Returns every file below `folder` whose name ends in `.suffix`, sorted. Build output and hidden folders are left
/// out.
pub fn files(folder: &Path, suffix: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    walk(folder, suffix, &mut found)?;
    found.sort();
    Ok(found)
}

fn walk(folder: &Path, suffix: &str, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let name = entry.file_name();
        if kind.is_dir() && name != "target" && !name.to_string_lossy().starts_with('.') {
            walk(&path, suffix, found)?;
        } else if kind.is_file() && path.extension().is_some_and(|extension| extension == suffix) {
            found.push(path);
        }
    }
    Ok(())
}
