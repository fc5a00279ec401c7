//! `cargo xtask dist`: writes the packages of a release, with checksums and a list of the libraries in them.

pub mod archive;
mod build;
mod contents;
mod deb;
mod elf;
mod image;
mod maintainer;
mod release;
mod sbom;
mod tarball;
mod window_deb;

use crate::packages::{self, Purpose};
use crate::{Failure, repository};
use archive::sha256;
pub use build::{Libc, build, check as check_program};
pub use contents::Contents;
pub use deb::deb;
use maintainer::Maintainer;
pub use release::Release;
use std::fs;
use std::path::{Path, PathBuf};
pub use window_deb::window_deb;

#[derive(clap::Args)]
pub struct Options {
    /// Only the packages of programs with this C library; by default of both
    #[arg(long, value_enum, value_name = "LIBRARY")]
    libc: Option<Libc>,
    /// Pack this program instead of a release build of this checkout: with glibc, or as `--libc` states
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Pack this desktop program instead of a release build of this checkout
    #[arg(long, value_name = "FILE")]
    window: Option<PathBuf>,
    /// Leave the package of the desktop program out, whose build needs a C++ compiler and CMake
    #[arg(long, conflicts_with = "window")]
    no_window: bool,
    /// Folder for the packages; by default `dist` in the target folder
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Revision of the Debian package, after the version of the program
    #[arg(long, default_value_t = 1)]
    revision: u32,
    /// Maintainer of the Debian package, as `NAME <ADDRESS>`; by default the one in Cargo.toml
    #[arg(long, value_name = "MAINTAINER")]
    maintainer: Option<Maintainer>,
    /// Pack twice, and fail if any byte differs
    #[arg(long)]
    check_reproducible: bool,
    /// Build images with buildah or podman as well
    #[arg(long)]
    image: bool,
    /// Image that the image with glibc extends; by default the one that the Containerfile names
    #[arg(long, value_name = "IMAGE", requires = "image")]
    base: Option<String>,
}

impl Options {
    /// Returns the C libraries of the programs to pack.
    fn libraries(&self) -> Vec<Libc> {
        match self.libc {
            Some(libc) => vec![libc],
            None if self.program.is_some() => vec![Libc::Glibc],
            None => vec![Libc::Glibc, Libc::Musl],
        }
    }

    fn release(&self, libc: Libc) -> Result<Release, Failure> {
        let program = match &self.program {
            Some(file) => file.canonicalize()?,
            None => build("rocknet", libc)?,
        };
        self.release_of("rocknet", program, libc)
    }

    /// Returns the desktop program; `None` if it is not packed. There is only one with glibc, because the libraries
    /// that draw the window are shared.
    fn window_release(&self) -> Result<Option<Release>, Failure> {
        let libc = Libc::Glibc;
        let program = match &self.window {
            Some(file) => file.canonicalize()?,
            None if self.no_window || self.program.is_some() || !self.libraries().contains(&libc) => return Ok(None),
            None => {
                packages::require(Purpose::Window)?;
                build("rocknet-gui", libc)?
            }
        };
        let release = self.release_of("rocknet-gui", program, libc)?;
        deb::check_libraries(&release.bytes)?;
        Ok(Some(release))
    }

    fn release_of(&self, name: &'static str, program: PathBuf, libc: Libc) -> Result<Release, Failure> {
        let mut release = Release::new(name, program, libc.triple()?, self.revision)?;
        if let Some(maintainer) = &self.maintainer {
            release.maintainer = maintainer.clone();
        }
        // A program that was built elsewhere may contain any path.
        check_program(&release.bytes, libc, &[])?;
        Ok(release)
    }
}

/// A written package: file name and bytes.
type Package = (String, Vec<u8>);

pub fn run(options: &Options) -> Result<(), Failure> {
    let libraries = options.libraries();
    let releases = libraries
        .iter()
        .map(|libc| options.release(*libc))
        .collect::<Result<Vec<_>, _>>()?;
    let window = options.window_release()?;
    let packages = pack(&releases, window.as_ref())?;
    if options.check_reproducible {
        compare(&packages, &pack(&releases, window.as_ref())?)?;
        println!("packed twice: the bytes are identical");
    }
    let folder = options
        .output
        .clone()
        .unwrap_or_else(|| repository::target().join("dist"));
    write(&folder, &packages)?;
    if options.image {
        for release in &releases {
            image::build(release, options.base.as_deref(), &folder)?;
        }
    }
    if releases.iter().any(|release| release.maintainer.is_placeholder()) {
        println!("the maintainer in Cargo.toml receives no mail: pass --maintainer for packages that you publish");
    }
    Ok(())
}

