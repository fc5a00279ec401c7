//! Compiles the crates for other operating systems, and checks that these builds have no Linux-only dependencies.

use crate::Failure;
use crate::command::{cargo, command, find, output, run as run_command};
use std::path::Path;

struct System {
    target: &'static str,
    /// Packages to check. With their dependencies, they are all packages that compile for the target.
    packages: &'static [&'static str],
}

const ALL: &[System] = &[
    System {
        target: "x86_64-apple-darwin",
        packages: &["rocknet"],
    },
    System {
        target: "x86_64-unknown-freebsd",
        packages: &["rocknet"],
    },
    // The server opens files beneath a folder descriptor, which is not implemented for Windows yet.
    System {
        target: "x86_64-pc-windows-gnu",
        packages: &[
            "rocknet-proto",
            "rocknet-config",
            "rocknet-control",
            "rocknet-controller",
            "rocknet-io",
        ],
    },
];

/// Dependencies for Linux only, which other systems must not build.
const LINUX_ONLY: &[&str] = &["io-uring"];

/// Environment variables that name the C tools for a target. Each is set to the program `true`, because nothing is
/// linked and the output of build scripts is not used.
const TOOLCHAIN_VARIABLES: &[&str] = &["CC", "CXX", "AR", "RANLIB"];

/// Checks all targets whose standard library is installed or can be installed. Returns a remark that names the other
/// targets, if there are any.
pub fn run() -> Result<Option<String>, Failure> {
    let (here, missing): (Vec<_>, Vec<_>) = ALL.iter().partition(|system| is_ready(system.target));
    for system in &here {
        check(system)?;
        reject_linux_only(system)?;
    }
    let missing: Vec<_> = missing.iter().map(|system| system.target).collect();
    Ok((!missing.is_empty()).then(|| {
        format!(
            "not checked: {}, because their standard libraries are not installed",
            missing.join(", ")
        )
    }))
}

fn check(system: &System) -> Result<(), Failure> {
    let mut check = cargo();
    check.args(["check", "--locked", "--lib", "--bins", "--target", system.target]);
    for package in system.packages {
        check.args(["-p", package]);
    }
    // The server enables this feature.
    check.args(["--features", "rocknet-controller/host"]);
    let underscored = system.target.replace('-', "_");
    for tool in TOOLCHAIN_VARIABLES {
        check.env(format!("{tool}_{underscored}"), "true");
    }
    let flags = format!("CARGO_TARGET_{}_RUSTFLAGS", underscored.to_uppercase());
    run_command(check.env(flags, "-D warnings"))
}

fn reject_linux_only(system: &System) -> Result<(), Failure> {
    for package in system.packages {
        let mut tree = cargo();
        tree.args([
            "tree",
            "--locked",
            "-e",
            "normal,build",
            "--prefix",
            "none",
            "-f",
            "{p}",
        ]);
        let tree = output(tree.args(["-p", package, "--target", system.target]))?;
        let found = LINUX_ONLY.iter().find(|only| {
            let mut names = tree.lines().filter_map(|line| line.split(' ').next());
            names.any(|name| name == **only)
        });
        if let Some(only) = found {
            return Err(format!("{package} must not depend on {only} for {}", system.target).into());
        }
    }
    Ok(())
}

/// Returns true if the standard library for `target` is installed, by rustup or otherwise.
fn has_target(target: &str) -> bool {
    output(command("rustc").args(["--print", "target-libdir", "--target", target]))
        .is_ok_and(|folder| Path::new(folder.trim()).exists())
}

/// Returns true if the standard library for `target` is installed, after trying to install it with rustup.
pub fn is_ready(target: &str) -> bool {
    has_target(target)
        || find("rustup").is_some()
            && output(command("rustup").args(["target", "add", target])).is_ok()
            && has_target(target)
}
