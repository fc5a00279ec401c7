//! Tests HPACK against another implementation in both directions, with thousands of field blocks per dynamic table.

use crate::command::{cargo, command, output, run as run_command};
use crate::{Failure, repository, tools};
use std::fs;

/// The other implementation, in a fixed version.
const PACKAGE: &str = "hpack==4.1.0";
/// Script that encodes field blocks for RockNet and decodes the field blocks of RockNet.
const SCRIPT: &str = include_str!("field_blocks.py");

pub fn run() -> Result<(), Failure> {
    run_command(cargo().args([
        "build",
        "--locked",
        "--quiet",
        "-p",
        "rocknet-proto",
        "--example",
        "hpack_pipe",
    ]))?;
    let packages = tools::python_packages("hpack", &[PACKAGE])?;
    let folder = tempfile::tempdir()?;
    let script = folder.path().join("field_blocks.py");
    fs::write(&script, SCRIPT)?;
    let printed = output(
        command("python3")
            .arg(&script)
            .arg(repository::target().join("debug/examples/hpack_pipe"))
            .env("PYTHONPATH", &packages),
    )?;
    print!("{printed}");
    Ok(())
}
