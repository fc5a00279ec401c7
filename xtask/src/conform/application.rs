//! An application in PHP, as somebody would put it on a server: its files in a folder, and the built server before it, over
//! HTTPS with a certificate of the local CA.

use super::folder::open_folder;
use super::server::TestServer;
use super::session::Session;
use crate::Failure;
use crate::command::output;
use crate::packages::is_root;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whom PHP runs as where root starts the server: what it may change has to be this user's.
const USER: &str = "www-data";
/// What stands before the site of an example, and the site that browsers and curl reach by HTTP/2.
const EXAMPLE: &str = "site.\":8080\"";
const SITE: &str = "site.localhost";
const KEYS: &str = "listen = \"https://127.0.0.1:0\"\ntls = \"local\"\n";

pub struct Application {
    server: Option<TestServer>,
    home: tempfile::TempDir,
}

impl Application {
    /// An empty folder for it.
    pub fn new() -> Result<Self, Failure> {
        Ok(Self {
            server: None,
            home: open_folder()?,
        })
    }

    /// Where its files and its settings lie.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Copies `files` into a folder of it, and says where that is.
    pub fn copy(&self, files: &str, folder: &str) -> Result<PathBuf, Failure> {
        let folder = self.home().join(folder);
        fs::create_dir(&folder)?;
        // Links of a package lead to other packages; a folder of one's own has files.
        output(Command::new("cp").args(["-RL", &format!("{files}/.")]).arg(&folder))?;
        Ok(folder)
    }

    /// Lets scripts write to a folder of it, and to all that is in there.
    pub fn let_write(&self, folder: &Path) -> Result<(), Failure> {
        if is_root() {
            output(Command::new("chown").args(["-R", USER]).arg(folder))?;
        }
        Ok(())
    }

    /// Serves it as the configuration of an example says, but for its address.
    pub fn serve(&mut self, program: &Path, example: &str) -> Result<Session, Failure> {
        fs::write(self.home().join("rocknet.toml"), settings(example))?;
        self.server = Some(TestServer::start(program, &["run"], self.home())?);
        self.session()
    }

    /// Somebody who comes for the first time.
    pub fn session(&self) -> Result<Session, Failure> {
        let server = self.server.as_ref().ok_or("it is not served yet")?;
        Session::new(server, &self.home().join("state"))
    }
}

/// The example's settings on a port of the kernel's choice, under TLS.
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
    fn an_example_moves_with_its_routes_to_another_address() {
        let example = "# A site.\n[site.\":8080\"]\nroot = \"www\"\n\n[site.\":8080\".route.\"/a/*\"]\nphp = false\n";
        let expected = "[server]\nstate = \"state\"\n\n# A site.\n[site.localhost]\n\
                        listen = \"https://127.0.0.1:0\"\ntls = \"local\"\n\
                        root = \"www\"\n\n[site.localhost.route.\"/a/*\"]\nphp = false\n";
        assert_eq!(settings(example), expected);
    }
}
