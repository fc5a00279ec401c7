//! `cargo xtask fuzz [TARGET] [SECONDS]`: runs each fuzz target for some seconds. Ordinary tests replay the seeds.

use crate::command::{command, find, run as run_command};
use crate::{Failure, repository};

#[derive(clap::Args)]
pub struct Options {
    /// Target to fuzz; by default all targets
    target: Option<String>,
    /// Seconds per target
    #[arg(default_value_t = 60)]
    seconds: u32,
}

pub fn run(options: &Options) -> Result<(), Failure> {
    if find("cargo-fuzz").is_none() {
        return Err(
            "cargo-fuzz is not installed: rustup toolchain install nightly && cargo install --locked cargo-fuzz".into(),
        );
    }
    let folder = repository::root().join("fuzz/fuzz_targets");
    let targets: Vec<String> = repository::files(&folder, "rs")
        .map_err(|error| format!("{}: {error}", folder.display()))?
        .iter()
        .filter_map(|file| Some(file.file_stem()?.to_string_lossy().into_owned()))
        .collect();
    let chosen: Vec<&String> = targets
        .iter()
        .filter(|name| options.target.as_ref().is_none_or(|target| target == *name))
        .collect();
    if chosen.is_empty() {
        return Err(format!("unknown fuzz target; the targets are: {}", targets.join(", ")).into());
    }
    for name in chosen {
        println!("== {name}, {} s", options.seconds);
        let limit = format!("-max_total_time={}", options.seconds);
        run_command(command("cargo").args(["+nightly", "fuzz", "run", name, "--", &limit]))?;
    }
    Ok(())
}
