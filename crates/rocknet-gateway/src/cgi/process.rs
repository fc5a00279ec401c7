//! Starts the program of one request with its own environment and three pipes. The program inherits no other descriptor
//! of the server.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rocknet_io::process_end::ProcessDescriptor;
use rustix::process::Signal;

use super::permits::ProgramPermit;
use super::processes::Processes;
use super::reaper::WatchedProcess;
use crate::accounts::{Account, Launch, pipe};
use crate::gateway::cgi_program::CgiProgram;

/// A program to start. It is started without a shell: the kernel reads the interpreter from the first line of a script.
pub struct CgiCommand {
    /// File of the program.
    pub file: PathBuf,
    /// Complete environment of the program.
    pub environment: Vec<(OsString, OsString)>,
    /// Account that the program runs as, if the site names one.
    pub user: Option<Box<str>>,
    /// Time after which the program is killed.
    pub time_limit: Duration,
    /// Permission to run, held until the program and its process group have ended.
    pub permit: ProgramPermit,
    /// Programs of the server, with the reaper that watches this one.
    pub processes: Arc<Processes>,
}

/// A started program with the server's ends of its pipes.
pub struct StartedProgram {
    process: WatchedProcess,
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
    end: Option<ProcessDescriptor>,
}

impl StartedProgram {
    /// Registers the pipes with the event loop of the calling worker.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if a pipe cannot be registered.
    pub fn attach(self) -> io::Result<CgiProgram> {
        CgiProgram::new(Box::new(self.process), self.stdin, self.stdout, self.stderr, self.end)
    }
}

impl CgiCommand {
    /// Starts the program. Blocks during the fork. The calling thread has to outlive the program, because the system
    /// kills the program when that thread ends.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no account for the program, or if it cannot be started.
    pub fn spawn(self) -> io::Result<StartedProgram> {
        let account = Account::for_scripts(self.user.as_deref())?;
        let (program_stdin, stdin) = pipe()?;
        let (stdout, program_stdout) = pipe()?;
        let (stderr, program_stderr) = pipe()?;
        let launch = Launch {
            account,
            folder: self.file.parent().map_or_else(|| "/".into(), PathBuf::from),
            program: self.file,
            // Process lists show the path.
            name: OsString::new(),
            arguments: Vec::new(),
            environment: self.environment,
            stdin: program_stdin.into(),
            stdout: program_stdout.into(),
            stderr: program_stderr.into(),
            file: None,
            listener: None,
            parent_death_signal: Signal::KILL,
        };
        let started = launch.start()?;
        let end = started.id().and_then(ProcessDescriptor::open);
        let reaper = &self.processes.reaper;
        let process = reaper.watch(started, self.time_limit, Box::new(self.permit))?;
        Ok(StartedProgram {
            process,
            stdin: stdin.into(),
            stdout: stdout.into(),
            stderr: stderr.into(),
            end,
        })
    }
}
