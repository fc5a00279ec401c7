//! The tarball for systems without a package: `rocknet service install` installs the service from it.

use super::archive::{Files, tar_gz};
use super::contents::{Contents, source};
use super::release::Release;
use crate::Failure;

/// Files of the checkout in the tarball.
const SOURCES: [&str; 9] = [
    "CHANGELOG.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "packaging/grafana/rocknet.json",
    "packaging/rocknet.service",
    "packaging/rocknet.socket",
    "packaging/rocknet.toml",
    "packaging/scripts.conf",
];

pub fn tarball(release: &Release, contents: &Contents) -> Result<Vec<u8>, Failure> {
    let mut files = Files::default();
    files.add("bin/rocknet", 0o755, release.bytes.clone());
    for path in SOURCES {
        let name = path.rsplit('/').next().unwrap_or(path);
        files.add(name, 0o644, source(path)?);
    }
    files.add("rocknet.cdx.json", 0o644, contents.sbom.clone());
    for (name, page) in &contents.pages {
        files.add(format!("share/man/man1/{name}"), 0o644, page.as_str());
    }
    for (shell, script) in &contents.completions {
        files.add(format!("share/completions/rocknet.{shell}"), 0o644, script.as_str());
    }
    tar_gz(&files, &format!("{}/", release.full_name()), release.time)
}
