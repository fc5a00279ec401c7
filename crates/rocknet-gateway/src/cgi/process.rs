//! A program that runs for one request: started with its own environment, three pipes, and nothing else of ours.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;

use super::places::Permit;
use super::processes::Processes;
use super::reaper::Watched;
use crate::accounts::{Account, Launch, pipe};
use crate::gateway::program::Program;

/// What to start. No shell is involved: the kernel reads the first line of a script.
pub struct Start {
    pub file: PathBuf,
    pub environment: Vec<(OsString, OsString)>,
    /// Whom it runs as, where the site says so.
    pub user: Option<Box<str>>,
    /// For which it may run.
    pub time: Duration,
    /// Among those that run.
    pub place: Permit,
    /// Those of the server.
    pub processes: Arc<Processes>,
}

/// A program with the other ends of its pipes.
pub struct Started {
    process: Watched,
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

impl Started {
    /// Joins the loop of the worker that speaks with the program.
    pub fn join_loop(self) -> io::Result<Program> {
        Program::new(Box::new(self.process), self.stdin, self.stdout, self.stderr)
    }
}

impl Start {
    /// Forks, which takes a while. The thread it is called on has to stay: the program is killed when it ends.
    pub fn start(self) -> io::Result<Started> {
        let account = Account::for_scripts(self.user.as_deref())?;
        let (their_input, input) = pipe()?;
        let (output, their_output) = pipe()?;
        let (errors, their_errors) = pipe()?;
        let launch = Launch {
            account,
            folder: self.file.parent().map_or_else(|| "/".into(), PathBuf::from),
            program: self.file,
            name: OsString::new(),
            arguments: Vec::new(),
            environment: self.environment,
            stdin: their_input.into(),
            stdout: their_output.into(),
            stderr: their_errors.into(),
            file: None,
            listener: None,
            parent_death_signal: Signal::KILL,
        };
        let process = self
            .processes
            .reaper
            .watch(launch.start()?, self.time, Box::new(self.place))?;
        Ok(Started {
            process,
            stdin: input.into(),
            stdout: output.into(),
            stderr: errors.into(),
        })
    }
}
