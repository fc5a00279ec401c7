//! A release: a program that is packed, its version and system, its maintainer, and the time that all packages state.

use super::maintainer::Maintainer;
use crate::Failure;
use crate::command::{command, output};
use std::env;
use std::fs;
use std::path::PathBuf;

/// Variable with the time of the packages, as <https://reproducible-builds.org/specs/source-date-epoch/> defines it.
const EPOCH_VARIABLE: &str = "SOURCE_DATE_EPOCH";

pub struct Release {
    /// Name of the program, of its crate and of its packages.
    pub name: &'static str,
    pub program: PathBuf,
    /// Bytes of the program.
    pub bytes: Vec<u8>,
    /// Target triple of the program.
    pub triple: &'static str,
    /// Seconds since 1970.
    pub time: u64,
    pub maintainer: Maintainer,
    pub revision: u32,
}

impl Release {
    pub const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// Reads the program of the crate `name`, and takes the time from the environment or else from the commit.
    pub fn new(name: &'static str, program: PathBuf, triple: &'static str, revision: u32) -> Result<Self, Failure> {
        let bytes = fs::read(&program).map_err(|error| format!("{}: {error}", program.display()))?;
        let time = match env::var(EPOCH_VARIABLE) {
            Ok(text) => text
                .parse()
                .map_err(|_| format!("{EPOCH_VARIABLE} is `{text}`: write seconds since 1970"))?,
            Err(_) => output(command("git").args(["log", "-1", "--format=%ct"]))?
                .trim()
                .parse()?,
        };
        Ok(Self {
            name,
            program,
            bytes,
            triple,
            time,
            maintainer: Maintainer::configured()?,
            revision,
        })
    }

    /// Returns true if the program needs no shared libraries.
    pub fn is_static(&self) -> bool {
        self.triple.ends_with("-musl")
    }

    /// Returns the first part of file names, and the name of the folder in the tarball.
    pub fn full_name(&self) -> String {
        format!("{}-{}-{}", self.name, Self::VERSION, self.triple)
    }

    /// Returns the version of the Debian package.
    pub fn deb_version(&self) -> String {
        format!("{}-{}", Self::VERSION, self.revision)
    }

    pub fn deb_name(&self) -> String {
        format!("{}_{}_{}.deb", self.name, self.deb_version(), self.deb_architecture())
    }

    /// Returns Debian's name of the processor architecture.
    pub fn deb_architecture(&self) -> &'static str {
        match self.triple.split('-').next() {
            Some("x86_64") => "amd64",
            Some("aarch64") => "arm64",
            _ => "any",
        }
    }
}
