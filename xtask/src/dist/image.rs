//! Builds the container images from `packaging/image`, with buildah or podman: one on Debian, and an empty one with the
//! static program.

use super::contents::source;
use super::release::Release;
use crate::Failure;
use crate::command::{find, run};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use tar::{Builder, EntryType, Header};

/// Programs that build images, in order of preference.
const BUILDERS: [&str; 2] = ["buildah", "podman"];

/// File with the certificates of the public authorities on this machine: the path on Debian, and the one on Fedora.
const AUTHORITIES: [&str; 2] = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// Empty folders of the image, their modes and their owners. Builders do not copy modes of folders, but they extract an
/// archive with modes and owners.
const FOLDERS: [(&str, u32, u64); 2] = [("tmp/", 0o1777, 0), ("var/lib/rocknet/", 0o700, ACCOUNT)];

/// Account of the server in the image.
const ACCOUNT: u64 = 8080;

/// Builds `localhost/rocknet:VERSION`, or `VERSION-static` without a base, and writes it into `folder` as an archive
/// that docker and podman load.
pub fn build(release: &Release, base: Option<&str>, folder: &Path) -> Result<(), Failure> {
    let Some(builder) = BUILDERS.into_iter().find(|name| find(name).is_some()) else {
        return Err("buildah or podman is needed: on Debian, run `apt-get install buildah`".into());
    };
    let context = tempfile::tempdir()?;
    fill(context.path(), release)?;
    let base = if release.is_static() { Some("scratch") } else { base };
    let suffix = if release.is_static() { "-static" } else { "" };
    let name = format!("localhost/rocknet:{}{suffix}", Release::VERSION);
    // Only the format of Docker has health checks.
    let mut build = Command::new(builder);
    build.args(["build", "--format", "docker", "--tag", &name]);
    build.args(["--timestamp", &release.time.to_string()]);
    if let Some(base) = base {
        build.args(["--build-arg", &format!("BASE={base}")]);
    }
    run(build.arg(context.path()))?;
    let archive = folder.join(format!("{}-image.tar", release.full_name()));
    if archive.exists() {
        fs::remove_file(&archive)?;
    }
    let target = format!("docker-archive:{}:{name}", archive.display());
    run(Command::new(builder).args(["push", "--quiet", &name, &target]))?;
    println!("{:>10}  {}", fs::metadata(&archive)?.len(), archive.display());
    Ok(())
}

/// Writes the files that the Containerfile copies.
fn fill(context: &Path, release: &Release) -> Result<(), Failure> {
    let Some(authorities) = AUTHORITIES.into_iter().find(|file| Path::new(file).is_file()) else {
        return Err(
            "this machine has no certificates of authorities: on Debian, run `apt-get install ca-certificates`".into(),
        );
    };
    let files = [
        ("Containerfile", source("packaging/image/Containerfile")?),
        ("rocknet.toml", source("packaging/image/rocknet.toml")?),
        ("index.html", source("packaging/index.html")?),
        ("ca-certificates.crt", fs::read(authorities)?),
        ("folders.tar", folders(release.time)?),
        ("rocknet", release.bytes.clone()),
    ];
    for (name, bytes) in files {
        fs::write(context.join(name), bytes)?;
    }
    fs::set_permissions(context.join("rocknet"), Permissions::from_mode(0o755))?;
    Ok(())
}

/// Returns the archive with the empty folders.
fn folders(time: u64) -> Result<Vec<u8>, Failure> {
    let mut archive = Builder::new(Vec::new());
    for (path, mode, owner) in FOLDERS {
        let mut header = Header::new_gnu();
        header.set_path(path)?;
        header.set_entry_type(EntryType::Directory);
        header.set_mode(mode);
        header.set_uid(owner);
        header.set_gid(owner);
        header.set_mtime(time);
        header.set_size(0);
        header.set_cksum();
        archive.append(&header, &[][..])?;
    }
    Ok(archive.into_inner()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_has_the_folders_with_their_owners() {
        let bytes = folders(7).unwrap();
        let mut archive = tar::Archive::new(&bytes[..]);
        let found: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
                assert!(header.entry_type().is_dir() && header.mtime().unwrap() == 7);
                (path, header.mode().unwrap(), header.uid().unwrap())
            })
            .collect();
        assert_eq!(found, FOLDERS.map(|(path, mode, owner)| (path.to_owned(), mode, owner)));
    }
}
