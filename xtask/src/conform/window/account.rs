//! Account of a new user: an empty home folder, the programs of a release, and a browser that records the addresses
//! that it opens.

use super::waiting::wait;
use crate::Failure;
use crate::packages::is_root;
use rocknet_control::Client;
use rocknet_control::api::{Done, Request};
use serde::de::DeserializeOwned;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Account of tests that run as root: an ordinary one, whose rights files and folders can limit.
const NOBODY: u32 = 65_534;

/// Programs of the desktop that a test plays. `xdg-open` is the browser; `systemctl` is missing, as in a container.
const XDG_OPEN: &str = "#!/bin/sh\necho \"$1\" >> \"$HOME/.opened\"\n";

/// An account with its home folder. The server that it has started is stopped when the value is dropped.
pub struct Account {
    pub home: PathBuf,
    is_root: bool,
}

impl Account {
    /// Creates the account. `folder`: an existing folder that becomes the home folder. `programs`: the server and the
    /// desktop program, which are copied, because the account may have no access to their folder.
    pub fn create(folder: &Path, programs: [&Path; 2]) -> Result<Account, Failure> {
        let account = Account {
            home: folder.to_owned(),
            is_root: is_root(),
        };
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
        let bin = folder.join(".bin");
        fs::create_dir(&bin)?;
        for program in programs {
            let name = program.file_name().ok_or("a program without a name")?;
            fs::copy(program, bin.join(name))?;
        }
        account.script("xdg-open", XDG_OPEN)?;
        account.script("systemctl", "#!/bin/sh\nexit 1\n")?;
        account.own(folder)?;
        Ok(account)
    }

    /// Writes a program of the account.
    pub fn script(&self, name: &str, text: &str) -> Result<(), Failure> {
        let file = self.home.join(".bin").join(name);
        fs::write(&file, text)?;
        Ok(fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?)
    }

    /// Gives a file, or a folder with everything in it, to the account.
    pub fn own(&self, path: &Path) -> Result<(), Failure> {
        if !self.is_root {
            return Ok(());
        }
        chown(path, Some(NOBODY), Some(NOBODY))?;
        if path.is_dir() {
            for entry in path.read_dir()? {
                self.own(&entry?.path())?;
            }
        }
        Ok(())
    }

    /// Writes a file below the home folder, with its folders.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, Failure> {
        let file = self.home.join(name);
        let mut missing = Vec::new();
        for folder in file.ancestors().skip(1).take_while(|folder| !folder.exists()) {
            missing.push(folder);
        }
        for folder in missing.into_iter().rev() {
            fs::create_dir(folder)?;
            self.own(folder)?;
        }
        fs::write(&file, text)?;
        self.own(&file)?;
        Ok(file)
    }

    /// Returns a command of the account, with no environment but its own.
    pub fn command(&self, program: &str) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let bin = self.home.join(".bin");
        let mut command = match self.is_root {
            true => {
                let mut command = Command::new("setpriv");
                let ids = [format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")];
                command.args(ids).arg("--clear-groups").arg(bin.join(program));
                command
            }
            false => Command::new(bin.join(program)),
        };
        command
            .current_dir(&self.home)
            .env_clear()
            .env("PATH", format!("{}:{path}:/usr/sbin", bin.display()))
            .env("HOME", &self.home)
            .env("XDG_CONFIG_HOME", self.home.join(".config"))
            .env("XDG_STATE_HOME", self.home.join(".local/state"))
            .env("XDG_DATA_HOME", self.home.join(".local/share"))
            .env("LC_ALL", "C");
        command
    }

    /// Returns the path of the configuration.
    pub fn config(&self) -> PathBuf {
        self.home.join(".config/rocknet/rocknet.toml")
    }

    /// Returns the path of the control socket.
    pub fn socket(&self) -> PathBuf {
        self.home.join(".local/state/rocknet/admin/control.sock")
    }

    /// Sends a request to the server of the account; `None` without a server.
    pub fn request<T: DeserializeOwned>(&self, request: &Request) -> Option<T> {
        Client::connect(&self.socket()).ok()?.call(request).ok()
    }

    /// Starts the server without the desktop program, and waits until it replies.
    pub fn start_server(&self) -> Result<(), Failure> {
        let log = fs::File::create(self.home.join(".server-output"))?;
        let mut server = self.command("rocknet");
        let server = server.args(["run", "--config"]).arg(self.config());
        // The server ends with the account.
        server
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        wait("the server replies", || Client::connect(&self.socket()).ok().map(drop)).map_err(|failure| {
            let printed = fs::read_to_string(self.home.join(".server-output")).unwrap_or_default();
            format!("{failure}\n{printed}").into()
        })
    }

    /// Returns the addresses that were opened in the browser.
    pub fn opened(&self) -> Vec<String> {
        let text = fs::read_to_string(self.home.join(".opened")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        if self.request::<Done>(&Request::Stop).is_some() {
            let _ = wait("the server stops", || Client::connect(&self.socket()).err());
        }
    }
}

/// Requests the start page of a port of this machine, and returns the response.
pub fn get(port: u16) -> Result<String, Failure> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    let request = format!("GET / HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    Ok(response)
}
