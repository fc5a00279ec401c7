//! Tests QPACK against another implementation in both directions, with dynamic tables and blocked streams.

use crate::command::{cargo, command, output, run as run_command};
use crate::{Failure, repository, tools};
use std::fs;
use std::path::Path;

/// The other implementation, in a fixed version.
const PACKAGE: &str = "pylsqpack==1.0.0";
/// Script that encodes field sections for RockNet and decodes the field sections of RockNet.
const SCRIPT: &str = include_str!("field_sections.py");

pub fn run(_: &Path) -> Result<(), Failure> {
    run_command(cargo().args([
        "build",
        "--locked",
        "--quiet",
        "-p",
        "rocknet-proto",
        "--example",
        "qpack_pipe",
    ]))?;
    let packages = tools::python_packages("qpack", &[PACKAGE])?;
    let folder = tempfile::tempdir()?;
    let script = folder.path().join("field_sections.py");
    fs::write(&script, SCRIPT)?;
    let printed = output(
        command("python3")
            .arg(&script)
            .arg(repository::target().join("debug/examples/qpack_pipe"))
            .env("PYTHONPATH", &packages),
    )?;
    print!("{printed}");
    Ok(())
}
