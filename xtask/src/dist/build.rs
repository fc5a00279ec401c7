//! Builds the static program with musl, and names the target of ordinary builds.

use crate::command::{cargo, command, find, output, run};
use crate::{Failure, repository};
use std::path::PathBuf;

/// Target of the static program.
pub const TRIPLE: &str = "x86_64-unknown-linux-musl";

/// Returns the target triple of this machine.
pub fn host() -> Result<&'static str, Failure> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("x86_64-unknown-linux-gnu"),
        "aarch64" => Ok("aarch64-unknown-linux-gnu"),
        other => Err(format!("packages for {other} are not supported").into()),
    }
}

/// Builds the static program. Fails with instructions if the target or its C compiler is missing.
pub fn build() -> Result<PathBuf, Failure> {
    let libraries = output(command("rustc").args(["--print", "target-libdir", "--target", TRIPLE]))?;
    if !PathBuf::from(libraries.trim()).is_dir() {
        return Err(format!("the target {TRIPLE} is missing: run `rustup target add {TRIPLE}`").into());
    }
    if find("musl-gcc").is_none() {
        return Err("musl-gcc is missing: on Debian, run `apt-get install musl-tools`".into());
    }
    run(cargo()
        .args(["build", "--release", "--locked", "-p", "rocknet", "--target", TRIPLE])
        .env("CC_x86_64_unknown_linux_musl", "musl-gcc"))?;
    Ok(repository::target().join(TRIPLE).join("release/rocknet"))
}
