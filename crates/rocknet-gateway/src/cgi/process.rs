//! A program that runs for one request: started with its own environment, three pipes, and nothing else of ours.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;

use super::permits::ProgramPermit;
use super::processes::Processes;
use super::reaper::WatchedProcess;
use crate::accounts::{Account, Launch, pipe};
use crate::gateway::cgi_program::CgiProgram;

/// What to start. No shell is involved: the kernel reads the first line of a script.
pub struct CgiCommand {
    pub file: PathBuf,
    pub environment: Vec<(OsString, OsString)>,
    /// Whom it runs as, where the site says so.
    pub user: Option<Box<str>>,
    /// For which it may run.
    pub time_limit: Duration,
    /// Among those that run.
    pub permit: ProgramPermit,
    /// Those of the server.
    pub processes: Arc<Processes>,
}

/// A program with the other ends of its pipes.
pub struct StartedProgram {
    process: WatchedProcess,
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

impl StartedProgram {
    /// Joins the loop of the worker that speaks with the program.
    pub fn attach(self) -> io::Result<CgiProgram> {
        CgiProgram::new(Box::new(self.process), self.stdin, self.stdout, self.stderr)
    }
}

impl CgiCommand {
    /// Forks, which takes a while. The thread it is called on has to stay: the program is killed when it ends.
    pub fn spawn(self) -> io::Result<StartedProgram> {
        let account = Account::for_scripts(self.user.as_deref())?;
        let (their_stdin, stdin) = pipe()?;
        let (stdout, their_stdout) = pipe()?;
        let (stderr, their_stderr) = pipe()?;
        let launch = Launch {
            account,
            folder: self.file.parent().map_or_else(|| "/".into(), PathBuf::from),
            program: self.file,
            name: OsString::new(),
            arguments: Vec::new(),
            environment: self.environment,
            stdin: their_stdin.into(),
            stdout: their_stdout.into(),
            stderr: their_stderr.into(),
            file: None,
            listener: None,
            parent_death_signal: Signal::KILL,
        };
        let process = self
            .processes
            .reaper
            .watch(launch.start()?, self.time_limit, Box::new(self.permit))?;
        Ok(StartedProgram {
            process,
            stdin: stdin.into(),
            stdout: stdout.into(),
            stderr: stderr.into(),
        })
    }
}
