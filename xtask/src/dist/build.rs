//! Builds the programs of a release: one for systems with glibc, and a static one with musl for any Linux.

use super::elf;
use crate::command::{cargo, command, find, output, run};
use crate::{Failure, repository};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// C library of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Libc {
    /// The library of Debian, Fedora and most others: for the Debian package, and a tarball
    Glibc,
    /// A static program for any Linux: for a tarball
    Musl,
}

impl Libc {
    /// Returns the target triple of this machine's processor.
    pub fn triple(self) -> Result<&'static str, Failure> {
        match (env::consts::ARCH, self) {
            ("x86_64", Libc::Glibc) => Ok("x86_64-unknown-linux-gnu"),
            ("x86_64", Libc::Musl) => Ok("x86_64-unknown-linux-musl"),
            ("aarch64", Libc::Glibc) => Ok("aarch64-unknown-linux-gnu"),
            ("aarch64", Libc::Musl) => Ok("aarch64-unknown-linux-musl"),
            (other, _) => Err(format!("packages for {other} are not supported").into()),
        }
    }
}

/// Builds the program of the crate `name` in its release profile, and checks it with [`check`].
pub fn build(name: &str, libc: Libc) -> Result<PathBuf, Failure> {
    let triple = libc.triple()?;
    if libc == Libc::Musl {
        check_musl_tools(triple)?;
    }
    let profile = if name == "rocknet-gui" { "desktop" } else { "release" };
    let mut build = cargo();
    // A named target has a separate folder, so that the flags below do not discard ordinary builds.
    build.args([
        "build",
        "--profile",
        profile,
        "--locked",
        "-p",
        name,
        "--target",
        triple,
    ]);
    if libc == Libc::Musl {
        build.env(format!("CC_{}", triple.replace('-', "_")), "musl-gcc");
    }
    let prefixes = prefixes();
    // The flags of the caller are replaced, so that they have no effect on a release. In this variable, flags may
    // contain spaces.
    build.env(
        "CARGO_ENCODED_RUSTFLAGS",
        flags("--remap-path-prefix=", &prefixes).join("\x1f"),
    );
    for variable in ["CFLAGS", "CXXFLAGS"] {
        build.env(variable, flags("-ffile-prefix-map=", &prefixes).join(" "));
    }
    run(&mut build)?;
    let program = repository::target().join(triple).join(profile).join(name);
    check(&fs::read(&program)?, libc, &prefixes)?;
    Ok(program)
}

/// Fails with instructions if the target or its C compiler is missing.
fn check_musl_tools(triple: &str) -> Result<(), Failure> {
    let libraries = output(command("rustc").args(["--print", "target-libdir", "--target", triple]))?;
    if !PathBuf::from(libraries.trim()).is_dir() {
        return Err(format!("the target {triple} is missing: run `rustup target add {triple}`").into());
    }
    if find("musl-gcc").is_none() {
        return Err("musl-gcc is missing: on Debian, run `apt-get install musl-tools`".into());
    }
    Ok(())
}

/// Folders of this machine, and what programs contain in place of their paths. The same source then gives the same
/// bytes wherever it is built.
fn prefixes() -> Vec<(PathBuf, &'static str)> {
    let home = env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"));
    let cargo = env::var_os("CARGO_HOME").map(PathBuf::from).or(home);
    // The last prefix that fits is applied, and the target folder is usually below the root.
    let mut all = vec![(repository::root(), "/rocknet"), (repository::target(), "/target")];
    all.extend(cargo.map(|folder| (folder, "/cargo")));
    all
}

fn flags(option: &str, prefixes: &[(PathBuf, &str)]) -> Vec<String> {
    let flags = prefixes
        .iter()
        .map(|(folder, name)| format!("{option}{}={name}", folder.display()));
    flags.collect()
}

/// Fails if a program contains the path of a folder, or uses another C library. With another C library, the packages
/// would name wrong dependencies.
pub fn check(program: &[u8], libc: Libc, folders: &[(PathBuf, &str)]) -> Result<(), Failure> {
    for (folder, _) in folders {
        let path = folder.as_os_str().as_encoded_bytes();
        if let Some(at) = program.windows(path.len()).position(|window| window == path) {
            let end = program[at..]
                .iter()
                .position(|byte| !byte.is_ascii_graphic())
                .unwrap_or_default();
            let found = String::from_utf8_lossy(&program[at..at + end.min(200)]);
            return Err(format!("the program contains a path of this machine: {found}").into());
        }
    }
    match (libc, elf::interpreter(program)?) {
        (Libc::Musl, Some(loader)) => Err(format!("the program is not static: it needs {loader}").into()),
        (Libc::Glibc, None) => Err("the program is static: name its C library by `--libc musl`".into()),
        (Libc::Glibc, Some(loader)) if loader.contains("musl") => {
            Err(format!("the program needs {loader}, and no glibc: build it as a static one for `--libc musl`").into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_machine_and_shared_libraries_are_found() {
        let this_program = fs::read(env::current_exe().unwrap()).unwrap();
        let libc = if cfg!(target_env = "gnu") {
            Libc::Glibc
        } else {
            Libc::Musl
        };
        check(&this_program, libc, &[]).unwrap();
        // A text that the program, which contains this test, does not contain.
        let folder = format!("/folder-{}", std::process::id());
        let folders = [(PathBuf::from(&folder), "/x")];
        check(&this_program, libc, &folders).unwrap();
        let program = [this_program.as_slice(), b"\0", folder.as_bytes(), b"/lib.rs\0"].concat();
        let error = check(&program, libc, &folders).unwrap_err().to_string();
        assert!(error.ends_with(&format!(": {folder}/lib.rs")), "{error}");
        if cfg!(target_env = "gnu") {
            let error = check(&this_program, Libc::Musl, &[]).unwrap_err().to_string();
            assert!(error.contains("not static: it needs /lib"), "{error}");
        }
        assert!(check(b"#!/bin/sh", Libc::Musl, &[]).is_err());
    }

    #[test]
    fn programs_with_another_c_library_are_refused() {
        let dynamic = |loader: &str| elf::program(3, loader);
        for (program, libc, expected) in [
            (dynamic("/lib64/ld-linux-x86-64.so.2"), Libc::Glibc, None),
            (elf::program(1, ""), Libc::Musl, None),
            (
                elf::program(1, ""),
                Libc::Glibc,
                Some("is static: name its C library by `--libc musl`"),
            ),
            (
                dynamic("/lib/ld-musl-x86_64.so.1"),
                Libc::Glibc,
                Some("needs /lib/ld-musl-x86_64.so.1, and no glibc"),
            ),
            (
                dynamic("/lib/ld-musl-x86_64.so.1"),
                Libc::Musl,
                Some("is not static: it needs /lib/ld-musl"),
            ),
        ] {
            let error = check(&program, libc, &[]).err().map(|error| error.to_string());
            match (error, expected) {
                (None, None) => {}
                (Some(error), Some(expected)) if error.contains(expected) => {}
                (error, _) => panic!("{libc:?} {expected:?}: {error:?}"),
            }
        }
    }

    #[test]
    fn flags_name_each_folder() {
        let all = [(PathBuf::from("/a"), "/x"), (PathBuf::from("/a/b"), "/y")];
        assert_eq!(flags("-f=", &all), ["-f=/a=/x", "-f=/a/b=/y"]);
    }
}
