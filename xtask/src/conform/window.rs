//! Builds the desktop program for release, and compares its size with the budget.

use crate::command::{cargo, run as run_command};
use crate::{Failure, repository};
use std::fs;

/// Maximum size of the program in bytes.
const MAX_SIZE: u64 = 5 << 20;

/// Builds the program, and fails if it is too large. The remark has the size.
pub fn run() -> Result<Option<String>, Failure> {
    run_command(cargo().args(["build", "--release", "--locked", "-p", "rocknet-gui"]))?;
    let size = fs::metadata(repository::target().join("release/rocknet-gui"))?.len();
    let shown = format!(
        "{:.2} MiB of at most {} MiB",
        size as f64 / f64::from(1 << 20),
        MAX_SIZE >> 20
    );
    if size > MAX_SIZE {
        return Err(format!("the program is too large: {shown}").into());
    }
    Ok(Some(shown))
}