/// Returns the packages of all releases by name, and last the checksums. `window`: the desktop program.
fn pack(releases: &[Release], window: Option<&Release>) -> Result<Vec<Package>, Failure> {
    let mut packages = Vec::new();
    for release in releases {
        let contents = Contents::new(release)?;
        packages.push((
            format!("{}.tar.gz", release.full_name()),
            tarball::tarball(release, &contents)?,
        ));
        if !release.is_static() {
            packages.push((release.deb_name(), deb(release, &contents)?));
        }
        packages.push((format!("{}.cdx.json", release.full_name()), contents.sbom));
    }
    if let Some(release) = window {
        packages.push((release.deb_name(), window_deb(release)?));
    }
    packages.sort();
    let sums: String = packages
        .iter()
        .map(|(name, bytes)| format!("{}  {name}\n", sha256(bytes)))
        .collect();
    packages.push(("SHA256SUMS".to_owned(), sums.into_bytes()));
    Ok(packages)
}

/// Fails with the names of the packages that differ.
fn compare(first: &[Package], second: &[Package]) -> Result<(), Failure> {
    let differing: Vec<_> = first
        .iter()
        .filter(|package| !second.contains(package))
        .map(|(name, _)| name.as_str())
        .collect();
    if differing.is_empty() {
        Ok(())
    } else {
        Err(format!("packed twice, these files differ: {}", differing.join(", ")).into())
    }
}

fn write(folder: &Path, packages: &[Package]) -> Result<(), Failure> {
    fs::create_dir_all(folder)?;
    for (name, bytes) in packages {
        let path = folder.join(name);
        fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("{:>10}  {}", bytes.len(), path.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::run as run_command;
    use std::process::Command;

    #[test]
    fn a_changed_byte_is_reported_by_name() {
        let package = |name: &str, bytes: &[u8]| (name.to_owned(), bytes.to_vec());
        let first = [package("a.deb", b"1"), package("b.tar.gz", b"2")];
        assert!(compare(&first, &first.clone()).is_ok());
        let second = [package("a.deb", b"1"), package("b.tar.gz", b"3")];
        let error = compare(&first, &second).unwrap_err().to_string();
        assert!(error.contains("b.tar.gz") && !error.contains("a.deb"), "{error}");
    }

    /// Plays the program: prints what packages contain.
    const PROGRAM: &str = "#!/bin/sh\necho \"$@\"; echo '.TP'; echo 'rocknet\\-run(1)'\n";

    #[test]
    fn the_same_release_gives_the_same_bytes_at_another_place_and_time() {
        let folder = tempfile::tempdir().unwrap();
        let packages = ["first", "second"].map(|name| {
            let program = folder.path().join(name);
            // Another file with another time. Its writer has ended, because a file that any process could still write
            // is not executed.
            let script = format!("printf %s \"$1\" > {0} && chmod 755 {0}", program.display());
            run_command(Command::new("sh").args(["-c", &script, "sh", PROGRAM])).unwrap();
            let release = |name, libc: Libc| Release {
                name,
                program: program.clone(),
                bytes: PROGRAM.into(),
                triple: libc.triple().unwrap(),
                time: 1_700_000_000,
                maintainer: "Ann Lee <ann@example.com>".parse().unwrap(),
                revision: 3,
            };
            let releases = [Libc::Glibc, Libc::Musl].map(|libc| release("rocknet", libc));
            pack(&releases, Some(&release("rocknet-gui", Libc::Glibc))).unwrap()
        });
        compare(&packages[0], &packages[1]).unwrap();
        let names: Vec<_> = packages[0].iter().map(|(name, _)| name.as_str()).collect();
        let suffixes = ["-gnu.cdx.json", "-gnu.tar.gz", "-musl.cdx.json", "-musl.tar.gz", "SUMS"];
        for suffix in suffixes {
            assert_eq!(
                names.iter().filter(|name| name.ends_with(suffix)).count(),
                1,
                "{suffix}: {names:?}"
            );
        }
        for beginning in ["rocknet_", "rocknet-gui_"] {
            let is_deb = |name: &&&str| name.starts_with(beginning) && name.ends_with(".deb");
            assert_eq!(names.iter().filter(is_deb).count(), 1, "{beginning}: {names:?}");
        }
        let (_, sums) = packages[0].last().unwrap();
        assert_eq!(String::from_utf8_lossy(sums).lines().count(), names.len() - 1);
    }
}
