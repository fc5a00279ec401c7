//! A program that is about to be started: its command line, its descriptors and its account.

use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};

use rocknet_io::child::{self, ChildSetup};
use rocknet_io::sealed_file;
use rustix::fs::{Mode, fchmod};
use rustix::process::Signal;

use super::account::Account;

/// Everything that a program gets. Its environment is `environment` and nothing else.
pub struct Launch {
    pub account: Account,
    pub program: PathBuf,
    /// Its name in lists of processes; empty: the program.
    pub name: OsString,
    pub arguments: Vec<OsString>,
    pub environment: Vec<(OsString, OsString)>,
    /// Its working directory.
    pub folder: PathBuf,
    pub stdin: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    /// A file whose path is its last argument. It needs no right to any folder to read it.
    pub file: Option<OwnedFd>,
    /// A socket for php-fpm to listen on, and the name of it in its configuration.
    pub listener: Option<(OsString, OwnedFd)>,
    /// Sent to it when the process that started it ends.
    pub parent_death_signal: Signal,
}

/// Variable by which php-fpm takes over sockets, as `NAME=DESCRIPTOR`: it uses it itself when it replaces its program.
const SOCKETS_VARIABLE: &str = "FPM_SOCKETS";

impl Launch {
    /// Starts the program as a child of this process, from a thread that has to outlive it.
    pub(super) fn start_child(self) -> io::Result<Child> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env_clear().envs(self.environment);
        if !self.name.is_empty() {
            command.arg0(&self.name);
        }
        let mut kept = Vec::new();
        if let Some(file) = self.file {
            command.arg(sealed_file::path(file.as_fd()));
            kept.push(file);
        }
        if let Some((mut name, listener)) = self.listener {
            name.push(format!("={}", listener.as_raw_fd()));
            command.env(SOCKETS_VARIABLE, name);
            kept.push(listener);
        }
        let setup = ChildSetup {
            user: self.account.user(),
            parent_death_signal: Some(self.parent_death_signal),
            directory: Some(&self.folder),
            inherited: kept,
        };
        child::prepare(&mut command, setup)?;
        command.stdin(self.stdin).stdout(self.stdout).stderr(self.stderr);
        command.spawn()
    }
}

/// Creates a pipe to or from a program. The program may open it by its path too, as in `>/dev/stderr`, although another
/// account made it; others do not get as far as the path.
pub fn pipe() -> io::Result<(PipeReader, PipeWriter)> {
    let (reader, writer) = io::pipe()?;
    // Nothing depends on it but programs that open the path.
    let _ = fchmod(&writer, Mode::from_bits_truncate(0o666));
    Ok((reader, writer))
}
