//! The programs that the helper has started for one client.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use rocknet_io::privileges::User;
use rustix::process::Signal;

use super::protocol::{self, HelperReply, HelperRequest, ProgramSpec, RUNNING};
use crate::accounts::{Account, Launch, Process};

/// Maximum wait for programs to end after their client, a server process, has ended.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Error number of a reply to a malformed request, or for an error without a number.
pub(super) const INVALID: i32 = rustix::io::Errno::INVAL.raw_os_error();
/// Error number of a reply to a request that is not permitted.
pub(super) const REFUSED: i32 = rustix::io::Errno::ACCESS.raw_os_error();
/// Error number of a reply if there is no program with the requested number.
const UNKNOWN: i32 = rustix::io::Errno::SRCH.raw_os_error();

/// A program that was started.
struct ProcessEntry {
    process: Process,
    parent_death_signal: Signal,
    /// True if the client sends no more requests about the program. The entry is then removed when the program ends.
    is_released: bool,
}

/// Programs of one client, by number. Other clients cannot signal them.
#[derive(Default)]
pub(super) struct ProgramTable {
    processes: BTreeMap<u64, ProcessEntry>,
    /// Number of the program that was started last; 0 before the first.
    last_number: u64,
}

/// Programs whose client has ended. They have received their parent-death signals.
pub(super) struct EndingPrograms {
    processes: Vec<ProcessEntry>,
    deadline: Instant,
}

impl ProgramTable {
    /// Returns the number of programs.
    pub fn len(&self) -> usize {
        self.processes.len()
    }

    /// Handles a request about a started program. Other requests are invalid.
    pub fn handle(&mut self, request: HelperRequest) -> HelperReply {
        match request {
            HelperRequest::TryWait(number) => {
                let status = self.entry(number)?.process.try_wait().map_err(|error| errno(&error))?;
                Ok(status.map_or(RUNNING, |status| status.into_raw().unsigned_abs().into()))
            }
            HelperRequest::Signal {
                number,
                signal,
                to_group,
            } => {
                let process = &self.entry(number)?.process;
                let sent = match to_group {
                    true => process.signal_group(signal),
                    false => process.signal(signal),
                };
                sent.map(|()| 0).map_err(|error| errno(&error))
            }
            HelperRequest::GroupHasMembers(number) => Ok(self.entry(number)?.process.group_has_members().into()),
            HelperRequest::Forget(number) => {
                self.entry(number)?.is_released = true;
                Ok(0)
            }
            HelperRequest::Accounts | HelperRequest::Start { .. } | HelperRequest::Connect => Err(INVALID),
        }
    }

    fn entry(&mut self, number: u64) -> Result<&mut ProcessEntry, i32> {
        self.processes.get_mut(&number).ok_or(UNKNOWN)
    }

    /// Starts a program as one of `accounts`. `request` must be [`HelperRequest::Start`]; the documentation of this
    /// variant lists the descriptors in their order.
    pub fn start(&mut self, request: HelperRequest, descriptors: Vec<OwnedFd>, accounts: &[User]) -> HelperReply {
        let HelperRequest::Start {
            account,
            has_file,
            has_listener,
            parent_death_signal,
        } = request
        else {
            return Err(INVALID);
        };
        let account = accounts.get(usize::from(account)).cloned().ok_or(REFUSED)?;
        let mut descriptors = descriptors.into_iter();
        let mut next = || descriptors.next().ok_or(INVALID);
        let (content, stdin, stdout, stderr) = (File::from(next()?), next()?, next()?, next()?);
        let file = has_file.then(&mut next).transpose()?;
        let listener = has_listener.then(&mut next).transpose()?;
        if descriptors.next().is_some() {
            return Err(INVALID);
        }
        let content = protocol::read_file(&content).map_err(|error| errno(&error))?;
        let program = ProgramSpec::read(&content).ok_or(INVALID)?;
        let launch = Launch {
            account: Account::Other(account),
            program: program.path.into(),
            name: program.name,
            arguments: program.arguments,
            environment: program.environment,
            folder: program.folder.into(),
            stdin,
            stdout,
            stderr,
            file,
            listener: listener.map(|listener| (program.listener, listener)),
            parent_death_signal,
        };
        let process = launch.start().map_err(|error| errno(&error))?;
        self.last_number += 1;
        // The server reads the process ID from the lower 32 bits of the number.
        let number = self.last_number << u32::BITS | u64::from(process.id().unwrap_or_default());
        let entry = ProcessEntry {
            process,
            parent_death_signal,
            is_released: false,
        };
        self.processes.insert(number, entry);
        Ok(number)
    }

    /// Removes the programs that have ended and that the client has released.
    pub fn forget_ended(&mut self) {
        self.processes
            .retain(|_, entry| !entry.is_released || matches!(entry.process.try_wait(), Ok(None)));
    }

    /// Ends all programs by their parent-death signals, because their client has ended.
    pub fn end(self) -> EndingPrograms {
        for entry in self.processes.values() {
            // SIGKILL goes to the whole group, because a killed program cannot end its own children. A program with
            // another signal, such as php-fpm, gets the time to end them itself.
            let _ = match entry.parent_death_signal {
                Signal::KILL => entry.process.signal_group(Signal::KILL),
                signal => entry.process.signal(signal),
            };
        }
        EndingPrograms {
            processes: self.processes.into_values().collect(),
            deadline: Instant::now() + EXIT_TIMEOUT,
        }
    }
}

impl EndingPrograms {
    /// Returns true once all programs have ended or [`EXIT_TIMEOUT`] has passed. Before it returns true, kills the
    /// remaining members of their process groups.
    pub fn have_ended(&mut self) -> bool {
        let is_running = |entry: &mut ProcessEntry| matches!(entry.process.try_wait(), Ok(None));
        if self.processes.iter_mut().any(is_running) && Instant::now() < self.deadline {
            return false;
        }
        for entry in &self.processes {
            let _ = entry.process.signal_group(Signal::KILL);
        }
        true
    }
}

/// Returns the error number of an error; [`INVALID`] if the error has none.
pub(super) fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(INVALID)
}
