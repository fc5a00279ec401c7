//! Tasks of this repository: `cargo xtask test | bench | conform | docs | tidy | fuzz | deny | dist`.

mod command;
mod deny;
mod docs;
mod fuzz;
mod other_systems;
mod packages;
mod repository;
mod skips;
mod steps;
mod test;
mod test_failures;
mod tidy;
mod tools;

#[cfg(target_os = "linux")]
mod bench;
#[cfg(target_os = "linux")]
mod conform;
#[cfg(target_os = "linux")]
mod dist;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Tasks of the RockNet repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install or name missing programs, then run every check and test
    Test(test::Options),
    /// Compare RockNet with other servers and write the results
    #[cfg(target_os = "linux")]
    Bench(bench::Options),
    /// Run the slow test suites of other projects against the server
    #[cfg(target_os = "linux")]
    Conform(conform::Options),
    /// Write the pages that are generated from the table of configuration keys
    Docs(docs::Options),
    /// Check the project's rules that the compiler cannot check
    Tidy(tidy::Options),
    /// Fuzz the parsers (needs a nightly toolchain and cargo-fuzz)
    Fuzz(fuzz::Options),
    /// Check licences, sources and advisories of every dependency (needs cargo-deny)
    Deny,
    /// Write the packages of a release: .deb, tarball, checksums, and optionally an image
    #[cfg(target_os = "linux")]
    Dist(dist::Options),
}

/// Error message of a task, for the person who ran it.
type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Test(options) => test::run(&options),
        #[cfg(target_os = "linux")]
        Task::Bench(options) => bench::run(&options),
        #[cfg(target_os = "linux")]
        Task::Conform(options) => conform::run(&options),
        Task::Docs(options) => docs::run(&options),
        Task::Tidy(options) => tidy::run(&options),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Deny => deny::run(),
        #[cfg(target_os = "linux")]
        Task::Dist(options) => dist::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}
