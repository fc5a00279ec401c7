//! A PHP application as an operator would install it: its files in a folder, served by the built server over HTTPS with
//! a certificate of the local CA.

use super::folder::open_folder;
use super::server::TestServer;
use super::session::Session;
use crate::Failure;
use crate::command::output;
use crate::packages::is_root;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// User that PHP runs as if root starts the server. It must own the files that PHP may change.
const USER: &str = "www-data";
/// Table header of the example's site.
const EXAMPLE: &str = "site.\":8080\"";
/// Table header that replaces [`EXAMPLE`]. Browsers and curl reach this site over HTTP/2.
const SITE: &str = "site.localhost";
/// Keys that are added to the site.
const KEYS: &str = "listen = \"https://127.0.0.1:0\"\ntls = \"local\"\n";

pub struct Application {
    server: Option<TestServer>,
    home: tempfile::TempDir,
}

impl Application {
    /// Creates an empty folder for the application.
    pub fn new() -> Result<Self, Failure> {
        Ok(Self {
            server: None,
            home: open_folder()?,
        })
    }

    /// Returns the folder of the application's files and configuration.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Copies `files` into `folder` below the application's home and returns the path.
    pub fn copy(&self, files: &str, folder: &str) -> Result<PathBuf, Failure> {
        let folder = self.home().join(folder);
        fs::create_dir(&folder)?;
        // Links in a package lead to other packages, so links are followed.
        output(Command::new("cp").args(["-RL", &format!("{files}/.")]).arg(&folder))?;
        Ok(folder)
    }

    /// Makes a folder and everything in it writable for scripts. Unless root starts the server, PHP runs as the current
    /// user, who can already write there.
    pub fn let_write(&self, folder: &Path) -> Result<(), Failure> {
        if is_root() {
            output(Command::new("chown").args(["-R", USER]).arg(folder))?;
        }
        Ok(())
    }

    /// Serves the application with the configuration of an example, but over TLS, and at a port chosen by the kernel.
    pub fn serve(&mut self, program: &Path, example: &str) -> Result<Session, Failure> {
        fs::write(self.home().join("rocknet.toml"), settings(example))?;
        self.server = Some(TestServer::start(program, &["run"], self.home())?);
        self.session()
    }

    /// Returns a session without cookies.
    pub fn session(&self) -> Result<Session, Failure> {
        Session::new(self.server()?, &self.home().join("state"))
    }

    /// Returns the built server that serves the application.
    pub fn server(&self) -> Result<&TestServer, Failure> {
        let server = self.server.as_ref();
        server.ok_or_else(|| "the application is not served yet".into())
    }
}

/// Returns the example's configuration with TLS and a port chosen by the kernel.
fn settings(example: &str) -> String {
    let mut text = "[server]\nstate = \"state\"\n\n".to_owned();
    for line in example.lines() {
        text.push_str(&line.replace(EXAMPLE, SITE));
        text.push('\n');
        if line == format!("[{EXAMPLE}]") {
            text.push_str(KEYS);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_an_example_and_its_routes_is_replaced() {
        let example = "# A site.\n[site.\":8080\"]\nroot = \"www\"\n\n[site.\":8080\".route.\"/a/*\"]\nphp = false\n";
        let expected = "[server]\nstate = \"state\"\n\n# A site.\n[site.localhost]\n\
                        listen = \"https://127.0.0.1:0\"\ntls = \"local\"\n\
                        root = \"www\"\n\n[site.localhost.route.\"/a/*\"]\nphp = false\n";
        assert_eq!(settings(example), expected);
    }
}
