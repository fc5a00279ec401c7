//! Builds or installs test tools that have no Debian package, with Go, pip or cargo, once per target folder.

use crate::command::{cargo, command, find, output};
use crate::{Failure, repository};
use std::fs;
use std::path::PathBuf;

/// A Go program in a fixed version.
pub struct Tool {
    program: &'static str,
    module: &'static str,
    version: &'static str,
}

const fn tool(program: &'static str, module: &'static str, version: &'static str) -> Tool {
    Tool {
        program,
        module,
        version,
    }
}

/// Client that violates each rule of HTTP/2 and judges the responses.
pub const H2SPEC: Tool = tool(
    "h2spec",
    "github.com/summerwind/h2spec/cmd/h2spec",
    "v2.2.1+incompatible",
);

/// Authorization service of forward authentication.
pub const OAUTH2_PROXY: Tool = tool("oauth2-proxy", "github.com/oauth2-proxy/oauth2-proxy/v7", "v7.15.6");

/// Web server that the bench compares with RockNet.
pub const CADDY: Tool = tool("caddy", "github.com/caddyserver/caddy/v2/cmd/caddy", "v2.11.9");

/// ACME server for tests, and its DNS server.
const PEBBLE: [Tool; 2] = [
    tool("pebble", "github.com/letsencrypt/pebble/v2/cmd/pebble", "v2.10.1"),
    tool(
        "pebble-challtestsrv",
        "github.com/letsencrypt/pebble/v2/cmd/pebble-challtestsrv",
        "v2.10.1",
    ),
];

/// Version of oha, a load generator that `cargo install` builds. It brings the `h3` crate and `quinn` for HTTP/3.
pub const OHA: &str = "1.16.0";

/// Returns the path of oha if it has been built.
pub fn oha() -> Option<PathBuf> {
    let path = repository::target().join("tools/oha/bin/oha");
    Some(path).filter(|path| path.is_file())
}

/// Builds oha on first use. A failure is only printed.
pub fn build_oha() {
    if oha().is_some() {
        return;
    }
    println!("building oha {OHA}");
    let mut cargo = cargo();
    cargo.args(["install", "oha", "--locked", "--quiet", "--no-default-features"]);
    cargo.args(["--features", "rustls,http3", "--version", OHA, "--root"]);
    cargo.arg(repository::target().join("tools/oha"));
    if let Err(failure) = output(&mut cargo) {
        println!("continuing without oha: {failure}");
    }
}

/// Builds Pebble on first use. The ACME tests look for it in the target folder.
pub fn pebble() -> Result<(), Failure> {
    PEBBLE.iter().try_for_each(|tool| tool.path().map(drop))
}

/// Installs Python packages into a folder below the target folder on first use. Returns the folder for `PYTHONPATH`.
pub fn python_packages(name: &str, packages: &[&str]) -> Result<PathBuf, Failure> {
    let tools = repository::target().join("tools");
    let folder = tools.join(format!("python-{name}"));
    // A different list of versions requires a new installation.
    let list = packages.join("\n");
    let written = folder.join("packages.txt");
    if fs::read_to_string(&written).is_ok_and(|installed| installed == list) {
        return Ok(folder);
    }
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    println!("installing {}", packages.join(", "));
    let mut pip = command("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--target"]);
    output(pip.arg(&folder).args(packages))?;
    fs::write(written, list)?;
    Ok(folder)
}

/// Installs a package of npm below the target folder on first use. Returns the path of one of its files. Scripts of the
/// package are not run.
pub fn npm_file(package: &str, version: &str, file: &str) -> Result<PathBuf, Failure> {
    let folder = repository::target()
        .join("tools")
        .join(format!("npm-{package}-{version}"));
    let path = folder.join("node_modules").join(package).join(file);
    if path.is_file() {
        return Ok(path);
    }
    println!("installing {package} {version}");
    fs::create_dir_all(&folder)?;
    let mut npm = command("npm");
    npm.args([
        "install",
        "--silent",
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
        "--prefix",
    ]);
    output(npm.arg(&folder).arg(format!("{package}@{version}")))?;
    Ok(path)
}

impl Tool {
    /// Returns the name of the program.
    pub fn name(&self) -> &'static str {
        self.program
    }

    /// Returns the version that is built.
    pub fn version(&self) -> &'static str {
        self.version
    }

    /// Returns the path of the program if it has been built.
    pub fn built(&self) -> Option<PathBuf> {
        let path = repository::target().join("tools/bin").join(self.program);
        Some(path).filter(|path| path.is_file())
    }

    /// Builds the program on first use. A failure is only printed.
    pub fn build_optional(&self) {
        if let Err(failure) = self.path() {
            println!("continuing without {}: {failure}", self.program);
        }
    }

    /// Returns the path of the program, which is built on first use. Fails if Go is missing, because tests must not be
    /// skipped for that reason.
    pub fn path(&self) -> Result<PathBuf, Failure> {
        if let Some(path) = self.built() {
            return Ok(path);
        }
        let folder = repository::target().join("tools/bin");
        let Some(go) = go() else {
            return Err(needs_go(self.program).into());
        };
        let module = format!("{}@{}", self.module, self.version);
        println!("building {module}");
        output(command(go).args(["install", &module]).env("GOBIN", &folder))?;
        Ok(folder.join(self.program))
    }
}

/// Builds a Go program of this repository, whose module is in `folder`, and returns its path. Go builds only what has
/// changed.
pub fn go_program(program: &str, folder: &str) -> Result<PathBuf, Failure> {
    let built = repository::target().join("tools/bin").join(program);
    let go = go().ok_or_else(|| needs_go(program))?;
    output(
        command(go)
            .args(["build", "-mod=readonly", "-o"])
            .arg(&built)
            .arg(".")
            .current_dir(repository::root().join(folder)),
    )?;
    Ok(built)
}

fn needs_go(program: &str) -> String {
    format!("{program} is built with Go: install Go 1.24 or newer (https://go.dev/dl), then try again")
}

/// Finds Go on the path or in the default folder of its installation.
fn go() -> Option<PathBuf> {
    let installed = PathBuf::from("/usr/local/go/bin/go");
    find("go").or_else(|| Some(installed).filter(|go| go.is_file()))
}
