//! `cargo xtask test`: runs every check and test of the repository, for developers and for `.ci/run`.

use crate::command::{cargo, find, run as run_command, run_by_lines};
use crate::packages::{self, Purpose};
use crate::skips::Skips;
use crate::steps::Steps;
use crate::test_failures::TestFailures;
use crate::{Failure, conform, deny, docs, other_systems, tidy, tools};
use std::path::Path;

#[derive(clap::Args)]
pub struct Options {
    /// Skip clippy and the compilation for other systems
    #[arg(long)]
    fast: bool,
}

/// Target without an operating system, which proves that the protocol crate needs none.
const BARE_TARGET: &str = "wasm32-unknown-unknown";
/// Requirement of the second test run. Continuous integration must meet it.
const NO_IO_URING: &str = "a kernel with io_uring, and kernel.io_uring_disabled = 0";
/// Workspaces beside the main one, which `cargo fmt --all` does not format.
const NEIGHBOURS: &[&str] = &[
    "bench/floor/Cargo.toml",
    "bench/h3/Cargo.toml",
    "fuzz/Cargo.toml",
    "xtask/h3i/Cargo.toml",
];

pub fn run(options: &Options) -> Result<(), Failure> {
    packages::require(Purpose::Test)?;
    packages::require_components()?;
    let mut steps = Steps::default();
    steps.step("format", format);
    steps.step("project rules", || tidy::run(&tidy::Options::default()));
    if !options.fast {
        steps.step("clippy", || {
            run_cargo(&[
                "clippy",
                "--workspace",
                "--all-targets",
                "--locked",
                "--",
                "-D",
                "warnings",
            ])
        });
        steps.step("floor", || {
            run_cargo(&[
                "clippy",
                "--manifest-path",
                "bench/floor/Cargo.toml",
                "--locked",
                "--",
                "-D",
                "warnings",
            ])
        });
        steps.step("bench of HTTP/3", || {
            h3_bench("clippy", &["--all-targets", "--", "-D", "warnings"])
        });
    }
    steps.step("documentation", documentation);
    steps.step("test CA", tools::pebble);
    steps.remarked("tests on epoll", || {
        run_tests("epoll", &["test", "--workspace", "--locked"])
    });
    steps.step("tests of the HTTP/3 bench", || h3_bench("test", &[]));
    if has_io_uring() {
        steps.remarked("tests on io_uring", || {
            let arguments = with_server_tests(&["test", "--workspace", "--locked"])?;
            run_tests("io_uring", &arguments.iter().map(String::as_str).collect::<Vec<_>>())
        });
    } else if rocknet_testing::is_ci() {
        steps.step("tests on io_uring", || Err(NO_IO_URING.into()));
    } else {
        steps.skip("tests on io_uring", NO_IO_URING);
    }
    // The steps above have built the program that these clients connect to.
    let program = crate::repository::target().join("debug/rocknet");
    for (name, work) in conform::CLIENTS {
        steps.step(name, || work(&program));
    }
    steps.step("generated pages", docs::check);
    if !options.fast {
        steps.remarked("other systems", other_systems::run);
    }
    if other_systems::is_ready(BARE_TARGET) {
        steps.step("protocol without a system", || {
            run_cargo(&[
                "check",
                "-p",
                "rocknet-proto",
                "--lib",
                "--target",
                BARE_TARGET,
                "--locked",
            ])
        });
    } else {
        steps.skip("protocol without a system", "rustup target add wasm32-unknown-unknown");
    }
    if find("cargo-deny").is_some() {
        steps.step("dependencies", deny::run);
    } else {
        steps.step("licences", deny::licences);
    }
    steps.finish()
}

fn format() -> Result<(), Failure> {
    run_cargo(&["fmt", "--all", "--", "--check", "-l"])?;
    for manifest in NEIGHBOURS.iter().filter(|manifest| exists(manifest)) {
        run_cargo(&["fmt", "--manifest-path", manifest, "--", "--check", "-l"])?;
    }
    Ok(())
}

/// Builds the documentation of all crates and fails on any warning.
fn documentation() -> Result<(), Failure> {
    let mut doc = cargo();
    doc.args(["doc", "--workspace", "--no-deps", "--locked"])
        .env("RUSTDOCFLAGS", "-D warnings");
    run_command(&mut doc)
}

fn exists(path: &str) -> bool {
    crate::repository::root().join(Path::new(path)).exists()
}

fn run_cargo(arguments: &[&str]) -> Result<(), Failure> {
    run_command(cargo().args(arguments))
}

/// Runs a cargo command on the HTTP/3 programs of the bench. They share the target folder of the main workspace,
/// because both use the same versions of most dependencies.
fn h3_bench(command: &str, arguments: &[&str]) -> Result<(), Failure> {
    let mut cargo = cargo();
    cargo.args([
        command,
        "--locked",
        "--manifest-path",
        "bench/h3/Cargo.toml",
        "--target-dir",
    ]);
    cargo.arg(crate::repository::target()).args(arguments);
    run_command(&mut cargo)
}

/// Returns true if the kernel permits io_uring for all users.
fn has_io_uring() -> bool {
    std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").is_ok_and(|disabled| disabled.trim() == "0")
}

/// Returns the arguments with `--test` for each integration test of the server.
///
/// A server selects its I/O back end at start, so these programs exist already. `--package` would build them again,
/// because it enables other features of dependencies than `--workspace`.
fn with_server_tests(arguments: &[&str]) -> Result<Vec<String>, Failure> {
    let mut all: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
    for entry in std::fs::read_dir(crate::repository::root().join("crates/rocknet/tests"))? {
        let path = entry?.path();
        let is_test = path.extension().is_some_and(|kind| kind == "rs") || path.join("main.rs").exists();
        if let (true, Some(name)) = (is_test, path.file_stem()) {
            all.extend(["--test".to_owned(), name.to_string_lossy().into_owned()]);
        }
    }
    Ok(all)
}

/// Runs tests with `backend` as the I/O back end. All test programs run, so that one failure does not hide others.
/// Returns a remark on the tests that this machine could not run.
fn run_tests(backend: &str, arguments: &[&str]) -> Result<Option<String>, Failure> {
    let skips = Skips::begin(backend)?;
    let mut tests = cargo();
    tests
        .args(arguments)
        .arg("--no-fail-fast")
        .env("ROCKNET_BACKEND", backend);
    skips.of(&mut tests);
    let mut failures = TestFailures::default();
    run_by_lines(&mut tests, |line| failures.take(line)).map_err(|error| format!("{error}\n{failures}"))?;
    skips.remark()
}
