//! Autobahn's program, in an environment of its own below the target folder: it speaks Python 2.7, which systems have given
//! up, so that is looked for where pyenv puts it too.

use crate::command::{command, find, output};
use crate::{Failure, repository, tools};
use std::env;
use std::fs;
use std::path::PathBuf;

/// The last of virtualenv that makes environments of Python 2.7.
const VIRTUALENV: &[&str] = &["virtualenv<20.22"];
/// What the suite needs, which its own package does not say; each the last for Python 2.7 that goes with the others.
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
    // Masks and checks text in C, which takes the client most of its time otherwise.
    "wsaccel==0.6.3",
];
const SUITE: &str = "autobahntestsuite==25.10.1";

/// What people do who have none.
pub const INSTALL_HINT: &str = "Python 2.7, which Autobahn speaks: `pyenv install 2.7.18` brings it";

/// Where Python 2.7 lies.
pub fn python() -> Option<PathBuf> {
    let home = env::var_os("PYENV_ROOT").map(PathBuf::from);
    let home = home.or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".pyenv")));
    let versions = home.and_then(|home| fs::read_dir(home.join("versions")).ok());
    let installed = versions
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin/python2.7"));
    // What pyenv puts on the path is a script, which runs only where its version is chosen.
    installed
        .chain(find("python2.7"))
        .find(|python| output(command(python).arg("-V")).is_ok())
}

/// Where the interpreter lies whose packages are the program's; brought there if it is not yet.
pub fn interpreter() -> Result<PathBuf, Failure> {
    let folder = repository::target().join("tools/autobahn");
    let interpreter = folder.join("bin/python");
    // Other versions than the ones that lie there are another program.
    let list = format!("{}\n{SUITE}", REQUIREMENTS.join("\n"));
    let written = folder.join("packages.txt");
    if fs::read_to_string(&written).is_ok_and(|there| there == list) {
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
    // As its source, because only that says nothing of what it needs that would not go with the rest.
    output(pip().args(["--no-deps", "--no-binary", ":all:", SUITE]))?;
    fs::write(written, list)?;
    Ok(interpreter)
}
