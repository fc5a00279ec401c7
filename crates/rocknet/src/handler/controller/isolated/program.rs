//! The program that runs libraries.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// How this program is told that it is to run a library. Nobody types it.
pub const RUN_LIBRARY_ARGUMENT: &str = "run-isolated-library";

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Where the program is that runs libraries: one whose `main` asks [`run_if_child`]. Without it there are no isolated controllers.
/// The first who says so is heard.
pub fn set_program(program: impl Into<PathBuf>) {
    let _ = PROGRAM.set(program.into());
}

pub fn program() -> Option<&'static Path> {
    PROGRAM.get().map(PathBuf::as_path)
}
