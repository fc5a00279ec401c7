//! The helper's side of the protocol: checks each request, executes it, and replies. When the server ends, the helper
//! ends all programs that it started, and then itself.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rocknet_io::fd_channel::{Blocking, FdChannel};
use rocknet_io::privileges::{self, User};
use rustix::process::Signal;

use super::protocol::{self, HelperReply, HelperRequest, MESSAGE_SIZE, ProgramSpec, RUNNING};
use crate::accounts::{Account, Launch, Process};

/// Maximum number of programs that the helper keeps track of. A server needs far fewer: at most 64 CGI programs, and
/// one php-fpm for each pool.
const MAX_PROCESSES: usize = 1024;
/// Time that php-fpm has to end after the server has ended.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Poll interval for the end of programs.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Error number of a reply to a malformed request, or for an error without a number.
const INVALID: i32 = rustix::io::Errno::INVAL.raw_os_error();
/// Error number of a reply to a request that is not permitted.
const REFUSED: i32 = rustix::io::Errno::ACCESS.raw_os_error();
/// Error number of a reply if too many programs run.
const FULL: i32 = rustix::io::Errno::AGAIN.raw_os_error();
/// Error number of a reply if there is no program with the requested number.
const UNKNOWN: i32 = rustix::io::Errno::SRCH.raw_os_error();

/// A program that was started.
struct ProcessEntry {
    process: Process,
    parent_death_signal: Signal,
    /// True if the server sends no more requests about the program. The entry is then removed when the program ends.
    is_released: bool,
}

/// State of the helper.
#[derive(Default)]
struct HelperServer {
    /// Accounts for which programs are started; `None` until they are received.
    accounts: Option<Vec<User>>,
    /// Programs by number.
    processes: BTreeMap<u64, ProcessEntry>,
    /// Number of the program that was started last; 0 before the first.
    last_number: u64,
}

/// Runs the helper on the channel at standard input until the server closes it.
pub fn run() -> ExitCode {
    let Ok(channel) = FdChannel::from_stdin() else {
        return ExitCode::FAILURE;
    };
    if privileges::keep_process_capabilities().is_err() {
        return ExitCode::FAILURE;
    }
    let mut server = HelperServer::default();
    let mut buffer = [0; MESSAGE_SIZE + 1];
    while let Ok(Some((size, descriptors))) = channel.recv_with_fds(&mut buffer) {
        // A malformed request violates the protocol, so the helper ends.
        let Some((sequence, request)) = HelperRequest::read(&buffer[..size]) else {
            break;
        };
        let reply = server.handle(request, descriptors);
        if channel
            .send(&protocol::write_reply(sequence, reply), None, Blocking::Yes)
            .is_err()
        {
            break;
        }
        server.forget_ended();
    }
    server.end();
    ExitCode::SUCCESS
}

impl HelperServer {
    fn handle(&mut self, request: HelperRequest, descriptors: Vec<OwnedFd>) -> HelperReply {
        match request {
            HelperRequest::Accounts => {
                let [file] = <[OwnedFd; 1]>::try_from(descriptors).map_err(|_| INVALID)?;
                if self.accounts.is_some() {
                    return Err(REFUSED);
                }
                let content = protocol::read_file(&File::from(file)).map_err(|error| errno(&error))?;
                self.accounts = Some(protocol::read_accounts(&content).ok_or(INVALID)?);
                Ok(0)
            }
            HelperRequest::Start { .. } => self.start(request, descriptors),
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
        }
    }

    fn entry(&mut self, number: u64) -> Result<&mut ProcessEntry, i32> {
        self.processes.get_mut(&number).ok_or(UNKNOWN)
    }

    fn start(&mut self, request: HelperRequest, descriptors: Vec<OwnedFd>) -> HelperReply {
        let HelperRequest::Start {
            account,
            has_file,
            has_listener,
            parent_death_signal,
        } = request
        else {
            return Err(INVALID);
        };
        let account = self.accounts.as_ref().and_then(|all| all.get(usize::from(account)));
        let account = account.cloned().ok_or(REFUSED)?;
        if self.processes.len() >= MAX_PROCESSES {
            return Err(FULL);
        }
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
        // The server reads the process ID from the number.
        let number = self.last_number << u32::BITS | u64::from(process.id().unwrap_or_default());
        let entry = ProcessEntry {
            process,
            parent_death_signal,
            is_released: false,
        };
        self.processes.insert(number, entry);
        Ok(number)
    }

