//! The parameters of a program to start: its command line, descriptors and account.

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

/// A program to start, with its account, command line, environment, working directory and descriptors.
pub struct Launch {
    /// Account that the program runs as.
    pub account: Account,
    /// Path of the program.
    pub program: PathBuf,
    /// Name of the program in process lists (`argv[0]`). If it is empty, the path is used.
    pub name: OsString,
    /// Arguments after `argv[0]`.
    pub arguments: Vec<OsString>,
    /// Complete environment; nothing is inherited from the server.
    pub environment: Vec<(OsString, OsString)>,
    /// Working directory.
    pub folder: PathBuf,
    /// Standard input.
    pub stdin: OwnedFd,
    /// Standard output.
    pub stdout: OwnedFd,
    /// Standard error.
    pub stderr: OwnedFd,
    /// A file in memory whose path is the last argument, if the program needs one. The program can read it without
    /// access to any folder.
    pub file: Option<OwnedFd>,
    /// Listening socket for php-fpm, with its name in the pool file; `None` for other programs.
    pub listener: Option<(OsString, OwnedFd)>,
    /// Signal that the program receives when the thread that started it ends.
    pub parent_death_signal: Signal,
}

/// Environment variable by which php-fpm inherits sockets, as `NAME=DESCRIPTOR`. php-fpm itself sets it to pass its
/// sockets when it re-executes.
const SOCKETS_VARIABLE: &str = "FPM_SOCKETS";

impl Launch {
    /// Starts the program as a child of this process. The calling thread has to outlive the program.
    pub(super) fn start_child(self) -> io::Result<Child> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env_clear().envs(self.environment);
        if !self.name.is_empty() {
            command.arg0(&self.name);
        }
        let mut inherited = Vec::new();
        if let Some(file) = self.file {
            command.arg(sealed_file::path(file.as_fd()));
            inherited.push(file);
        }
        if let Some((mut name, listener)) = self.listener {
            name.push(format!("={}", listener.as_raw_fd()));
            command.env(SOCKETS_VARIABLE, name);
            inherited.push(listener);
        }
        let setup = ChildSetup {
            user: self.account.user(),
            parent_death_signal: Some(self.parent_death_signal),
            directory: Some(&self.folder),
            inherited,
            // The program does not take over from this server process.
            is_successor: false,
        };
        child::prepare(&mut command, setup)?;
        command.stdin(self.stdin).stdout(self.stdout).stderr(self.stderr);
        command.spawn()
    }
}

/// Creates a pipe to or from a program. A program may open the pipe by its path, as a shell does for `>/dev/stderr`.
/// The mode of the pipe permits all accounts to open it, because the program may run as another account than the
/// server. Processes of other accounts cannot reach the path, because the kernel protects `/proc/PID/fd`.
///
/// # Errors
///
/// Returns the error of the system.
pub fn pipe() -> io::Result<(PipeReader, PipeWriter)> {
    let (reader, writer) = io::pipe()?;
    // An error is ignored: only programs that open the path need the mode.
    let _ = fchmod(&writer, Mode::from_bits_truncate(0o666));
    Ok((reader, writer))
}
