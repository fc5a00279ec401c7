//! Installs Autobahn's program in a virtual environment below the target folder. It needs Python 2.7, which
//! distributions have dropped, so pyenv's versions are searched too.

use crate::command::{command, find, output};
use crate::{Failure, repository, tools};
use std::env;
use std::fs;
use std::path::PathBuf;

/// Last version of virtualenv that supports Python 2.7.
const VIRTUALENV: &[&str] = &["virtualenv<20.22"];
/// Requirements of the suite that its package does not declare, each in the last version that is compatible with Python
/// 2.7.
const REQUIREMENTS: &[&str] = &[
    "setuptools==44.0.0",
    "txaio==2.1.0",
    "incremental==16.10.1",
    "Twisted==19.10.0",
    "zope.interface==4.6.0",
    "jinja2==2.11.3",
    "markupsafe==1.1.1",
    "Werkzeug==1.0.1",
    "klein==17.10.0",
    "unittest2==1.1.0",
    "six==1.16.0",
    "service_identity==18.1.0",
    "pyOpenSSL==19.1.0",
    "cryptography==3.3.2",
    "autobahn==0.10.9",
    // Masks and validates text in C, which otherwise takes most of the client's time.
    "wsaccel==0.6.3",
];
const SUITE: &str = "autobahntestsuite==25.10.1";

/// Advice for machines without Python 2.7.
pub const INSTALL_HINT: &str = "Autobahn needs Python 2.7: install it with `pyenv install 2.7.18`";

/// Finds Python 2.7.
pub fn python() -> Option<PathBuf> {
    let home = env::var_os("PYENV_ROOT").map(PathBuf::from);
    let home = home.or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".pyenv")));
    let versions = home.and_then(|home| fs::read_dir(home.join("versions")).ok());
    let installed = versions
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin/python2.7"));
    // pyenv's command on the path is a script that works only if its version is selected.
    installed
        .chain(find("python2.7"))
        .find(|python| output(command(python).arg("-V")).is_ok())
}

/// Returns the Python interpreter with Autobahn's packages, and installs them on first use.
pub fn interpreter() -> Result<PathBuf, Failure> {
    let folder = repository::target().join("tools/autobahn");
    let interpreter = folder.join("bin/python");
    // A different list of versions requires a new environment.
    let list = format!("{}\n{SUITE}", REQUIREMENTS.join("\n"));
    let written = folder.join("packages.txt");
    if fs::read_to_string(&written).is_ok_and(|installed| installed == list) {
        return Ok(interpreter);
    }
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let python = python().ok_or(INSTALL_HINT)?;
    println!("installing {SUITE}");
    let virtualenv = tools::python_packages("virtualenv", VIRTUALENV)?;
    let mut environment = command("python3");
    environment
        .env("PYTHONPATH", virtualenv)
        .args(["-m", "virtualenv", "-q", "-p"]);
    output(environment.arg(python).arg(&folder))?;
    let pip = || {
        let mut pip = command(folder.join("bin/pip"));
        pip.args(["install", "-q", "--disable-pip-version-check"]);
        pip
    };
    output(pip().args(REQUIREMENTS))?;
    // The suite is installed from source, because the source package declares no requirements that would conflict.
    output(pip().args(["--no-deps", "--no-binary", ":all:", SUITE]))?;
    fs::write(written, list)?;
    Ok(interpreter)
}
