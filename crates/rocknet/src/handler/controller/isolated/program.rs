//! The program that runs isolated libraries.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// First argument that makes the program run a library. It is internal and not part of the documented command line.
pub const RUN_LIBRARY_ARGUMENT: &str = "run-isolated-library";

/// Program that runs libraries; unset until [`set_program`] is called.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Sets the program that runs libraries. Its `main` must call [`run_if_child`](super::run_if_child). Isolated
/// controllers cannot be loaded before this call. Only the first call has an effect.
pub fn set_program(program: impl Into<PathBuf>) {
    let _ = PROGRAM.set(program.into());
}

/// Returns the program that runs libraries, if it is set.
pub fn program() -> Option<&'static Path> {
    PROGRAM.get().map(PathBuf::as_path)
}