    fn forget_ended(&mut self) {
        self.processes
            .retain(|_, entry| !entry.is_released || matches!(entry.process.try_wait(), Ok(None)));
    }

    /// Ends all programs after the server has ended: by their parent-death signals, and after [`EXIT_TIMEOUT`] by
    /// SIGKILL.
    fn end(mut self) {
        for entry in self.processes.values() {
            let _ = match entry.parent_death_signal {
                Signal::KILL => entry.process.signal_group(Signal::KILL),
                signal => entry.process.signal(signal),
            };
        }
        let until = Instant::now() + EXIT_TIMEOUT;
        let is_running = |entry: &mut ProcessEntry| matches!(entry.process.try_wait(), Ok(None));
        while self.processes.values_mut().any(is_running) && Instant::now() < until {
            std::thread::sleep(POLL_INTERVAL);
        }
        for entry in self.processes.values() {
            let _ = entry.process.signal_group(Signal::KILL);
        }
    }
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(INVALID)
}

#[cfg(test)]
mod tests {
    use rocknet_io::sealed_file;

    use super::*;

    fn start(account: u8) -> HelperRequest {
        HelperRequest::Start {
            account,
            has_file: false,
            has_listener: false,
            parent_death_signal: Signal::KILL,
        }
    }

    fn null() -> OwnedFd {
        File::options().read(true).write(true).open("/dev/null").unwrap().into()
    }

    fn program_files(content: &[u8]) -> Vec<OwnedFd> {
        vec![sealed_file::create(content).unwrap().into(), null(), null(), null()]
    }

    fn accounts_file(user: &User) -> Vec<OwnedFd> {
        let accounts = protocol::write_accounts(4321, std::slice::from_ref(user));
        vec![sealed_file::create(&accounts).unwrap().into()]
    }

    /// Sends requests that a compromised server might send.
    #[test]
    fn programs_start_only_as_an_account_on_the_list() {
        let user = User {
            name: String::new(),
            uid: 4242,
            gid: 4242,
            groups: vec![4242],
            home: None,
        };
        let program = ProgramSpec {
            path: "/bin/true".into(),
            folder: "/".into(),
            ..ProgramSpec::default()
        };
        let program = program.write();
        let mut server = HelperServer::default();
        assert_eq!(
            server.handle(start(0), program_files(&program)),
            Err(REFUSED),
            "before the list"
        );
        assert_eq!(server.handle(HelperRequest::Accounts, accounts_file(&user)), Ok(0));
        assert_eq!(
            server.handle(HelperRequest::Accounts, accounts_file(&user)),
            Err(REFUSED),
            "a second list"
        );
        assert_eq!(
            server.handle(start(1), program_files(&program)),
            Err(REFUSED),
            "not on the list"
        );
        assert_eq!(server.handle(start(0), program_files(b"torn")), Err(INVALID));
        let mut less = program_files(&program);
        less.pop();
        assert_eq!(server.handle(start(0), less), Err(INVALID));
        let mut more = program_files(&program);
        more.push(null());
        assert_eq!(server.handle(start(0), more), Err(INVALID));
        let mut pipe = program_files(&program);
        pipe[0] = io::pipe().unwrap().0.into();
        assert_eq!(server.handle(start(0), pipe), Err(INVALID), "a pipe instead of a file");
        for request in [
            HelperRequest::TryWait(1),
            HelperRequest::GroupHasMembers(1),
            HelperRequest::Forget(0),
            HelperRequest::Signal {
                number: 1,
                signal: Signal::KILL,
                to_group: true,
            },
        ] {
            assert_eq!(server.handle(request, Vec::new()), Err(UNKNOWN), "{request:?}");
        }
        assert!(server.processes.is_empty());
        let root = User { uid: 0, ..user };
        assert_eq!(
            HelperServer::default().handle(HelperRequest::Accounts, accounts_file(&root)),
            Err(INVALID)
        );
    }
}
