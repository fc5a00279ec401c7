//! Loads a site with a certificate of the local CA in headless Chromium: it must be refused before `rocknet trust`,
//! loaded without a warning after it, and refused again after `rocknet untrust`.

use super::browser;
use super::server::TestServer;
use crate::Failure;
use crate::command::{command, output};
use std::fs;
use std::path::Path;

const SETTINGS: &str = "[server]\nstate = \"state\"\n\
                        [site.localhost]\nlisten = \"https://127.0.0.1:0\"\nroot = \"www\"\ntls = \"local\"\n";
const PAGE: &str = "<p>loaded without a warning</p>";
/// Error that the browser shows on the page or in its log.
const WARNING: &str = "ERR_CERT_AUTHORITY_INVALID";

pub fn run(program: &Path) -> Result<(), Failure> {
    // The home folder is temporary, so that the browsers of the real user are not changed.
    let home = tempfile::tempdir()?;
    fs::create_dir(home.path().join("www"))?;
    fs::write(home.path().join("www/index.html"), PAGE)?;
    fs::write(home.path().join("rocknet.toml"), SETTINGS)?;
    let server = TestServer::start(program, &["run"], home.path())?;
    expect(&server, home.path(), WARNING, PAGE)?;
    rocknet(program, "trust", home.path())?;
    expect(&server, home.path(), PAGE, WARNING)?;
    rocknet(program, "untrust", home.path())?;
    expect(&server, home.path(), WARNING, PAGE)
}

/// Runs `rocknet trust` or `rocknet untrust`, only for the certificate stores of browsers, because the store of the
/// system belongs to all users.
pub fn rocknet(program: &Path, verb: &str, home: &Path) -> Result<(), Failure> {
    let printed = output(
        command(program)
            .args([verb, "--browsers"])
            .current_dir(home)
            .env("HOME", home)
            .env_remove("SUDO_USER"),
    )?;
    print!("{printed}");
    Ok(())
}

/// Loads the page. Fails unless `seen` is in the page or in the log, and `unseen` is in neither.
fn expect(server: &TestServer, home: &Path, seen: &str, unseen: &str) -> Result<(), Failure> {
    let url = server.url("/");
    let (dom, log) = browser::load(&url, Some(home))?;
    let all = dom + &log;
    if !all.contains(seen) || all.contains(unseen) {
        return Err(format!("{url}: expected {seen:?} and not {unseen:?} in\n{all}").into());
    }
    println!("{url} shows {seen}");
    Ok(())
}
