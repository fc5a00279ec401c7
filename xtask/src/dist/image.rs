//! Builds the container image from `packaging/image`, with buildah or podman.

use super::contents::source;
use super::release::Release;
use crate::Failure;
use crate::command::{find, run};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Programs that build images, in order of preference.
const BUILDERS: [&str; 2] = ["buildah", "podman"];

/// Builds `localhost/rocknet:VERSION`, and writes it into `folder` as an archive that docker and podman load.
pub fn build(release: &Release, base: Option<&str>, folder: &Path) -> Result<(), Failure> {
    let Some(builder) = BUILDERS.into_iter().find(|name| find(name).is_some()) else {
        return Err("buildah or podman is needed: on Debian, run `apt-get install buildah`".into());
    };
    let context = tempfile::tempdir()?;
    let files = [
        ("Containerfile", source("packaging/image/Containerfile")?),
        ("rocknet.toml", source("packaging/image/rocknet.toml")?),
        ("index.html", source("packaging/index.html")?),
        ("rocknet", release.bytes.clone()),
    ];
    for (name, bytes) in files {
        fs::write(context.path().join(name), bytes)?;
    }
    fs::set_permissions(context.path().join("rocknet"), fs::Permissions::from_mode(0o755))?;
    let name = format!("localhost/rocknet:{}", Release::VERSION);
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
