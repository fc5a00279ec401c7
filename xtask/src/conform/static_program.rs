//! The static program in a root folder without any library: it serves HTTPS, and refuses controllers by name.

use super::server::TestServer;
use crate::Failure;
use crate::command::{find, output};
use crate::dist::{Libc, check_program};
use crate::packages::is_root;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const SETTINGS: &str = "[server]\nstate = \"/state\"\n\
                        [site.localhost]\nlisten = \"https://127.0.0.1:0\"\nroot = \"/www\"\ntls = \"local\"\n";
const CONTROLLER: &str = "[site.\":8080\"]\nroot = \"/www\"\n\
                          [site.\":8080\".route.\"/hello\"]\ncontroller = \"hello.so:hello\"\n";
const PAGE: &str = "served by the static program\n";

/// Versions of HTTP that are requested, as options of curl.
const VERSIONS: [&str; 2] = ["--http1.1", "--http2"];

pub fn run(program: &Path) -> Result<(), Failure> {
    check_program(&fs::read(program)?, Libc::Musl, &[])?;
    if !is_root() {
        return Err("root is needed to change the root folder".into());
    }
    let root = tempfile::tempdir()?;
    let path = |name: &str| root.path().join(name);
    for folder in ["state", "www"] {
        fs::create_dir(path(folder))?;
    }
    fs::copy(program, path("rocknet"))?;
    fs::set_permissions(path("rocknet"), fs::Permissions::from_mode(0o755))?;
    fs::write(path("rocknet.toml"), SETTINGS)?;
    fs::write(path("controller.toml"), CONTROLLER)?;
    fs::write(path("hello.so"), "")?;
    fs::write(path("www/index.html"), PAGE)?;

    let root_name = root.path().to_string_lossy();
    let chroot = find("chroot").ok_or("chroot is missing")?;
    let server = TestServer::start(&chroot, &[&root_name, "/rocknet", "run"], root.path())?;
    let url = format!("https://localhost:{}/", server.port()?);
    for version in VERSIONS {
        let authority = path("state/local/ca.pem");
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--fail", "--max-time", "20", "--ipv4", version, "--cacert"]);
        let got = output(curl.arg(authority).arg(&url))?;
        if got != PAGE {
            return Err(format!("{url}: {got:?}").into());
        }
        println!("{url} {version}: {}", got.trim());
    }
    let mut check = Command::new(chroot);
    match output(check.args([&root_name, "/rocknet", "check", "/controller.toml"])) {
        Err(error) if error.to_string().contains("linked statically") => Ok(()),
        other => Err(format!("a controller is not refused: {other:?}").into()),
    }
}
