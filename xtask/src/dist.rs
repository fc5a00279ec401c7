//! `cargo xtask dist`: writes the packages of a release, with checksums and a list of the libraries in them.

pub mod archive;
mod contents;
mod deb;
mod image;
mod musl;
mod release;
mod sbom;
mod tarball;

use crate::command::{cargo, run as run_command};
use crate::{Failure, repository};
use archive::sha256;
pub use contents::Contents;
pub use deb::deb;
pub use musl::host;
pub use release::Release;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Options {
    /// Pack this program instead of a release build of this checkout
    #[arg(long, value_name = "FILE", conflicts_with = "musl")]
    program: Option<PathBuf>,
    /// Folder for the packages; by default `dist` in the target folder
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Revision of the Debian package, after the version of the program
    #[arg(long, default_value_t = 1)]
    revision: u32,
    /// Write a tarball with a static program for any Linux, instead of the packages for systems with glibc
    #[arg(long)]
    musl: bool,
    /// Pack twice, and fail if any byte differs
    #[arg(long)]
    check_reproducible: bool,
    /// Build an image with buildah or podman as well
    #[arg(long, conflicts_with = "musl")]
    image: bool,
    /// Image that the built image extends; by default the one that the Containerfile names
    #[arg(long, value_name = "IMAGE", requires = "image")]
    base: Option<String>,
}

/// A written package: file name and bytes.
type Package = (String, Vec<u8>);

pub fn run(options: &Options) -> Result<(), Failure> {
    let triple = if options.musl { musl::TRIPLE } else { host()? };
    let program = match &options.program {
        Some(file) => file.canonicalize()?,
        None if options.musl => musl::build()?,
        None => {
            run_command(cargo().args(["build", "--release", "--locked", "-p", "rocknet"]))?;
            repository::target().join("release/rocknet")
        }
    };
    let release = Release::new(program, triple, options.revision)?;
    let packages = pack(&release, options.musl)?;
    if options.check_reproducible {
        compare(&packages, &pack(&release, options.musl)?)?;
        println!("packed twice: the bytes are identical");
    }
    let folder = options
        .output
        .clone()
        .unwrap_or_else(|| repository::target().join("dist"));
    write(&folder, &packages)?;
    if options.image {
        image::build(&release, options.base.as_deref(), &folder)?;
    }
    Ok(())
}

/// Returns the packages of a release, and last the checksums.
fn pack(release: &Release, is_static: bool) -> Result<Vec<Package>, Failure> {
    let contents = Contents::new(release)?;
    let sbom_name = format!("{}.cdx.json", release.full_name());
    let mut packages = vec![
        (
            format!("{}.tar.gz", release.full_name()),
            tarball::tarball(release, &contents)?,
        ),
        (sbom_name, contents.sbom.clone()),
    ];
    if !is_static {
        packages.push((release.deb_name(), deb(release, &contents)?));
    }
    packages.sort();
    let name = if is_static { "SHA256SUMS-musl" } else { "SHA256SUMS" };
    let sums: String = packages
        .iter()
        .map(|(name, bytes)| format!("{}  {name}\n", sha256(bytes)))
        .collect();
    packages.push((name.to_owned(), sums.into_bytes()));
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

    #[test]
    fn a_changed_byte_is_reported_by_name() {
        let package = |name: &str, bytes: &[u8]| (name.to_owned(), bytes.to_vec());
        let first = [package("a.deb", b"1"), package("b.tar.gz", b"2")];
        assert!(compare(&first, &first.clone()).is_ok());
        let second = [package("a.deb", b"1"), package("b.tar.gz", b"3")];
        let error = compare(&first, &second).unwrap_err().to_string();
        assert!(error.contains("b.tar.gz") && !error.contains("a.deb"), "{error}");
    }
}
